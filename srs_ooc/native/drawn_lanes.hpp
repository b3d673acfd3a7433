// A drawn split of each of many features at a node of few rows with targets, a register of features at a time.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.
//
// Scores and ties are those of TileScan; e_r of sorted_lanes.hpp stands for a row's target.

struct DrawnLanes {
    static constexpr int WIDTH = Wide::WIDTH;
    static constexpr int64_t TILED = 48; // rows up to which it is faster where all lanes of a tile are in use
    typedef uint8_t Few __attribute__((vector_size(Wide::WIDTH), may_alias));
    const TileScan<uint8_t> &scan;
    const Deviations &own;

    // Offer the best of n_lanes features without missing values, whose codes at the node are from low to high.
    // Lane l is column columns[l], or first + l; those not wanted (null: all are) are left out.
    template <typename Lines>
    SRS_INLINE void search(const Lines lines, int n_lanes, const uint8_t *low, const uint8_t *high, const uint32_t *hashes,
                           const uint8_t *wanted, const int32_t *columns, int64_t first, Split &best) const {
        for (int at = 0; at < n_lanes; at += WIDTH) {
            alignas(64) int32_t allowed[WIDTH];
            for (int l = 0; l < WIDTH; ++l) allowed[l] = l < n_lanes - at ? -1 : 0;
            for (int l = 0; wanted && l < WIDTH; ++l) allowed[l] = wanted[at + l] ? allowed[l] : 0;
            Wide::U own_hashes;
            __builtin_memcpy(&own_hashes, hashes + at, sizeof own_hashes);
            const Wide::I from = line(low + at), to = line(high + at);
            const Wide::U draws = mixed(own_hashes, scan.threshold_key) >> 8; // as TileDraw::draw_thresholds
            const Wide::I threshold = from + (Wide::I)((draws * (Wide::U)(to - from)) >> 24);
            Wide::I good = *reinterpret_cast<Wide::I *>(allowed);
            Wide::F square, sides;
            if (own.is_narrow) score<int32_t>(lines, at, own.narrow, threshold, good, square, sides);
            else score<int64_t>(lines, at, own.wide, threshold, good, square, sides);
            if (!Wide::any_reaches(square, Wide::least_of(best) * sides)) continue; // none is as good as the best so far
            offer_lanes(scan, good, (Wide::I)(square / sides), mixed(own_hashes, scan.tie_key), threshold,
                        columns ? columns + at : nullptr, first + at, best);
        }
    }

    static SRS_INLINE Wide::U mixed(Wide::U hashes, const LaneKey &key) { // as LaneKey, as mix32
        Wide::U x = (hashes ^ key.low) + key.high;
        x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
        x = (x ^ (x >> 13)) * 0xC2B2AE35u;
        return x ^ (x >> 16);
    }

  private:
    static SRS_INLINE Wide::I line(const uint8_t *codes) {
        Few few; // by two steps, which are an instruction each
        __builtin_memcpy(&few, codes, sizeof few);
        return __builtin_convertvector(__builtin_convertvector(few, Wide::HalfK), Wide::I);
    }

    // Both terms of the scores; lanes whose sides are too small are not good.
    template <typename Int, typename Lines>
    SRS_INLINE void score(const Lines lines, int at, const Int *deviations, const Wide::I threshold, Wide::I &good,
                          Wide::F &square, Wide::F &sides) const {
        typedef Int Sums __attribute__((vector_size(sizeof(Int) * WIDTH), may_alias));
        const Facts &f = scan.facts;
        Sums sum{};
        Wide::F weight{};
        Wide::I count{};
        for (int64_t i = 0; i < f.n; ++i) {
            const Wide::I left = line(lines[i] + at) <= threshold;
            sum += __builtin_convertvector(left, Sums) & deviations[i];
            weight += (Wide::F)(left & (Wide::I)(Wide::F{} + own.weights[i]));
            count -= left;
        }
        const Wide::F d = __builtin_convertvector(sum, Wide::F);
        square = d * d;
        sides = weight * (own.weight - weight);
        const int32_t n = static_cast<int32_t>(f.n), least = static_cast<int32_t>(f.min_leaf);
        good &= (count >= least) & (n - count >= least);
    }
};
