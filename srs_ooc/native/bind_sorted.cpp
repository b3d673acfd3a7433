// Python binding of sorted_trees.cpp. Twin: trees/kernel.py.
#include "arrays.hpp"
#include "checks.hpp"
#include "isa.hpp"
#include "scratch.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Matrix, srs::Vector;

namespace {

void check(const srs::SortedJob &job, int64_t codes, int64_t values, size_t labels, size_t targets, size_t importance,
           size_t shares_rows, size_t shares_classes) {
    srs::check_small_block(codes, job.n_columns, job.n_rows, srs::MOST_SORTED_ROWS, job.code_nbytes, job.tiled);
    if (job.n_fitted < 1 || job.n_fitted > srs::MOST_SORTED_ROWS || job.n_predicted > srs::MOST_SORTED_ROWS)
        throw std::invalid_argument("expected 1 to 32,768 rows to fit on");
    if (values != 0 && (job.n_values < 1 || values < job.n_columns * job.n_values))
        throw std::invalid_argument("expected the values of every column");
    srs::check_response(labels, targets, job.n_rows, job.n_classes, srs::MOST_SORTED_CLASSES);
    if (static_cast<int64_t>(importance) != job.n_columns || static_cast<int64_t>(shares_rows) != job.n_predicted ||
        static_cast<int64_t>(shares_classes) != job.n_classes)
        throw std::invalid_argument("expected room for what is found");
}

// Whether the tree was grown: not where a value is missing.
bool grow_sorted(Vector<const uint8_t> codes, int code_nbytes, bool tiled, int64_t n_rows, Vector<const double> values,
                 int64_t n_values, Vector<const uint32_t> features, Vector<const int32_t> fitted,
                 Vector<const int32_t> predicted, Vector<const int32_t> labels, Vector<const int32_t> targets,
                 int64_t n_classes, double root_scale, uint64_t tree_key, int64_t max_depth, int64_t min_samples_leaf,
                 const std::string &isa_name, Vector<int64_t> importance, Matrix<double> shares) {
    const srs::Isa &isa = srs::find_isa(isa_name);
    srs::SortedJob job{};
    job.codes = codes.data();
    job.code_nbytes = code_nbytes;
    job.tiled = tiled;
    job.n_rows = n_rows;
    job.n_columns = static_cast<int64_t>(features.size());
    job.values = values.size() ? values.data() : nullptr;
    job.n_values = n_values;
    job.features = features.data();
    job.fitted = fitted.data();
    job.predicted = predicted.data();
    job.n_fitted = static_cast<int64_t>(fitted.size());
    job.n_predicted = static_cast<int64_t>(predicted.size());
    job.labels = labels.data();
    job.targets = targets.size() ? targets.data() : nullptr;
    job.n_classes = n_classes;
    job.root_scale = root_scale;
    job.tree_key = tree_key;
    job.max_depth = max_depth;
    job.min_samples_leaf = std::clamp<int64_t>(min_samples_leaf, 1, job.n_fitted + 1);
    job.importance = importance.data();
    job.shares = shares.data();
    check(job, static_cast<int64_t>(codes.size()), static_cast<int64_t>(values.size()), labels.size(), targets.size(),
          importance.size(), shares.shape(0), shares.shape(1));
    nb::gil_scoped_release released;
    srs::check_below(fitted, n_rows, "no such row");
    srs::check_below(predicted, n_rows, "no such row");
    srs::check_below(labels, n_classes, "no such class");
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

void bind_sorted(nb::module_ &module) {
    module.attr("MOST_SORTED_ROWS") = srs::MOST_SORTED_ROWS;
    module.attr("MOST_SORTED_CLASSES") = srs::MOST_SORTED_CLASSES;
    module.def("grow_sorted", &grow_sorted, "codes"_a.noconvert(), "code_nbytes"_a, "tiled"_a, "n_rows"_a,
               "values"_a.noconvert(), "n_values"_a, "features"_a.noconvert(), "fitted"_a.noconvert(),
               "predicted"_a.noconvert(), "labels"_a.noconvert(), "targets"_a.noconvert(), "n_classes"_a, "root_scale"_a,
               "tree_key"_a, "max_depth"_a, "min_samples_leaf"_a, "isa"_a, "importance"_a.noconvert(),
               "shares"_a.noconvert());
    module.def("sorted_scratch_nbytes", &sorted_scratch_nbytes, "n_rows"_a, "n_columns"_a, "n_fitted"_a, "n_predicted"_a,
               "tiled"_a);
}
