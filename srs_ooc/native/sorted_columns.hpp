// Few columns, each with its rows in the order of its codes; a node's rows lie together in every one.
// Included by sorted_trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct SortedColumns {
    const SortedJob &job;
    const Code *codes; // [n_columns][n_rows]
    // Scratch.
    Code *copies;      // [n_columns][n_rows] of a tiled block
    uint16_t *orders;  // [n_columns][n_fitted] rows of each column by code; a node's lie together
    uint16_t *spare;   // [n_fitted]
    uint8_t *left;     // [n_rows]

    explicit SortedColumns(const SortedJob &job) : job(job), codes(static_cast<const Code *>(job.codes)) {}

    void carve(Carver &carver) {
        copies = carver.take<Code>(job.tiled ? job.n_columns * job.n_rows : 0);
        orders = carver.take<uint16_t>(job.n_columns * job.n_fitted);
        spare = carver.take<uint16_t>(job.n_fitted + 32);
        left = carver.take<uint8_t>(job.n_rows);
    }

    SRS_INLINE const Code *column(int64_t j) const { return codes + j * job.n_rows; }
    SRS_INLINE uint16_t *order_of(int64_t j, const Node &node) const { return orders + j * job.n_fitted + node.start; }

    // Lay the columns out one after another; false if a value is missing.
    bool take() {
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
    void sort(int64_t j) {
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

    // Each column's rows that go left come first; what goes to a side that is not split further is not kept.
    // In the column `chosen` they do already.
    void part(const Node &node, int64_t chosen, int32_t n_left, bool any_left, bool any_right) {
        if (!any_left && !any_right) return;
        const uint16_t *rows = order_of(chosen, node);
        for (int32_t i = 0; i < node.n; ++i) left[rows[i]] = i < n_left;
        for (int64_t j = 0; j < job.n_columns; ++j) {
            if (j == chosen) continue;
            uint16_t *order = order_of(j, node);
            if (!any_right) keep_left(order, n_left);
            else if (!any_left) keep_right(order, node.n, n_left);
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
};
