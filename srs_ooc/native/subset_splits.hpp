// The best split of a node among the columns of a subset: in lanes where it has few rows, else one column after another.
// Included by subsets.cpp only, inside its namespace: every clone has its own copy.

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
        const int64_t n = job.n_rows + job.most_fitted + 2 * Places::SPARE;
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
