// The best split of many features at a node of many rows with targets, exact over codes of one byte.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.
//
// Each lane is a feature. A cell holds what the rows of a code count (e_r of sorted_lanes.hpp) above what they weigh,
// in one number: a row is one addition a feature, and running sums over the codes look at every threshold.

struct CellLanes {
    static constexpr int WIDTH = Wide::WIDTH, CODES = 256, WEIGHT_BITS = 20;
    static constexpr int64_t WEIGHT = (int64_t(1) << WEIGHT_BITS) - 1, MOST_SUM = int64_t(1) << (62 - WEIGHT_BITS);
    typedef int64_t Sums __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias)); // of half the lanes
    typedef float HalfF __attribute__((vector_size(SRS_VECTOR_NBYTES / 2), may_alias));
    const TileScan<uint8_t> &scan;
    const int32_t *weights, *sums; // [n] of the node's rows; no weights: each is 1
    int64_t *cells;                // [CODES][WIDTH]

    // Whether both numbers of any cell fit; a leaf's fewest rows are told by weights, so that those must be counts.
    static bool can_hold(const Facts &f, const int32_t *weights, const int32_t *sums) {
        if (f.weight > WEIGHT || (weights && f.min_leaf > 1)) return false;
        int64_t total = 0;
        for (int64_t i = 0; i < f.n && total < MOST_SUM; ++i) {
            const int64_t e = difference(sums[i], f.weight, f.sum, weights ? weights[i] : 1);
            total += e < 0 ? -e : e;
        }
        return total < MOST_SUM;
    }

    // Lane l is column columns[l], or first + l; those not wanted (null: all are) are left out.
    template <typename Lines>
    void search(const Lines lines, int n_lanes, const uint32_t *hashes, const uint8_t *wanted, const int32_t *columns,
                int64_t first, Split &best) const {
        for (int at = 0; at < n_lanes; at += WIDTH) {
            alignas(64) int32_t allowed[WIDTH];
            for (int l = 0; l < WIDTH; ++l) allowed[l] = l < n_lanes - at && (!wanted || wanted[at + l]) ? -1 : 0;
            const Wide::I lanes = *reinterpret_cast<Wide::I *>(allowed);
            if (Wide::lanes_of(lanes) == 0) continue;
            Wide::U own;
            __builtin_memcpy(&own, hashes + at, sizeof own);
            const Wide::U ties = DrawnLanes::mixed(own, scan.tie_key);
            count(lines, at);
            pass(lanes, ties, columns ? columns + at : nullptr, first + at, best);
        }
    }

  private:
    template <typename Lines> SRS_INLINE void count(const Lines lines, int at) const {
        const Facts &f = scan.facts;
        __builtin_memset(cells, 0, sizeof(int64_t) * CODES * WIDTH);
        for (int64_t i = 0; i < f.n; ++i) {
            const uint8_t *line = lines[i] + at;
            const int64_t weight = weights ? weights[i] : 1;
            const int64_t both = difference(sums[i], f.weight, f.sum, weight) * (WEIGHT + 1) + weight;
            _Pragma("GCC unroll 16") for (int l = 0; l < WIDTH; ++l) cells[line[l] * WIDTH + l] += both;
        }
    }

    static SRS_INLINE Wide::F both(const HalfF low, const HalfF high) {
        Wide::F out;
        __builtin_memcpy(&out, &low, sizeof low);
        __builtin_memcpy(reinterpret_cast<char *>(&out) + sizeof low, &high, sizeof high);
        return out;
    }

    static SRS_INLINE Wide::F sums_of(const Sums low, const Sums high) {
        return both(__builtin_convertvector(low >> WEIGHT_BITS, HalfF), __builtin_convertvector(high >> WEIGHT_BITS, HalfF));
    }

    static SRS_INLINE Wide::F weights_of(const Sums low, const Sums high) {
        return both(__builtin_convertvector(low & WEIGHT, HalfF), __builtin_convertvector(high & WEIGHT, HalfF));
    }

    SRS_INLINE void pass(const Wide::I allowed, const Wide::U ties, const int32_t *columns, int64_t first, Split &best) const {
        const Facts &f = scan.facts;
        const float all = static_cast<float>(f.weight), fewest = static_cast<float>(f.min_leaf);
        const Sums *next = reinterpret_cast<const Sums *>(cells);
        Sums low{}, high{};
        float least = Wide::least_of(best);
        for (int code = 0; code < CODES; ++code, next += 2) {
            low += next[0];
            high += next[1];
            const Wide::F weight = weights_of(low, high), other = all - weight, sides = weight * other;
            const Wide::F d = sums_of(low, high), square = d * d;
            if (!Wide::any_reaches(square, least * sides)) continue;
            const Wide::I good = allowed & (weights_of(next[0], next[1]) > 0.0f) & (weight >= fewest) & (other >= fewest) &
                                 (square >= least * sides);
            if (Wide::lanes_of(good) == 0) continue;
            const Wide::U own = ties ^ (static_cast<uint32_t>(code) * TIE_FACTOR);
            offer_lanes(scan, good, (Wide::I)(square / sides), own, Wide::I{} + code, columns, first, best);
            least = Wide::least_of(best);
        }
    }
};
