// Features side by side at a node of few rows with targets, a register of them at a time, and a drawn split of each.
#pragma once
#include "tile/scan.hpp"

namespace srs::SRS_ISA {
namespace {

// What each row of a node counts, in the order of its rows.
struct Deviations {
    static constexpr int64_t MAX_ROWS = 512;
    alignas(64) int32_t narrow[MAX_ROWS];
    alignas(64) float weights[MAX_ROWS], rough[MAX_ROWS];
    alignas(64) int64_t wide[MAX_ROWS];
    float weight;
    float margin;   // that running sums of `rough` may be off by
    bool is_narrow; // all sums fit 32 bits

    void set(const NodeStats &f, const int32_t *own_weights, const int32_t *sums) {
        uint64_t total = 0;
        for (int64_t i = 0; i < f.n; ++i) {
            const int64_t w = own_weights ? own_weights[i] : 1;
            const int64_t e = difference(sums[i], f.weight, f.sum, w);
            wide[i] = e;
            narrow[i] = static_cast<int32_t>(e);
            rough[i] = static_cast<float>(e);
            weights[i] = static_cast<float>(w);
            total += static_cast<uint64_t>(e < 0 ? -e : e);
        }
        weight = static_cast<float>(f.weight);
        margin = static_cast<float>(total) * static_cast<float>(f.n + 2) * 0x1p-23f; // twice what rounding can do
        is_narrow = total < (uint64_t(1) << 31);
    }
};

// Lanes that are columns, of which n_lanes are left, and wanted (null: all are).
SRS_INLINE Simd::I lanes_wanted(int n_lanes, const uint8_t *wanted) {
    alignas(64) int32_t out[Simd::WIDTH];
    for (int l = 0; l < Simd::WIDTH; ++l) out[l] = l < n_lanes ? -1 : 0;
    for (int l = 0; wanted && l < Simd::WIDTH; ++l) out[l] = wanted[l] ? out[l] : 0;
    return *reinterpret_cast<Simd::I *>(out);
}

// Offer the best of the lanes that are good; lane l is column columns[l], or first + l.
SRS_INLINE void offer_lanes(const TileScan<uint8_t> &scan, const Simd::I good, const Simd::I bits, const Simd::U ties,
                            const Simd::I thresholds, const int32_t *columns, int64_t first, Split &best) {
    scan.offer_register((bits & good) | ~good, ties, best, [&](int l) {
        return Split{0, 0, columns ? columns[l] : first + l, static_cast<uint32_t>(thresholds[l]), PLAIN};
    });
}

// Scores and ties are those of TileScan; e_r of targets/best.hpp stands for a row's target.
struct RandomLanes {
    static constexpr int WIDTH = Simd::WIDTH;
    static constexpr int64_t TILED = 48; // rows up to which it is faster where all lanes of a tile are in use
    const TileScan<uint8_t> &scan;
    const Deviations &own;

    // Offer the best of n_lanes features without missing values, whose codes at the node are from low to high.
    // Lane l is column columns[l], or first + l; those not wanted (null: all are) are left out.
    template <typename Lines>
    SRS_INLINE void search(const Lines lines, int n_lanes, const uint8_t *low, const uint8_t *high, const uint32_t *hashes,
                           const uint8_t *wanted, const int32_t *columns, int64_t first, Split &best) const {
        for (int at = 0; at < n_lanes; at += WIDTH) {
            const auto own_hashes = Simd::load<Simd::U>(hashes + at);
            const Simd::I from = line(low + at), to = line(high + at);
            const Simd::U draws = scan.threshold_key(own_hashes) >> 8; // as RandomThresholds::draw_thresholds
            const Simd::I threshold = from + (Simd::I)((draws * (Simd::U)(to - from)) >> 24);
            Simd::I good = lanes_wanted(n_lanes - at, wanted ? wanted + at : nullptr);
            Simd::F square, sides;
            if (own.is_narrow) score<int32_t>(lines, at, own.narrow, threshold, good, square, sides);
            else score<int64_t>(lines, at, own.wide, threshold, good, square, sides);
            if (!Simd::any_reaches(square, least_of(best.score_bits) * sides)) continue; // none is as good as the best so far
            offer_lanes(scan, good, (Simd::I)(square / sides), scan.tie_key(own_hashes), threshold,
                        columns ? columns + at : nullptr, first + at, best);
        }
    }

  private:
    static SRS_INLINE Simd::I line(const uint8_t *codes) { return (Simd::I)Simd::widened(codes); }

    // Both terms of the scores; lanes whose sides are too small are not good.
    template <typename Int, typename Lines>
    SRS_INLINE void score(const Lines lines, int at, const Int *deviations, const Simd::I threshold, Simd::I &good,
                          Simd::F &square, Simd::F &sides) const {
        typedef Int Sums __attribute__((vector_size(sizeof(Int) * WIDTH), may_alias));
        const NodeStats &f = scan.stats;
        Sums sum{};
        Simd::F weight{};
        Simd::I count{};
        for (int64_t i = 0; i < f.n; ++i) {
            const Simd::I left = line(lines[i] + at) <= threshold;
            sum += __builtin_convertvector(left, Sums) & deviations[i];
            weight += (Simd::F)(left & (Simd::I)(Simd::F{} + own.weights[i]));
            count -= left;
        }
        const Simd::F d = __builtin_convertvector(sum, Simd::F);
        square = d * d;
        sides = weight * (own.weight - weight);
        const int32_t n = static_cast<int32_t>(f.n), least = static_cast<int32_t>(f.min_leaf);
        good &= (count >= least) & (n - count >= least);
    }
};

} // namespace
} // namespace srs::SRS_ISA
