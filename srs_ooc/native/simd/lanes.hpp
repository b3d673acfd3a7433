// The codes of a tile's 64 features in registers, one line of them a row, and how a split sees them: missing values put below
// or above all others, categories in a keyed order.
#pragma once
#include "hash.hpp"
#include "kernels.hpp"
#include "simd/registers.hpp"

namespace srs::SRS_ISA {
namespace {

// One code of each feature of a tile, in as many registers as the instruction set needs.
template <typename Code> struct Lanes {
    typedef Code R __attribute__((vector_size(SRS_VECTOR_NBYTES), aligned(SRS_VECTOR_NBYTES), may_alias));
    static constexpr int PARTS = TILE * sizeof(Code) / SRS_VECTOR_NBYTES;
    static constexpr int64_t FLUSH = Code(-1); // rows a lane counter can hold
    R part[PARTS];

    static SRS_INLINE Lanes load(const Code *line) {
        Lanes out;
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i) out.part[i] = reinterpret_cast<const R *>(line)[i];
        return out;
    }
    SRS_INLINE void store(Code *line) const {
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i) reinterpret_cast<R *>(line)[i] = part[i];
    }
    SRS_INLINE void widen_range(Lanes &low, Lanes &high) const {
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i) {
            low.part[i] = part[i] < low.part[i] ? part[i] : low.part[i];
            high.part[i] = part[i] > high.part[i] ? part[i] : high.part[i];
        }
    }
    SRS_INLINE bool any_is(Code code) const {
#if defined(__AVX512BW__)
        const auto own = (__m512i)part[0], other = (__m512i)(R{} + code);
        if (sizeof(Code) == 1) return _mm512_cmpeq_epi8_mask(own, other) != 0;
#endif
        R any{};
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i) any |= (R)(part[i] == code);
        return Simd::any_of(any);
    }
    SRS_INLINE void count_at_most(const Lanes &thresholds, Lanes &counters) const {
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i) {
#if defined(__AVX512BW__) // compilers write the mask down first
            const __m512i x = (__m512i)part[i], limit = (__m512i)thresholds.part[i], minus = _mm512_set1_epi8(-1);
            __m512i own = (__m512i)counters.part[i];
            if (sizeof(Code) == 1) own = _mm512_mask_sub_epi8(own, _mm512_cmple_epu8_mask(x, limit), own, minus);
            else own = _mm512_mask_sub_epi16(own, _mm512_cmple_epu16_mask(x, limit), own, minus);
            counters.part[i] = (R)own;
#else
            counters.part[i] -= (R)(part[i] <= thresholds.part[i]); // a true lane is all ones, that is -1
#endif
        }
    }
};

// Adds a number of each row to the features whose code there is at most their threshold. A register
// of true and false codes is looked at as 32-bit words: the first code of each, then the second, ...
template <typename Code> struct SumLanes {
    using V = Lanes<Code>;
    static constexpr int WORDS = SRS_VECTOR_NBYTES / 4, CODES = 4 / sizeof(Code); // codes of a word
    typedef int32_t Words __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias));

    // Add the numbers of n rows, whose sum fits 32 bits, to out.
    template <typename Lines>
    static SRS_INLINE void add(const Lines lines, const int32_t *numbers, int64_t n, const Code *thresholds, int64_t *out) {
        const V limits = V::load(thresholds);
        _Pragma("GCC unroll 8") for (int part = 0; part < V::PARTS; ++part) {
            Words sums[CODES], ones[CODES];
            _Pragma("GCC unroll 4") for (int j = 0; j < CODES; ++j) {
                sums[j] = Words{};
                ones[j] = Words{} + static_cast<int32_t>(static_cast<uint32_t>(Code(-1)) << (8 * sizeof(Code) * j));
            }
            for (int64_t i = 0; i < n; ++i) {
                const auto codes = reinterpret_cast<const typename V::R *>(lines[i])[part];
                const Words most = (Words)(codes <= limits.part[part]);
                _Pragma("GCC unroll 4") for (int j = 0; j < CODES; ++j)
                    sums[j] += (Words)((most & ones[j]) == ones[j]) & numbers[i];
            }
            int32_t some[CODES][WORDS];
            __builtin_memcpy(some, sums, sizeof some);
            int64_t *target = out + part * WORDS * CODES;
            for (int w = 0; w < WORDS; ++w)
                for (int j = 0; j < CODES; ++j) target[w * CODES + j] += some[j][w];
        }
    }
};

