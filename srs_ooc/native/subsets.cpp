// Held-out losses of trees on small subsets of columns. Compiled once per instruction set.
//
// Twin: srs_ooc/trees/subsets.py, which grows whole trees with trees.cpp. This file finds the same splits, with the same
// scores, ties and thresholds, from columns that are sorted once for all subsets, and only where some row to predict goes.
// As there, nothing allocates, and no inline library function is used.
#include "subsets.hpp"
#include "hash.hpp"
#include <type_traits>
#if defined(__AVX2__)
#include <immintrin.h> // inlined always: no clone can get another's
#endif

namespace srs {
namespace SRS_ISA {
namespace {

#define SRS_INLINE inline __attribute__((always_inline))

constexpr double GIVEN_UP = __builtin_inf();
constexpr double MORE = 1.0 + 0x1p-30; // than rounding adds to a sum of losses in another order

#include "carver.hpp"
#include "held_node.hpp"
#include "registers.hpp"
#include "subset_lanes.hpp"
#include "subset_rows.hpp"
#include "subset_places.hpp"
#include "subset_classes.hpp"

template <typename Code> struct SubsetTrees {
    SubsetJob &job;
    const Code *codes;
    const int32_t *numbers; // [n_rows] targets, or two classes as 0 and 1; null where there are more classes
    // Of the subset and split at hand.
    const int32_t *places;
    int64_t n_members;
    double loss;            // of the tree at hand so far
    bool is_few_taken;      // nodes of few rows are searched in lanes
    SubsetLanes lanes;
    RowSet row_set;
    Places scored;
    ClassPlaces of_classes;
    // Scratch.
    uint16_t *orders;  // [largest][most_fitted] rows of each column by code; a node's lie together
    uint16_t *few;     // [most_fitted] rows of nodes of few rows
    uint16_t *spare;   // [most_fitted]
    uint16_t *held, *held_spare; // [most_predicted] places among the predicted rows
    double *errors;    // [most_predicted]
    Node *stack;       // [most_fitted]: each row of a tree is in one node that waits
    int64_t *turns, *split_turns; // [n_subsets], [n_splits] in which order they are looked at
    double *split_losses; // [n_splits]

    explicit SubsetTrees(SubsetJob &job) : job(job), codes(static_cast<const Code *>(job.codes)) {
        numbers = job.targets ? job.targets : job.n_classes == 2 ? job.labels : nullptr;
        scored.numbers = numbers;
        scored.twice = lanes.twice = !job.targets;
        lanes.min_leaf = static_cast<int32_t>(job.min_samples_leaf);
        lanes.n_classes = of_classes.n_classes = job.n_classes;
        of_classes.labels = job.labels;
    }

    size_t carve(char *base) {
        Carver carver{base};
        const int64_t n = job.n_rows + job.most_fitted + 2 * Places::SPARE;
        const int64_t most_lanes = (job.largest + SubsetLanes::WIDTH - 1) / SubsetLanes::WIDTH * SubsetLanes::WIDTH;
        orders = carver.take<uint16_t>(job.largest * job.most_fitted + job.n_rows);
        few = carver.take<uint16_t>(job.most_fitted);
        spare = carver.take<uint16_t>(n);
        row_set.use(carver.take<uint8_t>(job.n_rows), job.n_rows);
        held = carver.take<uint16_t>(job.most_predicted);
        held_spare = carver.take<uint16_t>(job.most_predicted);
        errors = carver.take<double>(job.most_predicted);
        scored.wide_sums = carver.take<double>(n);
        scored.expected = carver.take<double>(n);
        scored.sums = of_classes.counts = carver.take<int32_t>(n);
        scored.rough = of_classes.bits = carver.take<int32_t>(n);
        scored.inverse = of_classes.scores = carver.take<float>(n);
        lanes.hashes = carver.take<uint32_t>(most_lanes);
        lanes.lines = carver.take<uint16_t>(job.n_rows * most_lanes);
        stack = carver.take<Node>(job.most_fitted + 1);
        turns = carver.take<int64_t>(job.n_subsets);
        split_turns = carver.take<int64_t>(job.n_splits);
        split_losses = carver.take<double>(job.n_splits);
        return carver.used;
    }

    SRS_INLINE const Code *column(int64_t member) const { return codes + places[member] * job.n_rows; }
    SRS_INLINE uint16_t *order_of(int64_t member, const Node &node) const {
        return orders + member * job.most_fitted + node.start;
    }
    SRS_INLINE bool is_few(const Node &node) const { return is_few_taken && node.n <= SubsetLanes::MOST; }

    // ---- a subset, a split ---------------------------------------------------------------------

    SubsetTrees &of_subset(int64_t s) {
        places = job.places + job.bounds[s];
        n_members = job.bounds[s + 1] - job.bounds[s];
        lanes.n_lanes = (n_members + SubsetLanes::WIDTH - 1) / SubsetLanes::WIDTH * SubsetLanes::WIDTH;
        const int64_t n_more = lanes.n_lanes - n_members;
        for (int64_t row = 0; row < job.n_rows; ++row) {
            uint16_t *line = lanes.lines + row * lanes.n_lanes;
            for (int64_t m = 0; m < n_members; ++m) line[m] = column(m)[row];
            for (int64_t m = 0; m < n_more; ++m) line[n_members + m] = 0;
        }
        for (int64_t m = 0; m < n_more; ++m) lanes.hashes[n_members + m] = 0;
        return *this;
    }

    // Rows of each column by code, each as often as it is fitted on.
    void fill_orders(const uint16_t *times, int64_t n_fitted) {
        row_set.set(times, job.n_rows);
        for (int64_t m = 0; m < n_members; ++m) {
            uint16_t *to = orders + m * job.most_fitted;
            const int64_t n_rows = row_set.part(job.sorted + places[m] * job.n_rows, job.n_rows, to, spare);
            for (int64_t i = n_rows, at = n_fitted; i < at;) { // the last ones first: they go further back
                const uint16_t row = to[--i];
                for (int32_t more = times[row]; more > 0; --more) to[--at] = row;
            }
        }
    }

    // How large the sums of numbers get says by what they are added up.
    void choose_sums(const uint16_t *rows, int64_t n) {
        int64_t all = 0, largest = 0;
        for (int64_t i = 0; numbers && i < n; ++i) {
            const int64_t number = numbers[rows[i]], size = number < 0 ? -number : number;
            all += size;
            largest = size > largest ? size : largest;
        }
        scored.is_narrow = all < int64_t(1) << 31;
        is_few_taken = largest <= SubsetLanes::LARGEST;
    }

    // ---- the best split ------------------------------------------------------------------------

    Found search(const Node &node, const uint16_t *rows) {
        const LaneKey ties(node.key, TIE);
        if (!is_few(node)) {
            Found best;
            if (numbers) scored.set(node.n, static_cast<double>(node.total), lanes.min_leaf);
            for (int64_t m = 0; m < n_members; ++m) try_member(m, node, ties, best);
            return best;
        }
        lanes.n = node.n;
        if (numbers) lanes.set_numbers(numbers, rows, node.total);
        else lanes.set_classes(job.labels, rows, of_classes.totals);
        return lanes.search(rows, ties);
    }

    SRS_INLINE void try_member(int64_t member, const Node &node, const LaneKey &ties, Found &best) {
        const uint16_t *order = order_of(member, node);
        const Code *own = column(member);
        if (own[order[0]] == own[order[node.n - 1]]) return; // constant
        const uint32_t tie = ties(lanes.hashes[member]);
        const auto offer_place = [&](int32_t bits, int32_t i) {
            const uint32_t threshold = own[order[i]];
            if (bits < best.bits || own[order[i + 1]] == threshold) return;
            offer(best, Found{bits, i + 1, tie ^ (threshold * TIE_FACTOR), threshold, member});
        };
        if (numbers) return scored.search(order, [&] { return best.bits; }, offer_place);
        const int32_t first = lanes.min_leaf - 1, end = node.n - lanes.min_leaf;
        if (of_classes.score_all(order, node.n, first, end) < best.bits) return; // even if that were between two codes
        for (int32_t i = first; i < end; ++i) offer_place(of_classes.bits[i], i);
    }

    SRS_INLINE void offer(Found &best, const Found &found) const {
        if (found.bits < best.bits || (found.bits == best.bits && found.tie < best.tie)) return;
        const bool equal = found.bits == best.bits && found.tie == best.tie;
        if (equal && best.member >= 0 && job.features[places[found.member]] >= job.features[places[best.member]]) return;
        best = found;
    }

    // ---- growing -------------------------------------------------------------------------------

    SRS_INLINE int64_t total_of(const uint16_t *order, int64_t n) {
        int64_t total = 0;
        if (!numbers) of_classes.count(order, n);
        for (int64_t i = 0; numbers && i < n; ++i) total += numbers[order[i]];
        return total;
    }

    SRS_INLINE bool stops(const uint16_t *order, const Node &node) const {
        if ((job.max_depth >= 0 && node.depth >= job.max_depth) || node.n < 2 * job.min_samples_leaf) return true;
        if (!numbers) return of_classes.is_pure(order, node.n);
        if (!job.targets) return node.total == 0 || node.total == node.n;
        for (int64_t i = 1; i < node.n; ++i)
            if (numbers[order[i]] != numbers[order[0]]) return false;
        return true;
    }

    void end(const Node &node, const uint16_t *rows) {
        const int64_t chosen = numbers ? node.total > node.n - node.total : of_classes.most_frequent();
        for (int64_t i = node.held; i < node.held + node.n_held; ++i) {
            const int64_t row = rows[held[i]];
            double error = job.labels[row] != chosen;
            if (job.targets) {
                error = static_cast<double>(node.total) / static_cast<double>(node.n) - job.targets[row];
                error = error * error;
            }
            errors[held[i]] = error;
            loss += error;
        }
    }

    // Rows to predict that go left come first; how many.
    int32_t part_held(const Node &node, const uint16_t *rows, int64_t member, uint32_t threshold) {
        const Code *own = column(member);
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

    // The highest code that goes left: midway between those next to the split.
    SRS_INLINE uint32_t midway(const uint16_t *order, const Found &split) const {
        const Code *own = column(split.member);
        return (uint32_t(own[order[split.n_left - 1]]) + own[order[split.n_left]]) / 2;
    }

    // The same of a node of few rows, whose rows that go left come first after that.
    SRS_INLINE uint32_t part_few(const Node &node, Found &split) {
        uint16_t right[SubsetLanes::MOST], *order = few + node.start;
        uint32_t next = 0xFFFF;
        int32_t n_left = 0, n_right = 0;
        for (int32_t i = 0; i < node.n; ++i) {
            const uint16_t row = order[i];
            const uint32_t code = lanes.lines[row * lanes.n_lanes + split.member];
            const bool goes_left = code <= split.threshold;
            order[n_left] = row;
            right[n_right] = row;
            n_left += goes_left;
            n_right += !goes_left;
            next = !goes_left && code < next ? code : next;
        }
        for (int32_t i = 0; i < n_right; ++i) order[n_left + i] = right[i];
        split.n_left = n_left;
        return (split.threshold + next) / 2;
    }

    // Each column's rows that go left come first; what goes to a side that is not split so is not kept.
    void part(const Node &node, const Found &split, bool any_left, bool any_right) {
        if (!any_left && !any_right) return;
        const uint16_t *chosen = order_of(split.member, node);
        row_set.set(chosen, split.n_left, node.n);
        for (int64_t m = 0; m < n_members; ++m) {
            if (m == split.member) continue;
            uint16_t *order = order_of(m, node);
            row_set.part(order, node.n, order, spare);
            if (any_right) __builtin_memcpy(order + split.n_left, spare, sizeof(uint16_t) * static_cast<size_t>(node.n - split.n_left));
        }
    }

    // Whether a node is to be split; `order`: its rows, in any order. A leaf says what it has to say at once.
    bool waits(Node &node, const uint16_t *order, const uint16_t *rows) {
        if (node.n_held == 0) return false;
        node.total = total_of(order, node.n);
        if (!stops(order, node)) return true;
        end(node, rows);
        return false;
    }

    // Keep the rows of a node of few rows where those of its children will be.
    SRS_INLINE void keep_few(const Node &node, const uint16_t *order) {
        __builtin_memcpy(few + node.start, order, sizeof(uint16_t) * static_cast<size_t>(node.n));
    }

    // Split a node, or end it; return how many nodes wait.
    SRS_INLINE int64_t split(const Node node, const uint16_t *rows, int64_t n_waiting) {
        const bool is_small = is_few(node);
        if (!numbers) total_of(is_small ? few + node.start : order_of(0, node), node.n);
        Found best = search(node, few + node.start);
        if (best.member < 0) {
            end(node, rows);
            return n_waiting;
        }
        const uint16_t *order = is_small ? few + node.start : order_of(best.member, node);
        const uint32_t threshold = is_small ? part_few(node, best) : midway(order, best);
        const int32_t n_left = part_held(node, rows, best.member, threshold);
        Node left{node.start, best.n_left, node.held, n_left, node.depth + 1, derive(node.key, LEFT), 0};
        Node right{node.start + best.n_left, node.n - best.n_left, node.held + n_left, node.n_held - n_left, node.depth + 1,
                   derive(node.key, RIGHT), 0};
        const bool right_waits = waits(right, order + best.n_left, rows), left_waits = waits(left, order, rows);
        if (!is_small) {
            if (right_waits && is_few(right)) keep_few(right, order + best.n_left);
            if (left_waits && is_few(left)) keep_few(left, order);
            part(node, best, left_waits && !is_few(left), right_waits && !is_few(right));
        }
        if (right_waits) stack[n_waiting++] = right;
        if (left_waits) stack[n_waiting++] = left;
        return n_waiting;
    }

    // The loss of one split: a tree, as far as rows to predict go. Infinite where it is more than `most` for certain.
    double grow(int64_t number, double most) {
        ++job.n_trees;
        const uint16_t *rows = job.predicted + job.predicted_bounds[number];
        const auto n_held = static_cast<int32_t>(job.predicted_bounds[number + 1] - job.predicted_bounds[number]);
        const auto n_rows = static_cast<int32_t>(job.n_fitted[number]);
        fill_orders(job.times + number * job.n_rows, n_rows);
        choose_sums(orders, n_rows);
        for (int64_t m = 0; m < n_members; ++m)
            lanes.hashes[m] = static_cast<uint32_t>(derive(job.tree_keys[number], job.features[places[m]]) >> 32);
        for (int32_t i = 0; i < n_held; ++i) held[i] = static_cast<uint16_t>(i);
        loss = 0.0;
        Node root{0, n_rows, 0, n_held, 0, job.tree_keys[number], 0};
        int64_t n_waiting = 0;
        if (waits(root, orders, rows)) stack[n_waiting++] = root;
        if (is_few(root)) keep_few(root, orders);
        while (n_waiting > 0 && loss <= most) n_waiting = split(stack[n_waiting - 1], rows, n_waiting - 1);
        if (n_waiting > 0) return GIVEN_UP;
        double sum = 0.0;
        for (int32_t i = 0; i < n_held; ++i) sum += errors[i];
        return sum;
    }

    // Splits by how much there is to lose in each, the most first: what has too large a loss shows soonest.
    void sort_splits() {
        for (int64_t number = 0; number < job.n_splits; ++number) {
            const uint16_t *rows = job.predicted + job.predicted_bounds[number];
            const int64_t n = job.predicted_bounds[number + 1] - job.predicted_bounds[number];
            double sum = 0.0, squares = 0.0;
            for (int64_t i = 0; i < n; ++i) {
                const double number_of_row = job.targets ? job.targets[rows[i]] : 1;
                sum += number_of_row;
                squares += number_of_row * number_of_row;
            }
            split_losses[number] = n == 0 ? 0.0 : job.targets ? squares - sum * sum / n : sum;
            int64_t at = number;
            for (; at > 0 && split_losses[split_turns[at - 1]] < split_losses[number]; --at) split_turns[at] = split_turns[at - 1];
            split_turns[at] = number;
        }
    }

    // The first split says in which order the others are looked at. A subset whose loss exceeds another's before all
    // splits are grown cannot be the best.
    void judge() {
        sort_splits();
        for (int64_t s = 0; s < job.n_subsets; ++s) {
            turns[s] = s;
            job.losses[s] = job.n_splits > 0 ? of_subset(s).grow(split_turns[0], GIVEN_UP) : 0.0;
        }
        sort_turns();
        double least = GIVEN_UP;
        for (int64_t turn = 0; turn < job.n_subsets; ++turn) {
            const int64_t s = turns[turn];
            job.losses[s] = loss_of(s, job.losses[s], least);
            least = job.losses[s] < least ? job.losses[s] : least;
        }
        for (int64_t s = 0; s < job.n_subsets; ++s) job.losses[s] = job.losses[s] > least ? GIVEN_UP : job.losses[s];
    }

    // Of all splits, `first` being that of the first turn; infinite where it is more than `least`.
    double loss_of(int64_t s, double first, double least) {
        double so_far = first;
        if (job.n_splits < 2) return first;
        of_subset(s);
        split_losses[split_turns[0]] = first;
        for (int64_t turn = 1; turn < job.n_splits; ++turn) {
            if (so_far > least * MORE) return GIVEN_UP;
            so_far += split_losses[split_turns[turn]] = grow(split_turns[turn], least * MORE - so_far);
        }
        double sum = 0.0; // in the order of the splits, whatever that of their turns
        for (int64_t number = 0; number < job.n_splits; ++number) sum += split_losses[number];
        return sum;
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
