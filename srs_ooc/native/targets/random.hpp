// Features side by side at a node of few rows with targets, a register of them at a time, and a drawn split of each.
#pragma once
#include "tile/scan.hpp"

namespace srs::SRS_ISA {
namespace {

// As many 32-bit numbers as a register holds, and twice as many keys of 16 bits.
struct Wide : Registers {
    static constexpr int KEYS = 2 * WIDTH;
    typedef uint16_t K __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));

    // Whether a lane of a is at least that of b.
    static SRS_INLINE bool any_reaches(const F a, const F b) {
#if defined(__AVX512F__)
        return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GE_OQ) != 0;
#else
        return lanes_of(a >= b) != 0;
#endif
    }

    // What a square is at least, times its sides, if its score is that of the best so far: rounding takes less.
    static SRS_INLINE float least_of(const Split &best) {
        float score;
        __builtin_memcpy(&score, &best.score_bits, sizeof score);
        return best.score_bits < 0 ? -1.0f : score * (1.0f - 0x1p-20f);
    }

    // table[at]; of so many registers where it has no more, of memory where that is 0.
    template <int REGISTERS> static SRS_INLINE I look_up(const int32_t *table, const I at) {
#if defined(__AVX512F__)
        const auto part = [&](int k) { return _mm512_load_si512(table + k * WIDTH); };
        const __m512i places = (__m512i)at, none = _mm512_setzero_si512();
        if (REGISTERS == 0) return (I)_mm512_mask_i32gather_epi32(none, __mmask16(-1), places, table, 4);
        const __m512i low = _mm512_permutex2var_epi32(part(0), places, part(1));
        if (REGISTERS == 2) return (I)low;
        const __m512i high = _mm512_permutex2var_epi32(part(2), places, part(3));
        return (I)_mm512_mask_mov_epi32(low, _mm512_test_epi32_mask(places, _mm512_set1_epi32(2 * WIDTH)), high);
#elif defined(__AVX2__)
        return (I)_mm256_i32gather_epi32(table, (__m256i)at, 4);
#else
        I out{};
        for (int l = 0; l < WIDTH; ++l) out[l] = table[at[l]];
        return out;
#endif
    }
    template <int REGISTERS> static SRS_INLINE F look_up(const float *table, const I at) {
        return (F)look_up<REGISTERS>(reinterpret_cast<const int32_t *>(table), at);
    }
};

// What each row of a node counts, in the order of its rows.
struct Deviations {
    static constexpr int64_t MOST = 512;
    alignas(64) int32_t narrow[MOST];
    alignas(64) float weights[MOST], rough[MOST];
    alignas(64) int64_t wide[MOST];
    float weight;
    float margin;   // that running sums of `rough` may be off by
    bool is_narrow; // all sums fit 32 bits

    void set(const Facts &f, const int32_t *own_weights, const int32_t *sums) {
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

// Offer the best of the lanes that are good; lane l is column columns[l], or first + l.
SRS_INLINE void offer_lanes(const TileScan<uint8_t> &scan, const Wide::I good, const Wide::I bits, const Wide::U ties,
                            const Wide::I thresholds, const int32_t *columns, int64_t first, Split &best) {
    uint32_t lanes = Wide::lanes_of(good & ((bits > best.score_bits) | ((bits == best.score_bits) & (ties >= best.tie))));
    if (lanes == 0) return;
    alignas(64) int32_t all_bits[Wide::WIDTH], all_thresholds[Wide::WIDTH];
    alignas(64) uint32_t all_ties[Wide::WIDTH];
    *reinterpret_cast<Wide::I *>(all_bits) = (bits & good) | ~good; // -1 where it is not
    *reinterpret_cast<Wide::U *>(all_ties) = ties;
    if ((lanes & (lanes - 1)) != 0) { // several: most often one is left
        int32_t top = -1;
        for (int l = 0; l < Wide::WIDTH; ++l) top = all_bits[l] > top ? all_bits[l] : top;
        const Wide::I at_top = good & (bits == top);
        *reinterpret_cast<Wide::U *>(all_ties) = ties & (Wide::U)at_top;
        uint32_t tie = 0;
        for (int l = 0; l < Wide::WIDTH; ++l) tie = all_ties[l] > tie ? all_ties[l] : tie;
        lanes = Wide::lanes_of(at_top & (ties == tie));
    }
    *reinterpret_cast<Wide::I *>(all_thresholds) = thresholds;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int l = __builtin_ctz(lanes);
        const int64_t column = columns ? columns[l] : first + l;
        scan.offer(best, Split{all_bits[l], all_ties[l], column, static_cast<uint32_t>(all_thresholds[l]), PLAIN});
    }
}

// A drawn split of each of many features at a node of few rows with targets, a register of features at a time.
//
// Scores and ties are those of TileScan; e_r of targets/best.hpp stands for a row's target.
struct DrawnLanes {
    static constexpr int WIDTH = Wide::WIDTH;
    static constexpr int64_t TILED = 48; // rows up to which it is faster where all lanes of a tile are in use
    typedef uint8_t Few __attribute__((vector_size(Wide::WIDTH), may_alias));
    const TileScan<uint8_t> &scan;
    const Deviations &own;

