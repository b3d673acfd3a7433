// Bindings of trees on columns that are sorted once. Twin: trees/kernel.py.
#include "bind/arguments.hpp"
#include "isa.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
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
    srs::expect_between("n_rows", n_rows, 1, srs::MAX_PRESORTED_ROWS);
    srs::expect_between("features, how many", job.n_columns, 1, UINT32_MAX);
    srs::expect_between("n_classes", n_classes, 1, targets.size() ? 1 : srs::MAX_PRESORTED_CLASSES);
    srs::expect_block("codes", codes, job.n_columns, n_rows, code_nbytes, tiled);
    srs::expect_size("labels", labels, n_rows);
    srs::expect_size_or_none("targets", targets, n_rows);
    srs::expect_below("labels", labels, n_classes);
    return job;
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
    srs::expect_bounds("bounds", bounds, static_cast<int64_t>(places.size()), 1);
    srs::expect_bounds("predicted_bounds", predicted_bounds, static_cast<int64_t>(predicted.size()), 0);
    srs::expect_size("losses", losses, static_cast<int64_t>(bounds.size()) - 1);
    srs::expect_size("predicted_bounds", predicted_bounds, n_splits + 1);
    srs::expect_shape("times", times, n_splits, n_rows);
    nb::gil_scoped_release released;
    std::vector<int64_t> n_fitted(times.shape(0), 0); // of each split, each row as often as it comes
    int64_t max_fitted = 0;
    for (size_t s = 0; s < times.shape(0); ++s) {
        for (size_t i = 0; i < times.shape(1); ++i) n_fitted[s] += times(s, i);
        srs::expect_between("times, the sum of row", n_fitted[s], 1, srs::MAX_PRESORTED_ROWS, int64_t(s));
        max_fitted = std::max(max_fitted, n_fitted[s]);
    }
    auto job = make_job<srs::SubsetJob>(codes, code_nbytes, false, n_rows, features, labels, targets, n_classes, max_depth,
                                        min_samples_leaf, max_fitted);
    srs::expect_below("places", places, job.n_columns);
    srs::expect_below("predicted", predicted, n_rows);
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
    srs::expect_between("fitted, how many", n_fitted, 1, srs::MAX_PRESORTED_ROWS);
    srs::expect_between("predicted, how many", n_predicted, 0, srs::MAX_PRESORTED_ROWS);
    if (values.size()) {
        srs::expect_between("n_values", n_values, 1, INT32_MAX);
        srs::expect_room("values", values, job.n_columns, n_values);
    }
    srs::expect_finite("root_scale", root_scale);
    srs::expect_size("importance", importance, job.n_columns);
    srs::expect_shape("shares", shares, n_predicted, n_classes);
    srs::expect_below("fitted", fitted, n_rows);
    srs::expect_below("predicted", predicted, n_rows);
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
    for (const int64_t count : {n_rows, n_fitted, n_predicted}) srs::expect_between("a number of rows", count, 0, INT32_MAX);
    srs::expect_between("n_columns", n_columns, 0, UINT32_MAX);
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
    srs::define(module, "judge_subsets", &judge_subsets, "codes"_a, "code_nbytes"_a, "n_rows"_a, "features"_a, "places"_a,
               "bounds"_a, "times"_a, "predicted"_a, "predicted_bounds"_a, "tree_keys"_a, "labels"_a, "targets"_a,
               "n_classes"_a, "max_depth"_a, "min_samples_leaf"_a, "isa"_a, "losses"_a);
    srs::define(module, "grow_sorted", &grow_sorted, "codes"_a, "code_nbytes"_a, "tiled"_a, "n_rows"_a, "values"_a, "n_values"_a,
               "features"_a, "fitted"_a, "predicted"_a, "labels"_a, "targets"_a, "n_classes"_a, "root_scale"_a, "tree_key"_a,
               "max_depth"_a, "min_samples_leaf"_a, "isa"_a, "importance"_a, "shares"_a);
    srs::define(module, "sorted_scratch_nbytes", &sorted_scratch_nbytes, "n_rows"_a, "n_columns"_a, "n_fitted"_a, "n_predicted"_a,
               "tiled"_a);
}
