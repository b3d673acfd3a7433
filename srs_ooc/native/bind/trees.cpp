// Bindings of the tree kernel: they pick the instruction set, own memory and threads, drop the GIL.
#include "bind/arguments.hpp"
#include "bind/thread_team.hpp"
#include "grow/tree_bytes.hpp"
#include "hash.hpp"
#include "isa.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::derive, srs::GrowJob, srs::scale_below, srs::ThreadTeam, srs::Vector;

namespace {

// Rows drawn with replacement, and their numbers at the root: the twin of TrainingRows.resampled.
// A row that was drawn more than once comes once, with its times for a weight, where rows have no
// weights of their own: splits and importances are the same numbers, and there are fewer rows.
struct BootstrapSample {
    static constexpr uint64_t BOOTSTRAP = 22; // base/seeds.py
    static constexpr int64_t MAX_TIMES = 16; // trees/response.py: bits of a weight times a target
    std::vector<int32_t> times, rows, channels;
    std::vector<int64_t> stats;

    void draw(GrowJob &job, const GrowJob &all, uint64_t key) {
        const int64_t n = all.n_root_rows;
        const uint64_t drawing = derive(key, BOOTSTRAP);
        times.assign(static_cast<size_t>(n), 0);
        for (int64_t i = 0; i < n; ++i) {
            const uint64_t hash = derive(drawing, static_cast<uint64_t>(i));
            ++times[scale_below(hash, static_cast<uint64_t>(n))];
        }
        const int64_t most = *std::max_element(times.begin(), times.end());
        if (all.n_channels == 1 && all.min_samples_leaf == 1 && most <= MAX_TIMES) weigh(job, all, most);
        else repeat(job, all);
        job.rows = rows.data();
        job.n_root_rows = static_cast<int64_t>(rows.size());
        job.root_stats = stats.data();
    }

  private:
    void weigh(GrowJob &job, const GrowJob &all, int64_t most) {
        channels.resize(static_cast<size_t>(2 * all.n_rows));
        rows.clear();
        stats.assign(3, 0);
        for (int64_t i = 0; i < all.n_root_rows; ++i) {
            const int32_t count = times[static_cast<size_t>(i)], row = all.rows[i];
            if (count == 0) continue;
            const int32_t sum = count * all.channels[row];
            channels[static_cast<size_t>(row)] = count;
            channels[static_cast<size_t>(all.n_rows + row)] = sum;
            rows.push_back(row);
            stats[1] += count;
            stats[2] += sum;
        }
        stats[0] = static_cast<int64_t>(rows.size());
        job.channels = channels.data();
        job.n_channels = 2;
        job.flush = std::max<int64_t>(1, all.flush / most);
    }

