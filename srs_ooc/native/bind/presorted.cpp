// Bindings of trees on columns that are sorted once. Twin: trees/kernel.py.
#include "bind/training.hpp"
#include "isa.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Matrix, srs::Vector;

namespace {

// What both kinds of jobs have in common; checks it.
template <typename Job>
Job make_job(const srs::Block &block, const Vector<const uint32_t> &features, const srs::Response &response,
             const srs::TreeLimits &limits, int64_t max_fitted) {
    Job job{};
    block.give(job, features);
    limits.give(job, max_fitted);
    job.labels = response.labels.data();
    job.targets = response.regression ? response.channels.data() : nullptr;
    job.n_classes = response.n_classes;
    srs::expect_between("n_rows", job.n_rows, 1, srs::MAX_PRESORTED_ROWS);
    srs::expect_between("features, how many", job.n_columns, 1, UINT32_MAX);
    srs::expect_between("n_classes", job.n_classes, 1, srs::MAX_PRESORTED_CLASSES);
    srs::expect_between("rows of the response", response.n_rows, job.n_rows, job.n_rows);
    srs::expect_between("n_channels", response.n_channels, response.regression, response.regression); // no weights
    return job;
}

int64_t widest(const Vector<const int64_t> &bounds) {
    int64_t most = 0;
    for (size_t i = 0; i + 1 < bounds.size(); ++i) most = std::max(most, bounds(i + 1) - bounds(i));
    return most;
}

// Trees that were grown, or -1 where a value is missing.
int64_t judge_subsets(const srs::Block &block, Vector<const uint32_t> features, Vector<const int32_t> places,
                      Vector<const int64_t> bounds, Matrix<const uint16_t> times, Vector<const uint16_t> predicted,
                      Vector<const int64_t> predicted_bounds, Vector<const uint64_t> tree_keys, const srs::Response &response,
                      const srs::TreeLimits &limits, const std::string &isa_name, Vector<double> losses) {
    const srs::Isa &isa = srs::find_isa(isa_name);
    if (block.tiled || block.values.size()) srs::refuse("block", "plain columns without values", "others");
    const auto n_splits = static_cast<int64_t>(tree_keys.size());
    srs::expect_bounds("bounds", bounds, static_cast<int64_t>(places.size()), 1);
    srs::expect_bounds("predicted_bounds", predicted_bounds, static_cast<int64_t>(predicted.size()), 0);
    srs::expect_size("losses", losses, static_cast<int64_t>(bounds.size()) - 1);
    srs::expect_size("predicted_bounds", predicted_bounds, n_splits + 1);
    srs::expect_shape("times", times, n_splits, block.n_rows);
    nb::gil_scoped_release released;
    std::vector<int64_t> n_fitted(times.shape(0), 0); // of each split, each row as often as it comes
    int64_t max_fitted = 0;
    for (size_t s = 0; s < times.shape(0); ++s) {
        for (size_t i = 0; i < times.shape(1); ++i) n_fitted[s] += times(s, i);
        srs::expect_between("times, the sum of row", n_fitted[s], 1, srs::MAX_PRESORTED_ROWS, int64_t(s));
        max_fitted = std::max(max_fitted, n_fitted[s]);
    }
    auto job = make_job<srs::SubsetJob>(block, features, response, limits, max_fitted);
    srs::expect_below("places", places, job.n_columns);
    srs::expect_below("predicted", predicted, block.n_rows);
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
bool grow_sorted(const srs::Block &block, Vector<const uint32_t> features, const srs::TrainingRows &rows,
                 Vector<const int32_t> predicted, const srs::TreeLimits &limits, uint64_t tree_key, const std::string &isa_name,
                 Vector<int64_t> importance, Matrix<double> shares) {
    const srs::Isa &isa = srs::find_isa(isa_name);
    const auto n_predicted = static_cast<int64_t>(predicted.size());
    nb::gil_scoped_release released;
    auto job = make_job<srs::SortedJob>(block, features, rows.response, limits, rows.size());
    srs::expect_between("rows, how many", rows.size(), 1, srs::MAX_PRESORTED_ROWS);
    srs::expect_between("predicted, how many", n_predicted, 0, srs::MAX_PRESORTED_ROWS);
    srs::expect_size("importance", importance, job.n_columns);
    srs::expect_shape("shares", shares, n_predicted, job.n_classes);
    srs::expect_below("predicted", predicted, job.n_rows);
    job.fitted = rows.order.data();
    job.predicted = predicted.data();
    job.n_fitted = rows.size();
    job.n_predicted = n_predicted;
    job.root_scale = rows.root_scale;
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
    srs::define(module, "judge_subsets", &judge_subsets, "block"_a, "features"_a, "places"_a, "bounds"_a, "times"_a, "predicted"_a,
                "predicted_bounds"_a, "tree_keys"_a, "response"_a, "limits"_a, "isa"_a, "losses"_a);
    srs::define(module, "grow_sorted", &grow_sorted, "block"_a, "features"_a, "rows"_a, "predicted"_a, "limits"_a, "tree_key"_a,
                "isa"_a, "importance"_a, "shares"_a);
    srs::define(module, "sorted_scratch_nbytes", &sorted_scratch_nbytes, "n_rows"_a, "n_columns"_a, "n_fitted"_a, "n_predicted"_a,
               "tiled"_a);
}
