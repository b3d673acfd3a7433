// Bindings of the tree kernel: they pick the instruction set, own memory and threads, drop the GIL.
#include "bind/arguments.hpp"
#include "grow/tree_bytes.hpp"
#include "hash.hpp"
#include "isa.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::derive, srs::GrowJob, srs::scale_below, srs::Vector;

namespace {

// Threads that run the parts of one piece of work after another; started when first needed.
class ThreadTeam {
  public:
    explicit ThreadTeam(int n) : n_(n) {}
    ~ThreadTeam() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
        }
        begin_.notify_all();
        for (std::thread &thread : threads_) thread.join();
    }
    static void share(void *self, void (*work)(void *, int), void *context) {
        static_cast<ThreadTeam *>(self)->run(work, context);
    }

  private:
    void run(void (*work)(void *, int), void *context) {
        start();
        const int n_started = static_cast<int>(threads_.size());
        {
            std::lock_guard<std::mutex> lock(mutex_);
            work_ = work;
            context_ = context;
            waiting_ = n_started;
            ++turn_;
        }
        begin_.notify_all();
        work(context, 0);
        for (int part = n_started + 1; part < n_; ++part) work(context, part);
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return waiting_ == 0; });
    }
    void start() { // parts of threads that cannot be had are run by the caller
        if (started_) return;
        started_ = true;
        threads_.reserve(static_cast<size_t>(n_));
        try {
            for (int part = 1; part < n_; ++part) threads_.emplace_back([this, part] { serve(part); });
        } catch (const std::system_error &) {
        }
    }
    void serve(int part) {
        for (int64_t seen = 0;;) {
            std::unique_lock<std::mutex> lock(mutex_);
            begin_.wait(lock, [&] { return stopping_ || turn_ != seen; });
            if (stopping_) return;
            seen = turn_;
            lock.unlock();
            work_(context_, part);
            lock.lock();
            if (--waiting_ == 0) done_.notify_one();
        }
    }
    const int n_;
    int waiting_ = 0;
    int64_t turn_ = 0;
    bool stopping_ = false, started_ = false;
    void (*work_)(void *, int) = nullptr;
    void *context_ = nullptr;
    std::mutex mutex_;
    std::condition_variable begin_, done_;
    std::vector<std::thread> threads_;
};

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

void check(const GrowJob &job, int64_t codes_nbytes, int64_t n_importances, int64_t n_categorical, int64_t n_stats,
           int64_t n_numbers, int64_t n_values) {
    srs::check_block(codes_nbytes, job.n_columns, job.n_rows, job.code_nbytes, job.tiled);
    if (n_importances < job.n_columns) throw std::invalid_argument("importance is shorter than the number of columns");
    if (n_categorical != 0 && n_categorical != job.n_columns)
        throw std::invalid_argument("expected a kind for each column, or none");
    if (job.n_channels < 0 || job.n_channels > srs::MAX_CHANNELS || n_numbers != job.n_channels * job.n_rows)
        throw std::invalid_argument("expected channels for each row of the block");
    if (n_stats != job.n_classes * (1 + job.n_channels)) throw std::invalid_argument("expected the root's numbers");
    if (job.impurity == srs::VARIANCE && (job.n_classes != 1 || job.n_channels < 1))
        throw std::invalid_argument("a regression needs targets");
    if (job.impurity == srs::ENTROPY && job.n_channels != 0)
        throw std::invalid_argument("entropy is counted without weights");
    if (job.values && (job.n_values < 1 || n_values < srs::columns_with_padding(job.n_columns, job.tiled) * job.n_values))
        throw std::invalid_argument("expected values of the codes of each column of the block");
    if (reinterpret_cast<uintptr_t>(job.codes) % 64 != 0 && job.tiled)
        throw std::invalid_argument("a tiled block must be aligned to 64 bytes");
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

// Columns by ascending feature, which names their random numbers.
std::vector<int32_t> order_of(const uint32_t *features, int64_t n_columns) {
    std::vector<int32_t> order(static_cast<size_t>(n_columns));
    std::iota(order.begin(), order.end(), 0);
    const auto before = [&](int32_t a, int32_t b) { return features[a] < features[b]; };
    if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
    return order;
}

// Give a job its memory and threads, and do it; return the tree's bytes where it is to be recorded.
std::string grow_in_memory(const srs::Isa &isa, GrowJob &job, int64_t record_leaves, int64_t first_tree, int64_t n_trees,
                           bool bootstrap) {
    const std::vector<int32_t> order = order_of(job.features, job.n_columns);
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
    check(job, static_cast<int64_t>(codes.size()), static_cast<int64_t>(importance.size()),
          static_cast<int64_t>(categorical.size()), static_cast<int64_t>(root_stats.size()),
          static_cast<int64_t>(channels.size()), static_cast<int64_t>(values.size()));
    if (n_trees < 1 || (n_trees > 1 && record_leaves > 0)) throw std::invalid_argument("one tree can be recorded at a time");
    if (bootstrap && n_classes != 1) throw std::invalid_argument("rows of one class are drawn here");
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
    module.def("grow", &grow, "codes"_a, "code_nbytes"_a, "tiled"_a, "n_rows"_a, "values"_a, "n_values"_a,
               "features"_a, "categorical"_a, "rows"_a, "root_stats"_a, "n_classes"_a, "channels"_a, "flush"_a, "root_scale"_a,
               "tree_key"_a, "max_features"_a, "max_depth"_a, "min_samples_leaf"_a, "min_decrease"_a, "best"_a, "impurity"_a,
               "xlogx"_a, "importance"_a, "isa"_a, "record_leaves"_a, "n_threads"_a,
               "first_tree"_a = 0, "n_trees"_a = 1, "bootstrap"_a = false);
    module.def("scratch_nbytes", &scratch_nbytes, "n_root_rows"_a, "n_columns"_a, "n_classes"_a,
               "n_channels"_a, "code_nbytes"_a, "best"_a, "n_threads"_a);
}
