// Scoring one split of each of 64 features at a node at once.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

// The lines of a node's rows in a tile of the block.
template <typename Code> struct BlockLines {
    const Code *tile;
    const int32_t *rows;
    SRS_INLINE const Code *operator[](int64_t i) const { return tile + int64_t(rows[i]) * TILE; }
    SRS_INLINE BlockLines from(int64_t i) const { return {tile, rows + i}; }
};

// Lines copied for one node, in the order of its rows.
template <typename Code> struct NodeLines {
    const Code *lines;
    SRS_INLINE const Code *operator[](int64_t i) const { return lines + i * TILE; }
    SRS_INLINE NodeLines from(int64_t i) const { return {lines + i * TILE}; }
};

template <typename Code> struct TileScan {
    using V = Lanes<Code>;
    const Criterion &criterion;
    const Facts &facts;
    const uint32_t *features; // of the block's columns
    LaneKey threshold_key, tie_key;
    int32_t *counts;          // [n_classes][TILE] scratch: rows of each class going left
    int64_t *left;            // [n_classes] scratch: the same for one lane
    bool narrow;              // every class's rows fit a lane counter

    TileScan(const Criterion &criterion, const Facts &facts, const uint32_t *features, uint64_t node_key, int32_t *counts,
             int64_t *left)
        : criterion(criterion), facts(facts), features(features), threshold_key(node_key, THRESHOLD),
          tie_key(node_key, TIE), counts(counts), left(left),
          narrow(criterion.impurity == GINI && facts.n <= SMALL_NODE && facts.largest <= V::FLUSH) {}

    template <typename Lines> SRS_INLINE void range(const Lines lines, Code *low, Code *high) const {
        V lo = V::load(lines[0]), hi = lo;
        for (int64_t i = 1; i < facts.n; ++i) V::load(lines[i]).widen_range(lo, hi);
        lo.store(low);
        hi.store(high);
    }

    SRS_INLINE void draw_thresholds(const Code *low, const Code *high, const uint32_t *hashes, Code *thresholds) const {
        for (int l = 0; l < TILE; ++l) {
            const uint32_t h = threshold_key(hashes[l]) >> 8;
            const uint32_t spread = uint32_t(high[l]) - uint32_t(low[l]);
            if (sizeof(Code) == 1) thresholds[l] = static_cast<Code>(low[l] + ((h * spread) >> 24));
            else thresholds[l] = static_cast<Code>(low[l] + ((uint64_t(h) * spread) >> 24));
        }
    }

    // Rows at or below each lane's threshold, as many as a lane counter holds.
    template <typename Lines>
    SRS_INLINE void count_rows(const Lines lines, int64_t n, const V &limit, Code *out) const {
        V counters;
        counters.clear();
        for (int64_t i = 0; i < n; ++i) V::load(lines[i]).count_at_most(limit, counters);
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

    template <typename Lines>
    SRS_INLINE void count_classes(Lines lines, const Code *thresholds, int32_t *out) const {
        const V limit = V::load(thresholds);
        alignas(64) Code some[TILE];
        for (int64_t k = 0; k < facts.n_present; ++k, out += TILE) {
            for (int l = 0; l < TILE; ++l) out[l] = 0;
            for (int64_t rest = facts.counts[k]; rest > 0;) {
                const int64_t n = rest < V::FLUSH ? rest : V::FLUSH;
                count_rows(lines, n, limit, some);
                for (int l = 0; l < TILE; ++l) out[l] += some[l];
                lines = lines.from(n);
                rest -= n;
            }
        }
    }

    // As Criterion::gini_score, operation by operation, for all lanes.
    template <typename Count> SRS_INLINE void gini(const Count *going_left, int32_t *bits) const {
        alignas(64) int32_t n_left[TILE];
        alignas(64) float sums[TILE];
        const int32_t n = static_cast<int32_t>(facts.n), min_leaf = static_cast<int32_t>(facts.min_leaf);
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
        __builtin_memcpy(bits, sums, sizeof sums);
        for (int l = 0; l < TILE; ++l) {
            const bool valid = n_left[l] >= min_leaf && n - n_left[l] >= min_leaf;
            bits[l] = valid ? bits[l] : -1;
        }
    }

    void score_lane_by_lane(int32_t *bits) const {
        for (int l = 0; l < TILE; ++l) {
            int64_t n_left = 0;
            for (int64_t k = 0; k < facts.n_present; ++k) n_left += left[k] = counts[k * TILE + l];
            bits[l] = criterion.score_bits(facts, left, n_left);
        }
    }

    // Score the split of each lane; -1 where it may not be made.
    template <typename Lines> SRS_INLINE void score(const Lines lines, const Code *thresholds, int32_t *bits) const {
        if (narrow) {
            Code *few = reinterpret_cast<Code *>(counts);
            count_classes(lines, thresholds, few);
            gini(few, bits);
        } else {
            count_classes(lines, thresholds, counts);
            if (criterion.impurity == GINI && facts.n <= SMALL_NODE) gini(counts, bits);
            else score_lane_by_lane(bits);
        }
    }

    // Offer the lanes' best; lane l is column columns[l], or first + l without `columns`.
    SRS_INLINE void offer_lanes(const int32_t *bits, const uint32_t *hashes, const Code *thresholds,
                                const int32_t *columns, int64_t first, Split &best) const {
        int32_t top = -1;
        for (int l = 0; l < TILE; ++l) top = bits[l] > top ? bits[l] : top;
        if (top < 0 || top < best.score_bits) return;
        alignas(64) uint32_t ties[TILE];
        uint32_t tie = 0;
        for (int l = 0; l < TILE; ++l) {
            ties[l] = bits[l] == top ? tie_key(hashes[l]) : 0;
            tie = ties[l] > tie ? ties[l] : tie;
        }
        int32_t winners = 0; // their number above bit 16, the sum of their lanes below: nearly always one
        for (int l = 0; l < TILE; ++l) winners += bits[l] == top && ties[l] == tie ? (1 << 16) + l : 0;
        const bool one = winners >> 16 == 1;
        for (int l = one ? winners & 0xFFFF : 0; l < TILE; ++l) {
            if (bits[l] == top && ties[l] == tie) offer(best, top, tie, columns ? columns[l] : first + l, thresholds[l]);
            if (one) break;
        }
    }

    SRS_INLINE void offer(Split &best, int32_t bits, uint32_t tie, int64_t column, uint32_t threshold) const {
        bool better = bits > best.score_bits;
        if (bits == best.score_bits)
            better = tie > best.tie || (tie == best.tie && features[column] < features[best.column]);
        if (better) best = Split{bits, tie, column, threshold};
    }
};
