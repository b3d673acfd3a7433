// What every file of the kernel needs that is compiled once for each instruction set: the set's namespace, registers and
// how wide they are, an order in which lanes can be sorted all at once, and scratch memory.
//
// Such files allocate nothing and call no inline function of a library, and what they define lies in an unnamed namespace of
// their set's: a clone could otherwise be linked with another's code, which the machine might not be able to run.
#pragma once
#include <cstddef>
#include <cstdint>
#if defined(__AVX2__)
#include <immintrin.h> // inlined always: no clone can get another's
#elif defined(__aarch64__)
#include <arm_neon.h> // the same
#endif

#ifndef SRS_ISA // set by CMakeLists.txt
#define SRS_ISA baseline
#endif
#define SRS_INLINE inline __attribute__((always_inline))
#define SRS_APART __attribute__((noinline)) // compiled once, whoever calls it: what is asked of it takes far longer than a call

#if defined(__AVX512BW__)
#define SRS_VECTOR_NBYTES 64
#elif defined(__AVX2__)
#define SRS_VECTOR_NBYTES 32
#else
#define SRS_VECTOR_NBYTES 16
#endif

namespace srs::SRS_ISA {
namespace {

// As many numbers of 32 bits as a register holds, half as many, and twice as many keys of 16 bits.
struct Simd {
    static constexpr int WIDTH = SRS_VECTOR_NBYTES / 4, HALF = WIDTH / 2, KEYS = 2 * WIDTH;
    typedef int32_t I __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));
    typedef uint32_t U __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));
    typedef float F __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));
    typedef double D __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));
    typedef uint16_t K __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));
    typedef uint16_t HalfK __attribute__((vector_size(SRS_VECTOR_NBYTES / 2), may_alias));
    typedef int32_t HalfI __attribute__((vector_size(SRS_VECTOR_NBYTES / 2), may_alias));
    typedef float HalfF __attribute__((vector_size(SRS_VECTOR_NBYTES / 2), may_alias));

    template <typename V, typename T> static SRS_INLINE V load(const T *from) {
        V out;
        __builtin_memcpy(&out, from, sizeof out);
        return out;
    }

    // WIDTH numbers of 16 or of 8 bits in a register. For NEON GCC 12 would take their lanes apart.
    static SRS_INLINE U widened(const uint16_t *from) {
#if defined(__aarch64__)
        return (U)vmovl_u16(vld1_u16(from));
#else
        return __builtin_convertvector(load<HalfK>(from), U);
#endif
    }
    static SRS_INLINE U widened(const uint8_t *from) {
#if defined(__aarch64__)
        return (U)vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(load<uint32_t>(from)))));
#else // by two steps, which are an instruction each
        typedef uint8_t Few __attribute__((vector_size(WIDTH), may_alias));
        return __builtin_convertvector(__builtin_convertvector(load<Few>(from), HalfK), U);
#endif
    }

    // A bit for each lane that is not 0.
    static SRS_INLINE uint32_t lanes_of(const I mask) {
#if defined(__AVX512F__)
        return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask);
#elif defined(__AVX2__)
        return static_cast<uint32_t>(_mm256_movemask_ps((__m256)mask));
#elif defined(__SSE2__)
        typedef float Four __attribute__((vector_size(16)));
        return static_cast<uint32_t>(__builtin_ia32_movmskps((Four)mask));
#elif defined(__aarch64__)
        return vaddvq_u32((uint32x4_t)(mask & I{1, 2, 4, 8}));
#else
        uint32_t bits = 0;
        for (int l = 0; l < WIDTH; ++l) bits |= static_cast<uint32_t>(mask[l] & 1) << l;
        return bits;
#endif
    }

    // Whether a lane is not 0.
    template <typename V> static SRS_INLINE bool any_of(const V mask) {
#if defined(__AVX512F__)
        if constexpr (sizeof(V) == 32) return _mm256_movemask_epi8((__m256i)mask) != 0;
#endif
        uint64_t words[sizeof mask / 8], all = 0;
        __builtin_memcpy(words, &mask, sizeof words);
        for (const uint64_t word : words) all |= word;
        return all != 0;
    }

    // Whether a lane of a is at least that of b.
    static SRS_INLINE bool any_reaches(const F a, const F b) {
#if defined(__AVX512F__)
        return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GE_OQ) != 0;
#else
        return lanes_of(a >= b) != 0;
#endif
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

// Sort n lines, each a register, every lane alone and all at once: by Batcher's merge exchange.
template <typename Line, typename Key> SRS_INLINE void sort_lanes(Key *keys, int64_t n) {
    constexpr int64_t WIDTH = sizeof(Line) / sizeof(Key);
    int64_t top = 1;
    while (2 * top < n) top *= 2;
    for (int64_t p = top; p > 0; p /= 2)
        for (int64_t q = top, r = 0, d = p;; d = q - p, q /= 2, r = p) {
            for (int64_t block = r; block < n - d; block += 2 * p) {
                const int64_t end = block + p < n - d ? block + p : n - d;
                for (int64_t i = block; i < end; ++i) {
                    const Line a = Simd::load<Line>(keys + i * WIDTH), b = Simd::load<Line>(keys + (i + d) * WIDTH);
                    const Line low = a < b ? a : b, high = a < b ? b : a;
                    __builtin_memcpy(keys + i * WIDTH, &low, sizeof low);
                    __builtin_memcpy(keys + (i + d) * WIDTH, &high, sizeof high);
                }
            }
            if (q == p) break;
        }
}

// Hands out consecutive aligned pieces of scratch memory; of none, the pieces are null and their size is counted.
struct Arena {
    char *base;
    size_t used = 0;
    template <typename T> T *take(int64_t n) {
        T *piece = base ? reinterpret_cast<T *>(base + used) : nullptr;
        used += (sizeof(T) * static_cast<size_t>(n) + 63) / 64 * 64;
        return piece;
    }
};

} // namespace
} // namespace srs::SRS_ISA
