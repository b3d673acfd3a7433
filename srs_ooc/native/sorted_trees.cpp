// A tree of best splits on few columns, and what it says of rows it was not grown on. Compiled once per instruction set.
//
// Twin: srs_ooc/trees/sorted_trees.py, which grows with trees.cpp and walks the tree. This file finds the same splits, with
// the same scores, ties and thresholds, from columns that are sorted once: a node's rows stay sorted in every column as
// they are parted. As there, nothing allocates, and no inline library function is used.
#include "sorted_trees.hpp"
#include "hash.hpp"

namespace srs {
namespace SRS_ISA {
namespace {

#define SRS_INLINE inline __attribute__((always_inline))
#include "scores.hpp"
#include "values.hpp"

constexpr uint32_t TIE_FACTOR = 0x9E3779B1u; // as in best.hpp
constexpr int64_t FEW_ROWS = 12; // up to here a node's places are scored one by one

struct Carver {
    char *base;
    size_t used = 0;
    template <typename T> T *take(int64_t n) {
        T *part = base ? reinterpret_cast<T *>(base + used) : nullptr;
        used += (sizeof(T) * static_cast<size_t>(n) + 63) / 64 * 64;
        return part;
    }
};

struct Node {
    int32_t start, n, held, n_held, depth; // its rows, those to predict
    uint64_t key;
    int64_t total;                         // of its targets; of two classes, rows of the second
};

struct Found { // as Split of scores.hpp, with the rows that go left
    int32_t bits = -1, n_left = 0;
    uint32_t tie = 0;
    int64_t column = -1;
};

// What the rows say.
struct TwoClasses {};
struct ManyClasses {};
struct Targets {};

template <typename Code, typename Kind> struct SortedTree {
    static constexpr bool TARGETS = __is_same(Kind, Targets), TWO = __is_same(Kind, TwoClasses);
    SortedJob &job;
    const int64_t n_classes;
    const int32_t *says; // of each row
    const Criterion criterion;
    // Scratch.
    Code *copies;      // [n_columns][n_rows] of a tiled block
    uint16_t *orders;  // [n_columns][n_fitted] rows of each column by code; a node's lie together
    uint16_t *spare;   // [n_fitted]
    uint8_t *left;     // [n_rows]
    uint8_t *is_second; // [n_rows] of two classes
    uint16_t *held, *held_spare; // [n_predicted] places among the predicted rows
    double *sums;      // [n_fitted]
    int32_t *counts;   // [n_fitted]
    int32_t *bits;     // [n_fitted]
    uint32_t *hashes;  // [n_columns]
    Node *stack;       // [n_fitted + 1]: each row of the tree is in one node that waits
    const Code *codes; // [n_columns][n_rows]
    int64_t totals[MOST_SORTED_CLASSES], lefts[MOST_SORTED_CLASSES];

    explicit SortedTree(SortedJob &job)
        : job(job), n_classes(job.n_classes), says(TARGETS ? job.targets : job.labels),
          criterion{TARGETS ? VARIANCE : GINI, nullptr, job.root_scale} {}

    size_t carve(char *base) {
        Carver carver{base};
        copies = carver.take<Code>(job.tiled ? job.n_columns * job.n_rows : 0);
        orders = carver.take<uint16_t>(job.n_columns * job.n_fitted);
        spare = carver.take<uint16_t>(job.n_fitted + 32);
        left = carver.take<uint8_t>(job.n_rows);
        is_second = carver.take<uint8_t>(job.n_rows);
        held = carver.take<uint16_t>(job.n_predicted);
        held_spare = carver.take<uint16_t>(job.n_predicted);
        sums = carver.take<double>(job.n_fitted);
        counts = carver.take<int32_t>(job.n_fitted);
        bits = carver.take<int32_t>(job.n_fitted);
        hashes = carver.take<uint32_t>(job.n_columns);
        stack = carver.take<Node>(job.n_fitted + 1);
        return carver.used;
    }

    SRS_INLINE const Code *column(int64_t j) const { return codes + j * job.n_rows; }
    SRS_INLINE uint16_t *order_of(int64_t j, const Node &node) const { return orders + j * job.n_fitted + node.start; }

    // ---- columns in order ----------------------------------------------------------------------

    // Lay the columns out one after another; false if a value is missing.
    bool take_columns() {
        codes = static_cast<const Code *>(job.codes);
        if (job.tiled) {
            for (int64_t j = 0; j < job.n_columns; ++j) {
                const Code *from = codes + j / TILE * TILE * job.n_rows + j % TILE;
                for (int64_t i = 0; i < job.n_rows; ++i) copies[j * job.n_rows + i] = from[i * TILE];
            }
            codes = copies;
        }
        Code highest = 0;
        for (int64_t i = 0; i < job.n_columns * job.n_rows; ++i) highest = codes[i] > highest ? codes[i] : highest;
        return highest != static_cast<Code>(-1);
    }

    // Rows of a column by ascending code: by the lowest byte, then by the next.
    void sort_column(int64_t j) {
        const Code *own = column(j);
        uint16_t *order = orders + j * job.n_fitted;
        int32_t starts[2][256];
        __builtin_memset(starts, 0, sizeof starts);
        for (int64_t i = 0; i < job.n_fitted; ++i) {
            const uint32_t code = own[job.fitted[i]];
            ++starts[0][code & 255];
            ++starts[1][code >> 8];
        }
        for (int byte = 0; byte < int(sizeof(Code)); ++byte) {
            int32_t before = 0;
            for (int b = 0; b < 256; ++b) {
                const int32_t n = starts[byte][b];
                starts[byte][b] = before;
                before += n;
            }
        }
        uint16_t *first = sizeof(Code) == 1 ? order : spare;
        for (int64_t i = 0; i < job.n_fitted; ++i) {
            const int32_t row = job.fitted[i];
            first[starts[0][own[row] & 255]++] = static_cast<uint16_t>(row);
        }
        if (sizeof(Code) == 1) return;
        for (int64_t i = 0; i < job.n_fitted; ++i) order[starts[1][own[first[i]] >> 8]++] = first[i];
    }

    // ---- scores: operation by operation as scores.hpp ------------------------------------------

    // Of every place between neighbours, by the sum of what goes left there.
    SRS_INLINE void score_targets(const uint16_t *order, int32_t n, double total) {
        int64_t sum = 0; // below 2**53: exact as a double
        for (int32_t i = 0; i + 1 < n; ++i) sums[i] = static_cast<double>(sum += says[order[i]]);
        const double all = static_cast<double>(n);
        for (int32_t i = 0; i < n - 1; ++i) {
            const float d = static_cast<float>(sums[i] * all - total * static_cast<double>(i + 1));
            const float sides = static_cast<float>(i + 1) * static_cast<float>(n - i - 1);
            bits[i] = bits_of(d * d / sides);
        }
    }

    SRS_INLINE void score_two(const uint16_t *order, int32_t n, int32_t whole) {
        int32_t count = 0;
        for (int32_t i = 0; i < n - 1; ++i) counts[i] = count += is_second[order[i]];
        for (int32_t i = 0; i < n - 1; ++i) { // the other class's D is minus this one's
            const float d = static_cast<float>(counts[i] * n - whole * (i + 1));
            const float sides = static_cast<float>(i + 1) * static_cast<float>(n - i - 1);
            bits[i] = bits_of((d * d + d * d) / sides);
        }
    }

    SRS_INLINE void score_classes(const uint16_t *order, int32_t n) {
        float *scores = reinterpret_cast<float *>(sums);
        for (int32_t i = 0; i < n - 1; ++i) scores[i] = 0.0f;
        for (int64_t k = 0; k < n_classes; ++k) {
            const int32_t whole = static_cast<int32_t>(totals[k]);
            if (whole == 0) continue;
            int32_t count = 0;
            for (int32_t i = 0; i < n - 1; ++i) counts[i] = count += says[order[i]] == k;
            for (int32_t i = 0; i < n - 1; ++i) {
                const float d = static_cast<float>(counts[i] * n - whole * (i + 1));
                scores[i] = scores[i] + d * d;
            }
        }
        for (int32_t i = 0; i < n - 1; ++i)
            bits[i] = bits_of(scores[i] / (static_cast<float>(i + 1) * static_cast<float>(n - i - 1)));
    }

    // The score of one place of a small node, as above; `sum`: of the targets, or rows of the second class.
    SRS_INLINE int32_t score_of(int32_t n_left, int32_t n, int64_t sum, int64_t total) const {
        const float sides = static_cast<float>(n_left) * static_cast<float>(n - n_left);
        if (TARGETS || TWO) {
            const float d = static_cast<float>(sum * n - total * n_left);
            return bits_of((TWO ? d * d + d * d : d * d) / sides);
        }
        float score = 0.0f;
        for (int64_t k = 0; k < n_classes; ++k) {
            const float d = static_cast<float>(static_cast<int32_t>(lefts[k]) * n - static_cast<int32_t>(totals[k]) * n_left);
            score = score + d * d; // of a class that is absent: plus 0
        }
        return bits_of(score / sides);
    }

    // ---- the best split ------------------------------------------------------------------------

    SRS_INLINE void try_column(int64_t j, const Node &node, const LaneKey &ties, Found &best) {
        const uint16_t *order = order_of(j, node);
        const Code *own = column(j);
        const int32_t n = node.n;
        if (own[order[0]] == own[order[n - 1]]) return; // constant
        if (n <= FEW_ROWS) return try_few(j, node, ties, best);
        if (TARGETS) score_targets(order, n, static_cast<double>(node.total));
        else if (TWO) score_two(order, n, static_cast<int32_t>(node.total));
        else score_classes(order, n);
        const int64_t first = job.min_samples_leaf - 1, end = n - job.min_samples_leaf;
        int32_t most = -1;
        for (int64_t i = first; i < end; ++i) most = bits[i] > most ? bits[i] : most;
        if (most < best.bits) return; // even if that were between two codes
        const uint32_t tie = ties(hashes[j]);
        for (int64_t i = first; i < end; ++i) {
            if (bits[i] < best.bits) continue;
            const uint32_t threshold = own[order[i]];
            if (own[order[i + 1]] == threshold) continue;
            offer(best, Found{bits[i], static_cast<int32_t>(i + 1), tie ^ (threshold * TIE_FACTOR), j});
        }
    }

    SRS_INLINE void try_few(int64_t j, const Node &node, const LaneKey &ties, Found &best) {
        const uint16_t *order = order_of(j, node);
        const Code *own = column(j);
        const int64_t first = job.min_samples_leaf - 1, end = node.n - job.min_samples_leaf;
        for (int64_t k = 0; !TARGETS && !TWO && k < n_classes; ++k) lefts[k] = 0;
        int64_t sum = 0;
        uint32_t next = own[order[0]];
        for (int64_t i = 0; i < end; ++i) {
            const int32_t said = says[order[i]];
            const uint32_t threshold = next;
            next = own[order[i + 1]];
            if (TARGETS || TWO) sum += said;
            else ++lefts[said];
            if (i < first || next == threshold) continue;
            const int32_t found = score_of(static_cast<int32_t>(i + 1), node.n, sum, node.total);
            if (found < best.bits) continue;
            const uint32_t tie = ties(hashes[j]) ^ (threshold * TIE_FACTOR);
            offer(best, Found{found, static_cast<int32_t>(i + 1), tie, j});
        }
    }

    SRS_INLINE void offer(Found &best, const Found &found) const {
        if (found.bits < best.bits || (found.bits == best.bits && found.tie < best.tie)) return;
        const bool equal = found.bits == best.bits && found.tie == best.tie;
        if (equal && best.column >= 0 && job.features[found.column] >= job.features[best.column]) return;
        best = found;
    }

    // ---- growing -------------------------------------------------------------------------------

    // Rows of each class, in `totals`.
    SRS_INLINE void count_classes(const uint16_t *order, int64_t n, int64_t *out) const {
        for (int64_t k = 0; k < n_classes; ++k) out[k] = 0;
        for (int64_t i = 0; i < n; ++i) ++out[says[order[i]]];
    }

    SRS_INLINE int64_t total_of(const uint16_t *order, int64_t n) const {
        int64_t total = 0;
        for (int64_t i = 0; (TARGETS || TWO) && i < n; ++i) total += says[order[i]];
        return total;
    }

    SRS_INLINE bool stops(const Node &node, const uint16_t *order) const {
        if ((job.max_depth >= 0 && node.depth >= job.max_depth) || node.n < 2 * job.min_samples_leaf) return true;
        if (TWO) return node.total == 0 || node.total == node.n;
        for (int64_t i = 1; i < node.n; ++i)
            if (says[order[i]] != says[order[0]]) return false;
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
            count_classes(order, node.n, totals);
            for (int64_t k = 0; k < n_classes; ++k) own[k] = static_cast<double>(totals[k]) / n;
        }
        for (int32_t i = node.held; i < node.held + node.n_held; ++i)
            for (int64_t k = 0; k < n_classes; ++k) job.shares[held[i] * n_classes + k] = own[k];
    }

