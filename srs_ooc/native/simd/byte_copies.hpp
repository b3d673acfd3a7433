// Codes of a node's rows copied from columns many at a time: a register of rows by one permutation of bytes.
#pragma once
#include "kernels.hpp"
#include "simd/registers.hpp"

namespace srs::SRS_ISA {
namespace {

#if defined(__AVX512BW__)
// Byte 8 r + c: row r of column c of 8, columns 0 to 3 in one register and 4 to 7 in the other.
struct TransposeOrder {
    alignas(64) uint8_t at[TILE] = {};
    constexpr TransposeOrder() {
        for (int r = 0; r < 8; ++r)
            for (int c = 0; c < 8; ++c) at[8 * r + c] = static_cast<uint8_t>((c < 4 ? 0 : 64) + c % 4 * 16 + r);
    }
};
constexpr TransposeOrder TRANSPOSE_ORDER{};

struct ByteCopies {
    static constexpr int PAIR = 2 * TILE, STEP = 16; // bytes that one permutation looks up; what is transposed at once
    static constexpr int64_t MAX_ROWS = 4 * PAIR;        // rows of a column
    const uint8_t *codes;                            // [column][n_rows]
    int64_t n_rows;

    // Whether this processor has what it takes, which the instruction set of the clone does not promise.
    static bool is_there() { return __builtin_cpu_supports("avx512vbmi"); }

    // Whether so many rows are copied faster than by one code at a time.
    SRS_INLINE bool is_faster(int64_t n) const { return n >= (n_rows <= PAIR ? 4 : 10); }

    // Write code (row, column) to lines[row][TILE]; lines has room for whole STEPs of rows.
    void copy(const int32_t *rows, int64_t n, const int32_t *columns, int64_t n_columns, uint8_t *lines) const {
        const int64_t pairs = (n_rows + PAIR - 1) / PAIR;
        if (pairs == 1) copy_from<1>(rows, n, columns, n_columns, lines);
        else if (pairs == 2) copy_from<2>(rows, n, columns, n_columns, lines);
        else if (pairs == 3) copy_from<3>(rows, n, columns, n_columns, lines);
        else copy_from<4>(rows, n, columns, n_columns, lines);
    }

  private:
    // A register of rows in PAIRS pairs of registers.
    template <int PAIRS> struct Lookup {
        __m512i at;
        __mmask64 in[PAIRS], last_low, last_high; // rows in each pair; codes of the last one

        __attribute__((target("avx512vbmi"))) SRS_INLINE __m512i look_up(const uint8_t *column) const {
            __m512i out{};
            _Pragma("GCC unroll 4") for (int k = 0; k < PAIRS; ++k) {
                const uint8_t *own = column + k * PAIR;
                const bool whole = k + 1 < PAIRS;
                const __m512i low = whole ? _mm512_loadu_si512(own) : _mm512_maskz_loadu_epi8(last_low, own);
                const __m512i high = whole ? _mm512_loadu_si512(own + TILE) : _mm512_maskz_loadu_epi8(last_high, own + TILE);
                const __m512i found = _mm512_permutex2var_epi8(low, at, high);
                out = k == 0 ? found : _mm512_mask_mov_epi8(out, in[k], found);
            }
            return out;
        }
    };

    template <int PAIRS> SRS_INLINE Lookup<PAIRS> lookup_of(const int32_t *rows, int64_t n) const {
        alignas(64) uint8_t at[TILE] = {}, pair[TILE] = {};
        for (int64_t i = 0; i < n; ++i) {
            at[i] = static_cast<uint8_t>(rows[i]);
            pair[i] = static_cast<uint8_t>(rows[i] / PAIR);
        }
        Lookup<PAIRS> out;
        out.at = _mm512_load_si512(at);
        for (int k = 0; k < PAIRS; ++k)
            out.in[k] = _mm512_cmpeq_epi8_mask(_mm512_load_si512(pair), _mm512_set1_epi8(static_cast<char>(k)));
        out.last_low = first_lanes(n_rows - (PAIRS - 1) * PAIR);
        out.last_high = first_lanes(n_rows - (PAIRS - 1) * PAIR - TILE);
        return out;
    }

