// The best split of a node of few rows: each lane is a column.
//
// A key is a row's code above its place in the node; a network sorts the keys of all lanes at once, and one pass over
// the places looks at every threshold.
#pragma once
#include "presorted/columns.hpp"

namespace srs::SRS_ISA {
namespace {

struct FewRowsLanes : Simd {
    static constexpr int64_t MAX_ROWS = 16; // rows: they fit a register
    static constexpr int32_t MAX_NUMBER = 1 << 26; // number whose sum over so many rows fits 32 bits

    uint16_t *lines;  // [row][n_lanes] codes of the columns, 0 after the last
    uint32_t *hashes; // [n_lanes] of the columns
    int64_t n_lanes;  // a multiple of WIDTH
    alignas(64) int32_t counts[MAX_ROWS]; // what each row of the node counts
    alignas(64) uint32_t keys[MAX_ROWS * WIDTH];
    enum Kind { DEVIATIONS, NUMBERS, CLASSES } kind;
    // Of the node at hand.
    int32_t n, min_leaf;
    bool twice; // each score counts twice
    double total;
    const int64_t *totals; // of each class
    int64_t n_classes;

    // What rows count: n times their number less the total, of which sums are the D of a split; or the number itself,
    // where such sums do not fit 32 bits.
    SRS_INLINE void set_numbers(const int32_t *numbers, const uint16_t *rows, int64_t sum) {
        int64_t all = 0, own[MAX_ROWS];
        for (int64_t i = 0; i < n; ++i) {
            own[i] = int64_t(n) * numbers[rows[i]] - sum;
            all += own[i] < 0 ? -own[i] : own[i];
        }
        kind = all < int64_t(1) << 31 ? DEVIATIONS : NUMBERS;
        for (int64_t i = 0; i < n; ++i) counts[i] = kind == DEVIATIONS ? static_cast<int32_t>(own[i]) : numbers[rows[i]];
        total = static_cast<double>(sum);
    }

    SRS_INLINE void set_classes(const int32_t *labels, const uint16_t *rows, const int64_t *some_totals) {
        for (int64_t i = 0; i < n; ++i) counts[i] = labels[rows[i]];
        totals = some_totals;
        kind = CLASSES;
    }

    // The best split of these rows.
    SRS_INLINE Found search(const Members &members, const uint16_t *rows, const LaneKey &ties) {
        Found best;
        for (int64_t from = 0; from < n_lanes; from += WIDTH) {
            for (int32_t i = 0; i < n; ++i)
                line(i) = (widened(lines + rows[i] * n_lanes + from) << 16) | static_cast<uint32_t>(i);
            sort_lanes<U>(keys, n);
            if (kind == DEVIATIONS) pass<DEVIATIONS>(members, from, ties, best);
            else if (kind == NUMBERS) pass<NUMBERS>(members, from, ties, best);
            else pass<CLASSES>(members, from, ties, best);
        }
        return best;
    }

  private:
    SRS_INLINE U &line(int64_t i) { return *reinterpret_cast<U *>(keys + i * WIDTH); }

    SRS_INLINE I look_up(const U at) const {
#if defined(__AVX512F__)
        return (I)_mm512_maskz_permutexvar_epi32(__mmask16(-1), (__m512i)at, _mm512_load_si512(counts));
#elif defined(__AVX2__)
        const __m256i low = _mm256_permutevar8x32_epi32(_mm256_load_si256(reinterpret_cast<const __m256i *>(counts)), (__m256i)at);
        const __m256i high = _mm256_permutevar8x32_epi32(_mm256_load_si256(reinterpret_cast<const __m256i *>(counts + 8)), (__m256i)at);
        const I is_high = (I)(at >= uint32_t(WIDTH));
        return is_high ? (I)high : (I)low;
#else
        I out{};
        for (int l = 0; l < WIDTH; ++l) out[l] = counts[at[l]];
        return out;
#endif
    }

    // The D of the first `n_left` rows of each lane.
    SRS_INLINE F deviation_of_numbers(const I sum, int32_t n_left) const {
        alignas(64) int32_t sums[WIDTH];
        alignas(64) float out[WIDTH];
        *reinterpret_cast<I *>(sums) = sum;
        for (int l = 0; l < WIDTH; l += WIDTH / 2) {
            const D all = __builtin_convertvector(*reinterpret_cast<const HalfI *>(sums + l), D) * static_cast<double>(n);
            *reinterpret_cast<HalfF *>(out + l) = __builtin_convertvector(all - total * n_left, HalfF);
        }
        return *reinterpret_cast<const F *>(out);
    }

    // Sum over classes of squared D; `sums`: of each class, how many rows go left.
    SRS_INLINE F squares_of_classes(I *sums, const I labels, int32_t n_left) const {
        F squares{};
        for (int32_t k = 0; k < n_classes; ++k) {
            sums[k] -= labels == k; // a true lane is -1
            const F d = __builtin_convertvector(sums[k] * n - static_cast<int32_t>(totals[k]) * n_left, F);
            squares = squares + d * d;
        }
        return squares;
    }

