// Laying 64 columns out as one tile, row by row. Compiled once per instruction set. Tests: tests/store/test_store.py.
// Squares of 16 x 16 bytes, or of 8 x 8 codes of 16 bits, are transposed in registers, as many at once as a register has
// lanes of 16 bytes: one code at a time, a load and a store would be needed for each.
#include "kernels.hpp"
#include "simd/registers.hpp"

#include <cstring>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace srs {
namespace SRS_ISA {

namespace {

#if defined(__clang__) || __GNUC__ >= 12
#define SRS_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SRS_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, decltype(a){__VA_ARGS__})
#endif

constexpr int LANE_NBYTES = 16, VECTOR_NBYTES = SRS_VECTOR_NBYTES;
typedef uint8_t Lane __attribute__((vector_size(LANE_NBYTES), aligned(1), may_alias));

template <typename Code> struct Square { // N columns x N rows in each lane of N registers
    typedef Code R __attribute__((vector_size(VECTOR_NBYTES), aligned(1), may_alias));
    static constexpr int N = LANE_NBYTES / sizeof(Code), ROUNDS = sizeof(Code) == 1 ? 4 : 3;
    static constexpr int WIDTH = VECTOR_NBYTES / sizeof(Code); // columns
    using Places = std::make_integer_sequence<int, WIDTH>;

    // The first or second halves of the lanes of two registers, interleaved.
    template <int FROM, int... I> static SRS_INLINE R halves(const R a, const R b, std::integer_sequence<int, I...>) {
        return SRS_SHUFFLE(a, b, (I % 2 * WIDTH + I / N * N + FROM + I % N / 2)...);
    }

    // N codes of every N-th column, one column a lane.
    static SRS_INLINE R load(const Code *const *columns, int64_t row) {
        const auto lane = [&](int l) __attribute__((always_inline)) {
            return *reinterpret_cast<const Lane *>(columns[l * N] + row);
        };
#if defined(__AVX512BW__)
        __m512i all = _mm512_castsi128_si512((__m128i)lane(0));
        all = _mm512_inserti32x4(all, (__m128i)lane(1), 1);
        all = _mm512_inserti32x4(all, (__m128i)lane(2), 2);
        return (R)_mm512_inserti32x4(all, (__m128i)lane(3), 3);
#elif defined(__AVX2__)
        return (R)_mm256_inserti128_si256(_mm256_castsi128_si256((__m128i)lane(0)), (__m128i)lane(1), 1);
#else
        return (R)lane(0);
#endif
    }

    // WIDTH columns x N rows: interleaving first and second halves log2(N) times is a transposition.
    static SRS_INLINE void transpose(const Code *const *columns, int64_t row, R *a) {
        R b[N];
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) a[i] = load(columns + i, row);
#pragma GCC unroll 4
        for (int round = 0; round < ROUNDS; ++round) {
#pragma GCC unroll 16
            for (int i = 0; i < N / 2; ++i) {
                b[2 * i] = halves<0>(a[i], a[i + N / 2], Places{});
                b[2 * i + 1] = halves<N / 2>(a[i], a[i + N / 2], Places{});
            }
#pragma GCC unroll 16
            for (int i = 0; i < N; ++i) a[i] = b[i];
        }
    }
};
#undef SRS_SHUFFLE

// Write a register, past the caches if asked to.
template <bool STREAMED, typename R> SRS_INLINE void store(void *to, const R from) {
#if defined(__AVX512BW__)
    if (STREAMED) return _mm512_stream_si512(static_cast<__m512i *>(to), (__m512i)from);
#elif defined(__AVX2__)
    if (STREAMED) return _mm256_stream_si256(static_cast<__m256i *>(to), (__m256i)from);
#elif defined(__x86_64__)
    if (STREAMED) return _mm_stream_si128(static_cast<__m128i *>(to), (__m128i)from);
#endif
    *static_cast<R *>(to) = from;
}

template <typename Code, bool STREAMED, bool SOME> void lay_out_codes(const TileJob &job) {
    using S = Square<Code>;
    using R = typename S::R;
    constexpr int N = S::N;
    constexpr int64_t LINE = 64 / static_cast<int64_t>(sizeof(Code));
    // Past the caches lines of 64 bytes go whole: those in parts wait for each other.
    constexpr bool AT_ONCE = !SOME && (!STREAMED || VECTOR_NBYTES == 64);
    const auto *columns = static_cast<const Code *const *>(job.columns), *next = static_cast<const Code *const *>(job.next);
    const int32_t *rows = SOME ? job.rows : nullptr;
    auto *tile = static_cast<Code *>(job.tile);
    alignas(64) Code lines[N * TILE]; // of rows from `row` on
    int64_t row = 0, line = 0;        // `line` of the tile is written next
    const auto write_lines = [&](int64_t end) __attribute__((always_inline)) {
        for (int64_t of; line < job.n_kept && (of = rows ? rows[line] : line) < end; ++line) {
            Code *to = tile + line * TILE;
#pragma GCC unroll 8
            for (int l = 0; l < TILE; l += S::WIDTH)
                store<STREAMED>(to + l, *reinterpret_cast<const R *>(lines + (of - row) * TILE + l));
        }
    };
    for (; row + N <= job.n_rows; row += N) {
        if (rows && (line == job.n_kept || rows[line] >= row + N)) continue;
        if (next) { // a few lines at a time: more would wait for each other
            const int64_t share = TILE * N / LINE, from = row % LINE / N * share;
            for (int64_t l = from; l < from + share; ++l) __builtin_prefetch(next[l] + row, 0, 2);
        }
        Code *to = AT_ONCE ? tile + row * TILE : lines;
        R a[N];
        for (int l = 0; l < TILE; l += S::WIDTH) {
            S::transpose(columns + l, row, a);
#pragma GCC unroll 16
            for (int i = 0; i < N; ++i) store<STREAMED && AT_ONCE>(to + i * TILE + l, a[i]);
        }
        if (AT_ONCE) line += N;
        else write_lines(row + N);
    }
    for (int64_t i = row; i < job.n_rows; ++i)
        for (int l = 0; l < TILE; ++l) lines[(i - row) * TILE + l] = columns[l][i];
    write_lines(job.n_rows);
#if defined(__x86_64__)
    if (STREAMED) _mm_sfence(); // before another thread is told
#endif
}

template <typename Code> void lay_out_any(const TileJob &job) {
    if (job.rows) job.streamed ? lay_out_codes<Code, true, true>(job) : lay_out_codes<Code, false, true>(job);
    else job.streamed ? lay_out_codes<Code, true, false>(job) : lay_out_codes<Code, false, false>(job);
}

} // namespace

