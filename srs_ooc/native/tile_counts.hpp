// What goes left in each of 64 features: rows of each class, and the sums of their channels.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct TileCounts {
    using V = Lanes<Code>;
    const TileNode<Code> &node;

    // Rows of each class, where none has more than a lane counter holds.
    template <typename Lines>
    SRS_INLINE void count_classes(Lines lines, const Code *thresholds, Code *out) const {
        const V limit = V::load(thresholds);
        for (int64_t k = 0; k < node.facts.n_present; ++k, out += TILE) {
            count_rows(lines, node.facts.counts[k], limit, out);
            lines = lines.from(node.facts.counts[k]);
        }
    }

    // Rows and channels of each class.
    template <typename Lines>
    SRS_INLINE void add_classes(Lines lines, const Code *thresholds) const {
        const GrowJob &job = node.job;
        const Facts &f = node.facts;
        const V limit = V::load(thresholds);
        const int64_t most = job.n_channels == 0 ? int64_t(V::FLUSH) : job.flush < 255 ? job.flush : 255;
        alignas(64) Code some[TILE];
        int32_t *out = node.scratch.counts;
        int64_t *sums = node.scratch.sums;
        for (int64_t k = 0, row = 0; k < f.n_present; ++k, out += TILE, sums += job.n_channels * TILE) {
            for (int l = 0; l < TILE; ++l) out[l] = 0;
            for (int64_t i = 0; i < job.n_channels * TILE; ++i) sums[i] = 0;
            for (int64_t rest = f.counts[k]; rest > 0;) {
                const int64_t n = rest < most ? rest : most;
                if (job.n_channels == 0) {
                    count_rows(lines, n, limit, some);
                } else {
                    const auto chunk = lines.chunk(n);
                    count_rows(chunk, n, limit, some);
                    for (int64_t c = 0; c < job.n_channels; ++c)
                        SumLanes<Code>::add(chunk, node.numbers[c] + row, n, thresholds, sums + c * TILE);
                }
                for (int l = 0; l < TILE; ++l) out[l] += some[l];
                lines = lines.from(n);
                row += n;
                rest -= n;
            }
        }
    }

  private:
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
};
