// The columns of a subset, each with its rows in the order of its codes; a node's rows lie together in every one.
// Included by subsets.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct SubsetColumns {
    const SubsetJob &job;
    const Code *codes;
    // Of the subset at hand.
    const int32_t *places;
    int64_t n_members;
    RowSet row_set;
    // Scratch.
    uint16_t *orders; // [largest][most_fitted] rows of each column by code
    uint16_t *spare;  // [n_rows + most_fitted]

    explicit SubsetColumns(const SubsetJob &job) : job(job), codes(static_cast<const Code *>(job.codes)) {}

    void carve(Carver &carver) {
        orders = carver.take<uint16_t>(job.largest * job.most_fitted + job.n_rows);
        spare = carver.take<uint16_t>(job.n_rows + job.most_fitted + 2 * Places::SPARE);
        row_set.use(carver.take<uint8_t>(job.n_rows), job.n_rows);
    }

    void use(int64_t subset) {
        places = job.places + job.bounds[subset];
        n_members = job.bounds[subset + 1] - job.bounds[subset];
    }

    SRS_INLINE const Code *column(int64_t member) const { return codes + places[member] * job.n_rows; }
    SRS_INLINE uint32_t feature(int64_t member) const { return job.features[places[member]]; }
    SRS_INLINE uint16_t *order_of(int64_t member, const Node &node) const {
        return orders + member * job.most_fitted + node.start;
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

    // The highest code that goes left: midway between those next to the split.
    SRS_INLINE uint32_t midway(const uint16_t *order, const Found &split) const {
        const Code *own = column(split.member);
        return (uint32_t(own[order[split.n_left - 1]]) + own[order[split.n_left]]) / 2;
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
            if (any_right)
                __builtin_memcpy(order + split.n_left, spare, sizeof(uint16_t) * static_cast<size_t>(node.n - split.n_left));
        }
    }
};
