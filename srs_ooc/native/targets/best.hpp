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
    Simd::I sum{};
    SRS_INLINE void add(const Deviations &own, const Simd::I at) { sum += Simd::look_up<REGISTERS>(own.narrow, at); }
    SRS_INLINE Simd::F reach(const Deviations &) const { return __builtin_convertvector(sum, Simd::F); } // its sign plays no part
    template <typename At> SRS_INLINE Simd::F exact(const Deviations &, int64_t, const At) {
        return __builtin_convertvector(sum, Simd::F);
    }
};

// The same in floating point, and where that could be enough, exact in 64 bits.
template <int REGISTERS> struct WideSums {
    Simd::F sum{};
    int64_t sums[Simd::WIDTH] = {}, n_added = 0;
    SRS_INLINE void add(const Deviations &own, const Simd::I at) { sum += Simd::look_up<REGISTERS>(own.rough, at); }
    SRS_INLINE Simd::F reach(const Deviations &own) const {
        return (sum < 0.0f ? -sum : sum) + own.margin;
    }
    // Of the places up to `last`; at(i): the row of each lane there.
    template <typename At> SRS_INLINE Simd::F exact(const Deviations &own, int64_t last, const At row_at) {
        for (; n_added <= last; ++n_added) {
            const Simd::I at = row_at(n_added);
            for (int l = 0; l < Simd::WIDTH; ++l) sums[l] += own.wide[at[l]];
        }
        Simd::F out{};
        for (int l = 0; l < Simd::WIDTH; ++l) out[l] = static_cast<float>(sums[l]);
        return out;
    }
};

// The splits of Simd::KEYS features at a node.
struct SortedLanes {
    static constexpr int WIDTH = Simd::WIDTH, KEYS = Simd::KEYS;
    static constexpr int64_t MAX_PASS_ALL = 8; // rows of a node where most places are as good as the best so far
    using Scan = TileScan<uint8_t>;
    const Scan &scan;
    const Deviations &own;
    static constexpr int64_t MAX_ROWS = 256; // rows: a place in a node fits the lower byte of a key
    alignas(64) uint16_t keys[MAX_ROWS * KEYS];

    SortedLanes(const Scan &scan, const Deviations &own) : scan(scan), own(own) {}

    // Lane l is column columns[l], or first + l; those not wanted (null: all are) are left out.
    template <typename Lines>
    SRS_INLINE void search(const Lines lines, int n_lanes, const uint32_t *hashes, const uint8_t *wanted,
                           const int32_t *columns, int64_t first, Split &best) {
        for (int from = 0; from < n_lanes; from += KEYS) {
            for (int64_t i = 0; i < scan.stats.n; ++i) {
                const uint8_t *line = lines[i] + from;
                for (int l = 0; l < KEYS; ++l) keys[i * KEYS + l] = static_cast<uint16_t>(line[l] << 8 | i);
            }
            sort_lanes<Simd::K>(keys, scan.stats.n);
            for (int half = 0; half < KEYS && from + half < n_lanes; half += WIDTH) {
                const int at = from + half;
                const Group group{keys + half, lanes_wanted(n_lanes - at, wanted ? wanted + at : nullptr), hashes + at,
                                  columns ? columns + at : nullptr, first + at};
                score(group, best);
            }
        }
    }

  private:
    // Features that are scored together.
    struct Group {
        const uint16_t *keys;
        Simd::I allowed;
        const uint32_t *hashes;
        const int32_t *columns;
        int64_t first;

        SRS_INLINE Simd::I line(int64_t i) const { return (Simd::I)Simd::widened(keys + i * KEYS); }
    };

    SRS_APART void score(const Group &group, Split &best) const {
        constexpr bool MANY = WIDTH == 16; // else a table of rows is looked up in memory, however many there are
        constexpr int FEW = MANY ? 2 : 0;
        if (own.is_narrow) {
            const bool is_few = scan.stats.n <= 2 * WIDTH;
            if (is_few && (best.column < 0 || scan.stats.n <= MAX_PASS_ALL)) return pass_all<NarrowSums<FEW>, FEW>(group, best);
            if (MANY && is_few) return pass<NarrowSums<FEW>, FEW>(group, best);
            if (MANY && scan.stats.n <= 4 * WIDTH) return pass<NarrowSums<2 * FEW>, 2 * FEW>(group, best);
            return pass<NarrowSums<0>, 0>(group, best);
        }
        if (MANY && scan.stats.n <= 2 * WIDTH) return pass<WideSums<FEW>, FEW>(group, best);
        if (MANY && scan.stats.n <= 4 * WIDTH) return pass<WideSums<2 * FEW>, 2 * FEW>(group, best);
        pass<WideSums<0>, 0>(group, best);
    }

