// Few columns, each with its rows in the order of its codes; a node's rows lie together in every one.
#pragma once
#include "presorted/columns.hpp"

namespace srs::SRS_ISA {
namespace {

template <typename Code> struct SortedColumns {
    const SortedJob &job;
    const Code *codes; // [n_columns][n_rows]
    // Scratch.
    Code *copies;      // [n_columns][n_rows] of a tiled block
    uint16_t *orders;  // [n_columns][n_fitted] rows of each column by code; a node's lie together
    uint16_t *spare;   // [n_fitted]
    uint8_t *left;     // [n_rows]

    explicit SortedColumns(const SortedJob &job) : job(job), codes(static_cast<const Code *>(job.codes)) {}

    void carve(Carver &carver) {
        copies = carver.take<Code>(job.tiled ? job.n_columns * job.n_rows : 0);
        orders = carver.take<uint16_t>(job.n_columns * job.n_fitted);
        spare = carver.take<uint16_t>(job.n_fitted + 32);
        left = carver.take<uint8_t>(job.n_rows);
    }

    SRS_INLINE const Code *column(int64_t j) const { return codes + j * job.n_rows; }
    SRS_INLINE uint16_t *order_of(int64_t j, const Node &node) const { return orders + j * job.n_fitted + node.start; }

    // Lay the columns out one after another; false if a value is missing.
    bool take() {
        if (job.tiled) {
            for (int64_t j = 0; j < job.n_columns; ++j) {
                const Code *from = codes + j / TILE * TILE * job.n_rows + j % TILE;
                for (int64_t i = 0; i < job.n_rows; ++i) copies[j * job.n_rows + i] = from[i * TILE];
            }
            codes = copies;
        }
        Code highest = 0;
        for (int64_t i = 0; i < job.n_columns * job.n_rows; ++i) highest = codes[i] > highest ? codes[i] : highest;
        return highest != static_cast<Code>(-1);
    }

    // Rows of a column by ascending code: by the lowest byte, then by the next.
    void sort(int64_t j) {
        const Code *own = column(j);
        uint16_t *order = orders + j * job.n_fitted;
        int32_t starts[2][256];
        __builtin_memset(starts, 0, sizeof starts);
        for (int64_t i = 0; i < job.n_fitted; ++i) {
            const uint32_t code = own[job.fitted[i]];
            ++starts[0][code & 255];
            ++starts[1][code >> 8];
        }
        for (int byte = 0; byte < int(sizeof(Code)); ++byte) {
            int32_t before = 0;
            for (int b = 0; b < 256; ++b) {
                const int32_t n = starts[byte][b];
                starts[byte][b] = before;
                before += n;
            }
        }
        uint16_t *first = sizeof(Code) == 1 ? order : spare;
        for (int64_t i = 0; i < job.n_fitted; ++i) {
            const int32_t row = job.fitted[i];
            first[starts[0][own[row] & 255]++] = static_cast<uint16_t>(row);
        }
        if (sizeof(Code) == 1) return;
        for (int64_t i = 0; i < job.n_fitted; ++i) order[starts[1][own[first[i]] >> 8]++] = first[i];
    }

    // Each column's rows that go left come first; what goes to a side that is not split further is not kept.
    // In the column `chosen` they do already.
    void part(const Node &node, int64_t chosen, int32_t n_left, bool any_left, bool any_right) {
        if (!any_left && !any_right) return;
        const uint16_t *rows = order_of(chosen, node);
        for (int32_t i = 0; i < node.n; ++i) left[rows[i]] = i < n_left;
        for (int64_t j = 0; j < job.n_columns; ++j) {
            if (j == chosen) continue;
            uint16_t *order = order_of(j, node);
            if (!any_right) keep_left(order, n_left);
            else if (!any_left) keep_right(order, node.n, n_left);
            else keep_both(order, node.n);
        }
    }

    SRS_INLINE void keep_left(uint16_t *order, int32_t n_left) const {
        for (int32_t i = 0, n = 0; n < n_left; ++i) {
            order[n] = order[i];
            n += left[order[i]];
        }
    }

    SRS_INLINE void keep_right(uint16_t *order, int32_t n, int32_t n_left) const {
        for (int32_t i = n, at = n; at > n_left;) {
            const uint16_t row = order[--i];
            order[at - 1] = row;
            at -= !left[row];
        }
    }

    SRS_INLINE void keep_both(uint16_t *order, int32_t n) {
        int32_t n_left = 0, n_right = 0;
        for (int32_t i = 0; i < n; ++i) {
            const uint16_t row = order[i];
            const uint8_t goes_left = left[row];
            order[n_left] = row;
            spare[n_right] = row;
            n_left += goes_left;
            n_right += !goes_left;
        }
        __builtin_memcpy(order + n_left, spare, sizeof(uint16_t) * static_cast<size_t>(n_right));
    }
};

// Scores of the places between neighbours of a sorted column, operation by operation as scores.hpp.

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

} // namespace
} // namespace srs::SRS_ISA
