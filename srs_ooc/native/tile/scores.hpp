// A node as 64 features are looked at in it at once: what goes left of a split of each, and what that is worth.
#pragma once
#include "score.hpp"
#include "simd/lanes.hpp"

namespace srs::SRS_ISA {
namespace {

// What a square is at least, times its sides, if its score is that of `bits`: rounding takes less.
SRS_INLINE float least_of(int32_t bits) { return bits < 0 ? -1.0f : float_of(bits) * (1.0f - 0x1p-20f); }

// Memory of one thread for scoring a tile.
template <typename Code> struct TileScratch {
    int32_t *counts; // [n_classes][TILE] rows of each class going left
    int64_t *sums;   // [n_classes][n_channels][TILE] their channels
    int64_t *left;   // [n_classes][1 + n_channels] both, for one lane
    Code *view;      // [255][TILE]
    int32_t *cell_counts; // for best splits of bytes: [256][n_classes][TILE] rows of each code
    int64_t *cell_sums;   // [256][n_classes][n_channels][TILE] their channels
};

template <typename Code> struct TileNode {
    const GrowJob &job;
    const Criterion &criterion;
    const NodeStats &stats;
    const int32_t *const *numbers; // [n_channels] of the node's rows
    TileScratch<Code> scratch;
    LaneKey threshold_key, tie_key, category_key;
    bool narrow; // every class's rows fit a lane counter, and nothing but rows counts

    TileNode(const GrowJob &job, const Criterion &criterion, const NodeStats &stats, uint64_t node_key,
             const int32_t *const *numbers, const TileScratch<Code> &scratch)
        : job(job), criterion(criterion), stats(stats), numbers(numbers), scratch(scratch),
          threshold_key(node_key, THRESHOLD), tie_key(node_key, TIE), category_key(node_key, CATEGORIES),
          narrow(criterion.impurity == GINI && job.n_channels == 0 && stats.n <= SMALL_NODE &&
                 stats.largest <= Lanes<Code>::FLUSH) {}
};

// What goes left in each of 64 features: rows of each class, and the sums of their channels.
template <typename Code> struct TileCounts {
    using V = Lanes<Code>;
    const TileNode<Code> &node;

    // Rows of each class, where none has more than a lane counter holds.
    template <typename Lines>
    SRS_INLINE void count_classes(Lines lines, const Code *thresholds, Code *out) const {
        const V limit = V::load(thresholds);
        for (int64_t k = 0; k < node.stats.n_present; ++k, out += TILE) {
            count_rows(lines, node.stats.counts[k], limit, out);
            lines = lines.from(node.stats.counts[k]);
        }
    }

    // Rows and channels of each class.
    template <typename Lines>
    SRS_INLINE void add_classes(Lines lines, const Code *thresholds) const {
        const GrowJob &job = node.job;
        const NodeStats &f = node.stats;
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
        V counters{};
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

// What the splits of 64 features are worth, by what goes left; -1 where a split may not be made, or is below `floor`.
template <typename Code> struct TileScores {
    const TileNode<Code> &node;
    const int32_t floor;

    // Score what scratch.counts and scratch.sums say goes left.
    SRS_APART void score_counted(int32_t *bits) const {
        const NodeStats &f = node.stats;
        if (node.criterion.impurity == VARIANCE && node.job.n_channels == 1) {
            if (f.n <= TINY_NODE) variance<int32_t, uint32_t>(bits);
            else variance<int64_t, uint64_t>(bits);
        } else if (node.criterion.impurity == GINI && node.job.n_channels == 0 && f.n <= SMALL_NODE) {
            gini(node.scratch.counts, bits);
        } else if (node.job.n_channels > 0) {
            weighted(bits);
        } else {
            lane_by_lane(bits);
        }
    }

    // As Criterion::gini_score, operation by operation, for all lanes.
    template <typename Count> SRS_INLINE void gini(const Count *going_left, int32_t *bits) const {
        const NodeStats &f = node.stats;
        alignas(64) int32_t n_left[TILE];
        alignas(64) float sums[TILE], sides[TILE];
        const int32_t n = static_cast<int32_t>(f.n);
        if (f.n_present == 2) { // D_0 = -D_1, so the sum is exactly twice one square
            const int32_t c0 = static_cast<int32_t>(f.counts[0]), c1 = static_cast<int32_t>(f.counts[1]);
            for (int l = 0; l < TILE; ++l) {
                const int32_t left_0 = going_left[l], left_1 = going_left[TILE + l];
                const float d = static_cast<float>(left_1 * c0 - left_0 * c1);
                n_left[l] = left_0 + left_1;
                sums[l] = d * d + d * d;
            }
        } else {
            for (int l = 0; l < TILE; ++l) n_left[l] = going_left[l];
            for (int64_t k = 1; k < f.n_present; ++k)
                for (int l = 0; l < TILE; ++l) n_left[l] += going_left[k * TILE + l];
            for (int l = 0; l < TILE; ++l) sums[l] = 0.0f;
            for (int64_t k = 0; k < f.n_present; ++k) {
                const int32_t count = static_cast<int32_t>(f.counts[k]);
                for (int l = 0; l < TILE; ++l) {
                    const float d = static_cast<float>(going_left[k * TILE + l] * n - count * n_left[l]);
                    sums[l] = sums[l] + d * d;
                }
            }
        }
        for (int l = 0; l < TILE; ++l) sides[l] = static_cast<float>(n_left[l]) * static_cast<float>(n - n_left[l]);
        divide(sums, sides, n_left, bits);
    }

  private:
    // As Criterion::variance_score for targets without weights, in integers wide enough for the node.
    template <typename Int, typename Unsigned> SRS_INLINE void variance(int32_t *bits) const {
        alignas(64) float squares[TILE], sides[TILE];
        const Unsigned n = static_cast<Unsigned>(node.stats.n), sum = static_cast<Unsigned>(node.stats.sum);
        for (int l = 0; l < TILE; ++l) {
            const int32_t n_left = node.scratch.counts[l];
            const Unsigned d = static_cast<Unsigned>(node.scratch.sums[l]) * n - sum * static_cast<Unsigned>(n_left);
            const float x = static_cast<float>(static_cast<Int>(d));
            squares[l] = x * x;
            sides[l] = static_cast<float>(n_left) * static_cast<float>(static_cast<int32_t>(n) - n_left);
        }
        divide(squares, sides, node.scratch.counts, bits);
    }

    // As Criterion::gini_score and variance_score in weights, for all lanes.
    SRS_INLINE void weighted(int32_t *bits) const {
        const NodeStats &f = node.stats;
        alignas(64) int64_t weights[TILE];
        alignas(64) int32_t n_left[TILE];
        alignas(64) float sums[TILE], sides[TILE];
        const uint64_t whole = static_cast<uint64_t>(f.weight);
        const int64_t stride = node.job.n_channels * TILE;
        for (int l = 0; l < TILE; ++l) {
            n_left[l] = node.scratch.counts[l];
            weights[l] = node.scratch.sums[l];
            sums[l] = 0.0f;
        }
        for (int64_t k = 1; k < f.n_present; ++k)
            for (int l = 0; l < TILE; ++l) {
                n_left[l] += node.scratch.counts[k * TILE + l];
                weights[l] += node.scratch.sums[k * stride + l];
            }
        for (int64_t k = 0; k < f.n_present; ++k) {
            const int64_t *left = node.scratch.sums + (k + 1) * stride - TILE;
            const uint64_t all = static_cast<uint64_t>(f.stats[(k + 1) * f.width - 1]);
            for (int l = 0; l < TILE; ++l) {
                const uint64_t d = static_cast<uint64_t>(left[l]) * whole - all * static_cast<uint64_t>(weights[l]);
                const float x = static_cast<float>(static_cast<int64_t>(d));
                sums[l] = sums[l] + x * x;
            }
        }
        for (int l = 0; l < TILE; ++l)
            sides[l] = static_cast<float>(weights[l]) * static_cast<float>(f.weight - weights[l]);
        divide(sums, sides, n_left, bits);
    }

    void lane_by_lane(int32_t *bits) const {
        for (int l = 0; l < TILE; ++l) {
            int64_t n_left = 0;
            for (int64_t k = 0; k < node.stats.n_present; ++k)
                n_left += node.scratch.left[k] = node.scratch.counts[k * TILE + l];
            bits[l] = node.criterion.score_bits(node.stats, node.scratch.left, n_left);
        }
    }

    // Bits of the scores; divisions are slow, and few lanes can be the best.
    SRS_INLINE void divide(const float *squares, const float *sides, const int32_t *n_left, int32_t *bits) const {
        const int32_t n = static_cast<int32_t>(node.stats.n), min_leaf = static_cast<int32_t>(node.stats.min_leaf);
        const float least = least_of(floor);
        for (int at = 0; at < TILE; at += Simd::WIDTH) {
            const auto square = Simd::load<Simd::F>(squares + at), side = Simd::load<Simd::F>(sides + at);
            Simd::I out = Simd::I{} - 1;
            if (Simd::any_reaches(square, least * side)) {
                const auto left = Simd::load<Simd::I>(n_left + at);
                const Simd::I valid = (left >= min_leaf) & (n - left >= min_leaf);
                out = ((Simd::I)(square / side) & valid) | ~valid;
            }
            __builtin_memcpy(bits + at, &out, sizeof out);
        }
    }
};

} // namespace
} // namespace srs::SRS_ISA