    void repeat(GrowJob &job, const GrowJob &all) {
        rows.clear();
        stats.assign(static_cast<size_t>(1 + all.n_channels), 0);
        stats[0] = all.n_root_rows;
        for (int64_t i = 0; i < all.n_root_rows; ++i) {
            const int64_t count = times[static_cast<size_t>(i)];
            for (int64_t c = 0; c < all.n_channels; ++c)
                stats[static_cast<size_t>(1 + c)] += count * all.channels[c * all.n_rows + all.rows[i]];
            rows.insert(rows.end(), static_cast<size_t>(count), all.rows[i]);
        }
        job.channels = all.channels;
        job.n_channels = all.n_channels;
        job.flush = all.flush;
    }
};

// The root's numbers are those of its rows, class by class, and so many rows add up within 32 bits. Looked at once a call.
void check_root(const GrowJob &job, bool bootstrap) {
    const int64_t width = 1 + job.n_channels;
    int64_t at = 0, largest = 1;
    for (int64_t k = 0; k < job.n_classes; ++k) {
        const int64_t *own = job.root_stats + k * width, first = at;
        srs::expect_between("root_stats", own[0], 0, job.n_root_rows - first, k * width);
        at += own[0];
        for (int64_t c = 0; c < job.n_channels; ++c) {
            int64_t sum = 0;
            for (int64_t i = first; i < at; ++i) {
                const int64_t number = job.channels[c * job.n_rows + job.rows[i]];
                sum += number;
                largest = std::max(largest, number < 0 ? -number : number);
            }
            srs::expect_between("root_stats", own[1 + c], sum, sum, k * width + 1 + c);
        }
    }
    srs::expect_between("root_stats, its rows", at, job.n_root_rows, job.n_root_rows);
    srs::expect_between("flush", job.flush, 1, std::max<int64_t>(INT32_MAX / largest, 1));
    if (bootstrap) srs::expect_between("channels, the largest", largest, 1, INT32_MAX / BootstrapSample::MAX_TIMES);
}

// The most leaves that a tree may have.
int64_t most_leaves(const GrowJob &job) {
    const int64_t most = std::max<int64_t>(job.n_root_rows / job.min_samples_leaf, 1);
    return job.max_depth < 0 || job.max_depth >= 31 ? most : std::min(most, int64_t(1) << job.max_depth);
}

void check(const GrowJob &job, bool bootstrap, int64_t record_leaves, int64_t first_tree, int64_t n_trees) {
    srs::expect_between("n_channels", job.n_channels, 0, srs::MAX_CHANNELS);
    srs::expect_between("rows, how many", job.n_root_rows, 1, INT32_MAX);
    srs::expect_between("max_features", job.max_features, 1, INT64_MAX);
    srs::expect_between("impurity", job.impurity, srs::GINI, srs::VARIANCE);
    if (job.impurity == srs::VARIANCE) {
        srs::expect_between("n_classes of a regression", job.n_classes, 1, 1);
        srs::expect_between("n_channels of a regression", job.n_channels, 1, srs::MAX_CHANNELS);
    }
    if (job.impurity == srs::ENTROPY) srs::expect_between("n_channels of entropy", job.n_channels, 0, 0);
    srs::expect_finite("root_scale", job.root_scale);
    srs::expect_between("min_decrease", job.min_decrease, 0, INT64_MAX); // no split is worth less than none
    if (job.tiled && reinterpret_cast<uintptr_t>(job.codes) % 64 != 0)
        srs::refuse("codes", "tiles aligned to 64 bytes", "another address");
    if (record_leaves != 0) srs::expect_between("record_leaves", record_leaves, most_leaves(job), INT32_MAX / 2);
    srs::expect_between("first_tree", first_tree, 0, INT32_MAX);
    srs::expect_between("n_trees", n_trees, 1, record_leaves > 0 ? 1 : INT32_MAX);
    if (bootstrap) srs::expect_between("n_classes of rows that are drawn", job.n_classes, 1, 1);
}

// Grow trees one after the other, their importances in one sum; their sizes are added up, too.
void grow_trees(const srs::Isa &isa, GrowJob &job, int64_t first_tree, int64_t n_trees, bool bootstrap) {
    constexpr uint64_t MORE_TREES = uint64_t(1) << 32; // learners/tree_learner.py: tree_key
    const uint64_t first_key = job.tree_key;
    const GrowJob all = job;
    int64_t n_leaves = 0, depth = 0;
    BootstrapSample sample;
    for (int64_t tree = first_tree; tree < first_tree + n_trees; ++tree) {
        job.tree_key = tree == 0 ? first_key : derive(first_key, MORE_TREES | static_cast<uint64_t>(tree));
        if (bootstrap) sample.draw(job, all, job.tree_key);
        isa.grow(job);
        n_leaves += job.n_leaves;
        depth = std::max(depth, job.depth);
    }
    job.n_leaves = n_leaves;
    job.depth = depth;
}

// Give a job its memory and threads, and do it; return the tree's bytes where it is to be recorded.
std::string grow_in_memory(const srs::Isa &isa, GrowJob &job, int64_t record_leaves, int64_t first_tree, int64_t n_trees,
                           bool bootstrap) {
    std::vector<int32_t> order(static_cast<size_t>(job.n_columns)); // by ascending feature, which names random numbers
    std::iota(order.begin(), order.end(), 0);
    const auto before = [&](int32_t a, int32_t b) { return job.features[a] < job.features[b]; };
    if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
    job.order = order.data();
    GrowJob largest = job;
    if (bootstrap) largest.n_channels = srs::MAX_CHANNELS;
    const srs::Scratch scratch = srs::take_scratch(isa.scratch_nbytes(largest));
    job.scratch = scratch.get();
    ThreadTeam threads(job.n_threads);
    job.threads = &threads;
    srs::RecordMemory memory(record_leaves, job.n_root_rows, job.n_classes);
    job.record = record_leaves > 0 ? &memory.record : nullptr;
    grow_trees(isa, job, first_tree, n_trees, bootstrap);
    std::string bytes;
    if (job.record) srs::encode_tree(memory.record, job.features, job.impurity == srs::VARIANCE, bytes);
    return bytes;
}

nb::tuple grow(Vector<const uint8_t> codes, int code_nbytes, bool tiled, int64_t n_rows, Vector<const double> values,
               int64_t n_values, Vector<const uint32_t> features, Vector<const uint8_t> categorical,
               Vector<const int32_t> rows, Vector<const int64_t> root_stats, int64_t n_classes,
               Vector<const int32_t> channels, int64_t flush, double root_scale, uint64_t tree_key, int64_t max_features,
               int64_t max_depth, int64_t min_samples_leaf, int64_t min_decrease, bool best, int impurity,
               Vector<const int64_t> xlogx, Vector<int64_t> importance, const std::string &isa_name,
               int64_t record_leaves, int n_threads, int64_t first_tree, int64_t n_trees, bool bootstrap) {
    const srs::Isa &isa = srs::find_isa(isa_name);
    GrowJob job{};
    job.codes = codes.data();
    job.code_nbytes = code_nbytes;
    job.tiled = tiled;
    job.n_rows = n_rows;
    job.n_columns = static_cast<int64_t>(features.size());
    job.values = values.size() ? values.data() : nullptr;
    job.n_values = n_values;
    job.features = features.data();
    job.categorical = categorical.size() ? categorical.data() : nullptr;
    job.rows = rows.data();
    job.n_root_rows = static_cast<int64_t>(rows.size());
    job.root_stats = root_stats.data();
    job.n_classes = n_classes;
    job.n_channels = n_classes > 0 ? static_cast<int64_t>(root_stats.size()) / n_classes - 1 : -1;
    job.channels = channels.data();
    job.flush = std::max<int64_t>(flush, 1);
    job.root_scale = root_scale;
    job.tree_key = tree_key;
    job.max_features = max_features;
    job.max_depth = max_depth;
    // No leaf can hold more than all rows: larger bounds mean the same, and cannot overflow.
    job.min_samples_leaf = std::clamp<int64_t>(min_samples_leaf, 1, job.n_root_rows + 1);
    job.min_decrease = min_decrease;
    job.best = best;
    job.impurity = static_cast<srs::Impurity>(impurity);
    job.xlogx = xlogx.data();
    job.importance = importance.data();
    job.n_threads = std::clamp(n_threads, 1, srs::MAX_THREADS);
    job.share = &ThreadTeam::share;
    srs::expect_block("codes", codes, job.n_columns, n_rows, code_nbytes, tiled);
    check(job, bootstrap, record_leaves, first_tree, n_trees);
    srs::expect_size("root_stats", root_stats, n_classes * (1 + job.n_channels));
    srs::expect_size("channels", channels, job.n_channels * n_rows);
    srs::expect_size_or_none("categorical", categorical, job.n_columns);
    srs::expect_room("importance", importance, job.n_columns, 1);
    if (values.size()) {
        srs::expect_between("n_values", n_values, 1, INT32_MAX);
        srs::expect_room("values", values, srs::columns_with_padding(job.n_columns, tiled), n_values);
    }
    if (job.impurity == srs::ENTROPY) srs::expect_room("xlogx", xlogx, job.n_root_rows + 1, 1);
    srs::expect_below("rows", rows, n_rows);
    check_root(job, bootstrap);
    std::string record;
    {
        nb::gil_scoped_release released;
        record = grow_in_memory(isa, job, record_leaves, first_tree, n_trees, bootstrap);
    }
    nb::object saved = record_leaves > 0 ? nb::object(nb::bytes(record.data(), record.size())) : nb::none();
    return nb::make_tuple(job.n_nodes, job.n_leaves, job.depth, saved);
}

size_t scratch_nbytes(int64_t n_root_rows, int64_t n_columns, int64_t n_classes, int64_t n_channels,
                      int code_nbytes, bool best, int n_threads) {
    srs::expect_between("n_root_rows", n_root_rows, 0, INT32_MAX);
    srs::expect_between("n_columns", n_columns, 0, UINT32_MAX);
    srs::expect_between("n_classes", n_classes, 1, INT32_MAX);
    srs::expect_between("n_channels", n_channels, 0, srs::MAX_CHANNELS);
    srs::expect_between("code_nbytes", code_nbytes, 1, 2);
    GrowJob job{};
    job.n_root_rows = n_root_rows;
    job.n_columns = n_columns;
    job.n_classes = n_classes;
    job.n_channels = n_channels;
    job.code_nbytes = code_nbytes;
    job.best = best;
    job.n_threads = std::clamp(n_threads, 1, srs::MAX_THREADS);
    return srs::find_isa("").scratch_nbytes(job);
}

} // namespace

