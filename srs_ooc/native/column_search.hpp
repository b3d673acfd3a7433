// A split of one column of a node of many rows, or its best one: the column's codes at the node are copied first.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct ColumnSearch {
    const SearchedNode<Code> &here;

    // Score one column; false where it is constant at the node.
    SRS_INLINE bool try_column(int64_t column, Split &best) const {
        const TreeData<Code> &tree = here.tree;
        const TileScan<Code> &scan = here.scan;
        const ColumnCodes<Code> codes = tree.column(column);
        const int32_t *r = tree.rows + here.node.start;
        const int64_t n = here.node.n;
        Code *copied = tree.column_codes; // named here: a byte written may be part of anything, which would be read again
        uint32_t low = codes[r[0]], high = low;
        for (int64_t i = 0; i < n; ++i) {
            const uint32_t x = copied[i] = codes[r[i]];
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        if (low == high) return false;
        if (tree.job.best) {
            try_best(column, low, high, best);
            return true;
        }
        int32_t how = PLAIN;
        const Code threshold = draw(column, low, high, how);
        const int64_t n_left = count_left(threshold);
        const int32_t bits = tree.criterion.score_bits(scan.facts, scan.scratch.left, n_left);
        if (bits >= 0 && bits >= best.score_bits)
            scan.offer(best, Split{bits, scan.tie_key(tree.feature_hashes[column]), column, threshold, how});
        return true;
    }

  private:
    SRS_INLINE bool is_category(int64_t column) const { return here.tree.categorical && here.tree.categorical[column]; }
    SRS_INLINE CategoryMap<Code> map_of(int64_t column) const {
        return CategoryMap<Code>(here.scan.category_key(here.tree.feature_hashes[column]));
    }

    // As TileDraw::draw, of codes from low to high.
    SRS_INLINE Code draw(int64_t column, uint32_t low, uint32_t high, int32_t &how) const {
        const uint32_t hash = here.scan.threshold_key(here.tree.feature_hashes[column]);
        if (is_category(column) || high == MISSING<Code>) how = see_mapped(column, hash, low, high);
        const Code threshold = static_cast<Code>(low + ((uint64_t(hash >> 8) * (high - low)) >> 24));
        if (!here.tree.job.values) return threshold;
        const uint32_t known = high - (how != PLAIN); // with missing values there is one place more
        return static_cast<Code>(TileDraw<Code>{here.scan}.value_threshold(column, hash, how, low, known, threshold));
    }

    // As TileDraw::draw_mapped: change column_codes and their range to what the split sees.
    int32_t see_mapped(int64_t column, uint32_t hash, uint32_t &low, uint32_t &high) const {
        Code *codes = here.tree.column_codes;
        const bool mapped = is_category(column);
        const CategoryMap<Code> map = map_of(column);
        Code lowest = MISSING<Code>, highest = 0;
        for (int64_t i = 0; i < here.node.n; ++i) {
            const Code x = mapped ? map(codes[i]) : static_cast<Code>(codes[i] + 1);
            codes[i] = mapped || (hash & 1) ? x : codes[i];
            lowest = x < lowest ? x : lowest;
            highest = x > highest ? x : highest;
        }
        high = highest;
        if (mapped) low = lowest;
        return mapped ? MAPPED : hash & 1 ? MISSING_LEFT : MISSING_RIGHT;
    }

    // Rows and channels of each class whose column_codes are up to the threshold, in scratch.left; how many rows.
    SRS_INLINE int64_t count_left(Code threshold) const {
        const TreeData<Code> &tree = here.tree;
        const Code *segment = tree.column_codes;
        int64_t n_left = 0, *out = here.scan.scratch.left;
        for (int64_t k = 0, start = here.node.start; k < here.scan.facts.n_present; ++k, out += tree.width) {
            const int64_t n = here.scan.facts.counts[k];
            int32_t left = 0;
            for (int64_t i = 0; i < n; ++i) left += segment[i] <= threshold;
            n_left += out[0] = left;
            for (int64_t c = 0; c < tree.job.n_channels; ++c) {
                int64_t sum = 0;
                for (int64_t i = 0; i < n; ++i) sum += segment[i] <= threshold ? tree.numbers[c][start + i] : 0;
                out[1 + c] = sum;
            }
            segment += n;
            start += n;
        }
        return n_left;
    }

    // As BestScan::search.
    void try_best(int64_t column, uint32_t low, uint32_t high, Split &best) const {
        const TreeData<Code> &tree = here.tree;
        const TileScan<Code> &scan = here.scan;
        const uint32_t tie = scan.tie_key(tree.feature_hashes[column]);
        const bool mapped = is_category(column);
        const bool with_missing = !mapped && high == MISSING<Code> && low != MISSING<Code>;
        for (int64_t k = 0, i = 0; k < scan.facts.n_present && tree.criterion.impurity != VARIANCE; ++k)
            for (const int64_t stop = i + scan.facts.counts[k]; i < stop; ++i) tree.segment_of[i] = static_cast<int32_t>(k);
        if (mapped) {
            const CategoryMap<Code> map = map_of(column);
            for (int64_t i = 0; i < here.node.n; ++i) tree.column_codes[i] = map(tree.column_codes[i]);
        }
        const ColumnBest<Code> sorting{scan, tree.column_codes, {tree.places[0], tree.places[1]}, tree.segment_of};
        sorting.search(column, tie, mapped ? MAPPED : with_missing ? MISSING_RIGHT : PLAIN, 0, best);
        if (!with_missing) return;
        for (int64_t i = 0; i < here.node.n; ++i) ++tree.column_codes[i];
        sorting.search(column, tie, MISSING_LEFT, 1, best);
    }
};
