// A tree on few columns, each sorted once, and what it says of other rows: the job that the binding hands to the
// instruction-set clones of sorted_trees.cpp.
#pragma once
#include "trees.hpp"

namespace srs {

constexpr int64_t MOST_SORTED_ROWS = 32768; // so that rows fit 16 bits, and every D of a split fits 53
constexpr int64_t MOST_SORTED_CLASSES = 64;

struct SortedJob {
    const void *codes; // tiles: [tile][row][TILE]; columns: [column][row]; no categories
    int code_nbytes;   // 1 or 2
    bool tiled;
    int64_t n_rows, n_columns;
    const double *values;       // [columns][n_values] of codes: thresholds midway between them; null: between codes
    int64_t n_values;
    const uint32_t *features;   // [n_columns] names the random numbers of each column
    const int32_t *fitted;      // [n_fitted] rows, each as often as it is fitted on
    const int32_t *predicted;   // [n_predicted] rows
    int64_t n_fitted, n_predicted;
    const int32_t *labels;      // [n_rows]; of a regression all 0
    const int32_t *targets;     // [n_rows], or null: classes
    int64_t n_classes;          // 1 for a regression
    double root_scale;          // as in GrowJob
    uint64_t tree_key;
    int64_t max_depth, min_samples_leaf; // max_depth < 0: unlimited
    void *scratch;              // sorted_scratch_nbytes(job) bytes, 64-byte aligned
    // Results.
    int64_t *importance;        // [n_columns], zeroed by the caller
    double *shares;             // [n_predicted][n_classes], zeroed: of each class, or the mean target
    bool complete = true;       // false: a value is missing, nothing was grown
};

#define SRS_DECLARE(isa)                                                                           \
    namespace isa {                                                                                \
    void grow_sorted(SortedJob &job);                                                              \
    size_t sorted_scratch_nbytes(const SortedJob &job);                                            \
    }
SRS_DECLARE(baseline)
SRS_DECLARE(avx2)
SRS_DECLARE(avx512)
#undef SRS_DECLARE

} // namespace srs