    template <Kind KIND> __attribute__((noinline)) void pass(const Members &members, int64_t from, const LaneKey &ties, Found &best) {
        const U lane_ties = ties(load<U>(hashes + from));
        I sums[KIND == CLASSES ? MAX_PRESORTED_CLASSES : 1], top = I{} - 1;
        for (int64_t k = 0; k < (KIND == CLASSES ? n_classes : 1); ++k) sums[k] = I{};
        U tie{}, threshold{}, own = line(0);
        for (int32_t i = 0; i < n - min_leaf; ++i) {
            const U code = own >> 16, next = line(i + 1);
            const I says = look_up(own & 0xFFFF), parts = (I)((own ^ next) > 0xFFFF);
            own = next;
            F square;
            if (KIND == CLASSES) {
                square = squares_of_classes(sums, says, i + 1);
            } else {
                sums[0] += says;
                const F d = KIND == DEVIATIONS ? __builtin_convertvector(sums[0], F) : deviation_of_numbers(sums[0], i + 1);
                square = twice ? d * d + d * d : d * d;
            }
            if (i + 1 < min_leaf) continue;
            const I bits = (I)(square / (static_cast<float>(i + 1) * static_cast<float>(n - i - 1)));
            const U own_tie = lane_ties ^ (code * TIE_FACTOR);
            const I better = parts & ((bits > top) | ((bits == top) & (I)(own_tie > tie)));
            top = better ? bits : top;
            tie = better ? own_tie : tie;
            threshold = better ? code : threshold;
        }
        for (int l = 0; l < WIDTH; ++l)
            if (top[l] >= 0) members.offer(best, Found{top[l], 0, tie[l], threshold[l], from + l});
    }
};

// Nodes of few rows: these are kept once, in no order, and searched in lanes; they are sorted anew at each node.
struct FewRows {
    FewRowsLanes lanes;
    bool is_taken;  // whether nodes of few rows are searched so
    uint16_t *rows; // [max_fitted] of nodes of few rows, where their rows lie in every column

    void carve(Arena &arena, int64_t n_rows, int64_t max_members, int64_t max_fitted) {
        const int64_t max_lanes = whole(max_members);
        rows = arena.take<uint16_t>(max_fitted);
        lanes.hashes = arena.take<uint32_t>(max_lanes);
        lanes.lines = arena.take<uint16_t>(n_rows * max_lanes);
    }

    // Lay the codes of the columns out row by row.
    template <typename Code> void use(const PresortedColumns<Code> &columns) {
        const int64_t n_members = columns.n_members;
        lanes.n_lanes = whole(n_members);
        const int64_t n_more = lanes.n_lanes - n_members;
        for (int64_t row = 0; row < columns.n_rows; ++row) {
            uint16_t *line = lanes.lines + row * lanes.n_lanes;
            for (int64_t m = 0; m < n_members; ++m) line[m] = columns.column(m)[row];
            for (int64_t m = 0; m < n_more; ++m) line[n_members + m] = 0;
        }
        for (int64_t m = 0; m < n_more; ++m) lanes.hashes[n_members + m] = 0;
    }

    SRS_INLINE bool holds(const HeldNode &node) const { return is_taken && node.n <= FewRowsLanes::MAX_ROWS; }

    // Keep the rows of a node where those of its children will be.
    SRS_INLINE void keep(const HeldNode &node, const uint16_t *order) {
        __builtin_memcpy(rows + node.start, order, sizeof(uint16_t) * static_cast<size_t>(node.n));
    }

    // Put a node's rows that go left first, and count them in the split; return the lowest code that goes right.
    SRS_INLINE uint32_t part(const HeldNode &node, Found &split) {
        uint16_t right[FewRowsLanes::MAX_ROWS], *order = rows + node.start;
        uint32_t next = 0xFFFF;
        int32_t n_left = 0, n_right = 0;
        for (int32_t i = 0; i < node.n; ++i) {
            const uint16_t row = order[i];
            const uint32_t code = lanes.lines[row * lanes.n_lanes + split.member];
            const bool goes_left = code <= split.threshold;
            order[n_left] = row;
            right[n_right] = row;
            n_left += goes_left;
            n_right += !goes_left;
            next = !goes_left && code < next ? code : next;
        }
        for (int32_t i = 0; i < n_right; ++i) order[n_left + i] = right[i];
        split.n_left = n_left;
        return next;
    }

  private:
    static int64_t whole(int64_t n) { return (n + FewRowsLanes::WIDTH - 1) / FewRowsLanes::WIDTH * FewRowsLanes::WIDTH; }
};

} // namespace
} // namespace srs::SRS_ISA
