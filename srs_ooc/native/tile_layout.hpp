// Laying 64 columns out as one tile, row by row.
// Squares of 16 x 16 bytes, or of 8 x 8 codes of 16 bits, are transposed in registers: one code at a time, a load and a store
// would be needed for each.
#pragma once
#include "trees.hpp"

#include <cstdint>

namespace srs {

typedef uint8_t Bytes __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t Shorts __attribute__((vector_size(16), aligned(1), may_alias));

#if defined(__clang__) || __GNUC__ >= 12
#define SRS_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SRS_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, decltype(a){__VA_ARGS__})
#endif

inline Bytes low_halves(Bytes a, Bytes b) {
    return SRS_SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline Bytes high_halves(Bytes a, Bytes b) {
    return SRS_SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
inline Shorts low_halves(Shorts a, Shorts b) { return SRS_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
inline Shorts high_halves(Shorts a, Shorts b) { return SRS_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }

template <typename Code> struct Square; // as many columns as a 16-byte register holds codes
template <> struct Square<uint8_t> { using R = Bytes; static constexpr int N = 16, ROUNDS = 4; };
template <> struct Square<uint16_t> { using R = Shorts; static constexpr int N = 8, ROUNDS = 3; };

// Where the lines of a tile go: in order, or, for decoys, each to its partner's place.
struct InOrder {
    int64_t operator()(int64_t row) const { return row; }
};
struct Swapped {
    const int32_t *partners;
    int64_t operator()(int64_t row) const { return partners[row]; }
};

// N columns x N rows: interleaving first and second halves log2(N) times is a transposition.
template <typename Code, typename Place>
inline void transpose_square(const Code *const *columns, int64_t row, Code *tile, const Place place) {
    using S = Square<Code>;
    using R = typename S::R;
    R a[S::N], b[S::N];
#pragma GCC unroll 16
    for (int i = 0; i < S::N; ++i) a[i] = *reinterpret_cast<const R *>(columns[i] + row);
#pragma GCC unroll 4
    for (int round = 0; round < S::ROUNDS; ++round) {
#pragma GCC unroll 16
        for (int i = 0; i < S::N / 2; ++i) {
            b[2 * i] = low_halves(a[i], a[i + S::N / 2]);
            b[2 * i + 1] = high_halves(a[i], a[i + S::N / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < S::N; ++i) a[i] = b[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < S::N; ++i) *reinterpret_cast<R *>(tile + place(row + i) * TILE) = a[i];
}

// Lay 64 columns out row by row; the next tile's columns are asked for meanwhile (they lie at random).
template <typename Code, typename Place>
void fill_tile(const Code *const *columns, const Code *const *next, int64_t n_rows, Code *tile, const Place place) {
    constexpr int N = Square<Code>::N;
    constexpr int64_t LINE = 64 / static_cast<int64_t>(sizeof(Code));
    int64_t row = 0;
    for (; row + N <= n_rows; row += N) {
        if (next) { // a few lines at a time: more would wait for each other
            const int64_t share = TILE * N / LINE, from = row % LINE / N * share;
            for (int64_t l = from; l < from + share; ++l) __builtin_prefetch(next[l] + row, 0, 2);
        }
        for (int l = 0; l < TILE; l += N) transpose_square(columns + l, row, tile + l, place);
    }
    for (; row < n_rows; ++row)
        for (int l = 0; l < TILE; ++l) tile[place(row) * TILE + l] = columns[l][row];
}

#undef SRS_SHUFFLE

} // namespace srs
