// Scoring one split of each of 64 features at a node at once.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

// Memory of one thread for scoring a tile.
template <typename Code> struct TileScratch {
    int32_t *counts; // [n_classes][TILE] rows of each class going left
    int64_t *sums;   // [n_classes][n_channels][TILE] their channels
    int64_t *left;   // [n_classes][1 + n_channels] both, for one lane
    Code *view;      // [255][TILE]
    int32_t *cell_counts; // for best splits of bytes: [256][n_classes][TILE] rows of each code
    int64_t *cell_sums;   // [256][n_classes][n_channels][TILE] their channels
};

// A split of each lane, and how it sees codes.
template <typename Code> struct Drawn {
    alignas(64) Code thresholds[TILE];
    int32_t how[TILE];
    Code known[TILE]; // highest code that is not a missing value
    LaneMap<Code> map;
    bool seen_through_map;
};

template <typename Code> struct TileScan {
    using V = Lanes<Code>;
    const GrowJob &job;
    const Criterion &criterion;
    const Facts &facts;
    const int32_t *const *numbers; // [n_channels] of the node's rows
    TileScratch<Code> scratch;
    LaneKey threshold_key, tie_key, category_key;
    bool narrow; // every class's rows fit a lane counter, and nothing but rows counts

    TileScan(const GrowJob &job, const Criterion &criterion, const Facts &facts, uint64_t node_key,
             const int32_t *const *numbers, const TileScratch<Code> &scratch)
        : job(job), criterion(criterion), facts(facts), numbers(numbers), scratch(scratch),
          threshold_key(node_key, THRESHOLD), tie_key(node_key, TIE), category_key(node_key, CATEGORIES),
          narrow(criterion.impurity == GINI && job.n_channels == 0 && facts.n <= SMALL_NODE && facts.largest <= V::FLUSH) {}

    template <typename Lines> SRS_INLINE void range(const Lines lines, Code *low, Code *high) const {
        V lo = V::load(lines[0]), hi = lo;
        for (int64_t i = 1; i < facts.n; ++i) V::load(lines[i]).widen_range(lo, hi);
        lo.store(low);
        hi.store(high);
    }

    // ---- drawing a split of each lane ----------------------------------------------------------

    SRS_INLINE void draw_thresholds(const Code *low, const Code *high, const uint32_t *hashes, Code *thresholds) const {
        for (int l = 0; l < TILE; ++l) {
            const uint32_t h = threshold_key(hashes[l]) >> 8;
            const uint32_t spread = uint32_t(high[l]) - uint32_t(low[l]);
            if (sizeof(Code) == 1) thresholds[l] = static_cast<Code>(low[l] + ((h * spread) >> 24));
            else thresholds[l] = static_cast<Code>(low[l] + ((uint64_t(h) * spread) >> 24));
        }
    }

    // Draw from the ranges of codes at the node; `categorical`: [TILE], or null where no lane is;
    // lane l is column columns[l], or first + l without `columns`.
    template <typename Lines>
    SRS_INLINE void draw(const Lines lines, const Code *low, const Code *high, const uint32_t *hashes,
                         const uint8_t *categorical, const int32_t *columns, int64_t first, Drawn<Code> &drawn) const {
        Code highest = 0;
        for (int l = 0; l < TILE; ++l) highest = high[l] > highest ? high[l] : highest;
        drawn.seen_through_map = categorical || highest == MISSING<Code>;
        if (drawn.seen_through_map) draw_mapped(lines, low, high, hashes, categorical, drawn);
        else draw_thresholds(low, high, hashes, drawn.thresholds);
        if (job.values) draw_values(low, high, hashes, columns, first, drawn);
    }

    SRS_INLINE CodeValues values_of_codes() const { return {job.values, job.n_values - 1}; }

    // Draw the thresholds of numbers again, between their values.
    __attribute__((noinline)) void draw_values(const Code *low, const Code *high, const uint32_t *hashes,
                                               const int32_t *columns, int64_t first, Drawn<Code> &drawn) const {
        alignas(64) int64_t places[TILE];
        alignas(64) uint32_t draws[TILE], from[TILE], to[TILE], cuts[TILE];
        for (int l = 0; l < TILE; ++l) {
            places[l] = columns ? columns[l] : first + l;
            const int32_t how = drawn.seen_through_map ? drawn.how[l] : int32_t(PLAIN);
            const Code known = drawn.seen_through_map ? drawn.known[l] : high[l];
            const bool stays = how == MAPPED || low[l] >= known || parts_missing(how, drawn.thresholds[l], low[l], known);
            draws[l] = value_hash(how, threshold_key(hashes[l]));
            from[l] = stays ? 0 : low[l];
            to[l] = stays ? 0 : known;
        }
        values_of_codes().cut_lanes(places, draws, from, to, cuts);
        for (int l = 0; l < TILE; ++l) {
            const uint32_t shift = drawn.seen_through_map && drawn.how[l] == MISSING_LEFT;
            drawn.thresholds[l] = to[l] ? static_cast<Code>(cuts[l] + shift) : drawn.thresholds[l];
        }
    }

    // The same for one column; `known`: its highest code that is not a missing value.
    uint32_t value_threshold(int64_t column, uint32_t hash, int32_t how, uint32_t low, uint32_t known, uint32_t threshold) const {
        if (how == MAPPED || low >= known || parts_missing(how, threshold, low, known)) return threshold;
        return values_of_codes().cut(column, value_hash(how, hash), low, known) + (how == MISSING_LEFT);
    }

    template <typename Lines>
    void draw_mapped(const Lines lines, const Code *low, const Code *high, const uint32_t *hashes,
                     const uint8_t *categorical, Drawn<Code> &drawn) const {
        alignas(64) Code mapped_low[TILE], mapped_high[TILE];
        drawn.map.set(categorical, hashes, category_key);
        V lo = drawn.map.apply(lines[0]), hi = lo;
        for (int64_t i = 1; i < facts.n; ++i) drawn.map.apply(lines[i]).widen_range(lo, hi);
        lo.store(mapped_low);
        hi.store(mapped_high);
        for (int l = 0; l < TILE; ++l) {
            const uint32_t hash = threshold_key(hashes[l]);
            const bool is_category = categorical && categorical[l];
            const bool with_missing = !is_category && high[l] == MISSING<Code> && low[l] != MISSING<Code>;
            uint32_t from = low[l], to = high[l];
            drawn.how[l] = is_category ? MAPPED : PLAIN;
            drawn.known[l] = with_missing ? static_cast<Code>(mapped_high[l] - 1) : high[l];
            drawn.map.shift[l] = 0;
            if (is_category) {
                from = mapped_low[l];
                to = mapped_high[l];
            } else if (with_missing) { // one position more: missing values alone on a side
                to = mapped_high[l]; // a code above the highest, so that it is drawn as well
                drawn.how[l] = hash & 1 ? MISSING_LEFT : MISSING_RIGHT;
                drawn.map.shift[l] = hash & 1;
            }
            drawn.thresholds[l] = static_cast<Code>(from + ((uint64_t(hash >> 8) * (to - from)) >> 24));
        }
    }

    // ---- what goes left ------------------------------------------------------------------------

    // Rows at or below each lane's threshold, as many as a lane counter holds.
    template <typename Lines>
    SRS_INLINE void count_rows(Lines lines, int64_t n, const V &limit, Code *out) const {
        V counters;
        counters.clear();
        while (n > 0) {
            const int64_t some = n < Lines::CHUNK ? n : Lines::CHUNK;
            const auto chunk = lines.chunk(some);
            for (int64_t i = 0; i < some; ++i) V::load(chunk[i]).count_at_most(limit, counters);
            n -= some;
            if (n > 0) lines = lines.from(some);
        }
        counters.store(out);
    }

    template <typename Lines>
    SRS_INLINE void count_classes(Lines lines, const Code *thresholds, Code *out) const {
        const V limit = V::load(thresholds);
        for (int64_t k = 0; k < facts.n_present; ++k, out += TILE) {
            count_rows(lines, facts.counts[k], limit, out);
            lines = lines.from(facts.counts[k]);
        }
    }

    // Rows and channels of each class.
    template <typename Lines>
    SRS_INLINE void add_classes(Lines lines, const Code *thresholds) const {
        const V limit = V::load(thresholds);
        const int64_t most = job.n_channels == 0 ? int64_t(V::FLUSH) : job.flush < 255 ? job.flush : 255;
        alignas(64) Code some[TILE];
        int32_t *out = scratch.counts;
        int64_t *sums = scratch.sums;
        for (int64_t k = 0, row = 0; k < facts.n_present; ++k, out += TILE, sums += job.n_channels * TILE) {
            for (int l = 0; l < TILE; ++l) out[l] = 0;
            for (int64_t i = 0; i < job.n_channels * TILE; ++i) sums[i] = 0;
            for (int64_t rest = facts.counts[k]; rest > 0;) {
                const int64_t n = rest < most ? rest : most;
                if (job.n_channels == 0) {
                    count_rows(lines, n, limit, some);
                } else {
                    const auto chunk = lines.chunk(n);
                    count_rows(chunk, n, limit, some);
                    for (int64_t c = 0; c < job.n_channels; ++c)
                        SumLanes<Code>::add(chunk, numbers[c] + row, n, thresholds, sums + c * TILE);
                }
                for (int l = 0; l < TILE; ++l) out[l] += some[l];
                lines = lines.from(n);
                row += n;
                rest -= n;
            }
        }
    }

    // ---- what that is worth --------------------------------------------------------------------

    // As Criterion::gini_score, operation by operation, for all lanes.
    template <typename Count> SRS_INLINE void gini(const Count *going_left, int32_t *bits) const {
        alignas(64) int32_t n_left[TILE];
        alignas(64) float sums[TILE];
        const int32_t n = static_cast<int32_t>(facts.n);
        if (facts.n_present == 2) { // D_0 = -D_1, so the sum is exactly twice one square
            const int32_t c0 = static_cast<int32_t>(facts.counts[0]), c1 = static_cast<int32_t>(facts.counts[1]);
            for (int l = 0; l < TILE; ++l) {
                const int32_t left_0 = going_left[l], left_1 = going_left[TILE + l];
                const float d = static_cast<float>(left_1 * c0 - left_0 * c1);
                n_left[l] = left_0 + left_1;
                sums[l] = d * d + d * d;
            }
        } else {
            for (int l = 0; l < TILE; ++l) n_left[l] = going_left[l];
            for (int64_t k = 1; k < facts.n_present; ++k)
                for (int l = 0; l < TILE; ++l) n_left[l] += going_left[k * TILE + l];
            for (int l = 0; l < TILE; ++l) sums[l] = 0.0f;
            for (int64_t k = 0; k < facts.n_present; ++k) {
                const int32_t count = static_cast<int32_t>(facts.counts[k]);
                for (int l = 0; l < TILE; ++l) {
                    const float d = static_cast<float>(going_left[k * TILE + l] * n - count * n_left[l]);
                    sums[l] = sums[l] + d * d;
                }
            }
        }
        for (int l = 0; l < TILE; ++l)
            sums[l] = sums[l] / (static_cast<float>(n_left[l]) * static_cast<float>(n - n_left[l]));
        keep_valid(sums, n_left, bits);
    }

    SRS_INLINE void keep_valid(const float *scores, const int32_t *n_left, int32_t *bits) const {
        const int32_t n = static_cast<int32_t>(facts.n), min_leaf = static_cast<int32_t>(facts.min_leaf);
        __builtin_memcpy(bits, scores, TILE * sizeof(float));
        for (int l = 0; l < TILE; ++l) {
            const bool valid = n_left[l] >= min_leaf && n - n_left[l] >= min_leaf;
            bits[l] = valid ? bits[l] : -1;
        }
    }

    // As Criterion::variance_score for targets without weights, in integers wide enough for the node.
    template <typename Int, typename Unsigned> SRS_INLINE void variance(int32_t *bits) const {
        alignas(64) float scores[TILE];
        const Unsigned n = static_cast<Unsigned>(facts.n), sum = static_cast<Unsigned>(facts.sum);
        for (int l = 0; l < TILE; ++l) {
            const int32_t n_left = scratch.counts[l];
            const Unsigned d = static_cast<Unsigned>(scratch.sums[l]) * n - sum * static_cast<Unsigned>(n_left);
            const float x = static_cast<float>(static_cast<Int>(d));
            scores[l] = x * x / (static_cast<float>(n_left) * static_cast<float>(static_cast<int32_t>(n) - n_left));
        }
        keep_valid(scores, scratch.counts, bits);
    }

    // As Criterion::gini_score and variance_score in weights, for all lanes.
    SRS_INLINE void weighted(int32_t *bits) const {
        alignas(64) int64_t weights[TILE];
        alignas(64) int32_t n_left[TILE];
        alignas(64) float scores[TILE];
        const uint64_t whole = static_cast<uint64_t>(facts.weight);
        const int64_t stride = job.n_channels * TILE;
        for (int l = 0; l < TILE; ++l) {
            n_left[l] = scratch.counts[l];
            weights[l] = scratch.sums[l];
            scores[l] = 0.0f;
        }
        for (int64_t k = 1; k < facts.n_present; ++k)
            for (int l = 0; l < TILE; ++l) {
                n_left[l] += scratch.counts[k * TILE + l];
                weights[l] += scratch.sums[k * stride + l];
            }
        for (int64_t k = 0; k < facts.n_present; ++k) {
            const int64_t *sums = scratch.sums + (k + 1) * stride - TILE;
            const uint64_t all = static_cast<uint64_t>(facts.stats[(k + 1) * facts.width - 1]);
            for (int l = 0; l < TILE; ++l) {
                const uint64_t d = static_cast<uint64_t>(sums[l]) * whole - all * static_cast<uint64_t>(weights[l]);
                const float x = static_cast<float>(static_cast<int64_t>(d));
                scores[l] = scores[l] + x * x;
            }
        }
        for (int l = 0; l < TILE; ++l)
            scores[l] = scores[l] / (static_cast<float>(weights[l]) * static_cast<float>(facts.weight - weights[l]));
        keep_valid(scores, n_left, bits);
    }

    void score_lane_by_lane(int32_t *bits) const {
        for (int l = 0; l < TILE; ++l) {
            int64_t n_left = 0;
            for (int64_t k = 0; k < facts.n_present; ++k) n_left += scratch.left[k] = scratch.counts[k * TILE + l];
            bits[l] = criterion.score_bits(facts, scratch.left, n_left);
        }
    }

    template <typename Lines> SRS_INLINE void score_lines(const Lines lines, const Code *thresholds, int32_t *bits) const {
        if (narrow) {
            Code *few = reinterpret_cast<Code *>(scratch.counts);
            count_classes(lines, thresholds, few);
            gini(few, bits);
            return;
        }
        add_classes(lines, thresholds);
        score_counted(bits);
    }

    // Score what scratch.counts and scratch.sums say goes left.
    SRS_INLINE void score_counted(int32_t *bits) const {
        if (criterion.impurity == VARIANCE && job.n_channels == 1) {
            if (facts.n <= TINY_NODE) variance<int32_t, uint32_t>(bits);
            else variance<int64_t, uint64_t>(bits);
        } else if (criterion.impurity == GINI && job.n_channels == 0 && facts.n <= SMALL_NODE) {
            gini(scratch.counts, bits);
        } else if (job.n_channels > 0) {
            weighted(bits);
        } else {
            score_lane_by_lane(bits);
        }
    }

    // Score the split of each lane; -1 where it may not be made.
    template <typename Lines> SRS_INLINE void score(const Lines lines, const Drawn<Code> &drawn, int32_t *bits) const {
        if (drawn.seen_through_map)
            score_mapped(lines, drawn, bits);
        else score_lines(lines, drawn.thresholds, bits);
    }

    template <typename Lines> __attribute__((noinline)) void score_mapped(const Lines lines, const Drawn<Code> &drawn, int32_t *bits) const {
        score_lines(MappedLines<Code, Lines>{lines, &drawn.map, scratch.view}, drawn.thresholds, bits);
    }

    // Offer the lanes' best; lane l is column columns[l], or first + l without `columns`.
    SRS_INLINE void offer_lanes(const int32_t *bits, const uint32_t *hashes, const Drawn<Code> &drawn,
                                const int32_t *columns, int64_t first, Split &best) const {
        int32_t top = -1;
        for (int l = 0; l < TILE; ++l) top = bits[l] > top ? bits[l] : top;
        if (top < 0 || top < best.score_bits) return;
        alignas(64) uint32_t ties[TILE];
        uint32_t tie = 0;
        for (int l = 0; l < TILE; ++l) ties[l] = tie_key(hashes[l]); // all: a condition would undo the lanes
        for (int l = 0; l < TILE; ++l) {
            ties[l] = bits[l] == top ? ties[l] : 0;
            tie = ties[l] > tie ? ties[l] : tie;
        }
        int32_t winners = 0; // their number above bit 16, the sum of their lanes below: nearly always one
        for (int l = 0; l < TILE; ++l) winners += bits[l] == top && ties[l] == tie ? (1 << 16) + l : 0;
        const bool one = winners >> 16 == 1;
        for (int l = one ? winners & 0xFFFF : 0; l < TILE; ++l) {
            if (bits[l] == top && ties[l] == tie)
                offer(best, Split{top, tie, columns ? columns[l] : first + l, drawn.thresholds[l],
                                  drawn.seen_through_map ? drawn.how[l] : int32_t(PLAIN)});
            if (one) break;
        }
    }

    SRS_INLINE void offer(Split &best, const Split &candidate) const {
        bool better = candidate.score_bits > best.score_bits;
        if (candidate.score_bits == best.score_bits)
            better = candidate.tie > best.tie ||
                     (candidate.tie == best.tie && job.features[candidate.column] < job.features[best.column]);
        if (better) best = candidate;
    }
};
