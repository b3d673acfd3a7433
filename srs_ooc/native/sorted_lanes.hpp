// The best split of many features at a node of few rows with targets, exact over codes of one byte.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.
//
// Each lane is a feature. A key is a row's code above its place in the node; a network sorts the keys of all lanes at
// once, and one pass over the places looks at every threshold. With W the node's weight and S its sum, row r counts
// e_r = s_r W - S w_r: the sum of e over the rows that go left is the D of Criterion::variance_score.

// Running sums of deviations, exact in 32 bits.
template <int REGISTERS> struct NarrowSums {
    Wide::I sum{};
    SRS_INLINE void add(const Deviations &own, const Wide::I at) { sum += Wide::look_up<REGISTERS>(own.narrow, at); }
    SRS_INLINE Wide::F reach(const Deviations &) const { return __builtin_convertvector(sum, Wide::F); } // its sign plays no part
    template <typename At> SRS_INLINE Wide::F exact(const Deviations &, int64_t, const At) {
        return __builtin_convertvector(sum, Wide::F);
    }
};

// The same in floating point, and where that could be enough, exact in 64 bits.
template <int REGISTERS> struct WideSums {
    Wide::F sum{};
    int64_t sums[Wide::WIDTH] = {}, n_added = 0;
    SRS_INLINE void add(const Deviations &own, const Wide::I at) { sum += Wide::look_up<REGISTERS>(own.rough, at); }
    SRS_INLINE Wide::F reach(const Deviations &own) const {
        return (sum < 0.0f ? -sum : sum) + own.margin;
    }
    // Of the places up to `last`; at(i): the row of each lane there.
    template <typename At> SRS_INLINE Wide::F exact(const Deviations &own, int64_t last, const At row_at) {
        for (; n_added <= last; ++n_added) {
            const Wide::I at = row_at(n_added);
            for (int l = 0; l < Wide::WIDTH; ++l) sums[l] += own.wide[at[l]];
        }
        Wide::F out{};
        for (int l = 0; l < Wide::WIDTH; ++l) out[l] = static_cast<float>(sums[l]);
        return out;
    }
};

// The splits of Wide::KEYS features at a node.
struct SortedLanes {
    static constexpr int WIDTH = Wide::WIDTH, KEYS = Wide::KEYS;
    static constexpr int64_t FEW = 8; // rows of a node where most places are as good as the best so far
    using Scan = TileScan<uint8_t>;
    const Scan &scan;
    const Deviations &own;
    static constexpr int64_t MOST = 256; // rows: a place in a node fits the lower byte of a key
    alignas(64) uint16_t keys[MOST * KEYS];

    SortedLanes(const Scan &scan, const Deviations &own) : scan(scan), own(own) {}

    // Lane l is column columns[l], or first + l; those not wanted (null: all are) are left out.
    template <typename Lines>
    SRS_INLINE void search(const Lines lines, int n_lanes, const uint32_t *hashes, const uint8_t *wanted,
                           const int32_t *columns, int64_t first, Split &best) {
        for (int from = 0; from < n_lanes; from += KEYS) {
            for (int64_t i = 0; i < scan.facts.n; ++i) {
                const uint8_t *line = lines[i] + from;
                for (int l = 0; l < KEYS; ++l) keys[i * KEYS + l] = static_cast<uint16_t>(line[l] << 8 | i);
            }
            sort();
            for (int half = 0; half < KEYS && from + half < n_lanes; half += WIDTH) {
                const int at = from + half;
                alignas(64) int32_t allowed[WIDTH];
                for (int l = 0; l < WIDTH; ++l) allowed[l] = l < n_lanes - at ? -1 : 0;
                for (int l = 0; wanted && l < WIDTH; ++l) allowed[l] = wanted[at + l] ? allowed[l] : 0;
                const Group group{keys + half, *reinterpret_cast<Wide::I *>(allowed), hashes + at,
                                  columns ? columns + at : nullptr, first + at};
                score(group, best);
            }
        }
    }

  private:
    // Features that are scored together.
    struct Group {
        const uint16_t *keys;
        Wide::I allowed;
        const uint32_t *hashes;
        const int32_t *columns;
        int64_t first;

        SRS_INLINE Wide::I line(int64_t i) const {
            return __builtin_convertvector(*reinterpret_cast<const Wide::HalfK *>(keys + i * KEYS), Wide::I);
        }
    };

    SRS_INLINE void sort() { // all lanes at once
        merge_exchange(scan.facts.n, [&](int64_t low, int64_t high) { exchange(low, high); });
    }

