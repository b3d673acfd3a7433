// Python binding of subsets.cpp, and the draws of weighted subsets. Twins: trees/subsets.py, samplers/subset_draws.py.
#include "hash.hpp"
#include "isa.hpp"
#include "subsets.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

struct AlignedDelete {
    void operator()(void *p) const { ::operator delete(p, std::align_val_t(64)); }
};

// Rows of each column by ascending code; false if a value is missing.
template <typename Code> bool sort_rows(const Code *codes, int64_t n_columns, int64_t n_rows, uint16_t *sorted) {
    std::vector<uint32_t> keys(static_cast<size_t>(n_rows));
    for (int64_t j = 0; j < n_columns; ++j, codes += n_rows, sorted += n_rows) {
        for (int64_t i = 0; i < n_rows; ++i) {
            if (codes[i] == Code(-1)) return false;
            keys[static_cast<size_t>(i)] = uint32_t(codes[i]) << 16 | static_cast<uint32_t>(i);
        }
        std::sort(keys.begin(), keys.end());
        for (int64_t i = 0; i < n_rows; ++i) sorted[i] = static_cast<uint16_t>(keys[static_cast<size_t>(i)]);
    }
    return true;
}

void check_bounds(const Vector<const int64_t> &bounds, size_t size, int64_t least) {
    bool in_order = bounds.size() >= 1 && bounds(0) == 0 && bounds(bounds.size() - 1) == static_cast<int64_t>(size);
    for (size_t i = 0; in_order && i + 1 < bounds.size(); ++i) in_order = bounds(i + 1) - bounds(i) >= least;
    if (!in_order) throw std::invalid_argument("expected bounds that part what they are of");
}

int64_t widest(const Vector<const int64_t> &bounds) {
    int64_t most = 0;
    for (size_t i = 0; i + 1 < bounds.size(); ++i) most = std::max(most, bounds(i + 1) - bounds(i));
    return most;
}

