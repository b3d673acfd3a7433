// One code of each feature of a tile, in as many registers as the instruction set needs.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.



#if defined(__AVX512BW__)
#define SRS_VECTOR_NBYTES 64
#elif defined(__AVX2__)
#define SRS_VECTOR_NBYTES 32
#else
#define SRS_VECTOR_NBYTES 16
#endif

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
