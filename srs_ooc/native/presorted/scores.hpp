// The best place to split the rows of a node that lie in the order of a column.
#pragma once
#include "presorted/columns.hpp"

#include <type_traits>

namespace srs::SRS_ISA {
namespace {

// By their numbers: targets, or two classes as 0 and 1.
struct NumberScores : Simd {
    static constexpr float NEARLY = 1.0f - 0x1p-20f; // of a score: more than what rough scores are off by
    static constexpr float NEXT_TO = 1.0f - 0x1p-21f;
    const int32_t *numbers; // [n_rows]
    bool is_narrow;         // sums fit 32 bits
    bool is_class;          // each score counts twice, and any D fits 32 bits: of two classes
    int32_t *sums;          // [n + SPARE] of the rows up to each place; of two classes the D of a split there
    double *wide_sums;      // the same
    double *expected;       // [n + SPARE] n times what their sum would be, were all numbers alike; not of two classes
    int32_t *rough;         // [n + SPARE] bits of about the score of each place
    float *inverse;         // [n + SPARE] of the product of how many rows lie on either side
    int32_t n, first, end;  // of the node at hand; places that leave enough rows on either side
    int32_t own_total;      // the same, of two classes
    double total;

    SRS_INLINE void set(int32_t n_rows, int64_t sum, int32_t min_leaf) {
        n = n_rows;
        total = static_cast<double>(sum);
        own_total = static_cast<int32_t>(sum);
        first = min_leaf - 1;
        end = n - min_leaf;
        const float once = is_class ? 2.0f : 1.0f;
        for (int32_t i = 0; i < end; ++i) inverse[i] = once / sides_at(i);
        for (int32_t i = 0; i < first; ++i) inverse[i] = -1.0f; // a score below 0 is never the best
        for (int64_t i = end; i < end + SPARE; ++i) inverse[i] = -1.0f;
        if (is_class) return;
        for (int32_t i = 0; i < end; ++i) expected[i] = total * static_cast<double>(i + 1);
        for (int64_t i = end; i < end + SPARE; ++i) expected[i] = 0.0;
    }

    // offer(bits, place) of each place that is as good as floor() says, of which it may be told several times; floor: bits of
    // the best score so far. Where the codes of two neighbours are equal it does nothing.
    template <typename Floor, typename Offer> SRS_INLINE void search(const uint16_t *order, const Floor floor, const Offer offer) {
        const HalfI found = score_all(order);
        const int32_t least = least_of(floor());
        if (!any_of(found >= least)) return;
        int32_t most = -1;
        for (int l = 0; l < HALF; ++l) most = found[l] > most ? found[l] : most;
        const int32_t high = bits_of(float_of(most) * NEARLY);
        look(high > least ? high : least, offer);
        // Unless the best place lay between equal codes, none below `high` is as good as what was found.
        if (floor() < bits_of(float_of(most) * NEXT_TO)) look(least_of(floor()), offer);
    }

  private:
    SRS_INLINE float sides_at(int32_t i) const { return static_cast<float>(i + 1) * static_cast<float>(n - i - 1); }
    static SRS_INLINE int32_t least_of(int32_t bits) { return bits < 0 ? 0 : bits_of(float_of(bits) * NEARLY); }
    SRS_INLINE double sum_at(int32_t i) const { return is_narrow ? sums[i] : wide_sums[i]; }

    // The most of the rough scores of every so many places, as bits.
    SRS_INLINE HalfI score_all(const uint16_t *order) {
        const int32_t whole = (end + WIDTH - 1) / WIDTH * WIDTH;
        HalfI most = HalfI{} - 1;
        if (is_class) {
            I all = I{} - 1;
            add_classes(order, all, whole);
            const HalfI *halves = reinterpret_cast<const HalfI *>(&all);
            return halves[0] > halves[1] ? halves[0] : halves[1];
        }
        if (!is_narrow) {
            add_up(order, wide_sums);
            for (int32_t i = 0; i < whole; i += HALF) score(i, *reinterpret_cast<const D *>(wide_sums + i), most);
            return most;
        }
#if defined(__AVX512BW__)
        add_in_registers(order, [&](int32_t i) {
            score(i, doubles_at(i), most);
            score(i + HALF, doubles_at(i + HALF), most);
        });
#else
        add_up(order, sums);
        for (int32_t i = 0; i < whole; i += HALF) score(i, doubles_at(i), most);
#endif
        return most;
    }

    SRS_INLINE D doubles_at(int32_t i) const { return __builtin_convertvector(*reinterpret_cast<const HalfI *>(sums + i), D); }

    // Of the places from i on.
    SRS_INLINE void score(int32_t i, const D left, HalfI &most) {
        const D deviation = left * static_cast<double>(n) - *reinterpret_cast<const D *>(expected + i);
        const HalfF d = __builtin_convertvector(deviation, HalfF);
        const HalfI bits = (HalfI)(d * d * *reinterpret_cast<const HalfF *>(inverse + i));
        *reinterpret_cast<HalfI *>(rough + i) = bits;
        most = bits > most ? bits : most;
    }

    SRS_INLINE void score_classes(int32_t i, I &most) {
        const F d = __builtin_convertvector(*reinterpret_cast<const I *>(sums + i), F);
        const I bits = (I)(d * d * *reinterpret_cast<const F *>(inverse + i));
        *reinterpret_cast<I *>(rough + i) = bits;
        most = bits > most ? bits : most;
    }

