// Which subset has the least held-out loss: the order in which subsets and splits of the rows are looked at, and when a
// subset is given up. Included by subsets.cpp only, inside its namespace: every clone has its own copy.

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
