// Python binding of the tree kernel: picks the instruction set, owns the scratch memory, drops the GIL.
#include "hash.hpp"
#include "tree_bytes.hpp"
#include "trees.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct Isa {
    const char *name;
    void (*grow)(srs::GrowJob &);
    size_t (*scratch_nbytes)(srs::GrowJob &);
};

// The instruction sets this machine can run, best first.
const std::vector<Isa> &isas() {
    static const std::vector<Isa> available = [] {
        std::vector<Isa> list;
#ifdef SRS_HAVE_AVX512
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
            list.push_back({"avx512", srs::avx512::grow, srs::avx512::scratch_nbytes});
#endif
#ifdef SRS_HAVE_AVX2
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
            list.push_back({"avx2", srs::avx2::grow, srs::avx2::scratch_nbytes});
#endif
        list.push_back({"baseline", srs::baseline::grow, srs::baseline::scratch_nbytes});
        return list;
    }();
    return available;
}

const Isa &find_isa(const std::string &name) {
    for (const Isa &isa : isas())
        if (name.empty() || name == isa.name) return isa;
    throw std::invalid_argument("instruction set '" + name + "' is not available on this machine");
}

struct AlignedDelete {
    void operator()(void *p) const { ::operator delete(p, std::align_val_t(64)); }
};

nb::tuple grow(Vector<const uint8_t> codes, int code_nbytes, bool tiled, int64_t n_rows, Vector<const uint32_t> features,
               Vector<const int32_t> rows, Vector<const int64_t> class_counts, uint64_t tree_key, int64_t max_features,
               int64_t max_depth, int64_t min_samples_leaf, int impurity, Vector<const int64_t> xlogx,
               Vector<int64_t> importance, const std::string &isa_name, int64_t record_leaves) {
    const Isa &isa = find_isa(isa_name);
    srs::GrowJob job{};
    job.codes = codes.data();
    job.code_nbytes = code_nbytes;
    job.tiled = tiled;
    job.n_rows = n_rows;
    job.n_columns = static_cast<int64_t>(features.size());
    job.features = features.data();
    job.rows = rows.data();
    job.n_root_rows = static_cast<int64_t>(rows.size());
    job.class_counts = class_counts.data();
    job.n_classes = static_cast<int64_t>(class_counts.size());
    job.tree_key = tree_key;
    job.max_features = max_features;
    job.max_depth = max_depth;
    // No leaf can hold more than all rows: larger bounds mean the same, and cannot overflow.
    job.min_samples_leaf = std::clamp<int64_t>(min_samples_leaf, 1, job.n_root_rows + 1);
    job.impurity = static_cast<srs::Impurity>(impurity);
    job.xlogx = xlogx.data();
    job.importance = importance.data();
    const int64_t columns = tiled ? (job.n_columns + srs::TILE - 1) / srs::TILE * srs::TILE : job.n_columns;
    if (static_cast<int64_t>(codes.size()) < columns * n_rows * code_nbytes)
        throw std::invalid_argument("the block is smaller than its rows times its columns");
    if (static_cast<int64_t>(importance.size()) < job.n_columns)
        throw std::invalid_argument("importance is shorter than the number of columns");
    if (reinterpret_cast<uintptr_t>(job.codes) % 64 != 0 && tiled)
        throw std::invalid_argument("a tiled block must be aligned to 64 bytes");
    std::vector<int32_t> order(features.size());
    std::string bytes;
    {
        nb::gil_scoped_release released;
        std::iota(order.begin(), order.end(), 0);
        const auto before = [&](int32_t a, int32_t b) { return job.features[a] < job.features[b]; };
        if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
        job.order = order.data();
        std::unique_ptr<void, AlignedDelete> scratch(::operator new(isa.scratch_nbytes(job), std::align_val_t(64)));
        job.scratch = scratch.get();
        srs::RecordMemory memory(record_leaves, job.n_root_rows, job.n_classes);
        job.record = record_leaves > 0 ? &memory.record : nullptr;
        isa.grow(job);
        if (job.record) srs::encode_tree(memory.record, job.features, bytes);
    }
    nb::object record = job.record ? nb::object(nb::bytes(bytes.data(), bytes.size())) : nb::none();
    return nb::make_tuple(job.n_nodes, job.n_leaves, job.depth, record);
}

size_t scratch_nbytes(int64_t n_root_rows, int64_t n_columns, int64_t n_classes, int code_nbytes) {
    srs::GrowJob job{};
    job.n_root_rows = n_root_rows;
    job.n_columns = n_columns;
    job.n_classes = n_classes;
    job.code_nbytes = code_nbytes;
    return find_isa("").scratch_nbytes(job);
}

} // namespace

void bind_trees(nb::module_ &module) {
    module.attr("TILE") = srs::TILE;
    module.attr("IMPORTANCE_BITS") = srs::IMPORTANCE_BITS;
    module.attr("ENTROPY_BITS") = srs::ENTROPY_BITS;
    module.def("isas", [] {
        std::vector<std::string> names;
        for (const Isa &isa : isas()) names.emplace_back(isa.name);
        return names;
    });
    module.def("grow", &grow, "codes"_a, "code_nbytes"_a, "tiled"_a, "n_rows"_a, "features"_a, "rows"_a,
               "class_counts"_a, "tree_key"_a, "max_features"_a, "max_depth"_a, "min_samples_leaf"_a, "impurity"_a,
               "xlogx"_a, "importance"_a, "isa"_a, "record_leaves"_a);
    module.def("scratch_nbytes", &scratch_nbytes, "n_root_rows"_a, "n_columns"_a, "n_classes"_a, "code_nbytes"_a);
}
