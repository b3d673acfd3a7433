// What all pairs of 64 columns of bits with 64 others show of targets, beyond what each column shows alone.
// Compiled once for each instruction set (evidence/pairs.py says what is counted; twin: tests/evidence/test_pairs.py).
#include "kernels.hpp"
#include "simd/registers.hpp"

namespace srs::SRS_ISA {
namespace {

typedef uint64_t Words __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));
typedef uint8_t Bytes __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));
constexpr int PAIR_LANES = SRS_VECTOR_NBYTES / 8;
constexpr int64_t AT_ONCE = SRS_VECTOR_NBYTES == 64 ? 8 : 4; // registers whose bits are counted side by side

// Bits of each byte, which are added up before they are summed by word: 31 times 8 fit a byte.
struct ByteCounts {
    static constexpr int64_t RUN = 31;
    static SRS_INLINE Words bits(const Words v) {
#if defined(__AVX512BW__) || defined(__AVX2__)
        const Bytes low = (Bytes)v & 15, high = (Bytes)(v >> 4) & 15; // Mula: a nibble is looked up
        const __m128i table = _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
#if defined(__AVX512BW__)
        const __m512i counts = _mm512_broadcast_i32x4(table);
        return (Words)((Bytes)_mm512_shuffle_epi8(counts, (__m512i)low) + (Bytes)_mm512_shuffle_epi8(counts, (__m512i)high));
#else
        const __m256i counts = _mm256_broadcastsi128_si256(table);
        return (Words)((Bytes)_mm256_shuffle_epi8(counts, (__m256i)low) + (Bytes)_mm256_shuffle_epi8(counts, (__m256i)high));
#endif
#elif defined(__aarch64__)
        return (Words)vcntq_u8((uint8x16_t)v);
#else
        Words counts = v - ((v >> 1) & 0x5555555555555555);
        counts = (counts & 0x3333333333333333) + ((counts >> 2) & 0x3333333333333333);
        return (counts + (counts >> 4)) & 0x0f0f0f0f0f0f0f0f;
#endif
    }
    static SRS_INLINE Words sums(const Words bytes) {
#if defined(__AVX512BW__)
        return (Words)_mm512_sad_epu8((__m512i)bytes, _mm512_setzero_si512());
#elif defined(__AVX2__)
        return (Words)_mm256_sad_epu8((__m256i)bytes, _mm256_setzero_si256());
#else
        const Words pairs = (bytes & 0x00ff00ff00ff00ff) + ((bytes >> 8) & 0x00ff00ff00ff00ff);
        const Words fours = (pairs & 0x0000ffff0000ffff) + ((pairs >> 16) & 0x0000ffff0000ffff);
        return (fours & 0xffffffff) + (fours >> 32);
#endif
    }
};

// For one column of the left tile and each of the right: how many rows of each section differ.
template <typename Counts> SRS_INLINE void count_row(const PairJob &job, int64_t row) {
    for (int64_t section = 0; section < job.n_sections; ++section) {
        int32_t *counts = job.counts + section * TILE;
        const int64_t end = job.bounds[section + 1];
        for (int64_t first = 0; first < TILE; first += AT_ONCE * PAIR_LANES) {
            Words sums[AT_ONCE] = {};
            for (int64_t start = job.bounds[section]; start < end; start += Counts::RUN) {
                const int64_t stop = Counts::RUN < end - start ? start + Counts::RUN : end;
                Words run[AT_ONCE] = {};
                for (int64_t word = start; word < stop; ++word) {
                    const uint64_t one = job.left[word * TILE + row];
                    const uint64_t *right = job.right + word * TILE + first;
                    for (int64_t r = 0; r < AT_ONCE; ++r)
                        run[r] += Counts::bits(Simd::load<Words>(right + r * PAIR_LANES) ^ one);
                }
                for (int64_t r = 0; r < AT_ONCE; ++r) sums[r] += Counts::sums(run[r]);
            }
            for (int64_t r = 0; r < AT_ONCE; ++r)
                for (int64_t l = 0; l < PAIR_LANES; ++l) counts[first + r * PAIR_LANES + l] = static_cast<int32_t>(sums[r][l]);
        }
    }
}

// The pairs of one column whose score is at least as large, after those found before.
SRS_INLINE int64_t take_row(const PairJob &job, int64_t row, int64_t n_others, int64_t n_found) {
    const double n = static_cast<double>(job.n_rows), high = job.left_sums[row], weight = job.left_sums[TILE + row];
    const double *right_high = job.right_sums, *right_weight = job.right_sums + TILE;
    double scores[TILE] = {}, largest = 0.0;
    for (int64_t target = 0; target < job.n_targets; ++target) { // whole numbers below 2**53, but for scales and weights
        const double *coefficients = job.coefficients + target * job.n_sections;
        const double effect = job.left_sums[(2 + target) * TILE + row], scaled = weight * job.scales[target];
        const double *right_effect = job.right_sums + (2 + target) * TILE;
        double products[TILE] = {};
        for (int64_t section = 0; section < job.n_sections; ++section)
            for (int64_t c = 0; c < TILE; ++c) products[c] += coefficients[section] * job.counts[section * TILE + c];
        for (int64_t c = 0; c < TILE; ++c) {
            const double both = -2.0 * n * products[c] - high * right_effect[c] - effect * right_high[c];
            const double score = (both < 0.0 ? -both : both) * scaled * right_weight[c];
            scores[c] = score > scores[c] ? score : scores[c];
        }
    }
    for (int64_t c = 0; c < n_others; ++c) largest = scores[c] > largest ? scores[c] : largest;
    if (largest < job.least || largest == 0.0) return n_found;
    for (int64_t c = 0; c < n_others; ++c)
        if (scores[c] >= job.least && scores[c] > 0.0)
            job.found[n_found++] = {scores[c], static_cast<int32_t>(row), static_cast<int32_t>(c)};
    return n_found;
}

template <typename Counts> int64_t scan(const PairJob &job) {
    int64_t n_found = 0;
    for (int64_t row = 0; row < job.n_left; ++row) {
        const int64_t n_others = job.left == job.right ? row : job.n_right;
        if (n_others == 0) continue;
        count_row<Counts>(job, row);
        n_found = take_row(job, row, n_others, n_found);
    }
    return n_found;
}

#if defined(__AVX512BW__)
// By the instruction, which not every machine with the set has: written out, as the compiler may use it nowhere else.
struct WordCounts {
    static constexpr int64_t RUN = INT64_MAX / 2;
    static SRS_INLINE Words bits(const Words v) {
        Words counts;
        __asm__("vpopcntq %1, %0" : "=v"(counts) : "v"(v));
        return counts;
    }
    static SRS_INLINE Words sums(const Words counts) { return counts; }
};
#endif

} // namespace

int64_t scan_pairs(const PairJob &job) {
#if defined(__AVX512BW__)
    if (job.counts_words) return scan<WordCounts>(job);
#endif
    return scan<ByteCounts>(job);
}

} // namespace srs::SRS_ISA
