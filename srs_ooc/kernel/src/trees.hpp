// One tree grown on one block: the job the binding hands to the instruction-set clones of trees.cpp.
#pragma once
#include <cstddef>
#include <cstdint>

namespace srs {

constexpr int64_t TILE = 64;                // features per tile: one 64-byte line of uint8 codes
constexpr int IMPORTANCE_BITS = 36;         // importances are tallied in units of 2**-36
constexpr int ENTROPY_BITS = 32;            // x log2 x is tabulated in units of 2**-32
constexpr int64_t SMALL_NODE = 32768;       // up to here integer products of counts fit 32 bits
enum Impurity : int { GINI = 0, ENTROPY = 1 };

// The tree as it grows, nodes in the order they are visited. At most 2 L - 1 nodes for L leaves.
struct TreeRecord {
    int32_t *column;    // column of the split, -1 for a leaf
    int32_t *threshold; // codes up to it go left
    int32_t *left;      // left child; of a leaf its first pair
    int32_t *right;     // right child; of a leaf its number of pairs
    int32_t *pair_class, *pair_count; // classes with rows in a leaf, and how many
    int64_t n_pairs = 0;
};

struct GrowJob {
    const void *codes;          // tiles: [tile][row][TILE]; columns: [column][row]
    int code_nbytes;            // 1 or 2
    bool tiled;
    int64_t n_rows, n_columns;  // rows and columns of the block
    const uint32_t *features;   // [n_columns] feature of each column: names its random numbers
    const int32_t *order;       // [n_columns] columns by ascending feature
    const int32_t *rows;        // [n_root_rows] rows to train on, grouped by class
    int64_t n_root_rows;
    const int64_t *class_counts; // [n_classes] of those rows
    int64_t n_classes;
    uint64_t tree_key;
    int64_t max_features, max_depth, min_samples_leaf; // max_depth < 0: unlimited
    Impurity impurity;
    const int64_t *xlogx;       // [n_root_rows + 1], for ENTROPY
    void *scratch;              // scratch_nbytes(...) bytes, 64-byte aligned
    TreeRecord *record;         // null: the tree is not recorded
    // Results.
    int64_t *importance;        // [n_columns], zeroed by the caller
    int64_t n_nodes = 0, n_leaves = 0, depth = 0;
};

// grow() needs job.scratch of scratch_nbytes(job) bytes; each instruction set has its clone of both.
#define SRS_DECLARE(isa)                                                                           \
    namespace isa {                                                                                \
    void grow(GrowJob &job);                                                                       \
    size_t scratch_nbytes(GrowJob &job);                                                           \
    }
SRS_DECLARE(baseline)
SRS_DECLARE(avx2)
SRS_DECLARE(avx512)
#undef SRS_DECLARE

} // namespace srs
