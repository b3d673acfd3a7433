// Bindings that fill a block with columns of the store, mapped or read, and copy columns within it.
#include "bind/training.hpp"
#include "bind/thread_team.hpp"
#include "gather/bus_guard.hpp"
#include "gather/fill.hpp"
#include "gather/genotypes.hpp"
#include "hash.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <fcntl.h>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::GatherRequest, srs::TILE, srs::Vector;

namespace {

template <typename Sources>
GatherRequest make_request(const Vector<const uint32_t> &features, int64_t n_features, int64_t chunk_features, int64_t n_rows, const Vector<const int32_t> &rows, int64_t code_nbytes,
                           bool tiled, const Vector<uint8_t> &out, const Sources &sources) {
    GatherRequest request{};
    request.features = features.data();
    request.n_columns = static_cast<int64_t>(features.size());
    request.n_features = n_features;
    request.chunk_features = chunk_features;
    request.n_rows = n_rows;
    request.rows = rows.size() ? rows.data() : nullptr;
    request.is_ascending = std::is_sorted(rows.data(), rows.data() + rows.size());
    request.n_kept = rows.size() ? static_cast<int64_t>(rows.size()) : n_rows;
    request.code_nbytes = code_nbytes;
    request.tiled = tiled;
    request.out = out.data();
    srs::expect_between("n_features", n_features, 1, UINT32_MAX);
    srs::expect_between("chunk_features", chunk_features, 1, INT32_MAX); // times the bytes of a column: 63 bits
    srs::expect_between("n_rows", n_rows, 1, INT32_MAX); // of the store
    srs::expect_block("out", out, request.n_columns, request.n_kept, code_nbytes, tiled);
    if ((n_features - 1) / chunk_features >= static_cast<int64_t>(sources.size()))
        throw std::invalid_argument("feature " + std::to_string(n_features - 1) + " is beyond the last chunk");
    srs::expect_below("features", features, n_features);
    srs::expect_below("rows", rows, n_rows);
    return request;
}

// Threads share the tiles of a block that is worth it.
template <typename Fill> void in_parts(const GatherRequest &request, int n_threads, const Fill &fill) {
    std::mutex mutex;
    std::exception_ptr failure;
    const int64_t n_tiles = (request.n_columns + TILE - 1) / TILE;
    srs::in_threads(n_tiles, request.is_large() ? n_threads : 1, [&](int64_t first, int64_t last) {
        try {
            fill(request.tiles(first, last));
        } catch (...) {
            std::lock_guard<std::mutex> lock(mutex);
            failure = std::current_exception();
        }
    });
    if (failure) std::rethrow_exception(failure);
}

void gather_mapped(Vector<const uint64_t> addresses, Vector<const uint32_t> features, int64_t n_features, int64_t chunk_features, int64_t n_rows, Vector<const int32_t> rows,
                   int64_t code_nbytes, bool tiled, Vector<uint8_t> out, const std::string &isa_name) {
    const srs::Isa &isa = srs::find_isa(isa_name);
    const GatherRequest request = make_request(features, n_features, chunk_features, n_rows, rows, code_nbytes, tiled,
                                               out, addresses);
    for (size_t i = 0; i < addresses.size(); ++i)
        if (addresses(i) == 0 || addresses(i) % static_cast<uint64_t>(code_nbytes) != 0)
            srs::refuse("addresses[" + std::to_string(i) + "]", "where a chunk file is mapped", std::to_string(addresses(i)));
    nb::gil_scoped_release released;
    const bool is_whole = srs::with_code(code_nbytes, [&](auto code) {
        srs::GatherRoom<decltype(code)> room(request);
        srs::MappedChunks source(request, addresses.data());
        return srs::guarded([&] { srs::fill(request, isa, source, room); });
    });
    if (is_whole) return;
    const int64_t chunk_nbytes = chunk_features * n_rows * code_nbytes;
    std::string which = "a chunk file";
    for (size_t i = 0; i < addresses.size(); ++i)
        if (srs::bus_guard.address - addresses(i) < static_cast<uint64_t>(chunk_nbytes))
            which = "chunk file " + std::to_string(i);
    throw std::runtime_error(which + ": expected " + std::to_string(chunk_nbytes) +
                             " bytes, found that it was cut short, or cannot be read");
}

void gather_files(Vector<const int32_t> descriptors, Vector<const uint32_t> features, int64_t n_features, int64_t chunk_features, int64_t n_rows, Vector<const int32_t> rows,
                  int64_t code_nbytes, bool tiled, Vector<uint8_t> out, const std::string &isa_name, int n_threads) {
    const srs::Isa &isa = srs::find_isa(isa_name);
    const GatherRequest request = make_request(features, n_features, chunk_features, n_rows, rows, code_nbytes, tiled,
                                               out, descriptors);
    nb::gil_scoped_release released;
    in_parts(request, n_threads, [&](const GatherRequest &part) {
        srs::with_code(code_nbytes, [&](auto code) {
            srs::GatherRoom<decltype(code)> room(part);
            srs::ChunkFiles source(part, descriptors.data());
            srs::fill(part, isa, source, room);
        });
    });
}

// Variants of a .bed file of `n_rows` samples: mapped where there is an address, else read.
void gather_genotypes(Vector<const uint64_t> addresses, Vector<const int32_t> descriptors, Vector<const uint8_t> present, Vector<const uint32_t> features, int64_t n_rows,
                      Vector<const int32_t> rows, bool tiled, Vector<uint8_t> out, const std::string &isa_name, int n_threads) {
    if (!addresses.size() && !descriptors.size()) srs::refuse("descriptors", "that of a file, or its address", "none");
    const srs::Isa &isa = srs::find_isa(isa_name);
    const auto n_features = static_cast<int64_t>(present.size());
    const GatherRequest request = make_request(features, n_features, n_features, n_rows, rows, 1, tiled, out,
                                               std::array<int32_t, 1>{});
    const auto *file = addresses.size() ? reinterpret_cast<const uint8_t *>(addresses(0)) : nullptr;
    const int32_t descriptor = file ? -1 : descriptors(0);
    nb::gil_scoped_release released;
    in_parts(request, n_threads, [&](const GatherRequest &part) {
        srs::GatherRoom<uint8_t> room(part);
        srs::GenotypeLines source(part, isa, file, descriptor, present.data());
        if (!file) srs::fill<uint8_t>(part, isa, source, room);
        else if (!srs::guarded([&] { srs::fill<uint8_t>(part, isa, source, room); }))
            throw std::runtime_error("the .bed file was cut short, or cannot be read");
    });
}

// Counts of the dosages 0, 1, 2 of each of some lines, of the samples that `kept` has as 01.
void count_genotypes(Vector<const uint8_t> lines, Vector<const uint8_t> kept, Vector<uint32_t> out) {
    const auto n = static_cast<int64_t>(out.size()) / srs::N_DOSAGES, nbytes = static_cast<int64_t>(kept.size());
    if (static_cast<int64_t>(out.size()) != n * srs::N_DOSAGES || static_cast<int64_t>(lines.size()) != n * nbytes)
        srs::refuse("out", "three counts of each line", std::to_string(out.size()));
    nb::gil_scoped_release released;
    for (int64_t i = 0; i < n; ++i)
        srs::count_dosages(lines.data() + i * nbytes, kept.data(), nbytes, out.data() + i * srs::N_DOSAGES);
}

// Values as lines of a .bed file; returns the place of the first that is none of 0, 1, 2 and NaN, or -1.
int64_t pack_genotypes(srs::AnyMatrix values, Vector<uint8_t> out) {
    const auto n = static_cast<int64_t>(values.shape(0)), n_rows = static_cast<int64_t>(values.shape(1));
    srs::expect_size("out", out, n * srs::bed_line_nbytes(n_rows));
    return srs::with_dtype<float, double>("values", values, [&](auto value) {
        const auto *all = static_cast<const decltype(value) *>(values.data());
        nb::gil_scoped_release released;
        for (int64_t i = 0; i < n; ++i) {
            const int64_t found = srs::pack_dosages(all + i * n_rows, n_rows, out.data() + i * srs::bed_line_nbytes(n_rows));
            if (found < n_rows) return i * n_rows + found;
        }
        return int64_t{-1};
    });
}

// Lines of a file from `offset` on, each of `nbytes`, neighbours in one read.
void read_lines(Vector<const int32_t> descriptors, int64_t offset, int64_t nbytes, Vector<const int64_t> positions, Vector<uint8_t> out) {
    const auto n = static_cast<int64_t>(positions.size());
    srs::expect_size("descriptors", descriptors, 1);
    srs::expect_between("offset", offset, 0, INT64_MAX / 2);
    srs::expect_between("nbytes", nbytes, 1, int64_t{1} << 40);
    srs::expect_below("positions", positions, INT64_MAX / 2 / nbytes);
    srs::expect_size("out", out, n * nbytes);
    const int32_t descriptor = descriptors(0);
    nb::gil_scoped_release released;
    for (int64_t i = 0, run = 1; i < n; i += run) {
        for (run = 1; i + run < n && positions(i + run) == positions(i) + run;) ++run;
        srs::read_fully(descriptor, offset + positions(i) * nbytes, run * nbytes, out.data() + i * nbytes, [] { return std::string("lines"); });
    }
}

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
    srs::expect_between("chunk_features", chunk_features, 1, INT32_MAX);
    srs::expect_between("column_nbytes", column_nbytes, 1, UINT32_MAX);
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

// The probe, a column of a block with its rows permuted: Fisher-Yates from the end, as tests/helpers/tree_reference.py `shuffled`.
template <typename Code> void shuffle_column(const Code *from, Code *to, int64_t n_rows, int64_t stride, uint64_t key) {
    std::vector<Code> column(static_cast<size_t>(n_rows));
    for (int64_t i = 0; i < n_rows; ++i) column[static_cast<size_t>(i)] = from[i * stride];
    for (int64_t i = n_rows - 1; i > 0; --i) {
        const auto j = srs::scale_below(srs::derive(key, static_cast<uint64_t>(i)), static_cast<uint64_t>(i) + 1);
        std::swap(column[static_cast<size_t>(i)], column[j]);
    }
    for (int64_t i = 0; i < n_rows; ++i) to[i * stride] = column[static_cast<size_t>(i)];
}

void copy_shuffled(srs::Block &block, int64_t source, int64_t target, uint64_t key) {
    srs::expect_between("source", source, 0, block.n_columns - 1);
    srs::expect_between("target", target, 0, block.n_columns - 1);
    nb::gil_scoped_release released;
    const int64_t stride = block.tiled ? TILE : 1, from = block.place(source, 0), to = block.place(target, 0);
    srs::with_code(block.code_nbytes, [&](auto code) {
        auto *codes = reinterpret_cast<decltype(code) *>(block.codes.data());
        shuffle_column(codes + from, codes + to, block.n_rows, stride, key);
    });
}

} // namespace

