// Columns of a block, each with rows in the order of its codes, a node's together, and the rows that a node is asked about.
#pragma once
#include "hash.hpp"
#include "kernels.hpp"
#include "score.hpp"
#include "simd/registers.hpp"

namespace srs::SRS_ISA {
namespace {

// The best split of a node so far, ordered as Split.
struct Found {
    int32_t bits = -1, n_left = 0; // of its score; rows that go left
    uint32_t tie = 0, threshold = 0;
    int64_t member = -1;
};

constexpr int64_t SPARE = 16; // entries behind the last that may be written

// A node, and the rows that are asked about in it.
struct HeldNode {
    int32_t start, n, held, n_held, depth; // its rows, those to predict
    uint64_t key;
    int64_t total;                         // of its targets; of two classes, rows of the second
};

// Rows to predict, by their places among all of them; a node's lie together.
struct HeldRows {
    uint16_t *places, *spare; // [most rows to predict]

    void carve(Arena &arena, int64_t most) {
        places = arena.take<uint16_t>(most);
        spare = arena.take<uint16_t>(most);
    }

    void take_all(int64_t n) {
        for (int64_t i = 0; i < n; ++i) places[i] = static_cast<uint16_t>(i);
    }

    // Those of a node that go left come first; how many.
    template <typename GoesLeft> SRS_INLINE int32_t part(const HeldNode &node, const GoesLeft goes_left) {
        int32_t n_left = 0, n_right = 0;
        for (int32_t i = node.held; i < node.held + node.n_held; ++i) {
            const uint16_t place = places[i];
            const bool left = goes_left(place);
            places[node.held + n_left] = place;
            spare[n_right] = place;
            n_left += left;
            n_right += !left;
        }
        for (int32_t i = 0; i < n_right; ++i) places[node.held + n_left + i] = spare[i];
        return n_left;
    }
};

// Rows in the order of a column, of which those of a set come first.
struct RowSet {
    static constexpr int64_t MAX_BITS = 512; // rows of a block that fit a register, a bit each
    uint8_t *flags;                           // [n_rows]
    bool has_bits;
    alignas(64) uint32_t bits[MAX_BITS / 32];

    void use(uint8_t *some_flags, int64_t n_rows) {
        flags = some_flags;
#if defined(__AVX512BW__)
        has_bits = n_rows <= MAX_BITS;
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

// The columns that a tree grows on.
struct Members {
    const uint32_t *features; // of the block's columns
    const int32_t *places;    // [n_members] columns of the block
    int64_t n_members;

    SRS_INLINE uint32_t feature(int64_t member) const { return features[places[member]]; }

    SRS_INLINE void offer(Found &best, const Found &found) const {
        if (found.bits < best.bits || (found.bits == best.bits && found.tie < best.tie)) return;
        const bool equal = found.bits == best.bits && found.tie == best.tie;
        if (equal && best.member >= 0 && feature(found.member) >= feature(best.member)) return;
        best = found;
    }
};

// Each with the rows of the tree in the order of its codes; a node's rows lie together in every one.
template <typename Code> struct PresortedColumns : Members {
    const Code *codes; // [column of the block][n_rows], nothing missing
    int64_t n_rows;
    RowSet row_set;
    // Scratch.
    int64_t max_fitted;
    uint16_t *orders; // [most members][max_fitted] rows of each column by code
    uint16_t *spare;  // [n_rows + max_fitted]

    explicit PresortedColumns(const PresortedJob &job) : codes(static_cast<const Code *>(job.codes)), n_rows(job.n_rows) {
        features = job.features;
    }

    void carve(Arena &arena, int64_t max_members, int64_t max_rows) {
        max_fitted = max_rows;
        orders = arena.take<uint16_t>(max_members * max_fitted + n_rows);
        spare = arena.take<uint16_t>(n_rows + max_fitted + 2 * SPARE);
        row_set.use(arena.take<uint8_t>(n_rows), n_rows);
    }

    SRS_INLINE const Code *column(int64_t member) const { return codes + places[member] * n_rows; }
    SRS_INLINE uint16_t *order_of(int64_t member, const HeldNode &node) const {
        return orders + member * max_fitted + node.start;
    }

    bool is_complete(int64_t n_columns) const {
        Code highest = 0;
        for (int64_t i = 0; i < n_columns * n_rows; ++i) highest = codes[i] > highest ? codes[i] : highest;
        return highest != static_cast<Code>(-1);
    }

    // Rows by ascending code, equal ones in the order of row_at(0 .. n - 1): by the lowest byte, then by the next.
    template <typename RowAt> void sort(const Code *own, const RowAt row_at, int64_t n, uint16_t *order) {
        int32_t starts[2][256];
        __builtin_memset(starts, 0, sizeof starts);
        for (int64_t i = 0; i < n; ++i) {
            const uint32_t code = own[row_at(i)];
            ++starts[0][code & 255];
            ++starts[1][code >> 8];
        }
        for (int byte = 0; byte < int(sizeof(Code)); ++byte) {
            int32_t before = 0;
            for (int b = 0; b < 256; ++b) {
                const int32_t count = starts[byte][b];
                starts[byte][b] = before;
                before += count;
            }
        }
        uint16_t *first = sizeof(Code) == 1 ? order : spare;
        for (int64_t i = 0; i < n; ++i) {
            const auto row = static_cast<uint16_t>(row_at(i));
            first[starts[0][own[row] & 255]++] = row;
        }
        if (sizeof(Code) == 1) return;
        for (int64_t i = 0; i < n; ++i) order[starts[1][own[first[i]] >> 8]++] = first[i];
    }

    // Fill the orders from those of all rows, each row as often as it is fitted on.
    void take_orders(const uint16_t *sorted, const uint16_t *times, int64_t n_fitted) {
        row_set.set(times, n_rows);
        for (int64_t m = 0; m < n_members; ++m) {
            uint16_t *to = orders + m * max_fitted;
            const int64_t n_distinct = row_set.part(sorted + places[m] * n_rows, n_rows, to, spare);
            for (int64_t i = n_distinct, at = n_fitted; i < at;) { // the last ones first: they go further back
                const uint16_t row = to[--i];
                for (int32_t more = times[row]; more > 0; --more) to[--at] = row;
            }
        }
    }

    // Each column's rows that go left come first; what goes to a side that is not split so is not kept.
    void part(const HeldNode &node, const Found &split, bool any_left, bool any_right) {
        if (!any_left && !any_right) return;
        row_set.set(order_of(split.member, node), split.n_left, node.n);
        for (int64_t m = 0; m < n_members; ++m) {
            if (m == split.member) continue;
            uint16_t *order = order_of(m, node);
            row_set.part(order, node.n, order, spare);
            if (any_right)
                __builtin_memcpy(order + split.n_left, spare, sizeof(uint16_t) * static_cast<size_t>(node.n - split.n_left));
        }
    }
};

} // namespace
} // namespace srs::SRS_ISA
