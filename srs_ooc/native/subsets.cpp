// Held-out losses of trees on small subsets of columns. Compiled once per instruction set.
//
// Twin: srs_ooc/trees/subsets.py, which grows whole trees with trees.cpp. This file finds the same splits, with the same
// scores, ties and thresholds, from columns that are sorted once for all subsets, and only where some row to predict goes.
// As there, nothing allocates, and no inline library function is used.
#include "subsets.hpp"
#include "hash.hpp"

namespace srs {
namespace SRS_ISA {
namespace {

#define SRS_INLINE inline __attribute__((always_inline))

constexpr uint32_t TIE_FACTOR = 0x9E3779B1u; // as in best.hpp
constexpr int64_t FEW_ROWS = 12; // up to here a node's places are scored one by one
constexpr double GIVEN_UP = __builtin_inf();

SRS_INLINE int32_t bits_of(float x) {
    int32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

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
    double total;                          // of its targets
};

struct Found { // as Split of scores.hpp, with the rows that go left
    int32_t bits = -1, n_left = 0;
    uint32_t tie = 0;
    int64_t member = -1;
};

template <typename Code> struct SubsetTrees {
    SubsetJob &job;
    const Code *codes;
    const int64_t n_classes;
    // Of the subset and split at hand.
    const int32_t *places;
    int64_t n_members;
    // Scratch.
    uint16_t *orders;  // [largest][most_fitted] rows of each column by code; a node's lie together
    uint16_t *spare;   // [most_fitted]
    uint8_t *left;     // [n_rows]
    uint16_t *held, *held_spare; // [most_predicted] places among the predicted rows
    double *sums, *errors;       // [most_fitted], [most_predicted]
    int32_t *counts;   // [most_fitted]
    int32_t *bits;     // [most_fitted]
    uint32_t *hashes;  // [largest]
    Node *stack;       // [most_fitted]: each row of a tree is in one node that waits
    int64_t *turns;    // [n_subsets]
    int64_t totals[MOST_CLASSES];

    explicit SubsetTrees(SubsetJob &job) : job(job), codes(static_cast<const Code *>(job.codes)), n_classes(job.n_classes) {}

    size_t carve(char *base) {
        Carver carver{base};
        orders = carver.take<uint16_t>(job.largest * job.most_fitted);
        spare = carver.take<uint16_t>(job.most_fitted + 32);
        left = carver.take<uint8_t>(job.n_rows);
        held = carver.take<uint16_t>(job.most_predicted);
        held_spare = carver.take<uint16_t>(job.most_predicted);
        sums = carver.take<double>(job.most_fitted);
        errors = carver.take<double>(job.most_predicted);
        counts = carver.take<int32_t>(job.most_fitted);
        bits = carver.take<int32_t>(job.most_fitted);
        hashes = carver.take<uint32_t>(job.largest);
        stack = carver.take<Node>(job.most_fitted + 1);
        turns = carver.take<int64_t>(job.n_subsets);
        return carver.used;
    }

    SRS_INLINE const Code *column(int64_t member) const { return codes + places[member] * job.n_rows; }
    SRS_INLINE uint16_t *order_of(int64_t member, const Node &node) const {
        return orders + member * job.most_fitted + node.start;
    }

    // Rows of each column by code, each as often as it is fitted on.
    void fill_orders(const uint16_t *times, int64_t n_fitted) {
        for (int64_t m = 0; m < n_members; ++m) {
            const uint16_t *from = job.sorted + places[m] * job.n_rows;
            uint16_t *to = orders + m * job.most_fitted;
            for (int64_t i = 0, n = 0; n < n_fitted; ++i) {
                const uint16_t row = from[i];
                to[n] = row; // a row that is not fitted on is written over
                n += times[row] != 0;
                for (int32_t more = int32_t(times[row]) - 1; more > 0; --more) to[n++] = row;
            }
        }
    }

    // ---- scores: operation by operation as scores.hpp ------------------------------------------

    // Of every place between neighbours: sum over i < n - 1 of what goes left there.
    SRS_INLINE void score_targets(const uint16_t *order, int64_t n, double total) {
        int64_t sum = 0; // below 2**53: exact as a double
        for (int64_t i = 0; i + 1 < n; ++i) sums[i] = static_cast<double>(sum += job.targets[order[i]]);
        const double all = static_cast<double>(n);
        for (int32_t i = 0; i < static_cast<int32_t>(n) - 1; ++i) {
            const float d = static_cast<float>(sums[i] * all - total * static_cast<double>(i + 1));
            const float sides = static_cast<float>(i + 1) * static_cast<float>(static_cast<int32_t>(n) - i - 1);
            bits[i] = bits_of(d * d / sides);
        }
    }

    SRS_INLINE void score_classes(const uint16_t *order, int64_t n) {
        const int32_t all = static_cast<int32_t>(n);
        float *scores = reinterpret_cast<float *>(sums);
        for (int32_t i = 0; i < all - 1; ++i) scores[i] = 0.0f;
        int64_t n_present = 0;
        for (int64_t k = 0; k < n_classes; ++k) n_present += totals[k] != 0;
        for (int64_t k = 0; k < n_classes; ++k) {
            const int32_t whole = static_cast<int32_t>(totals[k]);
            if (whole == 0) continue;
            int32_t count = 0;
            for (int32_t i = 0; i < all - 1; ++i) counts[i] = count += job.labels[order[i]] == k;
            for (int32_t i = 0; i < all - 1; ++i) {
                const float d = static_cast<float>(counts[i] * all - whole * (i + 1));
                scores[i] = scores[i] + d * d;
            }
            if (n_present != 2) continue;
            for (int32_t i = 0; i < all - 1; ++i) scores[i] = scores[i] + scores[i]; // the other's D is minus this one's
            break;
        }
        for (int32_t i = 0; i < all - 1; ++i)
            bits[i] = bits_of(scores[i] / (static_cast<float>(i + 1) * static_cast<float>(all - i - 1)));
    }

    // The score of one place of a small node, as above.
    SRS_INLINE int32_t score_of(int32_t n_left, int32_t n, double sum, double total, const int32_t *lefts) const {
        const float sides = static_cast<float>(n_left) * static_cast<float>(n - n_left);
        if (job.targets) {
            const float d = static_cast<float>(sum * static_cast<double>(n) - total * static_cast<double>(n_left));
            return bits_of(d * d / sides);
        }
        float score = 0.0f;
        for (int64_t k = 0; k < n_classes; ++k) {
            const float d = static_cast<float>(lefts[k] * n - static_cast<int32_t>(totals[k]) * n_left);
            score = score + d * d; // of a class that is absent: plus 0
        }
        return bits_of(score / sides);
    }

    // ---- the best split ------------------------------------------------------------------------

    SRS_INLINE void try_member(int64_t member, const Node &node, const LaneKey &ties, Found &best) {
        const uint16_t *order = order_of(member, node);
        const Code *own = column(member);
        const int64_t n = node.n;
        if (own[order[0]] == own[order[n - 1]]) return; // constant
        if (n <= FEW_ROWS) return try_few(member, node, ties, best);
        if (job.targets) score_targets(order, n, node.total);
        else score_classes(order, n);
        const int64_t first = job.min_samples_leaf - 1, end = n - job.min_samples_leaf;
        int32_t most = -1;
        for (int64_t i = first; i < end; ++i) most = bits[i] > most ? bits[i] : most;
        if (most < best.bits) return; // even if that were between two codes
        const uint32_t tie = ties(hashes[member]);
        for (int64_t i = first; i < end; ++i) {
            if (bits[i] < best.bits) continue;
            const uint32_t threshold = own[order[i]];
            if (own[order[i + 1]] == threshold) continue;
            offer(best, Found{bits[i], static_cast<int32_t>(i + 1), tie ^ (threshold * TIE_FACTOR), member});
        }
    }

    SRS_INLINE void try_few(int64_t member, const Node &node, const LaneKey &ties, Found &best) {
        const uint16_t *order = order_of(member, node);
        const Code *own = column(member);
        const int64_t first = job.min_samples_leaf - 1, end = node.n - job.min_samples_leaf;
        const int32_t *says = job.targets ? job.targets : job.labels;
        int32_t lefts[MOST_CLASSES];
        for (int64_t k = 0; k < n_classes; ++k) lefts[k] = 0;
        double sum = 0.0;
        uint32_t next = own[order[0]];
        for (int64_t i = 0; i < end; ++i) {
            const int32_t said = says[order[i]];
            const uint32_t threshold = next;
            next = own[order[i + 1]];
            if (job.targets) sum += said;
            else ++lefts[said];
            if (i < first || next == threshold) continue;
            const int32_t found = score_of(static_cast<int32_t>(i + 1), node.n, sum, node.total, lefts);
            if (found < best.bits) continue;
            const uint32_t tie = ties(hashes[member]) ^ (threshold * TIE_FACTOR);
            offer(best, Found{found, static_cast<int32_t>(i + 1), tie, member});
        }
    }

    SRS_INLINE void offer(Found &best, const Found &found) const {
        if (found.bits < best.bits || (found.bits == best.bits && found.tie < best.tie)) return;
        const bool equal = found.bits == best.bits && found.tie == best.tie;
        if (equal && best.member >= 0 && job.features[places[found.member]] >= job.features[places[best.member]]) return;
        best = found;
    }

    // The sum of a node's targets; of classes its numbers are left in `totals`.
    SRS_INLINE double total_of(const uint16_t *order, int64_t n) {
        double total = 0.0;
        if (job.targets) {
            for (int64_t i = 0; i < n; ++i) total += job.targets[order[i]];
            return total;
        }
        for (int64_t k = 0; k < n_classes; ++k) totals[k] = 0;
        for (int64_t i = 0; i < n; ++i) ++totals[job.labels[order[i]]];
        return total;
    }

    SRS_INLINE bool stops(const uint16_t *order, int64_t n, int64_t depth) const {
        if ((job.max_depth >= 0 && depth >= job.max_depth) || n < 2 * job.min_samples_leaf) return true;
        const int32_t *says = job.targets ? job.targets : job.labels;
        for (int64_t i = 1; i < n; ++i)
            if (says[order[i]] != says[order[0]]) return false;
        return true;
    }

    // ---- growing -------------------------------------------------------------------------------

    void end(const Node &node, const uint16_t *rows) {
        int64_t chosen = 0;
        for (int64_t k = 1; k < n_classes; ++k) chosen = totals[k] > totals[chosen] ? k : chosen;
        for (int64_t i = node.held; i < node.held + node.n_held; ++i) {
            const int64_t row = rows[held[i]];
            const double error = node.total / static_cast<double>(node.n) - (job.targets ? job.targets[row] : 0);
            errors[held[i]] = job.targets ? error * error : static_cast<double>(job.labels[row] != chosen);
        }
    }

    // Rows to predict that go left come first; how many. A threshold lies midway between its neighbours.
    int32_t part_held(const Node &node, const uint16_t *rows, const Found &split) {
        const Code *own = column(split.member);
        const uint16_t *order = order_of(split.member, node);
        const uint32_t threshold = (uint32_t(own[order[split.n_left - 1]]) + own[order[split.n_left]]) / 2;
        int32_t n_left = 0, n_right = 0;
        for (int32_t i = node.held; i < node.held + node.n_held; ++i) {
            const uint16_t place = held[i];
            const bool goes_left = own[rows[place]] <= threshold;
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
        const uint16_t *chosen = order_of(split.member, node);
        for (int32_t i = 0; i < node.n; ++i) left[chosen[i]] = i < split.n_left;
        for (int64_t m = 0; m < n_members; ++m) {
            if (m == split.member) continue;
            uint16_t *order = order_of(m, node);
            int32_t n_left = 0, n_right = 0;
            if (!any_right) {
                for (int32_t i = 0; n_left < split.n_left; ++i) {
                    order[n_left] = order[i];
                    n_left += left[order[i]];
                }
                continue;
            }
            if (!any_left) {
                for (int32_t i = node.n, at = node.n; at > split.n_left;) {
                    const uint16_t row = order[--i];
                    order[at - 1] = row;
                    at -= !left[row];
                }
                continue;
            }
            for (int32_t i = 0; i < node.n; ++i) {
                const uint16_t row = order[i];
                const uint8_t goes_left = left[row];
                order[n_left] = row;
                spare[n_right] = row;
                n_left += goes_left;
                n_right += !goes_left;
            }
            __builtin_memcpy(order + n_left, spare, sizeof(uint16_t) * static_cast<size_t>(n_right));
        }
    }

    // Whether a node is to be split; `order`: its rows, in any order. A leaf says what it has to say at once.
    bool waits(Node &node, const uint16_t *order, const uint16_t *rows) {
        if (node.n_held == 0) return false;
        node.total = total_of(order, node.n);
        if (!stops(order, node.n, node.depth)) return true;
        end(node, rows);
        return false;
    }

    // The loss of one split: a tree, as far as rows to predict go.
    double grow(int64_t split) {
        const uint16_t *rows = job.predicted + job.predicted_bounds[split];
        const auto n_held = static_cast<int32_t>(job.predicted_bounds[split + 1] - job.predicted_bounds[split]);
        fill_orders(job.times + split * job.n_rows, job.n_fitted[split]);
        for (int64_t m = 0; m < n_members; ++m)
            hashes[m] = static_cast<uint32_t>(derive(job.tree_keys[split], job.features[places[m]]) >> 32);
        for (int32_t i = 0; i < n_held; ++i) held[i] = static_cast<uint16_t>(i);
        const auto n_rows = static_cast<int32_t>(job.n_fitted[split]);
        Node root{0, n_rows, 0, n_held, 0, job.tree_keys[split], total_of(orders, n_rows)};
        int64_t n_waiting = 0;
        if (waits(root, orders, rows)) stack[n_waiting++] = root;
        while (n_waiting > 0) {
            const Node node = stack[--n_waiting];
            if (!job.targets) total_of(order_of(0, node), node.n);
            Found best;
            const LaneKey ties(node.key, TIE);
            for (int64_t m = 0; m < n_members; ++m) try_member(m, node, ties, best);
            if (best.member < 0) {
                end(node, rows);
                continue;
            }
            const int32_t n_left = part_held(node, rows, best);
            const uint16_t *order = order_of(best.member, node), *other = order + best.n_left;
            Node left_node{node.start, best.n_left, node.held, n_left, node.depth + 1, derive(node.key, LEFT), 0.0};
            Node right_node{node.start + best.n_left, node.n - best.n_left, node.held + n_left, node.n_held - n_left,
                            node.depth + 1, derive(node.key, RIGHT), 0.0};
            const bool right_waits = waits(right_node, other, rows), left_waits = waits(left_node, order, rows);
            part(node, best, left_waits, right_waits);
            if (right_waits) stack[n_waiting++] = right_node;
            if (left_waits) stack[n_waiting++] = left_node;
        }
        double loss = 0.0;
        for (int32_t i = 0; i < n_held; ++i) loss += errors[i];
        return loss;
    }

    // The first split says in which order the others are looked at. A subset whose loss exceeds another's before all
    // splits are grown cannot be the best.
    void judge() {
        for (int64_t s = 0; s < job.n_subsets; ++s) {
            turns[s] = s;
            job.losses[s] = job.n_splits > 0 ? of_subset(s).grow(0) : 0.0;
        }
        sort_turns();
        double least = GIVEN_UP;
        for (int64_t turn = 0; turn < job.n_subsets; ++turn) {
            const int64_t s = turns[turn];
            double loss = job.losses[s];
            for (int64_t split = 1; split < job.n_splits && loss <= least; ++split) loss += of_subset(s).grow(split);
            job.losses[s] = loss <= least ? loss : GIVEN_UP;
            least = loss < least ? loss : least;
        }
    }

    SubsetTrees &of_subset(int64_t s) {
        places = job.places + job.bounds[s];
        n_members = job.bounds[s + 1] - job.bounds[s];
        ++job.n_trees;
        return *this;
    }

    SRS_INLINE bool after(int64_t a, int64_t b) const {
        return job.losses[a] > job.losses[b] || (job.losses[a] == job.losses[b] && a > b);
    }

    void sift(int64_t from, int64_t n) {
        for (int64_t at = from, child; (child = 2 * at + 1) < n; at = child) {
            if (child + 1 < n && after(turns[child + 1], turns[child])) ++child;
            if (!after(turns[child], turns[at])) return;
            const int64_t other = turns[at];
            turns[at] = turns[child];
            turns[child] = other;
        }
    }

    void sort_turns() { // by heap: nothing is allocated, and no library function is used
        for (int64_t i = job.n_subsets / 2; i-- > 0;) sift(i, job.n_subsets);
        for (int64_t n = job.n_subsets; n-- > 1;) {
            const int64_t last = turns[n];
            turns[n] = turns[0];
            turns[0] = last;
            sift(0, n);
        }
    }
};

template <typename Code> void judge_all(SubsetJob &job) {
    SubsetTrees<Code> trees(job);
    trees.carve(static_cast<char *>(job.scratch));
    trees.judge();
}

} // namespace

void judge_subsets(SubsetJob &job) {
    if (job.code_nbytes == 1) judge_all<uint8_t>(job);
    else judge_all<uint16_t>(job);
}

size_t subset_scratch_nbytes(const SubsetJob &job) {
    SubsetJob copy = job;
    SubsetTrees<uint16_t> trees(copy);
    return trees.carve(nullptr);
}

} // namespace SRS_ISA
} // namespace srs