    uint32_t threshold_of(const Node &node, const Found &split) const {
        const Code *own = column(split.column);
        const uint16_t *order = order_of(split.column, node);
        const uint32_t low = own[order[split.n_left - 1]], high = own[order[split.n_left]];
        if (!job.values) return (low + high) / 2;
        return CodeValues{job.values, job.n_values - 1}.cut(split.column, HALFWAY, low, high);
    }

    // Rows to predict that go left come first; how many.
    int32_t part_held(const Node &node, const Found &split) {
        if (node.n_held == 0) return 0;
        const Code *own = column(split.column);
        const uint32_t threshold = threshold_of(node, split);
        int32_t n_left = 0, n_right = 0;
        for (int32_t i = node.held; i < node.held + node.n_held; ++i) {
            const uint16_t place = held[i];
            const bool goes_left = own[job.predicted[place]] <= threshold;
            held[node.held + n_left] = place;
            held_spare[n_right] = place;
            n_left += goes_left;
            n_right += !goes_left;
        }
        for (int32_t i = 0; i < n_right; ++i) held[node.held + n_left + i] = held_spare[i];
        return n_left;
    }

    // Each column's rows that go left come first; what goes to a side that is not split further is not kept.
    void part(const Node &node, const Found &split, bool any_left, bool any_right) {
        if (!any_left && !any_right) return;
        const uint16_t *chosen = order_of(split.column, node);
        for (int32_t i = 0; i < node.n; ++i) left[chosen[i]] = i < split.n_left;
        for (int64_t j = 0; j < job.n_columns; ++j) {
            if (j == split.column) continue;
            uint16_t *order = order_of(j, node);
            if (!any_right) keep_left(order, split.n_left);
            else if (!any_left) keep_right(order, node.n, split.n_left);
            else keep_both(order, node.n);
        }
    }

