// Growing a tree: from the root down, the smaller child of a node first, small subtrees by whichever thread is free.
#pragma once
#include "search/node_search.hpp"

namespace srs::SRS_ISA {
namespace {

// Parting the rows of a node: those that go left are moved to the front, with what they count.
template <typename Code> struct RowPartition {
    const TreeData<Code> &tree;
    // Scratch.
    int64_t *left_stats; // [n_classes][width] rows of each class that go left, and the sums of their channels
    int32_t *right, *right_numbers[MAX_CHANNELS]; // [n_root_rows] rows that go right, and their channels

    void carve(Arena &arena) {
        const GrowJob &job = tree.job;
        left_stats = arena.take<int64_t>(job.n_classes * tree.width);
        right = arena.take<int32_t>(job.n_root_rows);
        for (int64_t c = 0; c < job.n_channels; ++c) right_numbers[c] = arena.take<int32_t>(job.n_root_rows);
    }

    // Part the rows as a split says; how many go left.
    int64_t part(const Node &node, const NodeStats &f, const Split &split) {
        const Code threshold = static_cast<Code>(split.threshold);
        const ColumnCodes<Code> codes = tree.column(split.column);
        if (split.how == MAPPED) {
            const CategoryMap<Code> map(tree.category_hash(node, split));
            return part_by(node, f, [&](int32_t row) { return map(codes[row]) <= threshold; });
        }
        const Code shift = split.how == MISSING_LEFT;
        return part_by(node, f, [&](int32_t row) { return static_cast<Code>(codes[row] + shift) <= threshold; });
    }

  private:
    template <typename GoesLeft> int64_t part_by(const Node &node, const NodeStats &f, const GoesLeft goes_left) {
        return tree.job.n_channels ? move_rows<true>(node, f, goes_left) : move_rows<false>(node, f, goes_left);
    }

    // Classes stay together, rows in the order they have.
    template <bool CHANNELS, typename GoesLeft>
    int64_t move_rows(const Node &node, const NodeStats &f, const GoesLeft goes_left) {
        const int64_t n_channels = tree.job.n_channels;
        int32_t *r = tree.rows + node.start;
        int64_t n_left = 0, n_right = 0, i = 0;
        for (int64_t k = 0; k < f.n_present; ++k) {
            const int64_t before = n_left;
            int64_t *sums = left_stats + k * tree.width + 1;
            for (int64_t c = 0; CHANNELS && c < n_channels; ++c) sums[c] = 0;
            for (const int64_t stop = i + f.counts[k]; i < stop; ++i) {
                const int32_t row = r[i]; // written to both sides, kept on one: no branch to guess
                const bool left = goes_left(row);
                r[n_left] = row;
                right[n_right] = row;
                for (int64_t c = 0; CHANNELS && c < n_channels; ++c) {
                    int32_t *own = tree.numbers[c] + node.start;
                    const int32_t number = own[i];
                    own[n_left] = number;
                    right_numbers[c][n_right] = number;
                    sums[c] += left ? number : 0;
                }
                n_left += left;
                n_right += !left;
            }
            left_stats[k * tree.width] = n_left - before;
        }
        const size_t rest = sizeof(int32_t) * static_cast<size_t>(n_right);
        __builtin_memcpy(r + n_left, right, rest);
        for (int64_t c = 0; CHANNELS && c < n_channels; ++c)
            __builtin_memcpy(tree.numbers[c] + node.start + n_left, right_numbers[c], rest);
        return n_left;
    }
};

// Subtrees small enough to be left to whichever thread is free.
struct SubtreeTasks {
    static constexpr int64_t MAX_TASKS = 1024, MIN_CELLS = 1 << 14; // of a node, rows times columns
    const GrowJob &job;
    const int64_t slot_size; // numbers of a node, by class
    Node *nodes;             // [MAX_TASKS]
    int64_t *stats;          // [MAX_TASKS][slot_size]
    int64_t n = 0, next = 0;

