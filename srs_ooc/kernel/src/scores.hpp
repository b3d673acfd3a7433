// What a candidate split is worth: integers decide, floats only rank.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

// A node, and the classes that have rows in it.
struct Facts {
    int64_t n, min_leaf, n_present;
    const int32_t *present; // [n_present] classes with rows here
    const int64_t *counts;  // [n_present] their rows
    int64_t largest;        // the largest of these
};

// The best candidate so far, ordered by score, then tie hash, then smaller feature.
struct Split {
    int32_t score_bits = -1; // a non-negative float compares as its bits do; -1: none
    uint32_t tie = 0;
    int64_t column = -1;
    uint32_t threshold = 0;
};

SRS_INLINE int32_t bits_of(float x) {
    int32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

struct Criterion {
    Impurity impurity;
    const int64_t *xlogx;
    int64_t n_root_rows;

    // Gini: sum over classes of D_k^2 / (n_left n_right), D_k = left_k n - count_k n_left.
    SRS_INLINE float gini_score(const Facts &f, const int64_t *left, int64_t n_left) const {
        float sum = 0.0f;
        for (int64_t k = 0; k < f.n_present; ++k) {
            const float d = static_cast<float>(left[k] * f.n - f.counts[k] * n_left);
            sum = sum + d * d;
        }
        return sum / (static_cast<float>(n_left) * static_cast<float>(f.n - n_left));
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
        return bits_of(gini_score(f, left, n_left));
    }

    // Importance of a split (Eq. 1 of the paper, unnormalised) in units of 2**-IMPORTANCE_BITS.
    int64_t importance(const Facts &f, const int64_t *left, int64_t n_left) const {
        const double n_root = static_cast<double>(n_root_rows);
        double share;
        if (impurity == ENTROPY) {
            const int64_t gain = entropy_gain(f, left, n_left);
            if (gain == 0) return 0;
            share = static_cast<double>(gain) / static_cast<double>(int64_t(1) << ENTROPY_BITS) / n_root;
        } else {
            unsigned __int128 numerator = 0;
            for (int64_t k = 0; k < f.n_present; ++k) {
                const __int128 d = left[k] * f.n - f.counts[k] * n_left;
                numerator += static_cast<unsigned __int128>(d * d);
            }
            if (numerator == 0) return 0;
            const double sides = static_cast<double>(n_left) * static_cast<double>(f.n - n_left);
            share = static_cast<double>(numerator) / sides / static_cast<double>(f.n) / n_root;
        }
        const int64_t units = __builtin_llrint(share * static_cast<double>(int64_t(1) << IMPORTANCE_BITS));
        return units > 1 ? units : 1;
    }
};
