// Growth of one randomized tree (SRS, Algorithm 1, step 2b). Compiled once per instruction set.
//
// The Python twin, srs_ooc/trees/reference.py, states every formula; this file equals it exactly:
// candidates are compared by float32 scores computed operation by operation in the same order,
// "no decrease" is decided in integers, importances are integers. Nothing here allocates, and no
// inline library function is used, so that clones for different instruction sets cannot be mixed up.
#include "trees.hpp"
#include "hash.hpp"
#if defined(__AVX2__)
#include <immintrin.h> // inlined always: no clone can get another's
#endif

namespace srs {
namespace SRS_ISA {
namespace {

#define SRS_INLINE inline __attribute__((always_inline))
#include "lanes.hpp"
#include "categories.hpp"
#include "views.hpp"
#include "scores.hpp"
#include "values.hpp"
#include "tile_node.hpp"
#include "tile_draw.hpp"
#include "tile_counts.hpp"
#include "tile_scores.hpp"
#include "tile_scan.hpp"
#include "best.hpp"
#include "wide.hpp"
#include "drawn_lanes.hpp"
#include "sorted_lanes.hpp"
#include "cell_lanes.hpp"
#include "candidates.hpp"
#include "byte_copies.hpp"
#include "recorder.hpp"
#include "tree_data.hpp"
#include "searched_node.hpp"
#include "lane_search.hpp"
#include "tiled_search.hpp"
#include "column_search.hpp"
#include "drawn_search.hpp"
#include "node_search.hpp"
#include "carver.hpp"
// Subtrees small enough to be left to whichever thread is free.
struct Tasks {
    static constexpr int64_t MOST = 1024, LEAST_ROWS = 64;
    Node *nodes;    // [MOST]
    int64_t *stats; // [MOST][n_classes][width]
    int64_t n = 0, next = 0;
};

template <typename Code> struct Grower : TreeData<Code> {
    using Base = TreeData<Code>;
    using Base::categorical, Base::criterion, Base::draw, Base::feature_hashes, Base::job, Base::node_lines, Base::numbers,
        Base::real, Base::rows, Base::width;
    Tasks tasks{};                    // of the first thread
    int64_t *importance;              // [n_columns] of this thread
    int64_t n_leaves = 0, depth = 0;  // of this thread
    // Scratch of this thread, carved by carve_own().
    int64_t *stack_stats;    // [STACK + 1][n_classes][width]
    int64_t *present_stats;  // [n_classes][width]
    int64_t *present_counts; // [n_classes]
    int64_t *left_stats;     // [n_classes][width]
    int32_t *present;        // [n_classes]
    int32_t *right, *right_numbers[MAX_CHANNELS]; // [n_root_rows] rows that go right, and their channels
    static constexpr int64_t STACK = 66; // the larger child waits, so 2**65 rows would be needed

    explicit Grower(GrowJob &job) : Base(job) {}

    template <typename GoesLeft> int64_t partition_by(const Node &node, const Facts &f, const GoesLeft goes_left) {
        return job.n_channels ? move_rows<true>(node, f, goes_left) : move_rows<false>(node, f, goes_left);
    }

    // Move the rows that go left to the front, classes together, in the order they have.
    template <bool CHANNELS, typename GoesLeft>
    int64_t move_rows(const Node &node, const Facts &f, const GoesLeft goes_left) {
        int32_t *r = rows + node.start;
        int64_t n_left = 0, n_right = 0, i = 0;
        for (int64_t k = 0; k < f.n_present; ++k) {
            const int64_t before = n_left;
            int64_t *sums = left_stats + k * width + 1;
            for (int64_t c = 0; CHANNELS && c < job.n_channels; ++c) sums[c] = 0;
            for (const int64_t stop = i + f.counts[k]; i < stop; ++i) {
                const int32_t row = r[i]; // written to both sides, kept on one: no branch to guess
                const bool left = goes_left(row);
                r[n_left] = row;
                right[n_right] = row;
                for (int64_t c = 0; CHANNELS && c < job.n_channels; ++c) {
                    int32_t *own = numbers[c] + node.start;
                    const int32_t number = own[i];
                    own[n_left] = number;
                    right_numbers[c][n_right] = number;
                    sums[c] += left ? number : 0;
                }
                n_left += left;
                n_right += !left;
            }
            left_stats[k * width] = n_left - before;
        }
        const size_t rest = sizeof(int32_t) * static_cast<size_t>(n_right);
        __builtin_memcpy(r + n_left, right, rest);
        for (int64_t c = 0; CHANNELS && c < job.n_channels; ++c)
            __builtin_memcpy(numbers[c] + node.start + n_left, right_numbers[c], rest);
        return n_left;
    }

    int64_t partition(const Node &node, const Facts &f, const Split &split) {
        const Code threshold = static_cast<Code>(split.threshold);
        if (split.how == MAPPED) {
            const CategoryMap<Code> map(this->category_hash(node, split));
            return partition_by(node, f, [&](int32_t row) { return map(this->code(split.column, row)) <= threshold; });
        }
        const Code shift = split.how == MISSING_LEFT;
        return partition_by(node, f, [&](int32_t row) { return static_cast<Code>(this->code(split.column, row) + shift) <= threshold; });
    }

    Facts facts_of(const Node &node, const int64_t *stats) {
        Facts f{node.n, job.min_samples_leaf, 0, width, present, present_counts, present_stats, 0, 0, 0};
        for (int64_t k = 0; k < job.n_classes; ++k, stats += width) {
            if (stats[0] == 0) continue;
            present[f.n_present] = static_cast<int32_t>(k);
            present_counts[f.n_present] = stats[0];
            for (int64_t i = 0; i < width; ++i) present_stats[f.n_present * width + i] = stats[i];
            f.largest = stats[0] > f.largest ? stats[0] : f.largest;
            ++f.n_present;
        }
        f.weight = criterion.weight_of(f, present_stats);
        f.sum = present_stats[width - 1];
        return f;
    }

    // Whether all targets are equal; they may come times their weight.
    bool equal_targets(const Node &node) const {
        const int32_t *sums = numbers[job.n_channels - 1] + node.start, *weights = numbers[0] + node.start;
        for (int64_t i = 1; i < node.n; ++i) {
            const int64_t own = job.n_channels == 1 ? sums[i] : int64_t(sums[i]) * weights[0];
            const int64_t first = job.n_channels == 1 ? sums[0] : int64_t(sums[0]) * weights[i];
            if (own != first) return false;
        }
        return true;
    }

    Split best_split(const Node &node, const Facts &f) {
        const bool limited = job.max_depth >= 0 && node.depth >= job.max_depth;
        const bool pure = job.impurity == VARIANCE ? equal_targets(node) : f.n_present < 2;
        if (pure || limited || node.n < 2 * job.min_samples_leaf) return Split{};
        return NodeSearch<Code>{*this}.search(node, f);
    }

    // Write the children's numbers into two stack slots.
    void child_stats(const Facts &f, int64_t *left, int64_t *other) const {
        for (int64_t i = 0; i < job.n_classes * width; ++i) left[i] = other[i] = 0;
        for (int64_t k = 0; k < f.n_present; ++k)
            for (int64_t i = 0; i < width; ++i) {
                left[f.present[k] * width + i] = left_stats[k * width + i];
                other[f.present[k] * width + i] = f.stats[k * width + i] - left_stats[k * width + i];
            }
    }

    // Grow the tree below a node; subtrees may be left `for_later`.
    void grow_from(const Node &root, const int64_t *stats, Tasks *for_later) {
        const TreeRecorder<Code> recorder{job};
        Node stack[STACK];
        stack[0] = root;
        const int64_t slot_size = job.n_classes * width;
        for (int64_t i = 0; i < slot_size; ++i) stack_stats[i] = stats[i];
        for (int64_t top = 0; top >= 0;) {
            const Node node = stack[top];
            int64_t *slot = stack_stats + top * slot_size, *next = slot + slot_size;
            if (for_later && leave(node, slot, *for_later)) {
                --top;
                continue;
            }
            const int64_t id = job.n_threads > 1 ? __atomic_fetch_add(&job.n_nodes, 1, __ATOMIC_RELAXED) : job.n_nodes++;
            if (node.link) *node.link = static_cast<int32_t>(id);
            if (node.depth > depth) depth = node.depth;
            const Facts f = facts_of(node, slot);
            const Split split = best_split(node, f);
            int64_t n_left = 0, worth = -1;
            if (split.column >= 0) {
                n_left = partition(node, f, split);
                worth = criterion.importance(f, left_stats, n_left);
            }
            if (worth < job.min_decrease) { // rows may have changed places: a leaf's order means nothing
                if (job.record) recorder.leaf(id, f);
                ++n_leaves;
                --top;
                continue;
            }
            importance[split.column] += worth;
            if (job.record) record_split(recorder, id, node, split, n_left);
            int32_t *left_link = job.record ? job.record->left + id : nullptr;
            int32_t *right_link = job.record ? job.record->right + id : nullptr;
            const Node left{node.start, n_left, node.depth + 1, derive(node.key, LEFT), left_link};
            const Node other{node.start + n_left, node.n - n_left, node.depth + 1, derive(node.key, RIGHT), right_link};
            const bool left_first = left.n <= other.n; // the smaller child next: the stack stays shallow
            stack[top] = left_first ? other : left;
            stack[top + 1] = left_first ? left : other;
            child_stats(f, left_first ? next : slot, left_first ? slot : next);
            ++top;
        }
    }

    bool leave(const Node &node, const int64_t *stats, Tasks &later) const {
        const bool small = node.n * job.n_columns < SHARED_CELLS && node.n >= Tasks::LEAST_ROWS;
        if (!small || node.n == job.n_root_rows || later.n == Tasks::MOST) return false;
        const int64_t slot_size = job.n_classes * width;
        for (int64_t i = 0; i < slot_size; ++i) later.stats[later.n * slot_size + i] = stats[i];
        later.nodes[later.n++] = node;
        return true;
    }

    void take_tasks(Tasks &left) {
        for (;;) {
            const int64_t i = __atomic_fetch_add(&left.next, 1, __ATOMIC_RELAXED);
            if (i >= left.n) return;
            grow_from(left.nodes[i], left.stats + i * job.n_classes * width, nullptr);
        }
    }

    // What a thread grew, kept until all have ended.
    struct Part {
        int64_t *importance = nullptr, n_leaves = 0, depth = 0;
    };
    struct Parts {
        Grower &first;
        Part part[MAX_THREADS];
    };

    static void help(void *context, int number) {
        Parts &parts = *static_cast<Parts *>(context);
        if (number == 0) return parts.first.take_tasks(parts.first.tasks);
        Grower own(parts.first.job);
        own.join(parts.first, number);
        own.take_tasks(parts.first.tasks);
        parts.part[number] = Part{own.importance, own.n_leaves, own.depth};
    }

    void grow() {
        prepare();
        grow_from(Node{0, job.n_root_rows, 0, job.tree_key, nullptr}, job.root_stats, job.n_threads > 1 ? &tasks : nullptr);
        Parts parts{*this, {}};
        if (tasks.n > 0) job.share(job.threads, &help, &parts);
        for (const Part &part : parts.part) {
            n_leaves += part.n_leaves;
            depth = part.depth > depth ? part.depth : depth;
            for (int64_t j = 0; part.importance && j < job.n_columns; ++j) importance[j] += part.importance[j];
        }
        job.n_leaves = n_leaves;
        job.depth = depth;
    }

    void record_split(const TreeRecorder<Code> &recorder, int64_t id, const Node &node, const Split &split, int64_t n_left) const {
        int64_t n_missing = 0;
        if (split.how == MISSING_LEFT || split.how == MISSING_RIGHT)
            for (int64_t i = 0; i < node.n; ++i)
                n_missing += this->code(split.column, rows[node.start + i]) == MISSING<Code>;
        recorder.split(id, split, split.how == MAPPED ? this->category_hash(node, split) : 0, n_missing, n_left, node.n);
    }

    void prepare();
    void prepare_own();
    void join(const Grower &first, int number);
};

// What all threads share.
template <typename Code> size_t carve_shared(Grower<Code> &g, char *base) {
    const GrowJob &job = g.job;
    const int64_t padded = g.padded(), stats = job.n_classes * g.width;
    const int64_t n_tasks = job.n_threads > 1 ? Tasks::MOST : 0;
    const int64_t cells = job.best && sizeof(Code) == 1 ? 256 * TILE * job.n_classes : 0;
    Carver carver{base};
    for (int i = 0; i < job.n_threads; ++i) {
        TileScratch<Code> &own = g.scratches[i];
        own.counts = carver.take<int32_t>(job.n_classes * TILE);
        own.sums = carver.take<int64_t>(job.n_classes * job.n_channels * TILE);
        own.left = carver.take<int64_t>(stats);
        own.view = carver.take<Code>(255 * TILE);
        own.cell_counts = carver.take<int32_t>(cells);
        own.cell_sums = carver.take<int64_t>(cells * job.n_channels);
    }
    g.rows = carver.take<int32_t>(job.n_root_rows);
    for (int64_t c = 0; c < job.n_channels; ++c) g.numbers[c] = carver.take<int32_t>(job.n_root_rows);
    g.feature_hashes = carver.take<uint32_t>(padded);
    g.categorical = carver.take<uint8_t>(padded + padded / TILE);
    g.real = carver.take<uint8_t>(padded);
    g.tasks.nodes = carver.take<Node>(n_tasks);
    g.tasks.stats = carver.take<int64_t>(n_tasks * stats);
    return carver.used;
}

// What each thread has of its own.
template <typename Code> size_t carve_own(Grower<Code> &g, char *base) {
    const GrowJob &job = g.job;
    const int64_t padded = g.padded(), stats = job.n_classes * g.width, sorted = job.best ? job.n_root_rows : 0;
    Carver carver{base};
    g.importance = carver.take<int64_t>(job.n_threads > 1 ? job.n_columns : 0);
    g.stack_stats = carver.take<int64_t>(stats * (Grower<Code>::STACK + 1));
    g.present_stats = carver.take<int64_t>(stats);
    g.present_counts = carver.take<int64_t>(job.n_classes);
    g.left_stats = carver.take<int64_t>(stats);
    g.present = carver.take<int32_t>(job.n_classes);
    g.right = carver.take<int32_t>(job.n_root_rows);
    for (int64_t c = 0; c < job.n_channels; ++c) g.right_numbers[c] = carver.take<int32_t>(job.n_root_rows);
    g.lows = carver.take<Code>(padded);
    g.highs = carver.take<Code>(padded);
    g.chosen = carver.take<uint8_t>(padded);
    g.places[0] = carver.take<int32_t>(sorted);
    g.places[1] = carver.take<int32_t>(sorted);
    g.segment_of = carver.take<int32_t>(sorted);
    g.column_codes = carver.take<Code>(job.n_root_rows);
    g.node_lines = carver.take<Code>(Grower<Code>::NODE_LINES * TILE);
    g.draw.order = carver.take<int32_t>(job.n_columns);
    g.draw.drawn = carver.take<int32_t>(job.n_columns);
    g.draw.columns = job.order;
    g.draw.n_columns = job.n_columns;
    return carver.used;
}

template <typename Code> void Grower<Code>::prepare_own() {
    for (int64_t j = 0; j < job.n_columns; ++j) draw.order[j] = job.order[j];
    const int64_t n_lines = job.n_root_rows < Base::NODE_LINES ? job.n_root_rows : Base::NODE_LINES;
    __builtin_memset(node_lines, 0, sizeof(Code) * static_cast<size_t>(n_lines * TILE));
}

template <typename Code> void Grower<Code>::join(const Grower &first, int number) {
    char *base = static_cast<char *>(job.scratch);
    const size_t shared = carve_shared(*this, base), own = carve_own(*this, nullptr);
    carve_own(*this, base + shared + static_cast<size_t>(number) * own);
    this->scratches[0] = first.scratches[number];
    categorical = first.categorical;
    for (int64_t j = 0; j < job.n_columns; ++j) importance[j] = 0;
    prepare_own();
}

template <typename Code> void Grower<Code>::prepare() {
    char *base = static_cast<char *>(job.scratch);
    carve_own(*this, base + carve_shared(*this, base));
    importance = job.importance;
    prepare_own();
    for (int64_t i = 0; i < job.n_root_rows; ++i) rows[i] = job.rows[i];
    for (int64_t c = 0; c < job.n_channels; ++c)
        for (int64_t i = 0; i < job.n_root_rows; ++i) numbers[c][i] = job.channels[c * job.n_rows + rows[i]];
    for (int64_t j = 0; j < job.n_columns; ++j)
        feature_hashes[j] = static_cast<uint32_t>(derive(job.tree_key, job.features[j]) >> 32);
    for (int64_t j = job.n_columns; j % TILE != 0; ++j) feature_hashes[j] = 0;
    for (int64_t j = 0; job.tiled && j < this->padded(); ++j) real[j] = j < job.n_columns;
    if (!job.categorical) {
        categorical = nullptr;
        return;
    }
    for (int64_t j = 0; j < this->padded() + this->padded() / TILE; ++j) categorical[j] = 0;
    for (int64_t j = 0; j < job.n_columns; ++j) {
        categorical[j] = job.categorical[j];
        categorical[this->padded() + j / TILE] |= job.categorical[j];
    }
}

template <typename Code> size_t nbytes_of(GrowJob &job) {
    Grower<Code> g(job);
    return carve_shared(g, nullptr) + static_cast<size_t>(job.n_threads) * carve_own(g, nullptr);
}

} // namespace

void grow(GrowJob &job) {
    if (job.code_nbytes == 1) Grower<uint8_t>(job).grow();
    else Grower<uint16_t>(job).grow();
}

size_t scratch_nbytes(GrowJob &job) {
    return job.code_nbytes == 1 ? nbytes_of<uint8_t>(job) : nbytes_of<uint16_t>(job);
}

} // namespace SRS_ISA
} // namespace srs