// Trees that were grown, or -1 where a value is missing.
int64_t judge_subsets(Vector<const uint8_t> codes, int code_nbytes, int64_t n_rows, Vector<const uint32_t> features,
                      Vector<const int32_t> places, Vector<const int64_t> bounds, Matrix<const uint16_t> times,
                      Vector<const uint16_t> predicted, Vector<const int64_t> predicted_bounds,
                      Vector<const uint64_t> tree_keys, Vector<const int32_t> labels, Vector<const int32_t> targets,
                      int64_t n_classes, int64_t max_depth, int64_t min_samples_leaf, const std::string &isa_name,
                      Vector<double> losses) {
    const srs::Isa &isa = srs::find_isa(isa_name);
    const auto n_columns = static_cast<int64_t>(features.size()), n_splits = static_cast<int64_t>(tree_keys.size());
    if (n_rows < 1 || n_rows > srs::MOST_SUBSET_ROWS || (code_nbytes != 1 && code_nbytes != 2) ||
        static_cast<int64_t>(codes.size()) < n_columns * n_rows * code_nbytes)
        throw std::invalid_argument("the block is smaller than its rows times its columns, or has too many rows");
    check_bounds(bounds, places.size(), 1);
    check_bounds(predicted_bounds, predicted.size(), 0);
    if (bounds.size() != losses.size() + 1 || predicted_bounds.size() != tree_keys.size() + 1 ||
        static_cast<int64_t>(times.shape(0)) != n_splits || static_cast<int64_t>(times.shape(1)) != n_rows)
        throw std::invalid_argument("expected a loss for each subset, and rows and a key for each split");
    if (static_cast<int64_t>(labels.size()) != n_rows || n_classes < 1 || n_classes > srs::MOST_CLASSES ||
        (targets.size() != 0 && (static_cast<int64_t>(targets.size()) != n_rows || n_classes != 1)))
        throw std::invalid_argument("expected a class, or a target, for each row");
    nb::gil_scoped_release released;
    for (size_t i = 0; i < places.size(); ++i)
        if (places(i) < 0 || places(i) >= n_columns) throw std::invalid_argument("no such column");
    for (size_t i = 0; i < predicted.size(); ++i)
        if (predicted(i) >= n_rows) throw std::invalid_argument("no such row");
    for (size_t i = 0; i < labels.size(); ++i)
        if (labels(i) < 0 || labels(i) >= n_classes) throw std::invalid_argument("no such class");
    std::vector<int64_t> n_fitted(static_cast<size_t>(n_splits), 0);
    for (int64_t s = 0; s < n_splits; ++s) {
        for (int64_t i = 0; i < n_rows; ++i) n_fitted[static_cast<size_t>(s)] += times(s, i);
        if (n_fitted[static_cast<size_t>(s)] < 1 || n_fitted[static_cast<size_t>(s)] > srs::MOST_SUBSET_ROWS)
            throw std::invalid_argument("expected 1 to 32,768 rows to fit on");
    }
    std::vector<uint16_t> sorted(static_cast<size_t>(n_columns * n_rows));
    const bool complete = code_nbytes == 1
                              ? sort_rows(codes.data(), n_columns, n_rows, sorted.data())
                              : sort_rows(reinterpret_cast<const uint16_t *>(codes.data()), n_columns, n_rows, sorted.data());
    if (!complete) return -1;
    srs::SubsetJob job{};
    job.codes = codes.data();
    job.code_nbytes = code_nbytes;
    job.n_rows = n_rows;
    job.sorted = sorted.data();
    job.features = features.data();
    job.places = places.data();
    job.bounds = bounds.data();
    job.n_subsets = static_cast<int64_t>(losses.size());
    job.largest = widest(bounds);
    job.times = times.data();
    job.n_fitted = n_fitted.data();
    job.predicted = predicted.data();
    job.predicted_bounds = predicted_bounds.data();
    job.tree_keys = tree_keys.data();
    job.n_splits = n_splits;
    job.most_fitted = n_splits ? *std::max_element(n_fitted.begin(), n_fitted.end()) : 0;
    job.most_predicted = widest(predicted_bounds);
    job.labels = labels.data();
    job.targets = targets.size() ? targets.data() : nullptr;
    job.n_classes = n_classes;
    job.max_depth = max_depth;
    job.min_samples_leaf = std::clamp<int64_t>(min_samples_leaf, 1, job.most_fitted + 1);
    job.losses = losses.data();
    std::unique_ptr<void, AlignedDelete> scratch(::operator new(isa.subset_scratch_nbytes(job), std::align_val_t(64)));
    job.scratch = scratch.get();
    isa.judge_subsets(job);
    return job.n_trees;
}

// ---- drawing ----------------------------------------------------------------------------------

constexpr double UNIT = 0x1p-53;

// Features of V, ascending, of which some, `heavy`, have weights of their own; all others weigh the same.
struct Weights {
    uint64_t n_candidates;
    const uint32_t *heavy;
    const int32_t *counts;
    size_t n_heavy;
    double unit, light; // weight of a count; of each other feature

    bool is_heavy(uint32_t item) const { return std::binary_search(heavy, heavy + n_heavy, item); }
};