    SRS_INLINE void exchange(int64_t low, int64_t high) {
        Wide::K *lines = reinterpret_cast<Wide::K *>(keys);
        const Wide::K a = lines[low], b = lines[high];
        lines[low] = a < b ? a : b;
        lines[high] = a < b ? b : a;
    }

    __attribute__((noinline)) void score(const Group &group, Split &best) const {
        constexpr bool MANY = WIDTH == 16;
        if (own.is_narrow) {
            if (scan.facts.n <= 2 * WIDTH && (best.column < 0 || scan.facts.n <= FEW)) return pass_all<NarrowSums<2>, 2>(group, best);
            if (scan.facts.n <= 2 * WIDTH) return pass<NarrowSums<2>, 2>(group, best);
            if (MANY && scan.facts.n <= 4 * WIDTH) return pass<NarrowSums<4>, 4>(group, best);
            return pass<NarrowSums<0>, 0>(group, best);
        }
        if (scan.facts.n <= 2 * WIDTH) return pass<WideSums<2>, 2>(group, best);
        if (MANY && scan.facts.n <= 4 * WIDTH) return pass<WideSums<4>, 4>(group, best);
        pass<WideSums<0>, 0>(group, best);
    }

    template <typename Sums, int REGISTERS> SRS_INLINE void pass(const Group &group, Split &best) const {
        const int64_t least_n = scan.facts.min_leaf, end = scan.facts.n - least_n;
        Sums sums;
        Wide::F weight{};
        float least = Wide::least_of(best);
        for (int64_t i = 0; i < end; ++i) {
            const Wide::I line = group.line(i), at = line & 255;
            sums.add(own, at);
            weight += Wide::look_up<REGISTERS>(own.weights, at);
            if (i + 1 < least_n) continue;
            const Wide::F reach = sums.reach(own), sides = weight * (own.weight - weight);
            if (!Wide::any_reaches(reach * reach, least * sides)) continue;
            const Wide::I parts = group.allowed & ((line ^ group.line(i + 1)) > 255);
            if (Wide::lanes_of(parts & (reach * reach >= least * sides)) == 0) continue;
            const Wide::F d = sums.exact(own, i, [&](int64_t k) { return group.line(k) & 255; });
            offer(group, parts, d * d / sides, line >> 8, best);
            least = Wide::least_of(best);
        }
    }

    // The best of each lane first, without a branch: where most places would be offered.
    template <typename Sums, int REGISTERS> SRS_INLINE void pass_all(const Group &group, Split &best) const {
        const int64_t least_n = scan.facts.min_leaf, end = scan.facts.n - least_n;
        const Wide::U lane_ties = ties_of(group);
        Sums sums;
        Wide::F weight{};
        Wide::I top = Wide::I{} - 1, threshold{};
        Wide::U tie{};
        Wide::I line = group.line(0);
        for (int64_t i = 0; i < end; ++i) {
            const Wide::I at = line & 255, code = line >> 8, next = group.line(i + 1);
            sums.add(own, at);
            weight += Wide::look_up<REGISTERS>(own.weights, at);
            const Wide::F d = sums.reach(own), sides = weight * (own.weight - weight);
            const Wide::I parts = (line ^ next) > 255;
            line = next;
            if (i + 1 < least_n) continue;
            const Wide::I bits = (Wide::I)(d * d / sides);
            const Wide::U own_tie = lane_ties ^ ((Wide::U)code * TIE_FACTOR);
            const Wide::I better = parts & ((bits > top) | ((bits == top) & (own_tie > tie)));
            top = better ? bits : top;
            tie = better ? own_tie : tie;
            threshold = better ? code : threshold;
        }
        offer_lanes(scan, group.allowed & (top >= 0), top, tie, threshold, group.columns, group.first, best);
    }

    SRS_INLINE Wide::U ties_of(const Group &group) const {
        Wide::U hashes;
        __builtin_memcpy(&hashes, group.hashes, sizeof hashes);
        return DrawnLanes::mixed(hashes, scan.tie_key);
    }

    SRS_INLINE void offer(const Group &group, const Wide::I good, const Wide::F scores, const Wide::I thresholds,
                          Split &best) const {
        const Wide::I bits = (Wide::I)scores;
        if (Wide::lanes_of((bits >= best.score_bits) & good) == 0) return;
        const Wide::U ties = ties_of(group) ^ ((Wide::U)thresholds * TIE_FACTOR);
        offer_lanes(scan, good, bits, ties, thresholds, group.columns, group.first, best);
    }
};
