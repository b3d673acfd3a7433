// What a candidate split is worth, and where its threshold lies: integers decide, floats only rank.
#pragma once
#include "hash.hpp"
#include "kernels.hpp"
#include "simd/registers.hpp"

namespace srs::SRS_ISA {
namespace {

// A node, and the classes that have rows in it; a regression's rows are all of one class.
struct NodeStats {
    int64_t n, min_leaf, n_present, width;
    const int32_t *present; // [n_present] classes with rows here
    const int64_t *counts;  // [n_present] their rows
    const int64_t *stats;   // [n_present][width] their rows, then the sums of their channels
    int64_t largest;        // the largest of the counts
    int64_t weight, sum;    // of the node; the sum of its targets, for VARIANCE
};

// The best candidate so far, ordered by score, then tie hash, then smaller feature.
struct Split {
    int32_t score_bits = -1; // a non-negative float compares as its bits do; -1: none
    uint32_t tie = 0;
    int64_t column = -1;
    uint32_t threshold = 0;
    int32_t how = PLAIN;
};

SRS_INLINE int32_t bits_of(float x) {
    int32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

SRS_INLINE float float_of(int32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

constexpr uint32_t TIE_FACTOR = 0x9E3779B1u; // odd, so that no two thresholds of a feature tie

// a b - c d where that fits 64 bits, even if the products do not.
SRS_INLINE int64_t difference(int64_t a, int64_t b, int64_t c, int64_t d) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) -
                                static_cast<uint64_t>(c) * static_cast<uint64_t>(d));
}

struct Criterion {
    Impurity impurity;
    const int64_t *xlogx;
    double root_scale;

    SRS_INLINE int64_t weight_of(const NodeStats &f, const int64_t *stats) const {
        const int64_t at = impurity == VARIANCE ? f.width - 2 : f.width - 1; // in the stats of a class
        int64_t weight = 0;
        for (int64_t k = 0; k < f.n_present; ++k) weight += stats[k * f.width + at];
        return weight;
    }

    // Gini: sum over classes of D_k^2 / (left right), D_k = left_k all - all_k left, in weights.
    SRS_INLINE float gini_score(const NodeStats &f, const int64_t *left, int64_t weight) const {
        float sum = 0.0f;
        for (int64_t k = 0; k < f.n_present; ++k) {
            const int64_t i = (k + 1) * f.width - 1;
            const float d = static_cast<float>(difference(left[i], f.weight, f.stats[i], weight));
            sum = sum + d * d;
        }
        return sum / (static_cast<float>(weight) * static_cast<float>(f.weight - weight));
    }

    // Variance: D^2 / (left right), D = left sum all - sum left.
    SRS_INLINE float variance_score(const NodeStats &f, const int64_t *left, int64_t weight) const {
        const float d = static_cast<float>(difference(left[f.width - 1], f.weight, f.sum, weight));
        return d * d / (static_cast<float>(weight) * static_cast<float>(f.weight - weight));
    }

    // Entropy: n H - n_left H_left - n_right H_right in table units; at least 1 where any D_k is not 0.
    int64_t entropy_gain(const NodeStats &f, const int64_t *left, int64_t n_left) const {
        int64_t gain = xlogx[f.n] - xlogx[n_left] - xlogx[f.n - n_left];
        bool changed = false;
        for (int64_t k = 0; k < f.n_present; ++k) {
            gain += xlogx[left[k]] + xlogx[f.counts[k] - left[k]] - xlogx[f.counts[k]];
            changed |= left[k] * f.n != f.counts[k] * n_left;
        }
        return changed ? (gain > 1 ? gain : 1) : 0;
    }

    SRS_INLINE int32_t score_bits(const NodeStats &f, const int64_t *left, int64_t n_left) const {
        if (n_left < f.min_leaf || f.n - n_left < f.min_leaf) return -1;
        if (impurity == ENTROPY) return bits_of(static_cast<float>(entropy_gain(f, left, n_left)));
        const int64_t weight = weight_of(f, left);
        return bits_of(impurity == VARIANCE ? variance_score(f, left, weight) : gini_score(f, left, weight));
    }

    // Sum of D_k^2 (GINI), or D^2 (VARIANCE: all rows are of one class).
    unsigned __int128 numerator(const NodeStats &f, const int64_t *left, int64_t weight) const {
        unsigned __int128 sum = 0;
        for (int64_t k = 0; k < f.n_present; ++k) {
            const int64_t i = (k + 1) * f.width - 1;
            const __int128 d = difference(left[i], f.weight, f.stats[i], weight);
            sum += static_cast<unsigned __int128>(d * d);
        }
        return sum;
    }