    SRS_INLINE void add_classes(const uint16_t *order, I &most, [[maybe_unused]] int32_t whole) {
#if defined(__AVX512BW__)
        add_in_registers(order, [&](int32_t i) { score_classes(i, most); });
#else
        const int32_t steps[2] = {-own_total, n - own_total};
        int32_t sum = 0;
        for (int32_t i = 0; i < n - 1; ++i) sums[i] = sum += steps[numbers[order[i]]];
        for (int64_t i = n - 1; i < n - 1 + SPARE; ++i) sums[i] = 0;
        for (int32_t i = 0; i < whole; i += WIDTH) score_classes(i, most);
#endif
    }

    template <typename Sum> SRS_INLINE void add_up(const uint16_t *order, Sum *to) const {
        std::conditional_t<sizeof(Sum) == 4, int32_t, int64_t> sum = 0; // below 2**53: exact as a double
        for (int32_t i = 0; i < n - 1; ++i) to[i] = static_cast<Sum>(sum += numbers[order[i]]);
        for (int64_t i = n - 1; i < n - 1 + SPARE; ++i) to[i] = 0; // no NaN behind the last place
    }

#if defined(__AVX512BW__)
    // Fill `sums`; score(i) of a register of places once they are there.
    template <typename Score> SRS_INLINE void add_in_registers(const uint16_t *order, const Score score) {
        const __m512i none = _mm512_setzero_si512(), last = _mm512_set1_epi32(15);
        const __m512i times = _mm512_set1_epi32(is_class ? n : 1), less = _mm512_set1_epi32(is_class ? own_total : 0);
        const auto all = static_cast<__mmask16>(-1); // masked: the others have undefined operands, which are warned of
        __m512i before = none;
        for (int32_t i = 0; i < end; i += 16) {
            const auto here = static_cast<__mmask16>(n - i < 16 ? (1u << (n - i)) - 1 : 0xFFFFu);
            const __m512i rows = _mm512_maskz_cvtepu16_epi32(all, _mm256_maskz_loadu_epi16(here, order + i));
            __m512i sum = _mm512_mask_i32gather_epi32(none, here, rows, numbers, 4);
            sum = _mm512_sub_epi32(_mm512_mullo_epi32(sum, times), less);
            sum = _mm512_add_epi32(sum, _mm512_maskz_alignr_epi32(all, sum, none, 15));
            sum = _mm512_add_epi32(sum, _mm512_maskz_alignr_epi32(all, sum, none, 14));
            sum = _mm512_add_epi32(sum, _mm512_maskz_alignr_epi32(all, sum, none, 12));
            sum = _mm512_add_epi32(sum, _mm512_maskz_alignr_epi32(all, sum, none, 8));
            sum = _mm512_add_epi32(sum, before);
            before = _mm512_maskz_permutexvar_epi32(all, last, sum);
            _mm512_store_si512(sums + i, sum);
            score(i);
        }
    }
#endif

    template <typename Offer> SRS_INLINE void look(int32_t least, const Offer offer) const {
        for (int32_t from = 0; from < end; from += WIDTH) {
            uint32_t good = lanes_of(*reinterpret_cast<const I *>(rough + from) >= least);
            for (; good != 0; good &= good - 1) {
                const int32_t i = from + __builtin_ctz(good);
                const float d = is_class ? static_cast<float>(sums[i]) : static_cast<float>(sum_at(i) * n - total * static_cast<double>(i + 1));
                const float square = d * d;
                offer(bits_of((is_class ? square + square : square) / sides_at(i)), i);
            }
        }
    }
};

// Of three classes or more, operation by operation as Criterion.
struct ClassScores {
    const int32_t *labels; // [n_rows]
    int64_t n_classes;
    int32_t *counts, *bits; // [n] of each place
    float *scores;          // [n]
    int64_t totals[MAX_PRESORTED_CLASSES]; // of each class at the node at hand

    // Rows of each class.
    SRS_INLINE void count(const uint16_t *order, int64_t n, int64_t *out) const {
        for (int64_t k = 0; k < n_classes; ++k) out[k] = 0;
        for (int64_t i = 0; i < n; ++i) ++out[labels[order[i]]];
    }

    SRS_INLINE int64_t most_frequent() const {
        int64_t chosen = 0;
        for (int64_t k = 1; k < n_classes; ++k) chosen = totals[k] > totals[chosen] ? k : chosen;
        return chosen;
    }

    // Bits of all scores, and the most of them from `first` to `end`.
    SRS_INLINE int32_t score_all(const uint16_t *order, int32_t n, int32_t first, int32_t end) {
        for (int32_t i = 0; i < n - 1; ++i) scores[i] = 0.0f;
        int64_t n_present = 0;
        for (int64_t k = 0; k < n_classes; ++k) n_present += totals[k] != 0;
        for (int64_t k = 0; k < n_classes; ++k) {
            const int32_t whole = static_cast<int32_t>(totals[k]);
            if (whole == 0) continue;
            int32_t count = 0;
            for (int32_t i = 0; i < n - 1; ++i) counts[i] = count += labels[order[i]] == k;
            for (int32_t i = 0; i < n - 1; ++i) {
                const float d = static_cast<float>(counts[i] * n - whole * (i + 1));
                scores[i] = scores[i] + d * d;
            }
            if (n_present != 2) continue;
            for (int32_t i = 0; i < n - 1; ++i) scores[i] = scores[i] + scores[i]; // the other's D is minus this one's
            break;
        }
        int32_t most = -1;
        for (int32_t i = 0; i < n - 1; ++i) bits[i] = bits_of(scores[i] / (static_cast<float>(i + 1) * static_cast<float>(n - i - 1)));
        for (int32_t i = first; i < end; ++i) most = bits[i] > most ? bits[i] : most;
        return most;
    }
};

} // namespace
} // namespace srs::SRS_ISA
