// Finding the best split of a node among its candidate columns.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

struct Node {
    int64_t start, n, depth;
    uint64_t key;
    int32_t *link; // where its parent's record names it
};

template <typename Code> struct CandidateScans {
    using Scan = TileScan<Code>;
    GrowJob &job;
    Criterion criterion;
    CandidateDraw draw{};
    const int64_t width; // numbers of a class: its rows, and the sums of its channels
    // Scratch, carved by carve_into().
    TileScratch<Code> scratches[MAX_THREADS];
    int32_t *rows;                   // [n_root_rows] a node's rows lie together, grouped by class
    int32_t *numbers[MAX_CHANNELS];  // [n_root_rows] their channels
    uint32_t *feature_hashes;        // [padded columns]
    uint8_t *categorical;            // [padded columns], then 1 for each tile with any; null: there are none
    Code *lows, *highs;              // [padded columns] ranges at the node
    uint8_t *chosen, *real;          // [padded columns] candidates of the node; columns, as against padding
    Code *column_codes;              // [n_root_rows]
    int32_t *places[2], *segment_of; // [n_root_rows] each, for best splits by sorting
    Code *node_lines;                // [NODE_LINES][TILE]
    const Deviations *deviations = nullptr; // of the node at hand, where it is searched with them
    const bool by_bytes;                    // whether codes are copied by permutations of bytes
    bool in_cells = false;                  // whether it can be searched by counting rows by code
    static constexpr int64_t NODE_LINES = 512; // nodes up to this size have their candidates' codes copied

    explicit CandidateScans(GrowJob &job)
        : job(job), criterion{job.impurity, job.xlogx, job.root_scale}, width(1 + job.n_channels),
          by_bytes(can_permute(job)) {}

    static bool can_permute([[maybe_unused]] const GrowJob &job) {
#if defined(__AVX512BW__)
        return sizeof(Code) == 1 && !job.tiled && job.n_rows <= ByteCopies::MOST && ByteCopies::is_there();
#else
        return false;
#endif
    }

    SRS_INLINE Code code(int64_t column, int64_t row) const {
        const Code *codes = static_cast<const Code *>(job.codes);
        if (job.tiled) return codes[((column / TILE) * job.n_rows + row) * TILE + column % TILE];
        return codes[column * job.n_rows + row];
    }

    SRS_INLINE BlockLines<Code> block_lines(int64_t first, const Node &node) const {
        return {static_cast<const Code *>(job.codes) + first * job.n_rows, rows + node.start};
    }

    SRS_INLINE const uint8_t *categories_of_tile(int64_t first) const {
        return categorical && categorical[padded() + first / TILE] ? categorical + first : nullptr;
    }

    SRS_INLINE int64_t padded() const { return (job.n_columns + TILE - 1) / TILE * TILE; }

    // Score a split of each lane, or find the best one; drop lanes not wanted (null: all are), offer the best of the rest.
    template <typename Lines>
    SRS_INLINE void try_tile(const Scan &scan, const Lines lines, const Code *low, const Code *high, const uint32_t *hashes,
                             const uint8_t *categories, const uint8_t *wanted, const int32_t *columns, int64_t first,
                             Split &best) const {
        if (deviations) {
            const int n_lanes = lanes_in_use(columns, first);
            if (try_wide(scan, lines, n_lanes, low, high, hashes, categories, wanted, columns, first, best)) return;
        }
        if (job.best && try_cells(scan, lines, high, hashes, categories, wanted, columns, first, best)) return;
        if (job.best) return try_best(scan, lines, low, high, hashes, categories, wanted, columns, first, best);
        alignas(64) int32_t bits[TILE];
        Drawn<Code> drawn;
        TileDraw<Code>{scan}.draw(lines, low, high, hashes, categories, columns, first, drawn);
        scan.score(lines, drawn, bits);
        for (int l = 0; wanted && l < TILE; ++l) bits[l] = wanted[l] ? bits[l] : -1;
        scan.offer_lanes(bits, hashes, drawn, columns, first, best);
    }

    template <typename Lines>
    __attribute__((noinline)) void try_best(const Scan &scan, const Lines lines, const Code *low, const Code *high,
                                            const uint32_t *hashes, const uint8_t *categories, const uint8_t *wanted,
                                            const int32_t *columns, int64_t first, Split &best) const {
        BestScan<Code> found(scan);
        found.search(lines, low, high, hashes, categories);
        for (int l = 0; wanted && l < TILE; ++l) found.bits[l] = wanted[l] ? found.bits[l] : -1;
        found.offer_lanes(columns, first, best);
    }

    // Search with the deviations of the node's rows, if that can be done.
    template <typename Lines>
    SRS_INLINE bool try_wide(const Scan &scan, const Lines lines, int n_lanes, const Code *low, const Code *high,
                             const uint32_t *hashes, const uint8_t *categories, const uint8_t *wanted,
                             const int32_t *columns, int64_t first, Split &best) const {
        if constexpr (sizeof(Code) == 1) {
            if (!deviations || categories || any_missing(high, n_lanes)) return false;
            if (job.best) SortedLanes(scan, *deviations).search(lines, n_lanes, hashes, wanted, columns, first, best);
            else DrawnLanes{scan, *deviations}.search(lines, n_lanes, low, high, hashes, wanted, columns, first, best);
            return true;
        }
        return false;
    }

    // Search by counting rows by code, if that can be done.
    template <typename Lines>
    SRS_INLINE bool try_cells(const Scan &scan, const Lines lines, const Code *high, const uint32_t *hashes,
                              const uint8_t *categories, const uint8_t *wanted, const int32_t *columns, int64_t first,
                              Split &best) const {
        if constexpr (sizeof(Code) == 1) {
            const int n_lanes = lanes_in_use(columns, first);
            if (!in_cells || categories || any_missing(high, n_lanes)) return false;
            const int32_t *weights = job.n_channels == 2 ? scan.numbers[0] : nullptr;
            const CellLanes lanes{scan, weights, scan.numbers[job.n_channels - 1], scan.scratch.cell_sums};
            lanes.search(lines, n_lanes, hashes, wanted, columns, first, best);
            return true;
        }
        return false;
    }

    // Lanes of a tile that are columns, not padding.
    SRS_INLINE int lanes_in_use(const int32_t *columns, int64_t first) const {
        const int64_t rest = columns ? TILE : job.n_columns - first;
        return static_cast<int>(rest < TILE ? rest : TILE);
    }

    static SRS_INLINE bool any_missing(const Code *high, int n_lanes) {
        Code highest = 0;
        for (int l = 0; l < n_lanes; ++l) highest = high[l] > highest ? high[l] : highest;
        return highest == MISSING<Code>;
    }

    // Whether a column of the node is looked at on its own.
    SRS_INLINE bool by_column(const Node &node) const {
        if (deviations) return false;
        if (job.best && sizeof(Code) != 1) return node.n > FEW_ROWS;
        if (job.best && !job.tiled && criterion.impurity == VARIANCE && node.n <= NODE_LINES) {
            // Trying all rows costs n^2 whatever the lanes in use, counting codes costs all lanes' cells.
            const int64_t most = job.max_features < job.n_columns ? job.max_features : job.n_columns;
            const int64_t lanes = most < TILE ? most : TILE;
            if (lanes < TILE / 3 || (node.n > lanes && node.n <= FEW_ROWS)) return node.n > 4;
        }
        return !job.tiled && node.n > NODE_LINES;
    }

    // ---- every column of a tiled block is a candidate ------------------------------------------

    SRS_INLINE Split scan_all(const Node &node, const Scan &scan, int64_t from, int64_t to) const {
        Split best;
        for (int64_t first = from; first < to; first += TILE) {
            alignas(64) Code low[TILE], high[TILE];
            const BlockLines<Code> lines = block_lines(first, node);
            scan.range(lines, low, high);
            const uint8_t *wanted = first + TILE > job.n_columns ? real + first : nullptr; // the last tile may be padded
            try_tile(scan, lines, low, high, feature_hashes + first, categories_of_tile(first), wanted, nullptr, first, best);
        }
        return best;
    }

    // ---- many of them: all ranges first, then the tiles that hold candidates -------------------

    SRS_INLINE Split find_ranges(const Node &node, const Scan &scan, int64_t from, int64_t to) const {
        for (int64_t first = from; first < to; first += TILE)
            scan.range(block_lines(first, node), lows + first, highs + first);
        return Split{};
    }

    SRS_INLINE Split scan_chosen(const Node &node, const Scan &scan, int64_t from, int64_t to) const {
        Split best;
        for (int64_t first = from; first < to; first += TILE) {
            uint8_t any = 0;
            for (int l = 0; l < TILE; ++l) any |= chosen[first + l];
            if (!any) continue;
            try_tile(scan, block_lines(first, node), lows + first, highs + first, feature_hashes + first,
                     categories_of_tile(first), chosen + first, nullptr, first, best);
        }
        return best;
    }

    // ---- threads share the tiles of a large node -----------------------------------------------

    enum Step { ALL, RANGES, CHOSEN };

    struct Shared {
        const CandidateScans &scans;
        const Node &node;
        const Scan &scan;
        Step step;
        Split best[MAX_THREADS];
    };

    static void work(void *context, int part) {
        Shared &shared = *static_cast<Shared *>(context);
        const CandidateScans &scans = shared.scans;
        const int64_t tiles = scans.padded() / TILE, n = scans.job.n_threads;
        Scan scan = shared.scan;
        scan.scratch = scans.scratches[part];
        shared.best[part] = scans.scan_part(shared.step, shared.node, scan, tiles * part / n * TILE, tiles * (part + 1) / n * TILE);
    }

    SRS_INLINE Split scan_part(Step step, const Node &node, const Scan &scan, int64_t from, int64_t to) const {
        if (step == ALL) return scan_all(node, scan, from, to);
        return step == RANGES ? find_ranges(node, scan, from, to) : scan_chosen(node, scan, from, to);
    }

    Split scan_tiles(Step step, const Node &node, const Scan &scan) const {
        if (job.n_threads < 2 || node.n * job.n_columns < SHARED_CELLS) return scan_part(step, node, scan, 0, padded());
        Shared shared{*this, node, scan, step, {}};
        job.share(job.threads, &work, &shared);
        Split best;
        for (int part = 0; part < job.n_threads; ++part)
            if (shared.best[part].column >= 0) scan.offer(best, shared.best[part]);
        return best;
    }

    void choose(const Node &node) {
        __builtin_memset(chosen, 0, static_cast<size_t>(padded()));
        draw.key = derive(node.key, CANDIDATE);
        for (int64_t wanted = job.max_features; wanted > 0 && !draw.exhausted();) {
            const int32_t column = draw.next();
            chosen[column] = lows[column] != highs[column];
            wanted -= chosen[column];
        }
        draw.rewind();
    }

    // ---- few of them: only columns drawn are looked at -----------------------------------------

    Split scan_drawn(const Node &node, const Scan &scan) {
        draw.key = derive(node.key, CANDIDATE);
        Split best;
        for (int64_t wanted = job.max_features; wanted > 0 && !draw.exhausted();) {
            if (by_column(node)) wanted -= try_column(scan, node, draw.next(), best);
            else wanted -= try_columns(scan, node, wanted, best);
        }
        draw.rewind();
        return best;
    }

    // Score one column of a large node; false where it is constant there.
    SRS_INLINE bool try_column(const Scan &scan, const Node &node, int64_t column, Split &best) const {
        const int32_t *r = rows + node.start;
        uint32_t low = code(column, r[0]), high = low;
        for (int64_t i = 0; i < node.n; ++i) {
            const uint32_t x = column_codes[i] = code(column, r[i]);
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        if (low == high) return false;
        if (job.best) return best_of_column(scan, node, column, low, high, best);
        const uint32_t hash = scan.threshold_key(feature_hashes[column]);
        int32_t how = PLAIN;
        if ((categorical && categorical[column]) || high == MISSING<Code>)
            how = see_mapped(scan, node, column, hash, low, high);
        Code threshold = static_cast<Code>(low + ((uint64_t(hash >> 8) * (high - low)) >> 24));
        if (job.values) // with missing values there is one place more
            threshold = static_cast<Code>(TileDraw<Code>{scan}.value_threshold(column, hash, how, low, high - (how != PLAIN), threshold));
        const int64_t n_left = column_left(scan, node, threshold);
        const int32_t bits = criterion.score_bits(scan.facts, scan.scratch.left, n_left);
        if (bits >= 0 && bits >= best.score_bits)
            scan.offer(best, Split{bits, scan.tie_key(feature_hashes[column]), column, threshold, how});
        return true;
    }

    // As BestScan::search, for one column.
    bool best_of_column(const Scan &scan, const Node &node, int64_t column, uint32_t low, uint32_t high, Split &best) const {
        const uint32_t tie = scan.tie_key(feature_hashes[column]);
        const bool is_category = categorical && categorical[column];
        const bool with_missing = !is_category && high == MISSING<Code> && low != MISSING<Code>;
        for (int64_t k = 0, i = 0; k < scan.facts.n_present && criterion.impurity != VARIANCE; ++k)
            for (const int64_t stop = i + scan.facts.counts[k]; i < stop; ++i) segment_of[i] = static_cast<int32_t>(k);
        if (is_category) {
            const CategoryMap<Code> map(scan.category_key(feature_hashes[column]));
            for (int64_t i = 0; i < node.n; ++i) column_codes[i] = map(column_codes[i]);
        }
        const ColumnBest<Code> sorting{scan, column_codes, {places[0], places[1]}, segment_of};
        sorting.search(column, tie, is_category ? MAPPED : with_missing ? MISSING_RIGHT : PLAIN, 0, best);
        if (!with_missing) return true;
        for (int64_t i = 0; i < node.n; ++i) ++column_codes[i];
        sorting.search(column, tie, MISSING_LEFT, 1, best);
        return true;
    }

    // A best threshold lies midway between the codes it parts, or between their values where these are given.
    uint32_t middle(const Node &node, const Split &split) const {
        const Code shift = split.how == MISSING_LEFT;
        uint32_t next = MISSING<Code>;
        for (int64_t i = 0; i < node.n; ++i) {
            const Code x = static_cast<Code>(code(split.column, rows[node.start + i]) + shift);
            next = x > split.threshold && x < next ? x : next;
        }
        if (split.how == MAPPED || (split.how == MISSING_RIGHT && next == MISSING<Code>)) return split.threshold;
        const uint32_t low = split.threshold - shift; // of the missing values alone nothing is known
        if (!job.values || split.threshold < shift) return (split.threshold + next) / 2;
        return CodeValues{job.values, job.n_values - 1}.cut(split.column, HALFWAY, low, next - shift) + shift;
    }

    // As TileDraw::draw_mapped: change column_codes and their range to what the split sees.
    int32_t see_mapped(const Scan &scan, const Node &node, int64_t column, uint32_t hash, uint32_t &low, uint32_t &high) const {
        const bool is_category = categorical && categorical[column];
        const CategoryMap<Code> map(scan.category_key(feature_hashes[column]));
        Code lowest = MISSING<Code>, highest = 0;
        for (int64_t i = 0; i < node.n; ++i) {
            const Code x = is_category ? map(column_codes[i]) : static_cast<Code>(column_codes[i] + 1);
            column_codes[i] = is_category || (hash & 1) ? x : column_codes[i];
            lowest = x < lowest ? x : lowest;
            highest = x > highest ? x : highest;
        }
        high = highest;
        if (is_category) low = lowest;
        return is_category ? MAPPED : hash & 1 ? MISSING_LEFT : MISSING_RIGHT;
    }

    // Rows and channels of each class whose column_codes are up to the threshold, in scratch.left.
    SRS_INLINE int64_t column_left(const Scan &scan, const Node &node, Code threshold) const {
        const Code *segment = column_codes;
        int64_t n_left = 0, *out = scan.scratch.left;
        for (int64_t k = 0, start = node.start; k < scan.facts.n_present; ++k, out += width) {
            const int64_t n = scan.facts.counts[k];
            int32_t left = 0;
            for (int64_t i = 0; i < n; ++i) left += segment[i] <= threshold;
            n_left += out[0] = left;
            for (int64_t c = 0; c < job.n_channels; ++c) {
                int64_t sum = 0;
                for (int64_t i = 0; i < n; ++i) sum += segment[i] <= threshold ? numbers[c][start + i] : 0;
                out[1 + c] = sum;
            }
            segment += n;
            start += n;
        }
        return n_left;
    }

    // Score up to a tile of columns of a small node at once; return how many are not constant.
    SRS_INLINE int64_t try_columns(const Scan &scan, const Node &node, int64_t wanted, Split &best) {
        alignas(64) int32_t columns[TILE];
        alignas(64) uint32_t hashes[TILE];
        alignas(64) Code low[TILE], high[TILE];
        uint8_t categories[TILE], used[TILE], any = 0;
        if (deviations) return try_few_columns(scan, node, wanted, best);
        const int64_t most = wanted < TILE ? wanted : TILE;
        const int64_t n = draw.take(columns, most);
        for (int64_t l = n; l < TILE; ++l) columns[l] = columns[0];
        for (int64_t l = 0; l < TILE; ++l) hashes[l] = feature_hashes[columns[l]];
        for (int64_t l = 0; categorical && l < TILE; ++l) any |= categories[l] = categorical[columns[l]];
        copy_lines(node, columns, n);
        const NodeLines<Code> lines{node_lines};
        scan.range(lines, low, high);
        for (int64_t l = 0; l < TILE; ++l) used[l] = l < n;
        try_tile(scan, lines, low, high, hashes, any ? categories : nullptr, used, columns, 0, best);
        int64_t n_varying = 0;
        for (int64_t l = 0; l < n; ++l) n_varying += low[l] != high[l];
        return n_varying;
    }

    // The same where the node is searched with deviations: fewer columns at once.
    SRS_INLINE int64_t try_few_columns(const Scan &scan, const Node &node, int64_t wanted, Split &best) {
        alignas(64) int32_t columns[TILE];
        alignas(64) uint32_t hashes[TILE] = {};
        alignas(64) Code low[TILE], high[TILE];
        uint8_t categories[TILE] = {}, used[TILE], any = 0;
        const int64_t most = wanted < TILE ? wanted : TILE;
        const int64_t n = draw.take(columns, most);
        int64_t n_varying = 0;
        for (int64_t l = 0; l < n; ++l) hashes[l] = feature_hashes[columns[l]];
        for (int64_t l = 0; categorical && l < n; ++l) any |= categories[l] = categorical[columns[l]];
        copy_lines(node, columns, n);
        const NodeLines<Code> lines{node_lines};
        scan.range(lines, low, high);
        for (int64_t l = 0; l < TILE; ++l) n_varying += (low[l] != high[l]) & (l < n);
        const uint8_t *kinds = any ? categories : nullptr;
        if (try_wide(scan, lines, static_cast<int>(n), low, high, hashes, kinds, nullptr, columns, 0, best)) return n_varying;
        for (int64_t l = 0; l < TILE; ++l) used[l] = l < n;
        for (int64_t l = n; l < TILE; ++l) columns[l] = columns[0];
        try_tile(scan, lines, low, high, hashes, kinds, used, columns, 0, best);
        return n_varying;
    }

    // Row by row: the columns are as many at each node, the rows are not, and a short loop's end is hard to guess.
    SRS_INLINE void copy_lines(const Node &node, const int32_t *columns, int64_t n) const {
        const int32_t *r = rows + node.start;
#if defined(__AVX512BW__)
        if constexpr (sizeof(Code) == 1) {
            const ByteCopies copies{static_cast<const Code *>(job.codes), job.n_rows};
            if (by_bytes && copies.is_faster(node.n)) return copies.copy(r, node.n, columns, n, node_lines);
        }
#endif
        const Code *codes = static_cast<const Code *>(job.codes), *from[TILE];
        const int64_t stride = job.tiled ? TILE : 1;
        for (int64_t l = 0; l < n; ++l) {
            const int64_t column = columns[l];
            from[l] = codes + (job.tiled ? column / TILE * TILE * job.n_rows + column % TILE : column * job.n_rows);
        }
        for (int64_t i = 0; i < node.n; ++i) {
            const int64_t at = r[i] * stride;
            for (int64_t l = 0; l < n; ++l) node_lines[i * TILE + l] = from[l][at];
        }
    }

    uint32_t category_hash(const Node &node, const Split &split) const {
        return LaneKey(node.key, CATEGORIES)(feature_hashes[split.column]);
    }

    // Rows up to which a node with targets is searched with their deviations.
    SRS_INLINE int64_t most_wide() const {
        if (job.best) return SortedLanes::MOST;
        return job.values ? 0 : job.tiled ? DrawnLanes::TILED : NODE_LINES;
    }

    // The best candidate at a node that may be split.
    Split search(const Node &node, const Facts &f) {
        const int32_t *own[MAX_CHANNELS] = {};
        for (int64_t c = 0; c < job.n_channels; ++c) own[c] = numbers[c] + node.start;
        const Scan scan(job, criterion, f, node.key, own, scratches[0]);
        Deviations own_deviations;
        deviations = nullptr;
        in_cells = false;
        if (sizeof(Code) == 1 && criterion.impurity == VARIANCE) {
            const int32_t *weights = job.n_channels == 2 ? own[0] : nullptr, *sums = own[job.n_channels - 1];
            if (node.n <= most_wide()) {
                own_deviations.set(f, weights, sums);
                if (job.best || !job.tiled || own_deviations.is_narrow) deviations = &own_deviations;
            } else {
                in_cells = job.best && CellLanes::can_hold(f, weights, sums);
            }
        }
        Split split;
        if (!job.tiled || by_column(node)) {
            split = scan_drawn(node, scan);
        } else if (job.max_features >= job.n_columns) {
            split = scan_tiles(ALL, node, scan);
        } else {
            scan_tiles(RANGES, node, scan);
            choose(node);
            split = scan_tiles(CHOSEN, node, scan);
        }
        if (job.best && split.column >= 0) split.threshold = middle(node, split);
        return split;
    }
};
