// One split of each of 64 features at a node: scored, and the best of them offered.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct TileScan : TileNode<Code> {
    using V = Lanes<Code>;
    using TileNode<Code>::TileNode, TileNode<Code>::facts, TileNode<Code>::scratch;

    // The lowest and the highest code of each lane.
    template <typename Lines> SRS_INLINE void range(const Lines lines, Code *low, Code *high) const {
        V lo = V::load(lines[0]), hi = lo;
        for (int64_t i = 1; i < facts.n; ++i) V::load(lines[i]).widen_range(lo, hi);
        lo.store(low);
        hi.store(high);
    }

    // Score codes up to the thresholds going left.
    template <typename Lines> SRS_INLINE void score_lines(const Lines lines, const Code *thresholds, int32_t *bits) const {
        const TileCounts<Code> counts{*this};
        const TileScores<Code> scores{*this};
        if (this->narrow) {
            Code *few = reinterpret_cast<Code *>(scratch.counts);
            counts.count_classes(lines, thresholds, few);
            scores.gini(few, bits);
            return;
        }
        counts.add_classes(lines, thresholds);
        scores.score_counted(bits);
    }

    // Score the split of each lane; -1 where it may not be made.
    template <typename Lines> SRS_INLINE void score(const Lines lines, const Drawn<Code> &drawn, int32_t *bits) const {
        if (drawn.seen_through_map) score_mapped(lines, drawn, bits);
        else score_lines(lines, drawn.thresholds, bits);
    }

    template <typename Lines>
    __attribute__((noinline)) void score_mapped(const Lines lines, const Drawn<Code> &drawn, int32_t *bits) const {
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
        for (int l = 0; l < TILE; ++l) ties[l] = this->tie_key(hashes[l]); // all: a condition would undo the lanes
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
                     (candidate.tie == best.tie && this->job.features[candidate.column] < this->job.features[best.column]);
        if (better) best = candidate;
    }
};
