// One code of each feature of a tile, in as many registers as the instruction set needs.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

#include "registers.hpp"

template <typename Code> struct Register;
template <> struct Register<uint8_t> {
    typedef uint8_t Type __attribute__((vector_size(SRS_VECTOR_NBYTES), aligned(SRS_VECTOR_NBYTES), may_alias));
};
template <> struct Register<uint16_t> {
    typedef uint16_t Type __attribute__((vector_size(SRS_VECTOR_NBYTES), aligned(SRS_VECTOR_NBYTES), may_alias));
};

// One code of each feature of a tile, in as many registers as the instruction set needs.
template <typename Code> struct Lanes {
    using R = typename Register<Code>::Type;
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
    SRS_INLINE void clear() {
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i) part[i] = R{};
    }
    SRS_INLINE void widen_range(Lanes &low, Lanes &high) const {
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i) {
            low.part[i] = part[i] < low.part[i] ? part[i] : low.part[i];
            high.part[i] = part[i] > high.part[i] ? part[i] : high.part[i];
        }
    }
    SRS_INLINE void count_at_most(const Lanes &thresholds, Lanes &counters) const {
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i)
            counters.part[i] -= (R)(part[i] <= thresholds.part[i]); // a true lane is all ones, that is -1
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
