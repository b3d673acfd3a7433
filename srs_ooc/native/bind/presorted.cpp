// Bindings of trees on columns that are sorted once. Twin: trees/kernel.py.
#include "bind/arguments.hpp"
#include "isa.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Matrix, srs::Vector;

namespace {

// What both kinds of jobs have in common; checks it.
template <typename Job>
Job make_job(const Vector<const uint8_t> &codes, int code_nbytes, bool tiled, int64_t n_rows, const Vector<const uint32_t> &features,
             const Vector<const int32_t> &labels, const Vector<const int32_t> &targets, int64_t n_classes, int64_t max_depth,
             int64_t min_samples_leaf, int64_t max_fitted) {
    Job job{};
    job.codes = codes.data();
    job.code_nbytes = code_nbytes;
    job.n_rows = n_rows;
    job.n_columns = static_cast<int64_t>(features.size());
    job.features = features.data();
    job.labels = labels.data();
    job.targets = targets.size() ? targets.data() : nullptr;
    job.n_classes = n_classes;
    job.max_depth = max_depth;
    job.min_samples_leaf = std::clamp<int64_t>(min_samples_leaf, 1, max_fitted + 1);
    const int64_t n_labels = static_cast<int64_t>(labels.size()), n_targets = static_cast<int64_t>(targets.size());
    if (n_rows < 1 || n_rows > srs::MAX_PRESORTED_ROWS || job.n_columns < 1 || (code_nbytes != 1 && code_nbytes != 2) ||
        static_cast<int64_t>(codes.size()) < srs::columns_with_padding(job.n_columns, tiled) * n_rows * code_nbytes)
        throw std::invalid_argument("the block is smaller than its rows times its columns, or has too many rows");
    if (n_labels != n_rows || n_classes < 1 || n_classes > srs::MAX_PRESORTED_CLASSES ||
        (n_targets != 0 && (n_targets != n_rows || n_classes != 1)))
        throw std::invalid_argument("expected a class, or a target, for each row");
    srs::check_below(labels, n_classes, "no such class");
    return job;
}

// Of each split, how many rows are fitted on, each as often as it comes.
std::vector<int64_t> count_fitted(const Matrix<const uint16_t> &times) {
    std::vector<int64_t> n_fitted(times.shape(0), 0);
    for (size_t s = 0; s < times.shape(0); ++s) {
        for (size_t i = 0; i < times.shape(1); ++i) n_fitted[s] += times(s, i);
        if (n_fitted[s] < 1 || n_fitted[s] > srs::MAX_PRESORTED_ROWS)
            throw std::invalid_argument("expected 1 to 32,768 rows to fit on");
    }
    return n_fitted;
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
    const auto n_splits = static_cast<int64_t>(tree_keys.size());
    check_bounds(bounds, places.size(), 1);
    check_bounds(predicted_bounds, predicted.size(), 0);
    if (bounds.size() != losses.size() + 1 || predicted_bounds.size() != tree_keys.size() + 1 ||
        static_cast<int64_t>(times.shape(0)) != n_splits || static_cast<int64_t>(times.shape(1)) != n_rows)
        throw std::invalid_argument("expected a loss for each subset, and rows and a key for each split");
    nb::gil_scoped_release released;
    const std::vector<int64_t> n_fitted = count_fitted(times);
    const int64_t max_fitted = n_splits ? *std::max_element(n_fitted.begin(), n_fitted.end()) : 0;
    auto job = make_job<srs::SubsetJob>(codes, code_nbytes, false, n_rows, features, labels, targets, n_classes, max_depth,
                                        min_samples_leaf, max_fitted);
    srs::check_below(places, job.n_columns, "no such column");
    srs::check_below(predicted, n_rows, "no such row");
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
    job.max_fitted = max_fitted;
    job.max_predicted = widest(predicted_bounds);
    job.losses = losses.data();
    const srs::Scratch scratch = srs::take_scratch(isa.subset_scratch_nbytes(job));
    job.scratch = scratch.get();
    isa.judge_subsets(job);
    return job.complete ? job.n_trees : -1;
}

// Whether the tree was grown: not where a value is missing.
bool grow_sorted(Vector<const uint8_t> codes, int code_nbytes, bool tiled, int64_t n_rows, Vector<const double> values,
                 int64_t n_values, Vector<const uint32_t> features, Vector<const int32_t> fitted,
                 Vector<const int32_t> predicted, Vector<const int32_t> labels, Vector<const int32_t> targets,
                 int64_t n_classes, double root_scale, uint64_t tree_key, int64_t max_depth, int64_t min_samples_leaf,
                 const std::string &isa_name, Vector<int64_t> importance, Matrix<double> shares) {
    const srs::Isa &isa = srs::find_isa(isa_name);
    const auto n_fitted = static_cast<int64_t>(fitted.size()), n_predicted = static_cast<int64_t>(predicted.size());
    nb::gil_scoped_release released;
    auto job = make_job<srs::SortedJob>(codes, code_nbytes, tiled, n_rows, features, labels, targets, n_classes, max_depth,
                                        min_samples_leaf, n_fitted);
    if (n_fitted < 1 || n_fitted > srs::MAX_PRESORTED_ROWS || n_predicted > srs::MAX_PRESORTED_ROWS)
        throw std::invalid_argument("expected 1 to 32,768 rows to fit on");
    if (values.size() && (n_values < 1 || static_cast<int64_t>(values.size()) < job.n_columns * n_values))
        throw std::invalid_argument("expected the values of every column");
    if (static_cast<int64_t>(importance.size()) != job.n_columns || static_cast<int64_t>(shares.shape(0)) != n_predicted ||
        static_cast<int64_t>(shares.shape(1)) != n_classes)
        throw std::invalid_argument("expected room for what is found");
    srs::check_below(fitted, n_rows, "no such row");
    srs::check_below(predicted, n_rows, "no such row");
    job.tiled = tiled;
    job.values = values.size() ? values.data() : nullptr;
    job.n_values = n_values;
    job.fitted = fitted.data();
    job.predicted = predicted.data();
    job.n_fitted = n_fitted;
    job.n_predicted = n_predicted;
    job.root_scale = root_scale;
    job.tree_key = tree_key;
    job.importance = importance.data();
    job.shares = shares.data();
    const srs::Scratch scratch = srs::take_scratch(isa.sorted_scratch_nbytes(job));
    job.scratch = scratch.get();
    isa.grow_sorted(job);
    return job.complete;
}

size_t sorted_scratch_nbytes(int64_t n_rows, int64_t n_columns, int64_t n_fitted, int64_t n_predicted, bool tiled) {
    srs::SortedJob job{};
    job.n_rows = n_rows;
    job.n_columns = n_columns;
    job.n_fitted = n_fitted;
    job.n_predicted = n_predicted;
    job.tiled = tiled;
    return srs::find_isa("").sorted_scratch_nbytes(job);
}

} // namespace

