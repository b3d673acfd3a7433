// Bindings of the tree kernel: they pick the instruction set, own memory and threads, drop the GIL.
#include "bind/thread_team.hpp"
#include "bind/training.hpp"
#include "grow/tree_bytes.hpp"
#include "hash.hpp"
#include "isa.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::derive, srs::GrowJob, srs::Matrix, srs::scale_below, srs::ThreadTeam, srs::Vector;

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

int64_t most_leaves(const GrowJob &job) {
    const int64_t most = std::max<int64_t>(job.n_root_rows / job.min_samples_leaf, 1);
    return job.max_depth < 0 || job.max_depth >= 31 ? most : std::min(most, int64_t(1) << job.max_depth);
}

GrowJob job_of(const srs::TrainingRows &rows, const srs::TreeLimits &limits) {
    const srs::Response &response = rows.response;
    srs::expect_between("impurity of a regression, or else", limits.impurity == srs::VARIANCE, response.regression, response.regression);
    if (limits.impurity == srs::ENTROPY) {
        srs::expect_between("n_channels of entropy", response.n_channels, 0, 0);
        srs::expect_room("xlogx", rows.xlogx, rows.size() + 1, 1);
    }
    GrowJob job{};
    job.rows = rows.order.data();
    job.n_root_rows = rows.size();
    job.n_classes = response.n_classes;
    job.n_channels = response.n_channels;
    job.channels = response.channels.data();
    job.flush = response.flush();
    job.root_stats = rows.root_stats.data();
    job.root_scale = rows.root_scale;
    job.max_features = limits.max_features;
    limits.give(job, job.n_root_rows);
    job.min_decrease = limits.min_decrease;
    job.best = limits.best;
    job.impurity = static_cast<srs::Impurity>(limits.impurity);
    job.xlogx = rows.xlogx.data();
    return job;
}

nb::tuple grow(const srs::Block &block, Vector<const uint32_t> features, Vector<const uint8_t> categorical,
               const srs::TrainingRows &rows, const srs::TreeLimits &limits, uint64_t tree_key, Vector<int64_t> importance,
               const std::string &isa_name, bool records, int n_threads, int64_t first_tree, int64_t n_trees, bool bootstrap) {
    const srs::Isa &isa = srs::find_isa(isa_name);
    GrowJob job = job_of(rows, limits);
    block.give(job, features);
    srs::expect_between("rows of the response", rows.response.n_rows, job.n_rows, job.n_rows);
    srs::expect_size_or_none("categorical", categorical, job.n_columns);
    srs::expect_room("importance", importance, job.n_columns, 1);
    srs::expect_between("first_tree", first_tree, 0, INT32_MAX);
    srs::expect_between("n_trees", n_trees, 1, records ? 1 : INT32_MAX);
    if (bootstrap) {
        srs::expect_between("n_classes of rows that are drawn", job.n_classes, 1, 1);
        srs::expect_between("channels, the largest", rows.response.largest, 1, INT32_MAX / BootstrapSample::MAX_TIMES);
    }
    job.categorical = categorical.size() ? categorical.data() : nullptr;
    job.tree_key = tree_key;
    job.importance = importance.data();
    job.n_threads = std::clamp(n_threads, 1, srs::MAX_THREADS);
    job.share = &ThreadTeam::share;
    const int64_t record_leaves = records ? most_leaves(job) : 0;
    std::string record;
    {
        nb::gil_scoped_release released;
        record = grow_in_memory(isa, job, record_leaves, first_tree, n_trees, bootstrap);
    }
    nb::object saved = records ? nb::object(nb::bytes(record.data(), record.size())) : nb::none();
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
    srs::define_fields<srs::Block, Vector<uint8_t>, int64_t, int64_t, int, bool, Matrix<const double>>(
        module, "Block", "codes"_a, "n_columns"_a, "n_rows"_a, "code_nbytes"_a, "tiled"_a, "values"_a);
    srs::define_fields<srs::Response, Vector<const int32_t>, int64_t, Matrix<const int32_t>, bool>(
        module, "Response", "labels"_a, "n_classes"_a, "channels"_a, "regression"_a).def_prop_ro("flush", &srs::Response::flush);
    srs::define_fields<srs::TrainingRows, srs::Response, Vector<const int32_t>, Matrix<const int64_t>, double, Vector<const int64_t>>(
        module, "TrainingRows", "response"_a, "order"_a, "root_stats"_a, "root_scale"_a, "xlogx"_a);
    srs::define_fields<srs::TreeLimits, int64_t, int64_t, int64_t, int64_t, bool, int>(
        module, "TreeLimits", "max_features"_a, "max_depth"_a, "min_samples_leaf"_a, "min_decrease"_a, "best"_a, "impurity"_a);
    srs::define(module, "grow", &grow, "block"_a, "features"_a, "categorical"_a, "rows"_a, "limits"_a, "tree_key"_a, "importance"_a,
                "isa"_a, "records"_a, "n_threads"_a, "first_tree"_a = 0, "n_trees"_a = 1, "bootstrap"_a = false);
    srs::define(module, "scratch_nbytes", &scratch_nbytes, "n_root_rows"_a, "n_columns"_a, "n_classes"_a,
               "n_channels"_a, "code_nbytes"_a, "best"_a, "n_threads"_a);
}