// One subset; `taken` are places among the heavy ones.
void draw_subset(const Weights &weights, uint64_t key, uint64_t size, std::vector<uint32_t> &out, std::vector<uint8_t> &taken) {
    std::fill(taken.begin(), taken.end(), uint8_t(0));
    const size_t begin = out.size();
    uint64_t counter = 1, left = 0, n_light = weights.n_candidates - weights.n_heavy;
    for (size_t i = 0; i < weights.n_heavy; ++i) left += static_cast<uint64_t>(weights.counts[i]);
    while (out.size() - begin < size) {
        const double heavy = static_cast<double>(left) * weights.unit, light = static_cast<double>(n_light) * weights.light;
        const double uniform = static_cast<double>(srs::derive(key, counter++) >> 11) * UNIT;
        if (left > 0 && (n_light == 0 || uniform * (heavy + light) < heavy)) {
            uint64_t place = srs::scale_below(srs::derive(key, counter++), left);
            size_t i = 0;
            for (;; ++i) {
                if (taken[i]) continue;
                const auto count = static_cast<uint64_t>(weights.counts[i]);
                if (place < count) break;
                place -= count;
            }
            taken[i] = 1;
            left -= static_cast<uint64_t>(weights.counts[i]);
            out.push_back(weights.heavy[i]);
        } else {
            const auto drawn = [&](uint32_t item) {
                return std::find(out.begin() + static_cast<ptrdiff_t>(begin), out.end(), item) != out.end();
            };
            uint32_t item;
            do item = static_cast<uint32_t>(srs::scale_below(srs::derive(key, counter++), weights.n_candidates));
            while (weights.is_heavy(item) || drawn(item));
            --n_light;
            out.push_back(item);
        }
    }
    std::sort(out.begin() + static_cast<ptrdiff_t>(begin), out.end());
}

// Subsets first .. first + bounds.size() - 2 of a sequence; writes where each begins, returns their members.
nb::bytes draw_subsets(uint64_t key, uint64_t first, uint64_t largest, uint64_t n_candidates, Vector<const uint32_t> heavy,
                       Vector<const int32_t> counts, double unit, double light, Vector<int64_t> bounds) {
    if (largest < 1 || largest > n_candidates || n_candidates >= 0xFFFFFFFFull || heavy.size() != counts.size() ||
        heavy.size() > n_candidates || bounds.size() < 1 || !(unit > 0) || !(light > 0))
        throw std::invalid_argument("cannot draw such subsets");
    for (size_t i = 0; i < heavy.size(); ++i)
        if (counts(i) < 1 || heavy(i) >= n_candidates || (i > 0 && heavy(i) <= heavy(i - 1)))
            throw std::invalid_argument("expected ascending features, each with a weight above 0");
    std::vector<uint32_t> members;
    {
        nb::gil_scoped_release released;
        const Weights weights{n_candidates, heavy.data(), counts.data(), heavy.size(), unit, light};
        std::vector<uint8_t> taken(heavy.size());
        bounds(0) = 0;
        for (size_t s = 0; s + 1 < bounds.size(); ++s) {
            const uint64_t own = srs::derive(key, first + s);
            draw_subset(weights, own, 1 + srs::scale_below(srs::derive(own, 0), largest), members, taken);
            bounds(s + 1) = static_cast<int64_t>(members.size());
        }
    }
    return nb::bytes(reinterpret_cast<const char *>(members.data()), members.size() * sizeof(uint32_t));
}

} // namespace

void bind_subsets(nb::module_ &module) {
    module.attr("MOST_SUBSET_ROWS") = srs::MOST_SUBSET_ROWS;
    module.attr("MOST_SUBSET_CLASSES") = srs::MOST_CLASSES;
    module.def("judge_subsets", &judge_subsets, "codes"_a.noconvert(), "code_nbytes"_a, "n_rows"_a, "features"_a.noconvert(),
               "places"_a.noconvert(), "bounds"_a.noconvert(), "times"_a.noconvert(), "predicted"_a.noconvert(),
               "predicted_bounds"_a.noconvert(), "tree_keys"_a.noconvert(), "labels"_a.noconvert(), "targets"_a.noconvert(),
               "n_classes"_a, "max_depth"_a, "min_samples_leaf"_a, "isa"_a, "losses"_a.noconvert());
    module.def("draw_subsets", &draw_subsets, "key"_a, "first"_a, "largest"_a, "n_candidates"_a, "heavy"_a.noconvert(),
               "counts"_a.noconvert(), "unit"_a, "light"_a, "bounds"_a.noconvert());
}
