// Scores of the places between neighbours of a sorted column, operation by operation as scores.hpp.
// Included by sorted_trees.cpp only, inside its namespace: every clone has its own copy.

// What the rows say.
struct TwoClasses {};
struct ManyClasses {};
struct Targets {};

template <typename Kind> struct PlaceScores {
    static constexpr bool TARGETS = __is_same(Kind, Targets), TWO = __is_same(Kind, TwoClasses);
    const int64_t n_classes;
    const int32_t *says; // of each row
    int64_t totals[MOST_SORTED_CLASSES], lefts[MOST_SORTED_CLASSES]; // rows of each class: of a node, left of a place
    // Scratch.
    uint8_t *is_second; // [n_rows] of two classes
    double *sums;       // [n_fitted]
    int32_t *counts;    // [n_fitted]
    int32_t *bits;      // [n_fitted] of each place's score

    explicit PlaceScores(const SortedJob &job)
        : n_classes(job.n_classes), says(TARGETS ? job.targets : job.labels) {}

    void carve(Carver &carver, const SortedJob &job) {
        is_second = carver.take<uint8_t>(job.n_rows);
        sums = carver.take<double>(job.n_fitted);
        counts = carver.take<int32_t>(job.n_fitted);
        bits = carver.take<int32_t>(job.n_fitted);
    }

    // Of every place of a node of `n` rows; `total`: of its targets, or rows of the second class.
    SRS_INLINE void score(const uint16_t *order, int32_t n, int64_t total) {
        if (TARGETS) score_targets(order, n, static_cast<double>(total));
        else if (TWO) score_two(order, n, static_cast<int32_t>(total));
        else score_classes(order, n);
    }

    SRS_INLINE void score_targets(const uint16_t *order, int32_t n, double total) {
        int64_t sum = 0; // below 2**53: exact as a double
        for (int32_t i = 0; i + 1 < n; ++i) sums[i] = static_cast<double>(sum += says[order[i]]);
        const double all = static_cast<double>(n);
        for (int32_t i = 0; i < n - 1; ++i) {
            const float d = static_cast<float>(sums[i] * all - total * static_cast<double>(i + 1));
            const float sides = static_cast<float>(i + 1) * static_cast<float>(n - i - 1);
            bits[i] = bits_of(d * d / sides);
        }
    }

    SRS_INLINE void score_two(const uint16_t *order, int32_t n, int32_t whole) {
        int32_t count = 0;
        for (int32_t i = 0; i < n - 1; ++i) counts[i] = count += is_second[order[i]];
        for (int32_t i = 0; i < n - 1; ++i) { // the other class's D is minus this one's
            const float d = static_cast<float>(counts[i] * n - whole * (i + 1));
            const float sides = static_cast<float>(i + 1) * static_cast<float>(n - i - 1);
            bits[i] = bits_of((d * d + d * d) / sides);
        }
    }

    SRS_INLINE void score_classes(const uint16_t *order, int32_t n) {
        float *scores = reinterpret_cast<float *>(sums);
        for (int32_t i = 0; i < n - 1; ++i) scores[i] = 0.0f;
        for (int64_t k = 0; k < n_classes; ++k) {
            const int32_t whole = static_cast<int32_t>(totals[k]);
            if (whole == 0) continue;
            int32_t count = 0;
            for (int32_t i = 0; i < n - 1; ++i) counts[i] = count += says[order[i]] == k;
            for (int32_t i = 0; i < n - 1; ++i) {
                const float d = static_cast<float>(counts[i] * n - whole * (i + 1));
                scores[i] = scores[i] + d * d;
            }
        }
        for (int32_t i = 0; i < n - 1; ++i)
            bits[i] = bits_of(scores[i] / (static_cast<float>(i + 1) * static_cast<float>(n - i - 1)));
    }

    // The score of one place of a small node, as above; `sum`: of the targets, or rows of the second class.
    SRS_INLINE int32_t score_of(int32_t n_left, int32_t n, int64_t sum, int64_t total) const {
        const float sides = static_cast<float>(n_left) * static_cast<float>(n - n_left);
        if (TARGETS || TWO) {
            const float d = static_cast<float>(sum * n - total * n_left);
            return bits_of((TWO ? d * d + d * d : d * d) / sides);
        }
        float score = 0.0f;
        for (int64_t k = 0; k < n_classes; ++k) {
            const float d = static_cast<float>(static_cast<int32_t>(lefts[k]) * n - static_cast<int32_t>(totals[k]) * n_left);
            score = score + d * d; // of a class that is absent: plus 0
        }
        return bits_of(score / sides);
    }
};