void bind_trees(nb::module_ &module) {
    module.attr("TILE") = srs::TILE;
    module.attr("IMPORTANCE_BITS") = srs::IMPORTANCE_BITS;
    module.attr("ENTROPY_BITS") = srs::ENTROPY_BITS;
    module.def("isas", [] {
        std::vector<std::string> names;
        for (const srs::Isa &isa : srs::isas()) names.emplace_back(isa.name);
        return names;
    });
    srs::define(module, "grow", &grow, "codes"_a, "code_nbytes"_a, "tiled"_a, "n_rows"_a, "values"_a, "n_values"_a,
               "features"_a, "categorical"_a, "rows"_a, "root_stats"_a, "n_classes"_a, "channels"_a, "flush"_a, "root_scale"_a,
               "tree_key"_a, "max_features"_a, "max_depth"_a, "min_samples_leaf"_a, "min_decrease"_a, "best"_a, "impurity"_a,
               "xlogx"_a, "importance"_a, "isa"_a, "record_leaves"_a, "n_threads"_a,
               "first_tree"_a = 0, "n_trees"_a = 1, "bootstrap"_a = false);
    srs::define(module, "scratch_nbytes", &scratch_nbytes, "n_root_rows"_a, "n_columns"_a, "n_classes"_a,
               "n_channels"_a, "code_nbytes"_a, "best"_a, "n_threads"_a);
}
