// The best split of a node whose candidates are drawn one after another: only columns drawn are looked at.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct DrawnSearch {
    const SearchedNode<Code> &here;

    Split search() const {
        CandidateDraw &draw = here.tree.draw;
        draw.key = derive(here.node.key, CANDIDATE);
        Split best;
        for (int64_t wanted = here.tree.job.max_features; wanted > 0 && !draw.exhausted();) {
            if (here.by_column()) wanted -= ColumnSearch<Code>{here}.try_column(draw.next(), best);
            else if (here.deviations) wanted -= try_few_columns(wanted, best);
            else wanted -= try_columns(wanted, best);
        }
        draw.rewind();
        return best;
    }

  private:
    // Score up to a tile of columns of a small node at once; return how many are not constant.
    SRS_INLINE int64_t try_columns(int64_t wanted, Split &best) const {
        const TreeData<Code> &tree = here.tree;
        alignas(64) int32_t columns[TILE];
        alignas(64) uint32_t hashes[TILE];
        alignas(64) Code low[TILE], high[TILE];
        uint8_t categories[TILE], used[TILE], any = 0;
        const int64_t n = here.tree.draw.take(columns, wanted < TILE ? wanted : TILE);
        for (int64_t l = n; l < TILE; ++l) columns[l] = columns[0];
        for (int64_t l = 0; l < TILE; ++l) hashes[l] = tree.feature_hashes[columns[l]];
        for (int64_t l = 0; tree.categorical && l < TILE; ++l) any |= categories[l] = tree.categorical[columns[l]];
        copy_lines(columns, n);
        const NodeLines<Code> lines{tree.node_lines};
        here.scan.range(lines, low, high);
        for (int64_t l = 0; l < TILE; ++l) used[l] = l < n;
        const LaneSearch<Code> lanes{here, here.scan, low, high, hashes, any ? categories : nullptr, used, columns, 0};
        lanes.search(lines, best);
        int64_t n_varying = 0;
        for (int64_t l = 0; l < n; ++l) n_varying += low[l] != high[l];
        return n_varying;
    }

    // The same where the node is searched with deviations: fewer columns at once.
    SRS_INLINE int64_t try_few_columns(int64_t wanted, Split &best) const {
        const TreeData<Code> &tree = here.tree;
        alignas(64) int32_t columns[TILE];
        alignas(64) uint32_t hashes[TILE] = {};
        alignas(64) Code low[TILE], high[TILE];
        uint8_t categories[TILE] = {}, used[TILE], any = 0;
        const int64_t n = here.tree.draw.take(columns, wanted < TILE ? wanted : TILE);
        int64_t n_varying = 0;
        for (int64_t l = 0; l < n; ++l) hashes[l] = tree.feature_hashes[columns[l]];
        for (int64_t l = 0; tree.categorical && l < n; ++l) any |= categories[l] = tree.categorical[columns[l]];
        copy_lines(columns, n);
        const NodeLines<Code> lines{tree.node_lines};
        here.scan.range(lines, low, high);
        for (int64_t l = 0; l < TILE; ++l) n_varying += (low[l] != high[l]) & (l < n);
        LaneSearch<Code> lanes{here, here.scan, low, high, hashes, any ? categories : nullptr, nullptr, columns, 0};
        if (lanes.try_wide(lines, static_cast<int>(n), best)) return n_varying;
        for (int64_t l = 0; l < TILE; ++l) used[l] = l < n;
        for (int64_t l = n; l < TILE; ++l) columns[l] = columns[0];
        lanes.wanted = used;
        lanes.search(lines, best);
        return n_varying;
    }

    // Row by row: the columns are as many at each node, the rows are not, and a short loop's end is hard to guess.
    SRS_INLINE void copy_lines(const int32_t *columns, int64_t n) const {
        const TreeData<Code> &tree = here.tree;
        const GrowJob &job = tree.job;
        const int32_t *r = tree.rows + here.node.start;
        Code *lines = tree.node_lines;
#if defined(__AVX512BW__)
        if constexpr (sizeof(Code) == 1) {
            const ByteCopies copies{static_cast<const Code *>(job.codes), job.n_rows};
            if (tree.by_bytes && copies.is_faster(here.node.n)) return copies.copy(r, here.node.n, columns, n, lines);
        }
#endif
        const Code *from[TILE];
        const int64_t stride = job.tiled ? TILE : 1;
        for (int64_t l = 0; l < n; ++l) from[l] = tree.column(columns[l]).codes;
        for (int64_t i = 0; i < here.node.n; ++i) {
            const int64_t at = r[i] * stride;
            for (int64_t l = 0; l < n; ++l) lines[i * TILE + l] = from[l][at];
        }
    }
};
