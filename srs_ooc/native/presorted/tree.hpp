// Growing a tree on presorted columns: the best split of a node, in lanes where it has few rows, else one column after another,
// and the nodes one after another.
#pragma once
#include "presorted/few_rows.hpp"
#include "presorted/scores.hpp"

namespace srs::SRS_ISA {
namespace {

template <typename Code> struct PresortedSplits {
    const PresortedJob &job;
    const int32_t *numbers; // [n_rows] targets, or two classes as 0 and 1; null where there are more classes
    PresortedColumns<Code> columns;
    FewRows few;
    NumberScores scored;
    ClassScores of_classes;

    explicit PresortedSplits(const PresortedJob &job) : job(job), columns(job) {
        numbers = job.targets ? job.targets : job.n_classes == 2 ? job.labels : nullptr;
        scored.numbers = numbers;
        scored.is_class = few.lanes.twice = !job.targets;
        few.lanes.min_leaf = static_cast<int32_t>(job.min_samples_leaf);
        few.lanes.n_classes = of_classes.n_classes = job.n_classes;
        of_classes.labels = job.labels;
    }

    void carve(Arena &arena, int64_t max_members, int64_t max_fitted) {
        const int64_t n = job.n_rows + max_fitted + 2 * SPARE;
        columns.carve(arena, max_members, max_fitted);
        few.carve(arena, job.n_rows, max_members, max_fitted);
        scored.wide_sums = arena.take<double>(n);
        scored.expected = arena.take<double>(n);
        scored.sums = of_classes.counts = arena.take<int32_t>(n);
        scored.rough = of_classes.bits = arena.take<int32_t>(n);
        scored.inverse = of_classes.scores = arena.take<float>(n);
    }

    void use(const int32_t *places, int64_t n_members) {
        columns.places = places;
        columns.n_members = n_members;
        few.use(columns);
    }

    // Get ready for a tree of the rows that the columns have in order.
    void begin(int64_t n_fitted, uint64_t tree_key) {
        choose_sums(columns.orders, n_fitted);
        for (int64_t m = 0; m < columns.n_members; ++m)
            few.lanes.hashes[m] = static_cast<uint32_t>(derive(tree_key, columns.feature(m)) >> 32);
    }

    Found search(const HeldNode &node, const uint16_t *rows) {
        const LaneKey ties(node.key, TIE);
        FewRowsLanes &lanes = few.lanes;
        if (!few.holds(node)) {
            Found best;
            if (numbers) scored.set(node.n, node.total, lanes.min_leaf);
            for (int64_t m = 0; m < columns.n_members; ++m) try_member(m, node, ties, best);
            return best;
        }
        lanes.n = node.n;
        if (numbers) lanes.set_numbers(numbers, rows, node.total);
        else lanes.set_classes(job.labels, rows, of_classes.totals);
        return lanes.search(columns, rows, ties);
    }

    SRS_INLINE int64_t total_of(const uint16_t *order, int64_t n) const {
        int64_t total = 0;
        for (int64_t i = 0; i < n; ++i) total += numbers[order[i]];
        return total;
    }

    // Whether no split of these rows is looked for.
    SRS_INLINE bool stops(const uint16_t *order, const HeldNode &node) const {
        if ((job.max_depth >= 0 && node.depth >= job.max_depth) || node.n < 2 * job.min_samples_leaf) return true;
        if (numbers && !job.targets) return node.total == 0 || node.total == node.n;
        const int32_t *own = numbers ? numbers : job.labels;
        for (int64_t i = 1; i < node.n; ++i)
            if (own[order[i]] != own[order[0]]) return false;
        return true;
    }

  private:
    // How large the sums of numbers get says by what they are added up.
    void choose_sums(const uint16_t *rows, int64_t n) {
        int64_t all = 0, largest = 0;
        for (int64_t i = 0; numbers && i < n; ++i) {
            const int64_t number = numbers[rows[i]], size = number < 0 ? -number : number;
            all += size;
            largest = size > largest ? size : largest;
        }
        scored.is_narrow = all < int64_t(1) << 31;
        few.is_taken = largest <= FewRowsLanes::MAX_NUMBER;
    }

    SRS_INLINE void try_member(int64_t member, const HeldNode &node, const LaneKey &ties, Found &best) {
        const uint16_t *order = columns.order_of(member, node);
        const Code *own = columns.column(member);
        if (own[order[0]] == own[order[node.n - 1]]) return; // constant
        const uint32_t tie = ties(few.lanes.hashes[member]);
        const auto offer_place = [&](int32_t bits, int32_t i) {
            const uint32_t threshold = own[order[i]];
            if (bits < best.bits || own[order[i + 1]] == threshold) return;
            columns.offer(best, Found{bits, i + 1, tie ^ (threshold * TIE_FACTOR), threshold, member});
        };
        if (numbers) return scored.search(order, [&] { return best.bits; }, offer_place);
        const int32_t first = few.lanes.min_leaf - 1, end = node.n - few.lanes.min_leaf;
        if (of_classes.score_all(order, node.n, first, end) < best.bits) return; // even if that were between two codes
        for (int32_t i = first; i < end; ++i) offer_place(of_classes.bits[i], i);
    }
};

// What is wanted of the tree is up to Own: whether a node is (is_wanted), and no more are (has_enough), what a split is
// worth (note) and where its threshold lies (between), and what a leaf says (end).
template <typename Code, typename Own> struct PresortedTree {
    PresortedSplits<Code> splits;
    // Scratch.
    HeldRows held;
    HeldNode *stack; // [max_fitted + 1]: each row of a tree is in one node that waits

    explicit PresortedTree(const PresortedJob &job) : splits(job) {}

    void carve_tree(Arena &arena, int64_t max_members, int64_t max_fitted, int64_t max_held) {
        splits.carve(arena, max_members, max_fitted);
        held.carve(arena, max_held);
        stack = arena.take<HeldNode>(max_fitted + 1);
    }

    // Grow on the rows that the columns have in order; false if it ended before all nodes were split.
    bool grow_tree(int64_t n_fitted, int64_t n_held, uint64_t tree_key) {
        splits.begin(n_fitted, tree_key);
        held.take_all(n_held);
        const uint16_t *all = splits.columns.orders;
        HeldNode root{0, static_cast<int32_t>(n_fitted), 0, static_cast<int32_t>(n_held), 0, tree_key, 0};
        if (splits.numbers) root.total = splits.total_of(all, n_fitted);
        int64_t n_waiting = 0;
        if (waits(root, all)) stack[n_waiting++] = root;
        if (splits.few.holds(root)) splits.few.keep(root, all);
        while (n_waiting > 0 && !own().has_enough()) n_waiting = split(stack[n_waiting - 1], n_waiting - 1);
        return n_waiting == 0;
    }

  private:
    Own &own() { return static_cast<Own &>(*this); }

    // Split a node, or end it; return how many nodes wait.
    SRS_INLINE int64_t split(const HeldNode node, int64_t n_waiting) {
        FewRows &few = splits.few;
        PresortedColumns<Code> &columns = splits.columns;
        const bool is_small = few.holds(node);
        const uint16_t *rows = is_small ? few.rows + node.start : columns.order_of(0, node);
        if (!splits.numbers) splits.of_classes.count(rows, node.n, splits.of_classes.totals);
        Found best = splits.search(node, rows);
        if (best.member < 0) {
            own().end(node);
            return n_waiting;
        }
        const Code *codes = columns.column(best.member);
        const uint16_t *order = is_small ? rows : columns.order_of(best.member, node);
        const uint32_t next = is_small ? few.part(node, best) : codes[order[best.n_left]];
        int32_t n_left = 0;
        if (node.n_held > 0) {
            const uint32_t threshold = own().between(best.member, best.threshold, next);
            n_left = held.part(node, [&](uint16_t place) { return codes[own().row_at(place)] <= threshold; });
        }
        HeldNode left{node.start, best.n_left, node.held, n_left, node.depth + 1, derive(node.key, LEFT), 0};
        HeldNode right{node.start + best.n_left, node.n - best.n_left, node.held + n_left, node.n_held - n_left, node.depth + 1,
                   derive(node.key, RIGHT), 0};
        if (splits.numbers) {
            HeldNode &fewer = left.n <= right.n ? left : right;
            fewer.total = splits.total_of(order + (fewer.start - node.start), fewer.n);
            (left.n <= right.n ? right : left).total = node.total - fewer.total;
        }
        own().note(node, best, order, left.total);
        const bool right_waits = waits(right, order + best.n_left), left_waits = waits(left, order);
        if (!is_small) {
            if (right_waits && few.holds(right)) few.keep(right, order + best.n_left);
            if (left_waits && few.holds(left)) few.keep(left, order);
            columns.part(node, best, left_waits && !few.holds(left), right_waits && !few.holds(right));
        }
        if (right_waits) stack[n_waiting++] = right;
        if (left_waits) stack[n_waiting++] = left;
        return n_waiting;
    }

    // Whether a node is to be split; `order`: its rows, in any order. A leaf says what it has to say at once.
    bool waits(const HeldNode &node, const uint16_t *order) {
        if (!own().is_wanted(node)) return false;
        if (!splits.stops(order, node)) return true;
        if (!splits.numbers) splits.of_classes.count(order, node.n, splits.of_classes.totals);
        own().end(node);
        return false;
    }
};

} // namespace
} // namespace srs::SRS_ISA
