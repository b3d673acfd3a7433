// The held-out loss of a tree on each of many subsets of the columns, and which subset has the least.
#pragma once
#include "presorted/tree.hpp"

namespace srs::SRS_ISA {
namespace {

constexpr double GIVEN_UP = __builtin_inf();

// It grows only where some row to predict goes.
template <typename Code> struct SubsetTree : PresortedTree<Code, SubsetTree<Code>> {
    using Tree = PresortedTree<Code, SubsetTree<Code>>;
    using Tree::held, Tree::splits;
    SubsetJob &job;
    const uint16_t *rows; // to predict
    double loss, most;    // so far; that is of interest
    // Scratch.
    double *errors;   // [max_predicted]
    uint16_t *sorted; // [n_columns][n_rows] rows by ascending code

    explicit SubsetTree(SubsetJob &job) : Tree(job), job(job) {}

    void carve(Arena &arena) {
        this->carve_tree(arena, job.largest, job.max_fitted, job.max_predicted);
        errors = arena.take<double>(job.max_predicted);
        sorted = arena.take<uint16_t>(job.n_columns * job.n_rows);
    }

    void sort_columns() {
        job.complete = splits.columns.is_complete(job.n_columns);
        const Code *codes = splits.columns.codes;
        for (int64_t at = 0; job.complete && at < job.n_columns * job.n_rows; at += job.n_rows)
            splits.columns.sort(codes + at, [](int64_t i) { return i; }, job.n_rows, sorted + at);
    }

    SubsetTree &of_subset(int64_t subset) {
        splits.use(job.places + job.bounds[subset], job.bounds[subset + 1] - job.bounds[subset]);
        return *this;
    }

    // The loss of one split of the rows: infinite where it is more than `enough` for certain.
    double grow(int64_t number, double enough) {
        ++job.n_trees;
        rows = job.predicted + job.predicted_bounds[number];
        const int64_t n_held = job.predicted_bounds[number + 1] - job.predicted_bounds[number];
        splits.columns.take_orders(sorted, job.times + number * job.n_rows, job.n_fitted[number]);
        loss = 0.0;
        most = enough;
        if (!this->grow_tree(job.n_fitted[number], n_held, job.tree_keys[number])) return GIVEN_UP;
        double sum = 0.0;
        for (int64_t i = 0; i < n_held; ++i) sum += errors[i];
        return sum;
    }

    SRS_INLINE bool is_wanted(const HeldNode &node) const { return node.n_held > 0; }
    SRS_INLINE bool has_enough() const { return loss > most; }
    SRS_INLINE int64_t row_at(uint16_t place) const { return rows[place]; }
    SRS_INLINE uint32_t between(int64_t, uint32_t low, uint32_t high) const { return (low + high) / 2; }
    SRS_INLINE void note(const HeldNode &, const Found &, const uint16_t *, int64_t) const {}

    void end(const HeldNode &node) {
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

// Sorts by heap: nothing is allocated, and no library function is used.
template <typename After> SRS_INLINE void sift_down(int64_t *order, int64_t from, int64_t n, const After after) {
    for (int64_t at = from, child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && after(order[child + 1], order[child])) ++child;
        if (!after(order[child], order[at])) return;
        const int64_t other = order[at];
        order[at] = order[child];
        order[child] = other;
    }
}

// after(a, b): whether a comes after b, for no two of which it is true both ways.
template <typename After> void heapsort(int64_t *order, int64_t n, const After after) {
    for (int64_t i = n / 2; i-- > 0;) sift_down(order, i, n, after);
    for (int64_t rest = n; rest-- > 1;) {
        const int64_t last = order[rest];
        order[rest] = order[0];
        order[0] = last;
        sift_down(order, 0, rest, after);
    }
}

// Which subset has the least held-out loss: the order in which subsets and splits of the rows are looked at, and when a
// subset is given up.
constexpr double MORE = 1.0 + 0x1p-30; // than rounding adds to a sum of losses in another order

template <typename Code> struct SubsetJudge {
    SubsetJob &job;
    SubsetTree<Code> tree;
    // Scratch.
    int64_t *subset_order, *split_order; // [n_subsets], [n_splits] in which they are looked at
    double *split_losses;                // [n_splits]

    explicit SubsetJudge(SubsetJob &job) : job(job), tree(job) {}

    size_t carve(char *base) {
        Arena arena{base};
        tree.carve(arena);
        subset_order = arena.take<int64_t>(job.n_subsets);
        split_order = arena.take<int64_t>(job.n_splits);
        split_losses = arena.take<double>(job.n_splits);
        return arena.used;
    }

    // The first split says in which order the others are looked at. A subset whose loss exceeds another's before all
    // splits are grown cannot be the best.
    void run() {
        tree.sort_columns();
        if (!job.complete) return;
        sort_splits();
        for (int64_t s = 0; s < job.n_subsets; ++s) {
            subset_order[s] = s;
            job.losses[s] = job.n_splits > 0 ? tree.of_subset(s).grow(split_order[0], GIVEN_UP) : 0.0;
        }
        const double *losses = job.losses;
        heapsort(subset_order, job.n_subsets, [losses](int64_t a, int64_t b) {
            return losses[a] > losses[b] || (losses[a] == losses[b] && a > b);
        });
        double least = GIVEN_UP;
        for (int64_t i = 0; i < job.n_subsets; ++i) {
            const int64_t s = subset_order[i];
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
            for (; at > 0 && split_losses[split_order[at - 1]] < split_losses[number]; --at)
                split_order[at] = split_order[at - 1];
            split_order[at] = number;
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

    // Of all splits, `first` being of the first in that order; infinite where it is more than `least`.
    double loss_of(int64_t s, double first, double least) {
        double so_far = first;
        if (job.n_splits < 2) return first;
        tree.of_subset(s);
        split_losses[split_order[0]] = first;
        for (int64_t i = 1; i < job.n_splits; ++i) {
            if (so_far > least * MORE) return GIVEN_UP;
            so_far += split_losses[split_order[i]] = tree.grow(split_order[i], least * MORE - so_far);
        }
        double sum = 0.0; // in the order of the splits, whatever that in which they are looked at
        for (int64_t number = 0; number < job.n_splits; ++number) sum += split_losses[number];
        return sum;
    }
};

} // namespace
} // namespace srs::SRS_ISA
