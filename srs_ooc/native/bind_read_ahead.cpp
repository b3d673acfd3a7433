// Python binding that asks the system for columns of the store's files before they are needed.
#include "arrays.hpp"

#include <algorithm>
#include <fcntl.h>
#include <stdexcept>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Vector;

namespace {

constexpr int64_t PAGE_NBYTES = 4096; // columns less than a page apart are asked for together

inline void ask_for(int descriptor, int64_t offset, int64_t nbytes) {
#if defined(POSIX_FADV_WILLNEED)
    posix_fadvise(descriptor, offset, nbytes, POSIX_FADV_WILLNEED);
#elif defined(F_RDADVISE)
    radvisory advice{offset, static_cast<int>(nbytes)};
    fcntl(descriptor, F_RDADVISE, &advice);
#endif
}

// Ask the system to read columns, ascending ones in the fewest requests, and do not wait for them; how many requests.
int64_t advise_files(Vector<const int32_t> descriptors, Vector<const uint32_t> features, int64_t chunk_features,
                     int64_t column_nbytes) {
    nb::gil_scoped_release released;
    const auto n = static_cast<int64_t>(features.size()), n_chunks = static_cast<int64_t>(descriptors.size());
    int64_t n_requests = 0;
    for (int64_t i = 0; i < n;) {
        const int64_t chunk = features.data()[i] / chunk_features;
        if (chunk >= n_chunks) throw std::invalid_argument("a feature is beyond the last chunk");
        const int64_t begin = features.data()[i] % chunk_features * column_nbytes;
        int64_t end = begin + column_nbytes;
        for (++i; i < n && features.data()[i] / chunk_features == chunk; ++i) {
            const int64_t next = features.data()[i] % chunk_features * column_nbytes;
            if (next < begin || next >= end + PAGE_NBYTES) break;
            end = std::max(end, next + column_nbytes);
        }
        ask_for(descriptors.data()[chunk], begin, end - begin);
        ++n_requests;
    }
    return n_requests;
}

} // namespace

void bind_read_ahead(nb::module_ &module) {
    module.def("advise_files", &advise_files, "descriptors"_a, "features"_a, "chunk_features"_a, "column_nbytes"_a);
}
