// What a candidate split is worth: integers decide, floats only rank.
// Included by trees.cpp and sorted_trees.cpp, inside their namespaces: every clone has its own copy.

// A node, and the classes that have rows in it; a regression's rows are all of one class.
struct Facts {
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

// a b - c d where that fits 64 bits, even if the products do not.
SRS_INLINE int64_t difference(int64_t a, int64_t b, int64_t c, int64_t d) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) -
                                static_cast<uint64_t>(c) * static_cast<uint64_t>(d));
}

struct Criterion {
    Impurity impurity;
    const int64_t *xlogx;
    double root_scale;

    // Where the weight lies in the stats of a class.
    SRS_INLINE int64_t weight_at(int64_t width) const { return impurity == VARIANCE ? width - 2 : width - 1; }

    SRS_INLINE int64_t weight_of(const Facts &f, const int64_t *stats) const {
        int64_t weight = 0;
        for (int64_t k = 0; k < f.n_present; ++k) weight += stats[k * f.width + weight_at(f.width)];
        return weight;
    }

    // Gini: sum over classes of D_k^2 / (left right), D_k = left_k all - all_k left, in weights.
    SRS_INLINE float gini_score(const Facts &f, const int64_t *left, int64_t weight) const {
        float sum = 0.0f;
        for (int64_t k = 0; k < f.n_present; ++k) {
            const int64_t i = (k + 1) * f.width - 1;
            const float d = static_cast<float>(difference(left[i], f.weight, f.stats[i], weight));
            sum = sum + d * d;
        }
        return sum / (static_cast<float>(weight) * static_cast<float>(f.weight - weight));
    }

    // Variance: D^2 / (left right), D = left sum all - sum left.
    SRS_INLINE float variance_score(const Facts &f, const int64_t *left, int64_t weight) const {
        const float d = static_cast<float>(difference(left[f.width - 1], f.weight, f.sum, weight));
        return d * d / (static_cast<float>(weight) * static_cast<float>(f.weight - weight));
    }

    // Entropy: n H - n_left H_left - n_right H_right in table units; at least 1 where any D_k is not 0.
    int64_t entropy_gain(const Facts &f, const int64_t *left, int64_t n_left) const {
        int64_t gain = xlogx[f.n] - xlogx[n_left] - xlogx[f.n - n_left];
        bool changed = false;
        for (int64_t k = 0; k < f.n_present; ++k) {
            gain += xlogx[left[k]] + xlogx[f.counts[k] - left[k]] - xlogx[f.counts[k]];
            changed |= left[k] * f.n != f.counts[k] * n_left;
        }
        return changed ? (gain > 1 ? gain : 1) : 0;
    }

    SRS_INLINE int32_t score_bits(const Facts &f, const int64_t *left, int64_t n_left) const {
        if (n_left < f.min_leaf || f.n - n_left < f.min_leaf) return -1;
        if (impurity == ENTROPY) return bits_of(static_cast<float>(entropy_gain(f, left, n_left)));
        const int64_t weight = weight_of(f, left);
        return bits_of(impurity == VARIANCE ? variance_score(f, left, weight) : gini_score(f, left, weight));
    }

    // Sum of D_k^2 (GINI), or D^2 (VARIANCE).
    unsigned __int128 numerator(const Facts &f, const int64_t *left, int64_t weight) const {
        if (impurity == VARIANCE) {
            const __int128 d = difference(left[f.width - 1], f.weight, f.sum, weight);
            return static_cast<unsigned __int128>(d * d);
        }
        unsigned __int128 sum = 0;
        for (int64_t k = 0; k < f.n_present; ++k) {
            const int64_t i = (k + 1) * f.width - 1;
            const __int128 d = difference(left[i], f.weight, f.stats[i], weight);
            sum += static_cast<unsigned __int128>(d * d);
        }
        return sum;
    }

    // Importance of a split (Eq. 1 of the paper, unnormalised) in units of 2**-IMPORTANCE_BITS.
    int64_t importance(const Facts &f, const int64_t *left, int64_t n_left) const {
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