    // Offer the best of n_lanes features without missing values, whose codes at the node are from low to high.
    // Lane l is column columns[l], or first + l; those not wanted (null: all are) are left out.
    template <typename Lines>
    SRS_INLINE void search(const Lines lines, int n_lanes, const uint8_t *low, const uint8_t *high, const uint32_t *hashes,
                           const uint8_t *wanted, const int32_t *columns, int64_t first, Split &best) const {
        for (int at = 0; at < n_lanes; at += WIDTH) {
            alignas(64) int32_t allowed[WIDTH];
            for (int l = 0; l < WIDTH; ++l) allowed[l] = l < n_lanes - at ? -1 : 0;
            for (int l = 0; wanted && l < WIDTH; ++l) allowed[l] = wanted[at + l] ? allowed[l] : 0;
            Wide::U own_hashes;
            __builtin_memcpy(&own_hashes, hashes + at, sizeof own_hashes);
            const Wide::I from = line(low + at), to = line(high + at);
            const Wide::U draws = mixed(own_hashes, scan.threshold_key) >> 8; // as TileDraw::draw_thresholds
            const Wide::I threshold = from + (Wide::I)((draws * (Wide::U)(to - from)) >> 24);
            Wide::I good = *reinterpret_cast<Wide::I *>(allowed);
            Wide::F square, sides;
            if (own.is_narrow) score<int32_t>(lines, at, own.narrow, threshold, good, square, sides);
            else score<int64_t>(lines, at, own.wide, threshold, good, square, sides);
            if (!Wide::any_reaches(square, Wide::least_of(best) * sides)) continue; // none is as good as the best so far
            offer_lanes(scan, good, (Wide::I)(square / sides), mixed(own_hashes, scan.tie_key), threshold,
                        columns ? columns + at : nullptr, first + at, best);
        }
    }

    static SRS_INLINE Wide::U mixed(Wide::U hashes, const LaneKey &key) { // as LaneKey, as mix32
        Wide::U x = (hashes ^ key.low) + key.high;
        x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
        x = (x ^ (x >> 13)) * 0xC2B2AE35u;
        return x ^ (x >> 16);
    }

  private:
    static SRS_INLINE Wide::I line(const uint8_t *codes) {
        Few few; // by two steps, which are an instruction each
        __builtin_memcpy(&few, codes, sizeof few);
        return __builtin_convertvector(__builtin_convertvector(few, Wide::HalfK), Wide::I);
    }

    // Both terms of the scores; lanes whose sides are too small are not good.
    template <typename Int, typename Lines>
    SRS_INLINE void score(const Lines lines, int at, const Int *deviations, const Wide::I threshold, Wide::I &good,
                          Wide::F &square, Wide::F &sides) const {
        typedef Int Sums __attribute__((vector_size(sizeof(Int) * WIDTH), may_alias));
        const Facts &f = scan.facts;
        Sums sum{};
        Wide::F weight{};
        Wide::I count{};
        for (int64_t i = 0; i < f.n; ++i) {
            const Wide::I left = line(lines[i] + at) <= threshold;
            sum += __builtin_convertvector(left, Sums) & deviations[i];
            weight += (Wide::F)(left & (Wide::I)(Wide::F{} + own.weights[i]));
            count -= left;
        }
        const Wide::F d = __builtin_convertvector(sum, Wide::F);
        square = d * d;
        sides = weight * (own.weight - weight);
        const int32_t n = static_cast<int32_t>(f.n), least = static_cast<int32_t>(f.min_leaf);
        good &= (count >= least) & (n - count >= least);
    }
};

} // namespace
} // namespace srs::SRS_ISA