void bind_gather(nb::module_ &module) {
    srs::define(module, "gather_mapped", &gather_mapped, "addresses"_a, "features"_a, "n_features"_a, "chunk_features"_a, "n_rows"_a, "rows"_a, "code_nbytes"_a, "tiled"_a, "out"_a, "isa"_a = "");
    srs::define(module, "gather_files", &gather_files, "descriptors"_a, "features"_a, "n_features"_a, "chunk_features"_a, "n_rows"_a, "rows"_a, "code_nbytes"_a, "tiled"_a, "out"_a, "isa"_a = "", "n_threads"_a = 1);
    srs::define(module, "gather_genotypes", &gather_genotypes, "addresses"_a, "descriptors"_a, "present"_a, "features"_a, "n_rows"_a, "rows"_a, "tiled"_a, "out"_a, "isa"_a = "", "n_threads"_a = 1);
    srs::define(module, "pack_genotypes", &pack_genotypes, "values"_a, "out"_a);
    srs::define(module, "count_genotypes", &count_genotypes, "lines"_a, "kept"_a, "out"_a);
    srs::define(module, "read_lines", &read_lines, "descriptors"_a, "offset"_a, "nbytes"_a, "positions"_a, "out"_a);
    srs::define(module, "advise_files", &advise_files, "descriptors"_a, "features"_a, "chunk_features"_a, "column_nbytes"_a);
    srs::define(module, "copy_shuffled", &copy_shuffled, "block"_a, "source"_a, "target"_a, "key"_a);
}
