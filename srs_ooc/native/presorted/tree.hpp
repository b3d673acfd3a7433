// The best split of a node among the columns of a subset: in lanes where it has few rows, else one column after another.
#pragma once
#include "presorted/few_rows.hpp"
#include "presorted/scores.hpp"

namespace srs::SRS_ISA {
namespace {

template <typename Code> struct SubsetSplits {
    const SubsetJob &job;
    const int32_t *numbers; // [n_rows] targets, or two classes as 0 and 1; null where there are more classes
    SubsetColumns<Code> columns;
    FewRows few;
    Places scored;
    ClassPlaces of_classes;

    explicit SubsetSplits(const SubsetJob &job) : job(job), columns(job) {
        numbers = job.targets ? job.targets : job.n_classes == 2 ? job.labels : nullptr;
        scored.numbers = numbers;
        scored.twice = few.lanes.twice = !job.targets;
        few.lanes.min_leaf = static_cast<int32_t>(job.min_samples_leaf);
        few.lanes.n_classes = of_classes.n_classes = job.n_classes;
        of_classes.labels = job.labels;
    }

    void carve(Carver &carver) {
        const int64_t n = job.n_rows + job.most_fitted + 2 * SPARE;
        columns.carve(carver);
        few.carve(carver, job);
        scored.wide_sums = carver.take<double>(n);
        scored.expected = carver.take<double>(n);
        scored.sums = of_classes.counts = carver.take<int32_t>(n);
        scored.rough = of_classes.bits = carver.take<int32_t>(n);
        scored.inverse = of_classes.scores = carver.take<float>(n);
    }

    void use(int64_t subset) {
        columns.use(subset);
        few.use(columns);
    }

    // Get ready for a tree of these rows.
    void begin(const uint16_t *times, int64_t n_fitted, uint64_t tree_key) {
        columns.fill_orders(times, n_fitted);
        choose_sums(columns.orders, n_fitted);
        for (int64_t m = 0; m < columns.n_members; ++m)
            few.lanes.hashes[m] = static_cast<uint32_t>(derive(tree_key, columns.feature(m)) >> 32);
    }

    Found search(const Node &node, const uint16_t *rows) {
        const LaneKey ties(node.key, TIE);
        SubsetLanes &lanes = few.lanes;
        if (!few.holds(node)) {
            Found best;
            if (numbers) scored.set(node.n, static_cast<double>(node.total), lanes.min_leaf);
            for (int64_t m = 0; m < columns.n_members; ++m) try_member(m, node, ties, best);
            return best;
        }
        lanes.n = node.n;
        if (numbers) lanes.set_numbers(numbers, rows, node.total);
        else lanes.set_classes(job.labels, rows, of_classes.totals);
        return lanes.search(rows, ties);
    }

    SRS_INLINE int64_t total_of(const uint16_t *order, int64_t n) {
        int64_t total = 0;
        if (!numbers) of_classes.count(order, n);
        for (int64_t i = 0; numbers && i < n; ++i) total += numbers[order[i]];
        return total;
    }

    // Whether no split of these rows is looked for.
    SRS_INLINE bool stops(const uint16_t *order, const Node &node) const {
        if ((job.max_depth >= 0 && node.depth >= job.max_depth) || node.n < 2 * job.min_samples_leaf) return true;
        if (!numbers) return of_classes.is_pure(order, node.n);
        if (!job.targets) return node.total == 0 || node.total == node.n;
        for (int64_t i = 1; i < node.n; ++i)
            if (numbers[order[i]] != numbers[order[0]]) return false;
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
        few.is_taken = largest <= SubsetLanes::LARGEST;
    }

    SRS_INLINE void try_member(int64_t member, const Node &node, const LaneKey &ties, Found &best) {
        const uint16_t *order = columns.order_of(member, node);
        const Code *own = columns.column(member);
        if (own[order[0]] == own[order[node.n - 1]]) return; // constant
        const uint32_t tie = ties(few.lanes.hashes[member]);
        const auto offer_place = [&](int32_t bits, int32_t i) {
            const uint32_t threshold = own[order[i]];
            if (bits < best.bits || own[order[i + 1]] == threshold) return;
            offer(best, Found{bits, i + 1, tie ^ (threshold * TIE_FACTOR), threshold, member});
        };
        if (numbers) return scored.search(order, [&] { return best.bits; }, offer_place);
        const int32_t first = few.lanes.min_leaf - 1, end = node.n - few.lanes.min_leaf;
        if (of_classes.score_all(order, node.n, first, end) < best.bits) return; // even if that were between two codes
        for (int32_t i = first; i < end; ++i) offer_place(of_classes.bits[i], i);
    }

    SRS_INLINE void offer(Found &best, const Found &found) const {
        if (found.bits < best.bits || (found.bits == best.bits && found.tie < best.tie)) return;
        const bool equal = found.bits == best.bits && found.tie == best.tie;
        if (equal && best.member >= 0 && columns.feature(found.member) >= columns.feature(best.member)) return;
        best = found;
    }
};

// The held-out loss of a tree on a subset of columns: it grows only where some row to predict goes.
constexpr double GIVEN_UP = __builtin_inf();

template <typename Code> struct SubsetTree {
    SubsetJob &job;
    SubsetSplits<Code> splits;
    double loss; // so far
    // Scratch.
    HeldRows held;
    double *errors; // [most_predicted]
    Node *stack;    // [most_fitted + 1]: each row of a tree is in one node that waits

    explicit SubsetTree(SubsetJob &job) : job(job), splits(job) {}

    void carve(Carver &carver) {
        splits.carve(carver);
        held.carve(carver, job.most_predicted);
        errors = carver.take<double>(job.most_predicted);
        stack = carver.take<Node>(job.most_fitted + 1);
    }

    SubsetTree &of_subset(int64_t subset) {
        splits.use(subset);
        return *this;
    }

    // The loss of one split of the rows: infinite where it is more than `most` for certain.
    double grow(int64_t number, double most) {
        ++job.n_trees;
        const uint16_t *rows = job.predicted + job.predicted_bounds[number];
        const auto n_held = static_cast<int32_t>(job.predicted_bounds[number + 1] - job.predicted_bounds[number]);
        const auto n_rows = static_cast<int32_t>(job.n_fitted[number]);
        splits.begin(job.times + number * job.n_rows, n_rows, job.tree_keys[number]);
        held.take_all(n_held);
        loss = 0.0;
        const uint16_t *all = splits.columns.orders;
        Node root{0, n_rows, 0, n_held, 0, job.tree_keys[number], 0};
        int64_t n_waiting = 0;
        if (waits(root, all, rows)) stack[n_waiting++] = root;
        if (splits.few.holds(root)) splits.few.keep(root, all);
        while (n_waiting > 0 && loss <= most) n_waiting = split(stack[n_waiting - 1], rows, n_waiting - 1);
        if (n_waiting > 0) return GIVEN_UP;
        double sum = 0.0;
        for (int32_t i = 0; i < n_held; ++i) sum += errors[i];
        return sum;
    }

  private:
    // Split a node, or end it; return how many nodes wait.
    SRS_INLINE int64_t split(const Node node, const uint16_t *rows, int64_t n_waiting) {
        FewRows &few = splits.few;
        SubsetColumns<Code> &columns = splits.columns;
        const bool is_small = few.holds(node);
        if (!splits.numbers) splits.total_of(is_small ? few.rows + node.start : columns.order_of(0, node), node.n);
        Found best = splits.search(node, few.rows + node.start);
        if (best.member < 0) {
            end(node, rows);
            return n_waiting;
        }
        const uint16_t *order = is_small ? few.rows + node.start : columns.order_of(best.member, node);
        const uint32_t threshold = is_small ? few.part(node, best) : columns.midway(order, best);
        const Code *own = columns.column(best.member);
        const int32_t n_left = held.part(node, [&](uint16_t place) { return own[rows[place]] <= threshold; });
        Node left{node.start, best.n_left, node.held, n_left, node.depth + 1, derive(node.key, LEFT), 0};
        Node right{node.start + best.n_left, node.n - best.n_left, node.held + n_left, node.n_held - n_left, node.depth + 1,
                   derive(node.key, RIGHT), 0};
        const bool right_waits = waits(right, order + best.n_left, rows), left_waits = waits(left, order, rows);
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
    bool waits(Node &node, const uint16_t *order, const uint16_t *rows) {
        if (node.n_held == 0) return false;
        node.total = splits.total_of(order, node.n);
        if (!splits.stops(order, node)) return true;
        end(node, rows);
        return false;
    }

    void end(const Node &node, const uint16_t *rows) {
        const int64_t chosen = splits.numbers ? node.total > node.n - node.total : splits.of_classes.most_frequent();
        for (int64_t i = node.held; i < node.held + node.n_held; ++i) {
            const int64_t row = rows[held.places[i]];
            double error = job.labels[row] != chosen;
            if (job.targets) {
                error = static_cast<double>(node.total) / static_cast<double>(node.n) - job.targets[row];
                error = error * error;
            }
            errors[held.places[i]] = error;
            loss += error;
        }
    }
};

// In which order things are looked at: places sorted by heap, since nothing is allocated and no library function is used.
template <typename After> SRS_INLINE void sift(int64_t *turns, int64_t from, int64_t n, const After after) {
    for (int64_t at = from, child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && after(turns[child + 1], turns[child])) ++child;
        if (!after(turns[child], turns[at])) return;
        const int64_t other = turns[at];
        turns[at] = turns[child];
        turns[child] = other;
    }
}

// after(a, b): whether a comes after b, for no two of which it is true both ways.
template <typename After> void sort_turns(int64_t *turns, int64_t n_turns, const After after) {
    for (int64_t i = n_turns / 2; i-- > 0;) sift(turns, i, n_turns, after);
    for (int64_t n = n_turns; n-- > 1;) {
        const int64_t last = turns[n];
        turns[n] = turns[0];
        turns[0] = last;
        sift(turns, 0, n, after);
    }
}

// Which subset has the least held-out loss: the order in which subsets and splits of the rows are looked at, and when a
// subset is given up.
constexpr double MORE = 1.0 + 0x1p-30; // than rounding adds to a sum of losses in another order

template <typename Code> struct SubsetJudge {
    SubsetJob &job;
    SubsetTree<Code> tree;
    // Scratch.
    int64_t *turns, *split_turns; // [n_subsets], [n_splits] in which order they are looked at
    double *split_losses;         // [n_splits]

    explicit SubsetJudge(SubsetJob &job) : job(job), tree(job) {}

    size_t carve(char *base) {
        Carver carver{base};
        tree.carve(carver);
        turns = carver.take<int64_t>(job.n_subsets);
        split_turns = carver.take<int64_t>(job.n_splits);
        split_losses = carver.take<double>(job.n_splits);
        return carver.used;
    }

    // The first split says in which order the others are looked at. A subset whose loss exceeds another's before all
    // splits are grown cannot be the best.
    void judge() {
        sort_splits();
        for (int64_t s = 0; s < job.n_subsets; ++s) {
            turns[s] = s;
            job.losses[s] = job.n_splits > 0 ? tree.of_subset(s).grow(split_turns[0], GIVEN_UP) : 0.0;
        }
        const double *losses = job.losses;
        sort_turns(turns, job.n_subsets, [losses](int64_t a, int64_t b) {
            return losses[a] > losses[b] || (losses[a] == losses[b] && a > b);
        });
        double least = GIVEN_UP;
        for (int64_t turn = 0; turn < job.n_subsets; ++turn) {
            const int64_t s = turns[turn];
            job.losses[s] = loss_of(s, job.losses[s], least);
            least = job.losses[s] < least ? job.losses[s] : least;
        }
        for (int64_t s = 0; s < job.n_subsets; ++s) job.losses[s] = job.losses[s] > least ? GIVEN_UP : job.losses[s];
    }

  private:
    // Splits by how much there is to lose in each, the most first: what has too large a loss shows soonest.
    void sort_splits() {
        for (int64_t number = 0; number < job.n_splits; ++number) {
            split_losses[number] = most_to_lose(number);
            int64_t at = number;
            for (; at > 0 && split_losses[split_turns[at - 1]] < split_losses[number]; --at)
                split_turns[at] = split_turns[at - 1];
            split_turns[at] = number;
        }
    }

    // The loss of one leaf for all rows to predict; of classes their number.
    double most_to_lose(int64_t number) const {
        const uint16_t *rows = job.predicted + job.predicted_bounds[number];
        const int64_t n = job.predicted_bounds[number + 1] - job.predicted_bounds[number];
        double sum = 0.0, squares = 0.0;
        for (int64_t i = 0; i < n; ++i) {
            const double number_of_row = job.targets ? job.targets[rows[i]] : 1;
            sum += number_of_row;
            squares += number_of_row * number_of_row;
        }
        return n == 0 ? 0.0 : job.targets ? squares - sum * sum / n : sum;
    }

    // Of all splits, `first` being that of the first turn; infinite where it is more than `least`.
    double loss_of(int64_t s, double first, double least) {
        double so_far = first;
        if (job.n_splits < 2) return first;
        tree.of_subset(s);
        split_losses[split_turns[0]] = first;
        for (int64_t turn = 1; turn < job.n_splits; ++turn) {
            if (so_far > least * MORE) return GIVEN_UP;
            so_far += split_losses[split_turns[turn]] = tree.grow(split_turns[turn], least * MORE - so_far);
        }
        double sum = 0.0; // in the order of the splits, whatever that of their turns
        for (int64_t number = 0; number < job.n_splits; ++number) sum += split_losses[number];
        return sum;
    }
};

} // namespace
} // namespace srs::SRS_ISA