    void carve(Arena &arena) {
        const int64_t most = job.n_threads > 1 ? MAX_TASKS : 0;
        nodes = arena.take<Node>(most);
        stats = arena.take<int64_t>(most * slot_size);
    }

    // Leave the subtree below a node, if it is one to be left.
    bool leave(const Node &node, const int64_t *own_stats) {
        const int64_t cells = node.n * job.n_columns;
        if (cells >= SHARED_CELLS || cells < MIN_CELLS || node.n == job.n_root_rows || n == MAX_TASKS) return false;
        for (int64_t i = 0; i < slot_size; ++i) stats[n * slot_size + i] = own_stats[i];
        nodes[n++] = node;
        return true;
    }
};

template <typename Code> struct Grower : TreeData<Code> {
    using Data = TreeData<Code>;
    using Data::criterion, Data::job, Data::numbers, Data::rows;
    static constexpr int64_t STACK = 66; // the larger child waits, so 2**65 rows would be needed
    ClassStats stats;
    RowPartition<Code> partition;
    SubtreeTasks tasks;              // of the first thread
    int64_t n_leaves = 0, depth = 0; // of this thread
    int64_t *importance;             // [n_columns] of this thread
    int64_t *stack_stats;            // [STACK + 1][n_classes][width]

    explicit Grower(GrowJob &job)
        : Data(job), stats{job, criterion, this->width, nullptr, nullptr, nullptr}, partition{*this, nullptr, nullptr, {}},
          tasks{job, stats.slot_size(), nullptr, nullptr} {}

    size_t nbytes() { return carve_shared(nullptr) + static_cast<size_t>(job.n_threads) * carve_own(nullptr); }

    void grow() {
        char *base = static_cast<char *>(job.scratch);
        carve_own(base + carve_shared(base));
        importance = job.importance;
        this->fill_own();
        this->fill_shared();
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

  private:
    size_t carve_shared(char *base) {
        Arena arena{base};
        Data::carve_shared(arena);
        tasks.carve(arena);
        return arena.used;
    }

    size_t carve_own(char *base) {
        Arena arena{base};
        importance = arena.take<int64_t>(job.n_threads > 1 ? job.n_columns : 0);
        stack_stats = arena.take<int64_t>(stats.slot_size() * (STACK + 1));
        stats.carve(arena);
        partition.carve(arena);
        Data::carve_own(arena);
        return arena.used;
    }

    // ---- threads -------------------------------------------------------------------------------

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

    void join(const Grower &first, int number) {
        char *base = static_cast<char *>(job.scratch);
        const size_t shared = carve_shared(base), own = carve_own(nullptr);
        carve_own(base + shared + static_cast<size_t>(number) * own);
        Data::join(first, number);
        for (int64_t j = 0; j < job.n_columns; ++j) importance[j] = 0;
        this->fill_own();
    }

    // Grow one subtree after another, until none is left.
    void take_tasks(SubtreeTasks &left) {
        for (int64_t i; (i = __atomic_fetch_add(&left.next, 1, __ATOMIC_RELAXED)) < left.n;)
            grow_from(left.nodes[i], left.stats + i * left.slot_size, nullptr);
    }

    // ---- nodes ---------------------------------------------------------------------------------

    // Grow the tree below a node; subtrees may be left `for_later`.
    SRS_APART void grow_from(const Node &root, const int64_t *root_stats, SubtreeTasks *for_later) {
        Node stack[STACK];
        stack[0] = root;
        const int64_t slot_size = stats.slot_size();
        for (int64_t i = 0; i < slot_size; ++i) stack_stats[i] = root_stats[i];
        for (int64_t top = 0; top >= 0;) {
            const Node node = stack[top];
            int64_t *slot = stack_stats + top * slot_size, *next = slot + slot_size;
            if (for_later && for_later->leave(node, slot)) {
                --top;
                continue;
            }
            const int64_t id = number(node);
            const NodeStats f = stats.stats_of(node.n, slot);
            const Split split = best_split(node, f);
            int64_t n_left = 0, worth = -1;
            if (split.column >= 0) {
                n_left = partition.part(node, f, split);
                worth = criterion.importance(f, partition.left_stats, n_left);
            }
            if (worth < job.min_decrease) { // rows may have changed places: a leaf's order means nothing
                if (job.record) record_leaf(id, f);
                ++n_leaves;
                --top;
                continue;
            }
            importance[split.column] += worth;
            if (job.record) record_split(id, node, split, n_left);
            int32_t *left_link = job.record ? job.record->left + id : nullptr;
            int32_t *right_link = job.record ? job.record->right + id : nullptr;
            const Node left{node.start, n_left, node.depth + 1, derive(node.key, LEFT), left_link};
            const Node other{node.start + n_left, node.n - n_left, node.depth + 1, derive(node.key, RIGHT), right_link};
            const bool left_first = left.n <= other.n; // the smaller child next: the stack stays shallow
            stack[top] = left_first ? other : left;
            stack[top + 1] = left_first ? left : other;
            stats.part(f, partition.left_stats, left_first ? next : slot, left_first ? slot : next);
            ++top;
        }
    }

    // Give a node its number, and write that where its parent is recorded.
    int64_t number(const Node &node) {
        const int64_t id = job.n_threads > 1 ? __atomic_fetch_add(&job.n_nodes, 1, __ATOMIC_RELAXED) : job.n_nodes++;
        if (node.link) *node.link = static_cast<int32_t>(id);
        if (node.depth > depth) depth = node.depth;
        return id;
    }

    Split best_split(const Node &node, const NodeStats &f) {
        const bool limited = job.max_depth >= 0 && node.depth >= job.max_depth;
        const bool pure = job.impurity == VARIANCE ? equal_targets(node) : f.n_present < 2;
        if (pure || limited || node.n < 2 * job.min_samples_leaf) return Split{};
        return NodeSearch<Code>{*this}.search(node, f);
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

    void record_leaf(int64_t id, const NodeStats &f) const {
        TreeRecord &record = *job.record;
        record.column[id] = -1;
        const int64_t n_pairs = job.impurity == VARIANCE ? 1 : f.n_present;
        const int64_t first = __atomic_fetch_add(&record.n_pairs, n_pairs, __ATOMIC_RELAXED);
        record.left[id] = static_cast<int32_t>(first);
        record.right[id] = static_cast<int32_t>(n_pairs);
        if (job.impurity == VARIANCE) {
            record.threshold[id] = static_cast<int32_t>(f.weight);
            record.pair_class[first] = static_cast<int32_t>(f.sum);
            record.pair_count[first] = static_cast<int32_t>(f.sum >> 32);
            return;
        }
        for (int64_t k = 0; k < f.n_present; ++k) {
            record.pair_class[first + k] = f.present[k];
            record.pair_count[first + k] = static_cast<int32_t>(f.stats[(k + 1) * f.width - 1]);
        }
    }

    // Missing values alone on a side are kept apart from all others, also from those not seen at the node.
    void record_split(int64_t id, const Node &node, const Split &split, int64_t n_left) const {
        TreeRecord &record = *job.record;
        record.column[id] = static_cast<int32_t>(split.column);
        record.how[id] = split.how;
        record.hash[id] = split.how == MAPPED ? this->category_hash(node, split) : 0;
        const ColumnCodes<Code> codes = this->column(split.column);
        int64_t n_missing = 0;
        if (split.how == MISSING_LEFT || split.how == MISSING_RIGHT)
            for (int64_t i = 0; i < node.n; ++i) n_missing += codes[rows[node.start + i]] == MISSING<Code>;
        uint32_t threshold = split.threshold;
        if (split.how == MISSING_LEFT && n_missing == n_left) threshold = 0;
        if (split.how == MISSING_RIGHT && n_missing == node.n - n_left) threshold = ALL_CODES;
        record.threshold[id] = static_cast<int32_t>(threshold);
    }
};

} // namespace
} // namespace srs::SRS_ISA
