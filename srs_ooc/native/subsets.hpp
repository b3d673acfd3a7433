// The held-out loss of a tree on each of many small subsets of a block's columns: the job that the binding hands to
// the instruction-set clones of subsets.cpp.
#pragma once
#include <cstddef>
#include <cstdint>

namespace srs {

constexpr int64_t MOST_SUBSET_ROWS = 32768; // so that rows fit 16 bits, and every D of a split fits 53
constexpr int64_t MOST_CLASSES = 64;

struct SubsetJob {
    const void *codes;           // [column][row], nothing missing, no categories
    int code_nbytes;             // 1 or 2
    int64_t n_rows;              // of the block
    const uint16_t *sorted;      // [column][row] rows by ascending code
    const uint32_t *features;    // [column] names its random numbers
    const int32_t *places;       // columns of the subsets, one subset after another
    const int64_t *bounds;       // [n_subsets + 1] where each begins
    int64_t n_subsets, largest;  // the most columns of a subset
    const uint16_t *times;       // [n_splits][n_rows] how often a row is fitted on
    const int64_t *n_fitted;     // [n_splits] their sum
    const uint16_t *predicted;   // rows to predict, one split after another
    const int64_t *predicted_bounds; // [n_splits + 1]
    const uint64_t *tree_keys;   // [n_splits]
    int64_t n_splits, most_fitted, most_predicted;
    const int32_t *labels;       // [n_rows]; of a regression all 0
    const int32_t *targets;      // [n_rows], or null: classes
    int64_t n_classes;           // 1 for a regression
    int64_t max_depth, min_samples_leaf; // max_depth < 0: unlimited
    void *scratch;               // subset_scratch_nbytes(job) bytes, 64-byte aligned
    double *losses;              // [n_subsets] squared errors or wrong rows in all; infinite where given up
    int64_t n_trees = 0;         // that were grown
};

#define SRS_DECLARE(isa)                                                                           \
    namespace isa {                                                                                \
    void judge_subsets(SubsetJob &job);                                                            \
    size_t subset_scratch_nbytes(const SubsetJob &job);                                            \
    }
SRS_DECLARE(baseline)
SRS_DECLARE(avx2)
SRS_DECLARE(avx512)
#undef SRS_DECLARE

} // namespace srs