    template <int PAIRS>
    __attribute__((target("avx512vbmi"), noinline)) void copy_from(const int32_t *rows, int64_t n, const int32_t *columns,
                                                                   int64_t n_columns, uint8_t *lines) const {
        alignas(64) uint8_t some[STEP][TILE] = {};
        for (int64_t from = 0; from < n; from += TILE) {
            const int64_t n_here = n - from < TILE ? n - from : TILE;
            const Lookup<PAIRS> lookup = lookup_of<PAIRS>(rows + from, n_here);
            for (int64_t first = 0; first < n_columns; first += STEP) {
                for (int64_t c = 0; c < STEP && first + c < n_columns; ++c)
                    _mm512_store_si512(some[c], lookup.look_up(codes + columns[first + c] * n_rows));
                for (int64_t i = 0; i < n_here; i += STEP) transpose(some[0] + i, lines + (from + i) * TILE + first);
            }
        }
    }

    static SRS_INLINE __mmask64 first_lanes(int64_t n) {
        return n >= TILE ? ~__mmask64(0) : n > 0 ? (__mmask64(1) << n) - 1 : 0;
    }

    // The same STEP bytes of four lines.
    static SRS_INLINE __m512i four(const uint8_t *from) {
        const auto line = [&](int c) { return _mm_load_si128(reinterpret_cast<const __m128i *>(from + c * TILE)); };
        __m512i out = _mm512_castsi128_si512(line(0));
        out = _mm512_inserti32x4(out, line(1), 1);
        out = _mm512_inserti32x4(out, line(2), 2);
        return _mm512_inserti32x4(out, line(3), 3);
    }

    // Lines of TILE bytes, 16 x 16 of them: first 8 columns to a word of 8 bytes, then both words of a row together.
    __attribute__((target("avx512vbmi"))) static SRS_INLINE void transpose(const uint8_t *from, uint8_t *to) {
        const __m512i rows_low = _mm512_load_si512(TRANSPOSE_ORDER.at), rows_high = _mm512_add_epi8(rows_low, _mm512_set1_epi8(8));
        const __m512i words = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), more_words = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
        const __m512i a = four(from), b = four(from + 4 * TILE), c = four(from + 8 * TILE), d = four(from + 12 * TILE);
        const __m512i left = _mm512_permutex2var_epi8(a, rows_low, b), right = _mm512_permutex2var_epi8(c, rows_low, d);
        const __m512i left_high = _mm512_permutex2var_epi8(a, rows_high, b), right_high = _mm512_permutex2var_epi8(c, rows_high, d);
        store(_mm512_permutex2var_epi64(left, words, right), to);
        store(_mm512_permutex2var_epi64(left, more_words, right), to + 4 * TILE);
        store(_mm512_permutex2var_epi64(left_high, words, right_high), to + 8 * TILE);
        store(_mm512_permutex2var_epi64(left_high, more_words, right_high), to + 12 * TILE);
    }

    static SRS_INLINE void store(__m512i rows, uint8_t *to) {
        store(part<0>(rows), to);
        store(part<1>(rows), to + TILE);
        store(part<2>(rows), to + 2 * TILE);
        store(part<3>(rows), to + 3 * TILE);
    }
    static SRS_INLINE void store(__m128i row, uint8_t *to) { _mm_storeu_si128(reinterpret_cast<__m128i *>(to), row); }

    // With a mask: of casts and of the form without one GCC 12 says that a variable is not set.
    template <int I> static SRS_INLINE __m128i part(__m512i rows) {
        return _mm512_maskz_extracti32x4_epi32(__mmask8(-1), rows, I);
    }
};
#endif

} // namespace
} // namespace srs::SRS_ISA
