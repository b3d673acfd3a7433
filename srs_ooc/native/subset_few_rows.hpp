// Nodes of few rows: these are kept once, in no order, and searched in lanes; they are sorted anew at each node.
// Included by subsets.cpp only, inside its namespace: every clone has its own copy.

struct FewRows {
    SubsetLanes lanes;
    bool is_taken;  // whether nodes of few rows are searched so
    uint16_t *rows; // [most_fitted] of nodes of few rows, where their rows lie in every column

    void carve(Carver &carver, const SubsetJob &job) {
        const int64_t most_lanes = whole(job.largest);
        rows = carver.take<uint16_t>(job.most_fitted);
        lanes.hashes = carver.take<uint32_t>(most_lanes);
        lanes.lines = carver.take<uint16_t>(job.n_rows * most_lanes);
    }

    // Lay the codes of a subset's columns out row by row.
    template <typename Code> void use(const SubsetColumns<Code> &columns) {
        const int64_t n_members = columns.n_members;
        lanes.n_lanes = whole(n_members);
        const int64_t n_more = lanes.n_lanes - n_members;
        for (int64_t row = 0; row < columns.job.n_rows; ++row) {
            uint16_t *line = lanes.lines + row * lanes.n_lanes;
            for (int64_t m = 0; m < n_members; ++m) line[m] = columns.column(m)[row];
            for (int64_t m = 0; m < n_more; ++m) line[n_members + m] = 0;
        }
        for (int64_t m = 0; m < n_more; ++m) lanes.hashes[n_members + m] = 0;
    }

    SRS_INLINE bool holds(const Node &node) const { return is_taken && node.n <= SubsetLanes::MOST; }

    // Keep the rows of a node where those of its children will be.
    SRS_INLINE void keep(const Node &node, const uint16_t *order) {
        __builtin_memcpy(rows + node.start, order, sizeof(uint16_t) * static_cast<size_t>(node.n));
    }

    // Put a node's rows that go left first, and count them in the split; return the highest code that goes left.
    SRS_INLINE uint32_t part(const Node &node, Found &split) {
        uint16_t right[SubsetLanes::MOST], *order = rows + node.start;
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

  private:
    static int64_t whole(int64_t n) { return (n + SubsetLanes::WIDTH - 1) / SubsetLanes::WIDTH * SubsetLanes::WIDTH; }
};
