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

// Adds a number of each row to the features whose code there is at most their threshold.
template <typename Code> struct SumLanes {
    static constexpr int WIDTH = SRS_VECTOR_NBYTES / 4, AT_ONCE = 4; // features a register, registers
    typedef int32_t Wide __attribute__((vector_size(SRS_VECTOR_NBYTES), aligned(4), may_alias));
    typedef Code Narrow __attribute__((vector_size(WIDTH * sizeof(Code)), aligned(sizeof(Code)), may_alias));

    static SRS_INLINE Wide widened(const Code *codes) {
        return __builtin_convertvector(*reinterpret_cast<const Narrow *>(codes), Wide);
    }

    // Add the numbers of n rows, whose sum fits 32 bits, to out.
    template <typename Lines>
    static SRS_INLINE void add(const Lines lines, const int32_t *numbers, int64_t n, const Code *thresholds, int64_t *out) {
        for (int first = 0; first < TILE; first += AT_ONCE * WIDTH) {
            Wide limits[AT_ONCE], sums[AT_ONCE];
            _Pragma("GCC unroll 4") for (int j = 0; j < AT_ONCE; ++j) {
                limits[j] = widened(thresholds + first + j * WIDTH);
                sums[j] = Wide{};
            }
            for (int64_t i = 0; i < n; ++i) {
                const Code *line = lines[i] + first;
                _Pragma("GCC unroll 4") for (int j = 0; j < AT_ONCE; ++j)
                    sums[j] += (Wide)(widened(line + j * WIDTH) <= limits[j]) & numbers[i];
            }
            alignas(64) int32_t some[AT_ONCE * WIDTH];
            _Pragma("GCC unroll 4") for (int j = 0; j < AT_ONCE; ++j)
                *reinterpret_cast<Wide *>(some + j * WIDTH) = sums[j];
            for (int l = 0; l < AT_ONCE * WIDTH; ++l) out[first + l] += some[l];
        }
    }
};
