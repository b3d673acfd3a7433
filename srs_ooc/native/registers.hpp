// How wide a register is, and an order in which lanes can be sorted, all at once.
// Included inside the namespace of an instruction set: every clone has its own copy.
#pragma once

#if defined(__AVX512BW__)
#define SRS_VECTOR_NBYTES 64
#elif defined(__AVX2__)
#define SRS_VECTOR_NBYTES 32
#else
#define SRS_VECTOR_NBYTES 16
#endif

// As many numbers of 32 bits as a register holds, and half as many.
struct Registers {
    static constexpr int WIDTH = SRS_VECTOR_NBYTES / 4, HALF = WIDTH / 2;
    typedef int32_t I __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));
    typedef uint32_t U __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));
    typedef float F __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));
    typedef double D __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));
    typedef uint16_t HalfK __attribute__((vector_size(SRS_VECTOR_NBYTES / 2), may_alias));
    typedef int32_t HalfI __attribute__((vector_size(SRS_VECTOR_NBYTES / 2), may_alias));
    typedef float HalfF __attribute__((vector_size(SRS_VECTOR_NBYTES / 2), may_alias));

    // A bit for each lane that is not 0.
    static SRS_INLINE uint32_t lanes_of(const I mask) {
#if defined(__AVX512F__)
        return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask);
#elif defined(__AVX2__)
        return static_cast<uint32_t>(_mm256_movemask_ps((__m256)mask));
#else
        uint32_t bits = 0;
        for (int l = 0; l < WIDTH; ++l) bits |= static_cast<uint32_t>(mask[l] & 1) << l;
        return bits;
#endif
    }

    // Whether a lane is not 0.
    static SRS_INLINE bool any_of(const HalfI mask) {
#if defined(__AVX512F__)
        return _mm256_movemask_epi8((__m256i)mask) != 0;
#else
        uint64_t words[sizeof(HalfI) / 8];
        __builtin_memcpy(words, &mask, sizeof words);
        uint64_t all = 0;
        for (const uint64_t word : words) all |= word;
        return all != 0;
#endif
    }
};

// Batcher's merge exchange of n lines; exchange(low, high) puts two in order.
template <typename Exchange> SRS_INLINE void merge_exchange(int64_t n, const Exchange exchange) {
    int64_t top = 1;
    while (2 * top < n) top *= 2;
    for (int64_t p = top; p > 0; p /= 2)
        for (int64_t q = top, r = 0, d = p;; d = q - p, q /= 2, r = p) {
            for (int64_t block = r; block < n - d; block += 2 * p) {
                const int64_t end = block + p < n - d ? block + p : n - d;
                for (int64_t i = block; i < end; ++i) exchange(i, i + d);
            }
            if (q == p) break;
        }
}