    SRS_INLINE void keep_left(uint16_t *order, int32_t n_left) const {
        for (int32_t i = 0, n = 0; n < n_left; ++i) {
            order[n] = order[i];
            n += left[order[i]];
        }
    }

    SRS_INLINE void keep_right(uint16_t *order, int32_t n, int32_t n_left) const {
        for (int32_t i = n, at = n; at > n_left;) {
            const uint16_t row = order[--i];
            order[at - 1] = row;
            at -= !left[row];
        }
    }

    SRS_INLINE void keep_both(uint16_t *order, int32_t n) {
        int32_t n_left = 0, n_right = 0;
        for (int32_t i = 0; i < n; ++i) {
            const uint16_t row = order[i];
            const uint8_t goes_left = left[row];
            order[n_left] = row;
            spare[n_right] = row;
            n_left += goes_left;
            n_right += !goes_left;
        }
        __builtin_memcpy(order + n_left, spare, sizeof(uint16_t) * static_cast<size_t>(n_right));
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
            for (int64_t k = 0; k < n_classes; ++k) whole[k] += part[k];
        }
        const Facts f{node.n, 0, n_classes, width, nullptr, whole, whole, 0, node.n, TARGETS ? node.total : 0};
        job.importance[split.column] += criterion.importance(f, part, split.n_left);
    }

