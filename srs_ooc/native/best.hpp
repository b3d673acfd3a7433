// The best split of each of 64 features at a node, exact over the codes.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

constexpr uint32_t TIE_FACTOR = 0x9E3779B1u; // odd, so that no two thresholds of a feature tie
constexpr int64_t FEW_ROWS = 128;            // nodes up to this size try the codes of their rows

// A threshold's tie hash among those of its feature; `shift`: missing values lie below.
SRS_INLINE uint32_t threshold_tie(uint32_t tie, uint32_t threshold, uint32_t shift) {
    return tie ^ ((threshold + (shift << 16)) * TIE_FACTOR);
}

template <typename Code> struct BestScan {
    using Scan = TileScan<Code>;
    const Scan &scan;
    // The best of each lane so far.
    alignas(64) int32_t bits[TILE], how[TILE];
    alignas(64) uint32_t ties[TILE], thresholds[TILE];
    // This pass over the thresholds.
    alignas(64) int32_t allowed[TILE], pass_how[TILE];
    alignas(64) uint32_t lane_ties[TILE];
    uint32_t shift = 0;

    explicit BestScan(const Scan &scan) : scan(scan) {}

    template <typename Lines>
    void search(const Lines lines, const Code *low, const Code *high, const uint32_t *hashes, const uint8_t *categorical) {
        Code highest = 0;
        for (int l = 0; l < TILE; ++l) {
            highest = high[l] > highest ? high[l] : highest;
            bits[l] = -1;
            ties[l] = thresholds[l] = 0;
            how[l] = pass_how[l] = PLAIN;
            allowed[l] = -1;
        }
        for (int l = 0; l < TILE; ++l) lane_ties[l] = scan.tie_key(hashes[l]);
        shift = 0;
        if (!categorical && highest != MISSING<Code>) return pass(lines);
        LaneMap<Code> map;
        map.set(categorical, hashes, scan.category_key);
        bool any_missing = false;
        for (int l = 0; l < TILE; ++l) {
            const bool is_category = categorical && categorical[l];
            const bool with_missing = !is_category && high[l] == MISSING<Code> && low[l] != MISSING<Code>;
            any_missing |= with_missing;
            map.shift[l] = 0;
            pass_how[l] = is_category ? MAPPED : with_missing ? MISSING_RIGHT : PLAIN;
        }
        pass(MappedLines<Code, Lines>{lines, &map, scan.scratch.view});
        if (!any_missing) return;
        shift = 1;
        for (int l = 0; l < TILE; ++l) {
            allowed[l] = pass_how[l] == MISSING_RIGHT ? -1 : 0;
            map.shift[l] = pass_how[l] == MISSING_RIGHT;
            pass_how[l] = MISSING_LEFT;
        }
        pass(MappedLines<Code, Lines>{lines, &map, scan.scratch.view});
    }

    template <typename Lines> SRS_INLINE void pass(const Lines lines) {
        if (scan.facts.n <= FEW_ROWS || sizeof(Code) != 1) try_rows(lines.chunk(scan.facts.n));
        else try_codes(lines);
    }

    // Every row's code as a threshold.
    template <typename Lines> SRS_INLINE void try_rows(const Lines lines) {
        alignas(64) int32_t found[TILE];
        for (int64_t i = 0; i < scan.facts.n; ++i) {
            const Code *line = lines[i];
            scan.score_lines(lines, line, found);
            keep(found, line);
        }
    }

    // Rows of each code of each feature, then every code as a threshold.
    template <typename Lines> void try_codes(Lines lines) {
        const Facts &f = scan.facts;
        const int64_t n_channels = scan.job.n_channels, cells = f.n_present * TILE, sums = cells * n_channels;
        int32_t *counts = scan.scratch.cell_counts;
        int64_t *numbers = scan.scratch.cell_sums;
        for (int64_t i = 0; i < 256 * cells; ++i) counts[i] = 0;
        for (int64_t i = 0; i < 256 * sums; ++i) numbers[i] = 0;
        for (int64_t k = 0, row = 0; k < f.n_present; ++k)
            for (int64_t rest = f.counts[k]; rest > 0;) {
                const int64_t n = rest < 255 ? rest : 255;
                const auto chunk = lines.chunk(n);
                for (int64_t i = 0; i < n; ++i, ++row) {
                    const Code *line = chunk[i];
                    for (int l = 0; l < TILE; ++l) ++counts[line[l] * cells + k * TILE + l];
                    for (int64_t c = 0; c < n_channels; ++c)
                        for (int l = 0; l < TILE; ++l)
                            numbers[line[l] * sums + (k * n_channels + c) * TILE + l] += scan.numbers[c][row];
                }
                lines = lines.from(n);
                rest -= n;
            }
        for (int64_t i = 0; i < cells; ++i) scan.scratch.counts[i] = 0;
        for (int64_t i = 0; i < sums; ++i) scan.scratch.sums[i] = 0;
        for (int code = 0; code < 256; ++code, counts += cells, numbers += sums) try_code(code, counts, numbers);
    }

    void try_code(int code, const int32_t *counts, const int64_t *numbers) {
        const int64_t cells = scan.facts.n_present * TILE;
        alignas(64) int32_t found[TILE], here[TILE] = {};
        alignas(64) Code line[TILE];
        for (int64_t k = 0; k < cells; k += TILE)
            for (int l = 0; l < TILE; ++l) here[l] |= counts[k + l];
        int32_t any = 0;
        for (int l = 0; l < TILE; ++l) any |= here[l];
        if (any == 0) return;
        for (int64_t i = 0; i < cells; ++i) scan.scratch.counts[i] += counts[i];
        for (int64_t i = 0; i < cells * scan.job.n_channels; ++i) scan.scratch.sums[i] += numbers[i];
        TileScores<Code>{scan}.score_counted(found);
        for (int l = 0; l < TILE; ++l) {
            found[l] = here[l] ? found[l] : -1;
            line[l] = static_cast<Code>(code);
        }
        keep(found, line);
    }

    // Keep what is better than the best so far.
    SRS_INLINE void keep(const int32_t *found, const Code *line) {
        const uint32_t least = shift; // nothing but missing values lies below, which was tried the other way
        for (int l = 0; l < TILE; ++l) {
            const uint32_t threshold = line[l], tie = threshold_tie(lane_ties[l], threshold, shift);
            const int32_t own = allowed[l] && threshold >= least ? found[l] : -1;
            const bool better = own > bits[l] || (own == bits[l] && tie > ties[l]);
            bits[l] = better ? own : bits[l];
            ties[l] = better ? tie : ties[l];
            thresholds[l] = better ? threshold : thresholds[l];
            how[l] = better ? pass_how[l] : how[l];
        }
    }

    // Offer the lanes' best; lane l is column columns[l], or first + l without `columns`.
    void offer_lanes(const int32_t *columns, int64_t first, Split &best) const {
        for (int l = 0; l < TILE; ++l)
            if (bits[l] >= 0 && bits[l] >= best.score_bits)
                scan.offer(best, Split{bits[l], ties[l], columns ? columns[l] : first + l, thresholds[l], how[l]});
    }
};

// The best split of one feature whose codes at the node lie in a column: by sorting them.
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