    template <typename Sums, int REGISTERS> SRS_INLINE void pass(const Group &group, Split &best) const {
        const int64_t least_n = scan.stats.min_leaf, end = scan.stats.n - least_n;
        Sums sums;
        Simd::F weight{};
        float least = least_of(best.score_bits);
        for (int64_t i = 0; i < end; ++i) {
            const Simd::I line = group.line(i), at = line & 255;
            sums.add(own, at);
            weight += Simd::look_up<REGISTERS>(own.weights, at);
            if (i + 1 < least_n) continue;
            const Simd::F reach = sums.reach(own), sides = weight * (own.weight - weight);
            if (!Simd::any_reaches(reach * reach, least * sides)) continue;
            const Simd::I parts = group.allowed & ((line ^ group.line(i + 1)) > 255);
            if (Simd::lanes_of(parts & (reach * reach >= least * sides)) == 0) continue;
            const Simd::F d = sums.exact(own, i, [&](int64_t k) { return group.line(k) & 255; });
            offer(group, parts, d * d / sides, line >> 8, best);
            least = least_of(best.score_bits);
        }
    }

    // The best of each lane first, without a branch: where most places would be offered.
    template <typename Sums, int REGISTERS> SRS_INLINE void pass_all(const Group &group, Split &best) const {
        const int64_t least_n = scan.stats.min_leaf, end = scan.stats.n - least_n;
        const Simd::U lane_ties = ties_of(group);
        Sums sums;
        Simd::F weight{};
        Simd::I top = Simd::I{} - 1, threshold{};
        Simd::U tie{};
        Simd::I line = group.line(0);
        for (int64_t i = 0; i < end; ++i) {
            const Simd::I at = line & 255, code = line >> 8, next = group.line(i + 1);
            sums.add(own, at);
            weight += Simd::look_up<REGISTERS>(own.weights, at);
            const Simd::F d = sums.reach(own), sides = weight * (own.weight - weight);
            const Simd::I parts = (line ^ next) > 255;
            line = next;
            if (i + 1 < least_n) continue;
            const Simd::I bits = (Simd::I)(d * d / sides);
            const Simd::U own_tie = lane_ties ^ ((Simd::U)code * TIE_FACTOR);
            const Simd::I better = parts & ((bits > top) | ((bits == top) & (own_tie > tie)));
            top = better ? bits : top;
            tie = better ? own_tie : tie;
            threshold = better ? code : threshold;
        }
        offer_lanes(scan, group.allowed & (top >= 0), top, tie, threshold, group.columns, group.first, best);
    }

    SRS_INLINE Simd::U ties_of(const Group &group) const {
        return scan.tie_key(Simd::load<Simd::U>(group.hashes));
    }

    SRS_INLINE void offer(const Group &group, const Simd::I good, const Simd::F scores, const Simd::I thresholds,
                          Split &best) const {
        const Simd::I bits = (Simd::I)scores;
        if (Simd::lanes_of((bits >= best.score_bits) & good) == 0) return;
        const Simd::U ties = ties_of(group) ^ ((Simd::U)thresholds * TIE_FACTOR);
        offer_lanes(scan, good, bits, ties, thresholds, group.columns, group.first, best);
    }
};

// Of many rows. Each lane is a feature. A cell holds what the rows of a code count (e_r, as above) above what they weigh,
// in one number: a row is one addition a feature, and running sums over the codes look at every threshold.
struct CellLanes {
    static constexpr int WIDTH = Simd::WIDTH, CODES = 256, WEIGHT_BITS = 20;
    static constexpr int64_t WEIGHT = (int64_t(1) << WEIGHT_BITS) - 1, MAX_SUM = int64_t(1) << (62 - WEIGHT_BITS);
    typedef int64_t Sums __attribute__((vector_size(SRS_VECTOR_NBYTES), may_alias)); // of half the lanes
    using HalfF = Simd::HalfF;
    const TileScan<uint8_t> &scan;
    const int32_t *weights, *sums; // [n] of the node's rows; no weights: each is 1
    int64_t *cells;                // [CODES][WIDTH]

