// A tree of best splits on few columns, and what it says of rows it was not grown on. Compiled once per instruction set.
//
// Twin: srs_ooc/trees/kernel.py, which grows with trees.cpp and walks the tree. This file finds the same splits, with
// the same scores, ties and thresholds, from columns that are sorted once: a node's rows stay sorted in every column as
// they are parted.
#include "presorted/sorted.hpp"

namespace srs::SRS_ISA {
namespace {

constexpr int64_t FEW_ROWS = 12; // up to here a node's places are scored one by one

template <typename Code, typename Kind> struct SortedTree {
    static constexpr bool TARGETS = __is_same(Kind, Targets), TWO = __is_same(Kind, TwoClasses);
    SortedJob &job;
    const Criterion criterion;
    SortedColumns<Code> columns;
    PlaceScores<Kind> scored;
    // Scratch.
    HeldRows held;
    uint32_t *hashes;  // [n_columns]
    Node *stack;       // [n_fitted + 1]: each row of the tree is in one node that waits

    explicit SortedTree(SortedJob &job)
        : job(job), criterion{TARGETS ? VARIANCE : GINI, nullptr, job.root_scale}, columns(job), scored(job) {}

    size_t carve(char *base) {
        Carver carver{base};
        columns.carve(carver);
        scored.carve(carver, job);
        held.carve(carver, job.n_predicted);
        hashes = carver.take<uint32_t>(job.n_columns);
        stack = carver.take<Node>(job.n_fitted + 1);
        return carver.used;
    }

    // ---- the best split ------------------------------------------------------------------------

    SRS_INLINE void try_column(int64_t j, const Node &node, const LaneKey &ties, Found &best) {
        const uint16_t *order = columns.order_of(j, node);
        const Code *own = columns.column(j);
        const int32_t n = node.n;
        if (own[order[0]] == own[order[n - 1]]) return; // constant
        if (n <= FEW_ROWS) return try_few(j, node, ties, best);
        scored.score(order, n, node.total);
        const int64_t first = job.min_samples_leaf - 1, end = n - job.min_samples_leaf;
        int32_t most = -1;
        for (int64_t i = first; i < end; ++i) most = scored.bits[i] > most ? scored.bits[i] : most;
        if (most < best.bits) return; // even if that were between two codes
        const uint32_t tie = ties(hashes[j]);
        for (int64_t i = first; i < end; ++i) {
            if (scored.bits[i] < best.bits) continue;
            const uint32_t threshold = own[order[i]];
            if (own[order[i + 1]] == threshold) continue;
            offer(best, Found{scored.bits[i], static_cast<int32_t>(i + 1), tie ^ (threshold * TIE_FACTOR), threshold, j});
        }
    }

    SRS_INLINE void try_few(int64_t j, const Node &node, const LaneKey &ties, Found &best) {
        const uint16_t *order = columns.order_of(j, node);
        const Code *own = columns.column(j);
        const int64_t first = job.min_samples_leaf - 1, end = node.n - job.min_samples_leaf;
        for (int64_t k = 0; !TARGETS && !TWO && k < scored.n_classes; ++k) scored.lefts[k] = 0;
        int64_t sum = 0;
        uint32_t next = own[order[0]];
        for (int64_t i = 0; i < end; ++i) {
            const int32_t said = scored.says[order[i]];
            const uint32_t threshold = next;
            next = own[order[i + 1]];
            if (TARGETS || TWO) sum += said;
            else ++scored.lefts[said];
            if (i < first || next == threshold) continue;
            const int32_t found = scored.score_of(static_cast<int32_t>(i + 1), node.n, sum, node.total);
            if (found < best.bits) continue;
            const uint32_t tie = ties(hashes[j]) ^ (threshold * TIE_FACTOR);
            offer(best, Found{found, static_cast<int32_t>(i + 1), tie, threshold, j});
        }
    }

    SRS_INLINE void offer(Found &best, const Found &found) const {
        if (found.bits < best.bits || (found.bits == best.bits && found.tie < best.tie)) return;
        const bool equal = found.bits == best.bits && found.tie == best.tie;
        if (equal && best.member >= 0 && job.features[found.member] >= job.features[best.member]) return;
        best = found;
    }

    // ---- growing -------------------------------------------------------------------------------

    // Rows of each class, in `totals`.
    SRS_INLINE void count_classes(const uint16_t *order, int64_t n, int64_t *out) const {
        for (int64_t k = 0; k < scored.n_classes; ++k) out[k] = 0;
        for (int64_t i = 0; i < n; ++i) ++out[scored.says[order[i]]];
    }

    SRS_INLINE int64_t total_of(const uint16_t *order, int64_t n) const {
        int64_t total = 0;
        for (int64_t i = 0; (TARGETS || TWO) && i < n; ++i) total += scored.says[order[i]];
        return total;
    }

    SRS_INLINE bool stops(const Node &node, const uint16_t *order) const {
        if ((job.max_depth >= 0 && node.depth >= job.max_depth) || node.n < 2 * job.min_samples_leaf) return true;
        if (TWO) return node.total == 0 || node.total == node.n;
        for (int64_t i = 1; i < node.n; ++i)
            if (scored.says[order[i]] != scored.says[order[0]]) return false;
        return true;
    }

    // Say what a leaf has to say of the rows to predict in it.
    void end(const Node &node, const uint16_t *order) {
        if (node.n_held == 0) return;
        const double n = static_cast<double>(node.n);
        double own[MOST_SORTED_CLASSES];
        if (TARGETS) {
            own[0] = static_cast<double>(node.total) / n;
        } else if (TWO) {
            own[0] = static_cast<double>(node.n - node.total) / n;
            own[1] = static_cast<double>(node.total) / n;
        } else {
            count_classes(order, node.n, scored.totals);
            for (int64_t k = 0; k < scored.n_classes; ++k) own[k] = static_cast<double>(scored.totals[k]) / n;
        }
        for (int32_t i = node.held; i < node.held + node.n_held; ++i)
            for (int64_t k = 0; k < scored.n_classes; ++k) job.shares[held.places[i] * scored.n_classes + k] = own[k];
    }

    uint32_t threshold_of(const Node &node, const Found &split) const {
        const Code *own = columns.column(split.member);
        const uint16_t *order = columns.order_of(split.member, node);
        const uint32_t low = own[order[split.n_left - 1]], high = own[order[split.n_left]];
        if (!job.values) return (low + high) / 2;
        return CodeValues{job.values, job.n_values - 1}.cut(split.member, HALFWAY, low, high);
    }

    // Rows to predict that go left come first; how many.
    int32_t part_held(const Node &node, const Found &split) {
        if (node.n_held == 0) return 0;
        const Code *own = columns.column(split.member);
        const uint32_t threshold = threshold_of(node, split);
        return held.part(node, [&](uint16_t place) { return own[job.predicted[place]] <= threshold; });
    }

    // Note what a split is worth; `total`: of the rows that go left.
    void note(const Node &node, const Found &split, const uint16_t *order, int64_t total) {
        int64_t whole[2 * MOST_SORTED_CLASSES], part[2 * MOST_SORTED_CLASSES];
        const int64_t width = TARGETS ? 2 : 1;
        if (TARGETS || TWO) { // rows and their sum, or rows of the one class and of the other
            whole[0] = TWO ? node.n - node.total : node.n;
            part[0] = TWO ? split.n_left - total : split.n_left;
            whole[1] = node.total;
            part[1] = total;
        } else {
            count_classes(order, split.n_left, part);
            count_classes(order + split.n_left, node.n - split.n_left, whole);
            for (int64_t k = 0; k < scored.n_classes; ++k) whole[k] += part[k];
        }
        const Facts f{node.n, 0, scored.n_classes, width, nullptr, whole, whole, 0, node.n, TARGETS ? node.total : 0};
        job.importance[split.member] += criterion.importance(f, part, split.n_left);
    }

    void split_node(const Node &node, const Found &best, int64_t &n_waiting) {
        const uint16_t *order = columns.order_of(best.member, node), *other = order + best.n_left;
        const int64_t total = total_of(order, best.n_left);
        note(node, best, order, total);
        const int32_t held_left = part_held(node, best);
        const Node below{node.start, best.n_left, node.held, held_left, node.depth + 1, derive(node.key, LEFT), total};
        const Node above{node.start + best.n_left, node.n - best.n_left, node.held + held_left, node.n_held - held_left,
                         node.depth + 1, derive(node.key, RIGHT), node.total - total};
        const bool right_stops = stops(above, other), left_stops = stops(below, order);
        if (right_stops) end(above, other);
        if (left_stops) end(below, order);
        columns.part(node, best.member, best.n_left, !left_stops, !right_stops);
        if (!right_stops) stack[n_waiting++] = above;
        if (!left_stops) stack[n_waiting++] = below;
    }

    void grow() {
        if (!(job.complete = columns.take())) return;
        for (int64_t j = 0; j < job.n_columns; ++j) {
            columns.sort(j);
            hashes[j] = static_cast<uint32_t>(derive(job.tree_key, job.features[j]) >> 32);
        }
        for (int64_t i = 0; TWO && i < job.n_rows; ++i) scored.is_second[i] = static_cast<uint8_t>(scored.says[i]);
        held.take_all(job.n_predicted);
        const auto n = static_cast<int32_t>(job.n_fitted);
        Node root{0, n, 0, static_cast<int32_t>(job.n_predicted), 0, job.tree_key, 0};
        root.total = total_of(columns.orders, n);
        if (stops(root, columns.orders)) return end(root, columns.orders);
        int64_t n_waiting = 0;
        for (stack[n_waiting++] = root; n_waiting > 0;) {
            const Node node = stack[--n_waiting];
            if (!TARGETS && !TWO) count_classes(columns.order_of(0, node), node.n, scored.totals);
            Found best;
            const LaneKey ties(node.key, TIE);
            for (int64_t j = 0; j < job.n_columns; ++j) try_column(j, node, ties, best);
            if (best.member >= 0) split_node(node, best, n_waiting);
            else end(node, columns.order_of(0, node));
        }
    }
};

template <typename Code, typename Kind> void grow_as(SortedJob &job) {
    SortedTree<Code, Kind> tree(job);
    tree.carve(static_cast<char *>(job.scratch));
    tree.grow();
}

template <typename Code> void grow_codes(SortedJob &job) {
    if (job.targets) grow_as<Code, Targets>(job);
    else if (job.n_classes == 2) grow_as<Code, TwoClasses>(job);
    else grow_as<Code, ManyClasses>(job);
}

} // namespace

void grow_sorted(SortedJob &job) {
    if (job.code_nbytes == 1) grow_codes<uint8_t>(job);
    else grow_codes<uint16_t>(job);
}

size_t sorted_scratch_nbytes(const SortedJob &job) {
    SortedJob copy = job;
    SortedTree<uint16_t, Targets> tree(copy);
    return tree.carve(nullptr);
}

} // namespace srs::SRS_ISA