    // Importance of a split (Eq. 1 of the paper, unnormalised) in units of 2**-IMPORTANCE_BITS.
    int64_t importance(const NodeStats &f, const int64_t *left, int64_t n_left) const {
        double share;
        if (impurity == ENTROPY) {
            const int64_t gain = entropy_gain(f, left, n_left);
            if (gain == 0) return 0;
            share = static_cast<double>(gain) / static_cast<double>(int64_t(1) << ENTROPY_BITS) / root_scale;
        } else {
            const int64_t weight = weight_of(f, left);
            const unsigned __int128 decrease = numerator(f, left, weight);
            if (decrease == 0) return 0;
            const double sides = static_cast<double>(weight) * static_cast<double>(f.weight - weight);
            share = static_cast<double>(decrease) / sides / static_cast<double>(f.weight) / root_scale;
        }
        const int64_t units = __builtin_llrint(share * static_cast<double>(int64_t(1) << IMPORTANCE_BITS));
        return units > 1 ? units : 1;
    }
};

// Thresholds uniform between the values of codes. Twin: tests/helpers/tree_reference.py.

// Where a hash lies between two values, operation by operation as the twin.
SRS_INLINE double between(uint32_t hash, double low, double high) {
    return low + static_cast<double>(hash >> 8) * 0x1p-24 * (high - low);
}

constexpr uint32_t HALFWAY = 0x80000000u; // a hash that lies in the middle

// The values of a block's codes, ascending in a column; a code past the end, of a damaged store, is the last.
struct CodeValues {
    const double *values; // [columns][last + 1]
    int64_t last;

    SRS_INLINE int64_t place(uint32_t code) const { return code < last ? code : last; }

    // The last code below `high` whose value is not above the one drawn; low < high.
    uint32_t cut(int64_t column, uint32_t hash, uint32_t low, uint32_t high) const {
        const double *own = values + column * (last + 1);
        const double at = between(hash, own[place(low)], own[place(high)]);
        while (high - low > 1) {
            const uint32_t middle = low + (high - low) / 2;
            (own[place(middle)] <= at ? low : high) = middle;
        }
        return low;
    }

    // The same for 64 columns at once, a step of all before the next step of any.
    void cut_lanes(const int64_t *columns, const uint32_t *hashes, const uint32_t *low, const uint32_t *high,
                   uint32_t *cuts) const {
        alignas(64) double at[TILE];
        alignas(64) int64_t here[TILE], most[TILE];
        int64_t widest = 0;
        for (int l = 0; l < TILE; ++l) {
            here[l] = columns[l] * (last + 1) + place(low[l]);
            most[l] = columns[l] * (last + 1) + place(high[l]);
            at[l] = between(hashes[l], values[here[l]], values[most[l]]);
            widest = most[l] - here[l] > widest ? most[l] - here[l] : widest;
        }
        int64_t step = 1;
        while (2 * step < widest) step *= 2;
        for (; step > 0; step /= 2)
            for (int l = 0; l < TILE; ++l) { // a mask, not a condition: no branch to guess
                const int64_t next = here[l] + step < most[l] ? here[l] + step : here[l];
                const int64_t mask = -static_cast<int64_t>(values[next] <= at[l]);
                here[l] += (next - here[l]) & mask;
            }
        for (int l = 0; l < TILE; ++l) cuts[l] = static_cast<uint32_t>(here[l] - columns[l] * (last + 1));
    }
};

// Whether a split of missing values from all others was drawn; `known`: the highest code of the others.
SRS_INLINE bool parts_missing(int32_t how, uint32_t threshold, uint32_t low, uint32_t known) {
    return (how == MISSING_LEFT && threshold == low) || (how == MISSING_RIGHT && threshold == known);
}

// The hash a value is drawn by: where values are missing, the first one has drawn their place.
SRS_INLINE uint32_t value_hash(int32_t how, uint32_t hash) { return how == PLAIN ? hash : mix32(hash); }

// The numbers of a node by class: rows, and the sums of their channels, of all classes or of those present.
struct ClassStats {
    const GrowJob &job;
    const Criterion &criterion;
    const int64_t width; // numbers of a class
    // Scratch.
    int64_t *present_stats;  // [n_classes][width]
    int64_t *present_counts; // [n_classes]
    int32_t *present;        // [n_classes]

    int64_t slot_size() const { return job.n_classes * width; }

    void carve(Arena &arena) {
        present_stats = arena.take<int64_t>(slot_size());
        present_counts = arena.take<int64_t>(job.n_classes);
        present = arena.take<int32_t>(job.n_classes);
    }

    // `stats`: [n_classes][width]; what is returned holds until the next call.
    NodeStats stats_of(int64_t n_rows, const int64_t *stats) {
        NodeStats f{n_rows, job.min_samples_leaf, 0, width, present, present_counts, present_stats, 0, 0, 0};
        for (int64_t k = 0; k < job.n_classes; ++k, stats += width) {
            if (stats[0] == 0) continue;
            present[f.n_present] = static_cast<int32_t>(k);
            present_counts[f.n_present] = stats[0];
            for (int64_t i = 0; i < width; ++i) present_stats[f.n_present * width + i] = stats[i];
            f.largest = stats[0] > f.largest ? stats[0] : f.largest;
            ++f.n_present;
        }
        f.weight = criterion.weight_of(f, present_stats);
        f.sum = present_stats[width - 1];
        return f;
    }

    // Write those of the children; `left_stats`: [n_present][width] of what goes left.
    void part(const NodeStats &f, const int64_t *left_stats, int64_t *left, int64_t *other) const {
        for (int64_t i = 0; i < slot_size(); ++i) left[i] = other[i] = 0;
        for (int64_t k = 0; k < f.n_present; ++k)
            for (int64_t i = 0; i < width; ++i) {
                left[f.present[k] * width + i] = left_stats[k * width + i];
                other[f.present[k] * width + i] = f.stats[k * width + i] - left_stats[k * width + i];
            }
    }
};

} // namespace
} // namespace srs::SRS_ISA