    // Whether both numbers of any cell fit; a leaf's fewest rows are told by weights, so that those must be counts.
    static bool can_hold(const NodeStats &f, const int32_t *weights, const int32_t *sums) {
        if (f.weight > WEIGHT || (weights && f.min_leaf > 1)) return false;
        int64_t total = 0;
        for (int64_t i = 0; i < f.n && total < MAX_SUM; ++i) {
            const int64_t e = difference(sums[i], f.weight, f.sum, weights ? weights[i] : 1);
            total += e < 0 ? -e : e;
        }
        return total < MAX_SUM;
    }

    // Lane l is column columns[l], or first + l; those not wanted (null: all are) are left out.
    template <typename Lines>
    void search(const Lines lines, int n_lanes, const uint32_t *hashes, const uint8_t *wanted, const int32_t *columns,
                int64_t first, Split &best) const {
        for (int at = 0; at < n_lanes; at += WIDTH) {
            const Simd::I lanes = lanes_wanted(n_lanes - at, wanted ? wanted + at : nullptr);
            if (Simd::lanes_of(lanes) == 0) continue;
            count(lines, at);
            pass(lanes, scan.tie_key(Simd::load<Simd::U>(hashes + at)), columns ? columns + at : nullptr, first + at, best);
        }
    }

  private:
    template <typename Lines> SRS_INLINE void count(const Lines lines, int at) const {
        const NodeStats &f = scan.stats;
        __builtin_memset(cells, 0, sizeof(int64_t) * CODES * WIDTH);
        for (int64_t i = 0; i < f.n; ++i) {
            const uint8_t *line = lines[i] + at;
            const int64_t weight = weights ? weights[i] : 1;
            const int64_t both = difference(sums[i], f.weight, f.sum, weight) * (WEIGHT + 1) + weight;
            _Pragma("GCC unroll 16") for (int l = 0; l < WIDTH; ++l) cells[line[l] * WIDTH + l] += both;
        }
    }

    static SRS_INLINE Simd::F both(const HalfF low, const HalfF high) {
        Simd::F out;
        __builtin_memcpy(&out, &low, sizeof low);
        __builtin_memcpy(reinterpret_cast<char *>(&out) + sizeof low, &high, sizeof high);
        return out;
    }

    static SRS_INLINE Simd::F sums_of(const Sums low, const Sums high) {
        return both(__builtin_convertvector(low >> WEIGHT_BITS, HalfF), __builtin_convertvector(high >> WEIGHT_BITS, HalfF));
    }

    static SRS_INLINE Simd::F weights_of(const Sums low, const Sums high) {
        return both(__builtin_convertvector(low & WEIGHT, HalfF), __builtin_convertvector(high & WEIGHT, HalfF));
    }

    SRS_INLINE void pass(const Simd::I allowed, const Simd::U ties, const int32_t *columns, int64_t first, Split &best) const {
        const NodeStats &f = scan.stats;
        const float all = static_cast<float>(f.weight), fewest = static_cast<float>(f.min_leaf);
        const Sums *next = reinterpret_cast<const Sums *>(cells);
        Sums low{}, high{};
        float least = least_of(best.score_bits);
        for (int code = 0; code < CODES; ++code, next += 2) {
            low += next[0];
            high += next[1];
            const Simd::F weight = weights_of(low, high), other = all - weight, sides = weight * other;
            const Simd::F d = sums_of(low, high), square = d * d;
            if (!Simd::any_reaches(square, least * sides)) continue;
            const Simd::I good = allowed & (weights_of(next[0], next[1]) > 0.0f) & (weight >= fewest) & (other >= fewest) &
                                 (square >= least * sides);
            if (Simd::lanes_of(good) == 0) continue;
            const Simd::U own = ties ^ (static_cast<uint32_t>(code) * TIE_FACTOR);
            offer_lanes(scan, good, (Simd::I)(square / sides), own, Simd::I{} + code, columns, first, best);
            least = least_of(best.score_bits);
        }
    }
};

} // namespace
} // namespace srs::SRS_ISA
