// The best split of one feature whose codes at the node lie in a column: by sorting them, or by counting bytes.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct ColumnBest {
    const TileScan<Code> &scan;
    const Code *codes;    // [n] as the split sees them
    int32_t *places[2];   // [n] each: rows of the node by ascending code
    const int32_t *segment_of; // [n] class of each row, among those present

    static constexpr int64_t FEW = 24;      // rows that are sorted by insertion
    static constexpr int64_t FEW_CELLS = 8; // rows with targets that are sorted, though codes are bytes

    const int32_t *inserted() const {
        int32_t *order = places[0];
        for (int64_t i = 0; i < scan.facts.n; ++i) {
            const Code code = codes[i];
            int64_t at = i;
            for (; at > 0 && codes[order[at - 1]] > code; --at) order[at] = order[at - 1];
            order[at] = static_cast<int32_t>(i);
        }
        return order;
    }

    // Sort by the lowest byte, then by the next: each pass keeps the order of equal ones.
    const int32_t *sorted() const {
        const int64_t n = scan.facts.n;
        if (n <= FEW) return inserted();
        for (int64_t i = 0; i < n; ++i) places[0][i] = static_cast<int32_t>(i);
        int turn = 0;
        for (int byte = 0; byte < int(sizeof(Code)); ++byte, turn ^= 1) {
            int64_t starts[257] = {};
            for (int64_t i = 0; i < n; ++i) ++starts[((codes[i] >> 8 * byte) & 255) + 1];
            for (int i = 0; i < 256; ++i) starts[i + 1] += starts[i];
            for (int64_t i = 0; i < n; ++i) {
                const int32_t place = places[turn][i];
                places[turn ^ 1][starts[(codes[place] >> 8 * byte) & 255]++] = place;
            }
        }
        return places[turn];
    }

    void search(int64_t column, uint32_t tie, int32_t how, uint32_t shift, Split &best) const {
        const Facts &f = scan.facts;
        const bool targets = scan.criterion.impurity == VARIANCE;
        if (targets && sizeof(Code) == 1 && f.n > FEW_CELLS) return search_cells(column, tie, how, shift, best);
        const int32_t *order = sorted();
        if (targets) return search_targets(order, column, tie, how, shift, best);
        int64_t *left = scan.scratch.left;
        for (int64_t i = 0; i < f.n_present * f.width; ++i) left[i] = 0;
        for (int64_t i = 0; i + 1 < f.n; ++i) {
            const int32_t row = order[i];
            int64_t *own = left + segment_of[row] * f.width;
            ++own[0];
            for (int64_t c = 0; c + 1 < f.width; ++c) own[1 + c] += scan.numbers[c][row];
            const uint32_t threshold = codes[row];
            if (codes[order[i + 1]] == threshold || threshold < shift) continue;
            const int32_t bits = scan.criterion.score_bits(f, left, i + 1);
            if (bits >= 0 && bits >= best.score_bits)
                scan.offer(best, Split{bits, threshold_tie(tie, threshold, shift), column, threshold, how});
        }
    }

    // The same where rows have targets: of one class, with running sums.
    void search_targets(const int32_t *order, int64_t column, uint32_t tie, int32_t how, uint32_t shift, Split &best) const {
        const Facts &f = scan.facts;
        const bool weighted = scan.job.n_channels == 2;
        const int32_t *weights = scan.numbers[0], *sums = scan.numbers[weighted];
        int64_t left[3] = {};
        for (int64_t i = 0; i + 1 < f.n; ++i) {
            const int32_t row = order[i];
            ++left[0];
            left[1] += weighted ? weights[row] : sums[row];
            left[2] += weighted ? sums[row] : 0;
            const uint32_t threshold = codes[row];
            if (codes[order[i + 1]] == threshold || threshold < shift) continue;
            if (left[0] < f.min_leaf || f.n - left[0] < f.min_leaf) continue;
            const int32_t bits = bits_of(scan.criterion.variance_score(f, left, left[weighted]));
            if (bits >= best.score_bits)
                scan.offer(best, Split{bits, threshold_tie(tie, threshold, shift), column, threshold, how});
        }
    }

    // The same of bytes without sorting: the rows and sums of each code, then the codes that came.
    void search_cells(int64_t column, uint32_t tie, int32_t how, uint32_t shift, Split &best) const {
        const Facts &f = scan.facts;
        const bool weighted = scan.job.n_channels == 2;
        const int32_t *weights = scan.numbers[0], *sums = scan.numbers[weighted];
        int32_t *counts = scan.scratch.cell_counts;     // [256]
        int64_t *cells = scan.scratch.cell_sums;        // [256][1 + weighted]: weights, sums
        uint64_t came[4] = {};
        for (int64_t i = 0; i < f.n; ++i) { // a code's first row replaces what its cell held before
            const uint32_t at = codes[i];
            const int64_t keep = -int64_t(came[at / 64 % 4] >> at % 64 & 1);
            came[at / 64 % 4] |= uint64_t(1) << at % 64;
            counts[at] = (counts[at] & static_cast<int32_t>(keep)) + 1;
            if (weighted) {
                cells[2 * at] = (cells[2 * at] & keep) + weights[i];
                cells[2 * at + 1] = (cells[2 * at + 1] & keep) + sums[i];
            } else {
                cells[at] = (cells[at] & keep) + sums[i];
            }
        }
        int64_t left[3] = {};
        for (uint32_t word = 0; word < 4; ++word)
            for (uint64_t rest = came[word]; rest != 0; rest &= rest - 1) {
                const uint32_t threshold = 64 * word + static_cast<uint32_t>(__builtin_ctzll(rest));
                left[0] += counts[threshold];
                left[1] += cells[weighted ? 2 * threshold : threshold];
                left[2] += weighted ? cells[2 * threshold + 1] : 0;
                if (left[0] == f.n) return; // nothing is left to go right
                if (threshold < shift || left[0] < f.min_leaf || f.n - left[0] < f.min_leaf) continue;
                const int32_t bits = bits_of(scan.criterion.variance_score(f, left, left[weighted]));
                if (bits >= best.score_bits)
                    scan.offer(best, Split{bits, threshold_tie(tie, threshold, shift), column, threshold, how});
            }
    }
};
