// Filling a block from columns, tile by tile or column by column: rows left out, decoys permuted.
#pragma once
#include "gather/columns.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace srs {

// Laying 64 columns out as one tile, row by row.
// Squares of 16 x 16 bytes, or of 8 x 8 codes of 16 bits, are transposed in registers: one code at a time, a load and a store
// would be needed for each.
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

// Copy the kept rows of each column into `kept`, and point `columns` there.
template <typename Code>
void keep_rows(const GatherRequest &request, int64_t n, const Code **columns, std::vector<Code> &kept) {
    for (int64_t i = 0; i < n; ++i) {
        Code *target = kept.data() + i * request.n_kept;
        for (int64_t r = 0; r < request.n_kept; ++r) target[r] = columns[i][request.rows[r]];
        columns[i] = target;
    }
}

// Copy the decoys of a tile that also holds other columns, rows permuted, and point `columns` there.
template <typename Code>
void permute_decoys(const GatherRequest &request, int64_t first, int64_t n, const Code **columns, std::vector<Code> &permuted) {
    for (int64_t i = 0; i < n; ++i) {
        const int64_t family = request.family(first + i);
        if (family == 0) continue;
        const int32_t *partners = request.partners(family);
        Code *target = permuted.data() + i * request.n_kept;
        for (int64_t r = 0; r < request.n_kept; ++r) target[r] = columns[i][partners[r]];
        columns[i] = target;
    }
}

// The family of all items of a tile, or -1 where they are of several: items of a family are mostly together.
inline int64_t family_of_tile(const GatherRequest &request, int64_t first, int64_t n) {
    for (int64_t i = 1; i < n; ++i)
        if (request.family(first + i) != request.family(first)) return -1;
    return request.family(first);
}

inline int64_t tile_size(const GatherRequest &request, int64_t first) {
    return std::min<int64_t>(request.n_items - first, TILE);
}

// Whether decoys are copied before they are laid out.
inline bool copies_decoys(const GatherRequest &request, int64_t family) { return family < 0 || (family > 0 && !request.tiled); }

// Room of a gather, made before it: no memory is taken while mapped files are read.
template <typename Code> struct GatherRoom {
    explicit GatherRoom(const GatherRequest &request)
        : kept(request.rows ? static_cast<size_t>(TILE * request.n_kept) : 0),
          empty(request.tiled ? static_cast<size_t>(request.n_kept) : 0) {
        bool any = false;
        for (int64_t first = 0; first < request.n_items && !any; first += TILE)
            any = copies_decoys(request, family_of_tile(request, first, tile_size(request, first)));
        permuted.resize(any ? static_cast<size_t>(TILE * request.n_kept) : 0);
    }
    std::vector<Code> kept, permuted;
    const std::vector<Code> empty;
};

template <typename Code, typename Source> void fill(const GatherRequest &request, Source &source, GatherRoom<Code> &room) {
    const Code *columns[2][TILE];
    auto *out = reinterpret_cast<Code *>(request.out);
    const auto load = [&](int64_t first, const Code **target) {
        const int64_t n = tile_size(request, first);
        source.load(first, n, reinterpret_cast<const uint8_t **>(target));
        for (int64_t i = n; i < TILE; ++i) target[i] = room.empty.data();
        return n;
    };
    const bool ahead = Source::in_place && !request.rows;
    if (request.n_items > 0) load(0, columns[0]);
    for (int64_t first = 0, turn = 0; first < request.n_items; first += TILE, turn ^= 1) {
        const Code **now = columns[turn], **next = columns[turn ^ 1];
        const int64_t n = tile_size(request, first);
        const bool more = first + TILE < request.n_items;
        if (first > 0 && !ahead) load(first, now);
        if (more && ahead) load(first + TILE, next);
        if (request.rows) keep_rows(request, n, now, room.kept);
        int64_t family = family_of_tile(request, first, n);
        if (copies_decoys(request, family)) {
            permute_decoys(request, first, n, now, room.permuted);
            family = 0;
        }
        Code *target = out + first * request.n_kept;
        if (!request.tiled) {
            for (int64_t i = 0; i < n; ++i)
                std::memcpy(target + i * request.n_kept, now[i], static_cast<size_t>(request.n_kept) * sizeof(Code));
        } else if (family > 0) { // an involution: where a row comes from is where it goes
            fill_tile<Code>(now, more && ahead ? next : nullptr, request.n_kept, target, Swapped{request.partners(family)});
        } else {
            fill_tile<Code>(now, more && ahead ? next : nullptr, request.n_kept, target, InOrder{});
        }
    }
}

} // namespace srs
