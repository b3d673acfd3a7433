// Rows in the order of a column, of which those of a set come first.
// Included by subsets.cpp only, inside its namespace: every clone has its own copy.

struct RowSet {
    static constexpr int64_t MOST_BITS = 512; // rows of a block that fit a register, a bit each
    uint8_t *flags;                           // [n_rows]
    bool has_bits;
    alignas(64) uint32_t bits[MOST_BITS / 32];

    void use(uint8_t *some_flags, int64_t n_rows) {
        flags = some_flags;
#if defined(__AVX512BW__)
        has_bits = n_rows <= MOST_BITS;
#else
        has_bits = n_rows < 0; // never
#endif
    }

    // The first n_in of n rows are in it, the others are not.
    SRS_INLINE void set(const uint16_t *rows, int64_t n_in, int64_t n) {
        if (has_bits) {
            __builtin_memset(bits, 0, sizeof bits);
            for (int64_t i = 0; i < n_in; ++i) bits[rows[i] >> 5] |= uint32_t(1) << (rows[i] & 31);
            return;
        }
        for (int64_t i = 0; i < n; ++i) flags[rows[i]] = i < n_in;
    }

    // Those that are fitted on.
    void set(const uint16_t *times, int64_t n_rows) {
        if (has_bits) __builtin_memset(bits, 0, sizeof bits);
        for (int64_t row = 0; row < n_rows; ++row) {
            if (has_bits) bits[row >> 5] |= uint32_t(times[row] != 0) << (row & 31);
            else flags[row] = times[row] != 0;
        }
    }

    // Write the rows that are in it to `to`, which may be `from`, and the others to `rest`; return how many are in it.
    int64_t part(const uint16_t *from, int64_t n, uint16_t *to, uint16_t *rest) const {
#if defined(__AVX512BW__)
        if (has_bits) return part_by_bits(from, n, to, rest);
#endif
        int64_t n_in = 0, n_out = 0;
        for (int64_t i = 0; i < n; ++i) {
            const uint16_t row = from[i];
            const uint8_t is_in = flags[row];
            to[n_in] = row; // one that is not in it is written over
            rest[n_out] = row;
            n_in += is_in;
            n_out += !is_in;
        }
        return n_in;
    }

  private:
#if defined(__AVX512BW__)
    SRS_INLINE int64_t part_by_bits(const uint16_t *from, int64_t n, uint16_t *to, uint16_t *rest) const {
        const __m512i words = _mm512_load_si512(bits), one = _mm512_set1_epi32(1);
        const auto all = static_cast<__mmask16>(-1); // masked: the others have undefined operands, which are warned of
        int64_t n_in = 0, n_out = 0;
        for (int64_t i = 0; i < n; i += 16) {
            const int64_t n_here = n - i < 16 ? n - i : 16;
            const auto here = static_cast<__mmask16>((1u << n_here) - 1);
            const __m512i rows = _mm512_maskz_cvtepu16_epi32(here, _mm256_maskz_loadu_epi16(here, from + i));
            const __m512i word = _mm512_maskz_permutexvar_epi32(here, _mm512_maskz_srli_epi32(here, rows, 5), words);
            const __mmask16 is_in = _mm512_mask_test_epi32_mask(here, word, _mm512_maskz_rolv_epi32(here, one, rows));
            const auto is_out = static_cast<__mmask16>(here & ~is_in);
            const int n_found = __builtin_popcount(is_in);
            // What lies behind the last row is another node's.
            _mm256_mask_storeu_epi16(to + n_in, static_cast<__mmask16>((1u << n_found) - 1),
                                     _mm512_maskz_cvtepi32_epi16(all, _mm512_maskz_compress_epi32(is_in, rows)));
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(rest + n_out), _mm512_maskz_cvtepi32_epi16(all, _mm512_maskz_compress_epi32(is_out, rows)));
            n_in += n_found;
            n_out += n_here - n_found;
        }
        return n_in;
    }
#endif
};