// Codes as a split sees them: missing values put below or above all others, categories in a keyed order.
template <typename Code> constexpr Code MISSING = static_cast<Code>(-1);

// The same for the 64 features of a tile, and a shift by one where missing values go below.
template <typename Code> struct LaneMap {
    using V = Lanes<Code>;
    using R = typename V::R;
    using Map = CategoryMap<Code>;
    alignas(64) Code shift[TILE], mapped[TILE], flip[TILE], factors[3][TILE]; // mapped: all ones for categories
    bool any_mapped;

    // Features that are categories get their bijections, all others a shift by one.
    void set(const uint8_t *categorical, const uint32_t *hashes, const LaneKey &key) {
        any_mapped = categorical != nullptr;
        for (int l = 0; l < TILE; ++l) shift[l] = 1;
        for (int l = 0; any_mapped && l < TILE; ++l) {
            const Map map(key(hashes[l]));
            mapped[l] = static_cast<Code>(-int(categorical[l]));
            flip[l] = map.flip;
            for (int j = 0; j < 3; ++j) factors[j][l] = map.factors[j];
        }
    }

    SRS_INLINE V apply(const Code *line) const {
        V out = V::load(line);
        const V by = V::load(shift);
        if (!any_mapped) {
            _Pragma("GCC unroll 8") for (int i = 0; i < V::PARTS; ++i) out.part[i] += by.part[i];
            return out;
        }
        const V mask = V::load(mapped), flips = V::load(flip), a = V::load(factors[0]), b = V::load(factors[1]),
                c = V::load(factors[2]);
        _Pragma("GCC unroll 8") for (int i = 0; i < V::PARTS; ++i) {
            R x = (out.part[i] ^ flips.part[i]) * a.part[i];
            x = (x ^ (x >> Map::FIRST_SHIFT)) * b.part[i];
            x = (x ^ (x >> Map::SECOND_SHIFT)) * c.part[i];
            out.part[i] = (x & mask.part[i]) | ((out.part[i] + by.part[i]) & ~mask.part[i]);
        }
        return out;
    }
};

// The lines of a node's rows in a tile of the block.
template <typename Code> struct BlockLines {
    static constexpr int64_t CHUNK = int64_t(1) << 40;
    const Code *tile;
    const int32_t *rows;
    SRS_INLINE const Code *operator[](int64_t i) const { return tile + int64_t(rows[i]) * TILE; }
    SRS_INLINE BlockLines from(int64_t i) const { return {tile, rows + i}; }
    SRS_INLINE BlockLines chunk(int64_t) const { return *this; }
};

// Lines copied for one node, in the order of its rows.
template <typename Code> struct NodeLines {
    static constexpr int64_t CHUNK = int64_t(1) << 40;
    const Code *lines;
    SRS_INLINE const Code *operator[](int64_t i) const { return lines + i * TILE; }
    SRS_INLINE NodeLines from(int64_t i) const { return {lines + i * TILE}; }
    SRS_INLINE NodeLines chunk(int64_t) const { return *this; }
    SRS_INLINE operator BlockLines<Code>() const { return {lines, nullptr}; } // to be looked at through MappedLines
};

// Either kind of lines seen through a map, a chunk at a time.
template <typename Code> struct MappedLines {
    static constexpr int64_t CHUNK = 255;
    BlockLines<Code> lines; // of copied ones the rows are null
    const LaneMap<Code> *map;
    Code *buffer; // [CHUNK][TILE]
    int64_t first = 0;
    SRS_INLINE Lanes<Code> operator[](int64_t i) const {
        return map->apply(lines.tile + (lines.rows ? lines.rows[first + i] : first + i) * TILE);
    }
    SRS_INLINE MappedLines from(int64_t i) const { return {lines, map, buffer, first + i}; }
    SRS_INLINE NodeLines<Code> chunk(int64_t n) const {
        for (int64_t i = 0; i < n; ++i) (*this)[i].store(buffer + i * TILE);
        return {buffer};
    }
};

} // namespace
} // namespace srs::SRS_ISA
