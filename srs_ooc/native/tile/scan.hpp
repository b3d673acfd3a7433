// One split of each of 64 features at a node: drawn, scored, and the best of them offered.
#pragma once
#include "tile/scores.hpp"

namespace srs::SRS_ISA {
namespace {

// A split of each lane, and how it sees codes.
template <typename Code> struct RandomSplits {
    alignas(64) Code thresholds[TILE];
    int32_t how[TILE];
    Code known[TILE]; // highest code that is not a missing value
    LaneMap<Code> map;
    bool seen_through_map;
};

template <typename Code> struct RandomThresholds {
    using V = Lanes<Code>;
    const TileNode<Code> &node;

    // Draw from the ranges of codes at the node; `categorical`: [TILE], or null where no lane is;
    // lane l is column columns[l], or first + l without `columns`.
    template <typename Lines>
    SRS_INLINE void draw(const Lines lines, const Code *low, const Code *high, const uint32_t *hashes,
                         const uint8_t *categorical, const int32_t *columns, int64_t first, RandomSplits<Code> &random) const {
        random.seen_through_map = categorical || V::load(high).any_is(MISSING<Code>);
        if (random.seen_through_map) draw_mapped(lines, low, high, hashes, categorical, random);
        else draw_thresholds(low, high, hashes, random.thresholds);
        if (node.job.values) draw_values(low, high, hashes, columns, first, random);
    }

    // A threshold drawn between the values of one column; `known`: its highest code that is not a missing value.
    uint32_t value_threshold(int64_t column, uint32_t hash, int32_t how, uint32_t low, uint32_t known,
                             uint32_t threshold) const {
        if (how == MAPPED || low >= known || parts_missing(how, threshold, low, known)) return threshold;
        return values_of_codes().cut(column, value_hash(how, hash), low, known) + (how == MISSING_LEFT);
    }

  private:
    SRS_INLINE CodeValues values_of_codes() const { return {node.job.values, node.job.n_values - 1}; }

    SRS_INLINE void draw_thresholds(const Code *low, const Code *high, const uint32_t *hashes, Code *thresholds) const {
        for (int l = 0; l < TILE; ++l) {
            const uint32_t h = node.threshold_key(hashes[l]) >> 8;
            const uint32_t spread = uint32_t(high[l]) - uint32_t(low[l]);
            if (sizeof(Code) == 1) thresholds[l] = static_cast<Code>(low[l] + ((h * spread) >> 24));
            else thresholds[l] = static_cast<Code>(low[l] + ((uint64_t(h) * spread) >> 24));
        }
    }

    // Draw the thresholds of numbers again, between their values.
    SRS_APART void draw_values(const Code *low, const Code *high, const uint32_t *hashes, const int32_t *columns, int64_t first,
                               RandomSplits<Code> &random) const {
        alignas(64) int64_t places[TILE];
        alignas(64) uint32_t draws[TILE], from[TILE], to[TILE], cuts[TILE];
        for (int l = 0; l < TILE; ++l) {
            places[l] = columns ? columns[l] : first + l;
            const int32_t how = random.seen_through_map ? random.how[l] : int32_t(PLAIN);
            const Code known = random.seen_through_map ? random.known[l] : high[l];
            const bool stays = how == MAPPED || low[l] >= known || parts_missing(how, random.thresholds[l], low[l], known);
            draws[l] = value_hash(how, node.threshold_key(hashes[l]));
            from[l] = stays ? 0 : low[l];
            to[l] = stays ? 0 : known;
        }
        values_of_codes().cut_lanes(places, draws, from, to, cuts);
        for (int l = 0; l < TILE; ++l) {
            const uint32_t shift = random.seen_through_map && random.how[l] == MISSING_LEFT;
            random.thresholds[l] = to[l] ? static_cast<Code>(cuts[l] + shift) : random.thresholds[l];
        }
    }

    // Codes seen through a map at this node, and thresholds between what it makes of them.
    SRS_INLINE void draw_mapped(const BlockLines<Code> lines, const Code *low, const Code *high, const uint32_t *hashes,
                     const uint8_t *categorical, RandomSplits<Code> &random) const {
        alignas(64) Code mapped_low[TILE], mapped_high[TILE];
        random.map.set(categorical, hashes, node.category_key);
        const MappedLines<Code> mapped{lines, &random.map, nullptr};
        V lo = mapped[0], hi = lo;
        for (int64_t i = 1; i < node.stats.n; ++i) mapped[i].widen_range(lo, hi);
        lo.store(mapped_low);
        hi.store(mapped_high);
        for (int l = 0; l < TILE; ++l) {
            const uint32_t hash = node.threshold_key(hashes[l]);
            const bool is_category = categorical && categorical[l];
            const bool with_missing = !is_category && high[l] == MISSING<Code> && low[l] != MISSING<Code>;
            uint32_t from = low[l], to = high[l];
            random.how[l] = is_category ? MAPPED : PLAIN;
            random.known[l] = with_missing ? static_cast<Code>(mapped_high[l] - 1) : high[l];
            random.map.shift[l] = 0;
            if (is_category) {
                from = mapped_low[l];
                to = mapped_high[l];
            } else if (with_missing) { // one position more: missing values alone on a side
                to = mapped_high[l]; // a code above the highest, so that it is drawn as well
                random.how[l] = hash & 1 ? MISSING_LEFT : MISSING_RIGHT;
                random.map.shift[l] = hash & 1;
            }
            random.thresholds[l] = static_cast<Code>(from + ((uint64_t(hash >> 8) * (to - from)) >> 24));
        }
    }
};

// Where the lines lie that are asked for while others are looked at: so many rows, or codes, further on.
struct Ahead {
    bool is_asked = false;
    int64_t rows = 0, codes = 0;
};

template <typename Code> struct TileScan : TileNode<Code> {
    using V = Lanes<Code>;
    using TileNode<Code>::TileNode, TileNode<Code>::stats, TileNode<Code>::scratch;

    // The lowest and the highest code of each lane.
    template <typename Lines>
    SRS_INLINE void range(const Lines lines, Code *low, Code *high, const Ahead ahead = Ahead{}) const {
        V lo = V::load(lines[0]), hi = lo;
        int64_t i = 0;
        for (const int64_t end = stats.n - ahead.rows; ahead.is_asked && i < end; ++i) {
            __builtin_prefetch(lines[i + ahead.rows] + ahead.codes, 0, 2);
            V::load(lines[i]).widen_range(lo, hi);
        }
        for (; i < stats.n; ++i) V::load(lines[i]).widen_range(lo, hi);
        lo.store(low);
        hi.store(high);
    }

    // Score codes up to the thresholds going left; lanes that cannot reach `floor` get -1.
    template <typename Lines>
    SRS_INLINE void score_lines(const Lines lines, const Code *thresholds, int32_t floor, int32_t *bits) const {
        const TileCounts<Code> counts{*this};
        const TileScores<Code> scores{*this, floor};
        if (this->narrow) {
            Code *few = reinterpret_cast<Code *>(scratch.counts);
            counts.count_classes(lines, thresholds, few);
            scores.gini(few, bits);
            return;
        }
        counts.add_classes(lines, thresholds);
        scores.score_counted(bits);
    }

    // Score the split of each lane; -1 where it may not be made, or is below `floor`.
    template <typename Lines>
    SRS_INLINE void score(const Lines lines, const RandomSplits<Code> &random, int32_t floor, int32_t *bits) const {
        if (random.seen_through_map) score_mapped(lines, random, floor, bits);
        else score_lines(lines, random.thresholds, floor, bits);
    }

    SRS_APART void score_mapped(BlockLines<Code> lines, const RandomSplits<Code> &random, int32_t floor, int32_t *bits) const {
        score_lines(MappedLines<Code>{lines, &random.map, scratch.view}, random.thresholds, floor, bits);
    }

    // Offer the lanes' best; lane l is column columns[l], or first + l without `columns`.
    SRS_INLINE void offer_lanes(const int32_t *bits, const uint32_t *hashes, const RandomSplits<Code> &random,
                                const int32_t *columns, int64_t first, Split &best) const {
        for (int at = 0; at < TILE; at += Simd::WIDTH) {
            const auto own = Simd::load<Simd::I>(bits + at);
            if (Simd::lanes_of((own >= 0) & (own >= best.score_bits)) == 0) continue;
            offer_register(own, this->tie_key(Simd::load<Simd::U>(hashes + at)), best, [&](int l) {
                const int32_t how = random.seen_through_map ? random.how[at + l] : int32_t(PLAIN);
                return Split{0, 0, columns ? columns[at + l] : first + at + l, random.thresholds[at + l], how};
            });
        }
    }

    // Offer the best of a register of lanes, -1 where they are none; split_of(l): column, threshold and how of lane l.
    template <typename SplitOf>
    SRS_INLINE void offer_register(const Simd::I bits, const Simd::U ties, Split &best, const SplitOf split_of) const {
        uint32_t lanes = Simd::lanes_of((bits >= 0) & ((bits > best.score_bits) | ((bits == best.score_bits) & (ties >= best.tie))));
        if (lanes == 0) return;
        alignas(64) int32_t all_bits[Simd::WIDTH];
        alignas(64) uint32_t all_ties[Simd::WIDTH];
        *reinterpret_cast<Simd::I *>(all_bits) = bits;
        *reinterpret_cast<Simd::U *>(all_ties) = ties;
        if ((lanes & (lanes - 1)) != 0) { // several: most often one is left
            int32_t top = -1;
            for (int l = 0; l < Simd::WIDTH; ++l) top = all_bits[l] > top ? all_bits[l] : top;
            const Simd::I at_top = bits == top;
            *reinterpret_cast<Simd::U *>(all_ties) = ties & (Simd::U)at_top;
            uint32_t tie = 0;
            for (int l = 0; l < Simd::WIDTH; ++l) tie = all_ties[l] > tie ? all_ties[l] : tie;
            lanes = Simd::lanes_of(at_top & (ties == tie));
        }
        for (; lanes != 0; lanes &= lanes - 1) {
            const int l = __builtin_ctz(lanes);
            Split split = split_of(l);
            split.score_bits = all_bits[l];
            split.tie = all_ties[l];
            offer(best, split);
        }
    }

    SRS_INLINE void offer(Split &best, const Split &candidate) const {
        bool better = candidate.score_bits > best.score_bits;
        if (candidate.score_bits == best.score_bits)
            better = candidate.tie > best.tie ||
                     (candidate.tie == best.tie && this->job.features[candidate.column] < this->job.features[best.column]);
        if (better) best = candidate;
    }
};

} // namespace
} // namespace srs::SRS_ISA