void lay_out(const TileJob &job) {
    job.code_nbytes == 1 ? lay_out_any<uint8_t>(job) : lay_out_any<uint16_t>(job);
}

// Two bits a sample of a .bed file: 3 is dosage 0, 2 is 1, 0 is 2, 1 is missing. A code is the rank of a dosage among
// those of the variant, of which `present` has a bit each. Four codes of a byte at a time, as bits of a word.
void decode_genotypes(const uint8_t *__restrict line, int64_t nbytes, int present, uint8_t *__restrict codes) {
    const uint32_t one_code = present & 1, two_code = (present & 1) + (present >> 1 & 1), of_one = one_code ? UINT32_MAX : 0;
    const uint32_t of_two = two_code ? UINT32_MAX : 0, doubled = two_code == 2;
    for (int64_t i = 0; i < nbytes; ++i) {
        const uint32_t byte = line[i], pairs = byte | byte << 6 | byte << 12 | byte << 18;
        const uint32_t low = pairs & 0x01010101, high = pairs >> 1 & 0x01010101, missing = low & ~high;
        const uint32_t one = high & ~low & of_one, two = (low ^ 0x01010101) & ~high & of_two;
        const uint32_t four = ((missing << 8) - missing) | one | two << doubled;
        std::memcpy(codes + 4 * i, &four, sizeof four);
    }
}

} // namespace SRS_ISA
} // namespace srs