    void split_node(const Node &node, const Found &best, int64_t &n_waiting) {
        const uint16_t *order = order_of(best.column, node), *other = order + best.n_left;
        const int64_t total = total_of(order, best.n_left);
        note(node, best, order, total);
        const int32_t held_left = part_held(node, best);
        const Node below{node.start, best.n_left, node.held, held_left, node.depth + 1, derive(node.key, LEFT), total};
        const Node above{node.start + best.n_left, node.n - best.n_left, node.held + held_left, node.n_held - held_left,
                         node.depth + 1, derive(node.key, RIGHT), node.total - total};
        const bool right_stops = stops(above, other), left_stops = stops(below, order);
        if (right_stops) end(above, other);
        if (left_stops) end(below, order);
        part(node, best, !left_stops, !right_stops);
        if (!right_stops) stack[n_waiting++] = above;
        if (!left_stops) stack[n_waiting++] = below;
    }

    void grow() {
        if (!(job.complete = take_columns())) return;
        for (int64_t j = 0; j < job.n_columns; ++j) {
            sort_column(j);
            hashes[j] = static_cast<uint32_t>(derive(job.tree_key, job.features[j]) >> 32);
        }
        for (int64_t i = 0; TWO && i < job.n_rows; ++i) is_second[i] = static_cast<uint8_t>(says[i]);
        for (int64_t i = 0; i < job.n_predicted; ++i) held[i] = static_cast<uint16_t>(i);
        const auto n = static_cast<int32_t>(job.n_fitted);
        Node root{0, n, 0, static_cast<int32_t>(job.n_predicted), 0, job.tree_key, 0};
        root.total = total_of(orders, n);
        if (stops(root, orders)) return end(root, orders);
        int64_t n_waiting = 0;
        for (stack[n_waiting++] = root; n_waiting > 0;) {
            const Node node = stack[--n_waiting];
            if (!TARGETS && !TWO) count_classes(order_of(0, node), node.n, totals);
            Found best;
            const LaneKey ties(node.key, TIE);
            for (int64_t j = 0; j < job.n_columns; ++j) try_column(j, node, ties, best);
            if (best.column >= 0) split_node(node, best, n_waiting);
            else end(node, order_of(0, node));
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

} // namespace SRS_ISA
} // namespace srs