void bind_presorted(nb::module_ &module) {
    module.attr("MAX_PRESORTED_ROWS") = srs::MAX_PRESORTED_ROWS;
    module.attr("MAX_PRESORTED_CLASSES") = srs::MAX_PRESORTED_CLASSES;
    module.def("judge_subsets", &judge_subsets, "codes"_a.noconvert(), "code_nbytes"_a, "n_rows"_a, "features"_a.noconvert(),
               "places"_a.noconvert(), "bounds"_a.noconvert(), "times"_a.noconvert(), "predicted"_a.noconvert(),
               "predicted_bounds"_a.noconvert(), "tree_keys"_a.noconvert(), "labels"_a.noconvert(), "targets"_a.noconvert(),
               "n_classes"_a, "max_depth"_a, "min_samples_leaf"_a, "isa"_a, "losses"_a.noconvert());
    module.def("grow_sorted", &grow_sorted, "codes"_a.noconvert(), "code_nbytes"_a, "tiled"_a, "n_rows"_a,
               "values"_a.noconvert(), "n_values"_a, "features"_a.noconvert(), "fitted"_a.noconvert(),
               "predicted"_a.noconvert(), "labels"_a.noconvert(), "targets"_a.noconvert(), "n_classes"_a, "root_scale"_a,
               "tree_key"_a, "max_depth"_a, "min_samples_leaf"_a, "isa"_a, "importance"_a.noconvert(),
               "shares"_a.noconvert());
    module.def("sorted_scratch_nbytes", &sorted_scratch_nbytes, "n_rows"_a, "n_columns"_a, "n_fitted"_a, "n_predicted"_a,
               "tiled"_a);
}
