// The best split of many features at a node with targets, exact over codes of one byte, a register of features at a time.
#pragma once
#include "targets/random.hpp"

namespace srs::SRS_ISA {
namespace {

// Of few rows. Each lane is a feature. A key is a row's code above its place in the node; a network sorts the keys of all lanes at
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

// Of many rows. Each lane is a feature. A cell holds what the rows of a code count (e_r, as above) above what they weigh,
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

} // namespace
} // namespace srs::SRS_ISA
