// Parting the rows of a node: those that go left are moved to the front, with what they count.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct RowPartition {
    const TreeData<Code> &tree;
    // Scratch.
    int64_t *left_stats; // [n_classes][width] rows of each class that go left, and the sums of their channels
    int32_t *right, *right_numbers[MAX_CHANNELS]; // [n_root_rows] rows that go right, and their channels

    void carve(Carver &carver) {
        const GrowJob &job = tree.job;
        left_stats = carver.take<int64_t>(job.n_classes * tree.width);
        right = carver.take<int32_t>(job.n_root_rows);
        for (int64_t c = 0; c < job.n_channels; ++c) right_numbers[c] = carver.take<int32_t>(job.n_root_rows);
    }

    // Part the rows as a split says; how many go left.
    int64_t part(const Node &node, const Facts &f, const Split &split) {
        const Code threshold = static_cast<Code>(split.threshold);
        if (split.how == MAPPED) {
            const CategoryMap<Code> map(tree.category_hash(node, split));
            return part_by(node, f, [&](int32_t row) { return map(tree.code(split.column, row)) <= threshold; });
        }
        const Code shift = split.how == MISSING_LEFT;
        return part_by(node, f, [&](int32_t row) {
            return static_cast<Code>(tree.code(split.column, row) + shift) <= threshold;
        });
    }

  private:
    template <typename GoesLeft> int64_t part_by(const Node &node, const Facts &f, const GoesLeft goes_left) {
        return tree.job.n_channels ? move_rows<true>(node, f, goes_left) : move_rows<false>(node, f, goes_left);
    }

    // Classes stay together, rows in the order they have.
    template <bool CHANNELS, typename GoesLeft>
    int64_t move_rows(const Node &node, const Facts &f, const GoesLeft goes_left) {
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
