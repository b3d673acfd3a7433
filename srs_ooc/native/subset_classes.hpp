// Scores of the places between the rows of a node, of three classes or more, operation by operation as scores.hpp.
// Included by subsets.cpp only, inside its namespace: every clone has its own copy.

struct ClassPlaces {
    const int32_t *labels; // [n_rows]
    int64_t n_classes;
    int32_t *counts, *bits; // [n] of each place
    float *scores;          // [n]
    int64_t totals[MOST_CLASSES];

    // Of each class among some rows.
    SRS_INLINE void count(const uint16_t *order, int64_t n) {
        for (int64_t k = 0; k < n_classes; ++k) totals[k] = 0;
        for (int64_t i = 0; i < n; ++i) ++totals[labels[order[i]]];
    }

    SRS_INLINE bool is_pure(const uint16_t *order, int64_t n) const {
        for (int64_t i = 1; i < n; ++i)
            if (labels[order[i]] != labels[order[0]]) return false;
        return true;
    }

    SRS_INLINE int64_t most_frequent() const {
        int64_t chosen = 0;
        for (int64_t k = 1; k < n_classes; ++k) chosen = totals[k] > totals[chosen] ? k : chosen;
        return chosen;
    }

    // Bits of all scores, and the most of them from `first` to `end`.
    SRS_INLINE int32_t score_all(const uint16_t *order, int32_t n, int32_t first, int32_t end) {
        for (int32_t i = 0; i < n - 1; ++i) scores[i] = 0.0f;
        int64_t n_present = 0;
        for (int64_t k = 0; k < n_classes; ++k) n_present += totals[k] != 0;
        for (int64_t k = 0; k < n_classes; ++k) {
            const int32_t whole = static_cast<int32_t>(totals[k]);
            if (whole == 0) continue;
            int32_t count = 0;
            for (int32_t i = 0; i < n - 1; ++i) counts[i] = count += labels[order[i]] == k;
            for (int32_t i = 0; i < n - 1; ++i) {
                const float d = static_cast<float>(counts[i] * n - whole * (i + 1));
                scores[i] = scores[i] + d * d;
            }
            if (n_present != 2) continue;
            for (int32_t i = 0; i < n - 1; ++i) scores[i] = scores[i] + scores[i]; // the other's D is minus this one's
            break;
        }
        int32_t most = -1;
        for (int32_t i = 0; i < n - 1; ++i) bits[i] = bits_of(scores[i] / (static_cast<float>(i + 1) * static_cast<float>(n - i - 1)));
        for (int32_t i = first; i < end; ++i) most = bits[i] > most ? bits[i] : most;
        return most;
    }
};
