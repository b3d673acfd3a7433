// What bindings hand to the kernels, which are compiled once for each instruction set, and names of these.
#pragma once
#include <cstddef>
#include <cstdint>

namespace srs {

constexpr int64_t TILE = 64;                // features per tile: one 64-byte line of uint8 codes
constexpr int IMPORTANCE_BITS = 36;         // importances are tallied in units of 2**-36
constexpr int ENTROPY_BITS = 32;            // x log2 x is tabulated in units of 2**-32
constexpr int64_t SMALL_NODE = 32768;       // up to here integer products of counts fit 32 bits
constexpr int64_t TINY_NODE = 16;           // up to here those of counts and sums of targets do
constexpr int MAX_CHANNELS = 2;
constexpr int MAX_THREADS = 64;
constexpr int64_t SHARED_CELLS = 1 << 20;   // nodes of at least so many rows times columns are shared by threads
constexpr uint32_t ALL_CODES = 65534;     // as a threshold: every value that is not missing goes left
enum Impurity : int { GINI = 0, ENTROPY = 1, VARIANCE = 2 };

// How a split sends rows, and what its threshold is.
enum How : int32_t {
    PLAIN = 0,         // codes up to the threshold go left; no missing value was seen
    MISSING_LEFT = 1,  // missing values and codes below the threshold go left
    MISSING_RIGHT = 2, // codes up to the threshold go left, missing values right
    MAPPED = 3,        // categories whose place, by a keyed bijection, is up to the threshold go left
};

// The tree as it grows, nodes in the order they are visited. At most 2 L - 1 nodes for L leaves.
struct TreeRecord {
    int32_t *column;    // column of the split, -1 for a leaf
    int32_t *threshold; // of a leaf of a regression tree: its weight
    int32_t *left;      // left child; of a leaf its first pair
    int32_t *right;     // right child; of a leaf its number of pairs
    int32_t *how;       // How
    uint32_t *hash;     // of the bijection, for MAPPED
    int32_t *pair_class, *pair_count; // classes with rows in a leaf, and their weight; or the two
                                      // halves of a leaf's sum of targets, the low one first
    int64_t n_pairs = 0;
};

// The first columns of a block.
struct BlockJob {
    const void *codes;          // tiles: [tile][row][TILE]; columns: [column][row]
    int code_nbytes;            // 1 or 2
    bool tiled;
    int64_t n_rows, n_columns;
    const double *values;       // [columns, padded as codes are][n_values] of codes: thresholds are uniform between
                                // them, or midway if they are the best; null: between codes
    int64_t n_values;
    const uint32_t *features;   // [n_columns] feature of each column: names its random numbers
};

// One tree grown on one block (grow/trees.cpp).
struct GrowJob : BlockJob {
    const uint8_t *categorical; // [n_columns] 1 where codes are categories; null: none are
    const int32_t *order;       // [n_columns] columns by ascending feature
    const int32_t *rows;        // [n_root_rows] rows to train on, grouped by class
    int64_t n_root_rows;
    int64_t n_classes;          // 1 for regression
    int64_t n_channels;         // what is summed beside rows: none, weights, targets, or both
    const int32_t *channels;    // [n_channels][n_rows], weights first; targets times their weight
    int64_t flush;              // rows whose channels add up within 32 bits
    const int64_t *root_stats;  // [n_classes][1 + n_channels] rows, then sums of channels
    double root_scale;          // weight of the root; for VARIANCE its sum of squares about the mean
    uint64_t tree_key;
    int64_t max_features, max_depth, min_samples_leaf; // max_depth < 0: unlimited
    int64_t min_decrease;       // least importance of a split
    bool best;                  // best splits, not drawn ones
    Impurity impurity;
    const int64_t *xlogx;       // [n_root_rows + 1], for ENTROPY
    int n_threads;              // that share the columns of a large node
    void (*share)(void *threads, void (*work)(void *context, int part), void *context); // runs every part
    void *threads;
    void *scratch;              // scratch_nbytes(...) bytes, 64-byte aligned
    TreeRecord *record;         // null: the tree is not recorded
    // Results.
    int64_t *importance;        // [n_columns], zeroed by the caller
    int64_t n_nodes = 0, n_leaves = 0, depth = 0;
};

constexpr int64_t MAX_PRESORTED_ROWS = 32768; // so that rows fit 16 bits, and every D of a split fits 53
constexpr int64_t MAX_PRESORTED_CLASSES = 64;

// What trees have in common that grow on few columns, each of which is sorted once (presorted/trees.cpp): no categories.
struct PresortedJob : BlockJob {
    const int32_t *labels;    // [n_rows]; of a regression all 0
    const int32_t *targets;   // [n_rows], or null: classes
    int64_t n_classes;        // 1 for a regression
    int64_t max_depth, min_samples_leaf; // max_depth < 0: unlimited
    void *scratch;            // of as many bytes as the kernel says, 64-byte aligned
    bool complete = true;     // result; false: a value is missing, nothing was grown
};

// One tree, and what it says of other rows.
struct SortedJob : PresortedJob {
    const int32_t *fitted;    // [n_fitted] rows, each as often as it is fitted on
    const int32_t *predicted; // [n_predicted] rows
    int64_t n_fitted, n_predicted;
    double root_scale;        // as in GrowJob
    uint64_t tree_key;
    int64_t *importance;      // result: [n_columns], zeroed by the caller
    double *shares;           // result: [n_predicted][n_classes], zeroed: of each class, or the mean target
};

// The held-out loss of a tree on each of many small subsets of the columns, which are no tiles and have no values.
struct SubsetJob : PresortedJob {
    const int32_t *places;     // columns of the subsets, one subset after another
    const int64_t *bounds;     // [n_subsets + 1] where each begins
    int64_t n_subsets, largest; // the most columns of a subset
    const uint16_t *times;     // [n_splits][n_rows] how often a row is fitted on
    const int64_t *n_fitted;   // [n_splits] their sum
    const uint16_t *predicted; // rows to predict, one split after another
    const int64_t *predicted_bounds; // [n_splits + 1]
    const uint64_t *tree_keys; // [n_splits]
    int64_t n_splits, max_fitted, max_predicted;
    double *losses;            // result: [n_subsets] squared errors or wrong rows in all; infinite where given up
    int64_t n_trees = 0;       // result: that were grown
};

// 64 columns, and the tile that they are laid out as (gather/tiles.cpp).
struct TileJob {
    const void *columns;     // [TILE] where each is
    const void *next;        // [TILE] those of the next tile, asked for meanwhile as they lie at random; or null
    int64_t n_rows;          // of a column
    const int32_t *rows;     // [n_kept] of a column, ascending: which to lay out; null: all
    int64_t n_kept;
    int code_nbytes;         // 1 or 2
    bool streamed;           // past the caches: the tile is aligned to 64 bytes
    void *tile;              // [n_kept][TILE]
};

struct FoundPair {
    double score;
    int32_t left, right; // columns
};

// All pairs of 64 columns of bits with 64 others, or with themselves (pairs/pairs.cpp).
struct PairJob {
    const uint64_t *left, *right; // [n_words][TILE] a bit a row, by section of rows, each of whole words
    const int64_t *bounds;        // [n_sections + 1] words where sections begin
    int64_t n_sections, n_targets;
    const double *coefficients;   // [n_targets][n_sections] of the rows of a section: a target less its mean
    const double *scales;         // [n_targets] of scores
    // [2 + n_targets][TILE] of the columns of a tile: sums of signs, weights, sums of signs times each target
    const double *left_sums, *right_sums;
    int64_t n_rows;
    int64_t n_left, n_right;      // columns in use
    double least;                 // score from which a pair is found
    bool counts_words;            // there is an instruction for it
    int32_t *counts;              // [n_sections][TILE] scratch
    FoundPair *found;             // [TILE * TILE] by place in the tiles
};

// What each instruction set has a clone of. A job needs scratch of as many bytes as the function after it says.
#define SRS_DECLARE(isa)                                                                                                   \
    namespace isa {                                                                                                        \
    void grow(GrowJob &job);                                                                                               \
    size_t scratch_nbytes(GrowJob &job);                                                                                   \
    void judge_subsets(SubsetJob &job);                                                                                    \
    size_t subset_scratch_nbytes(const SubsetJob &job);                                                                    \
    void grow_sorted(SortedJob &job);                                                                                      \
    size_t sorted_scratch_nbytes(const SortedJob &job);                                                                    \
    void add_products(const double *a, const double *b, int64_t n_terms, int64_t n, int64_t m, double *out);               \
    void tridiagonalise(double *a, int64_t n, double *diagonal, double *beside, double *factors, double *scratch);         \
    void reflect_back(const double *a, int64_t n, const double *factors, double *vectors, int64_t count, double *scratch); \
    void lay_out(const TileJob &job);                                                                                      \
    void decode_genotypes(const uint8_t *line, int64_t nbytes, int present, uint8_t *codes);                               \
    int64_t scan_pairs(const PairJob &job);                                                                                \
    }
SRS_DECLARE(baseline)
SRS_DECLARE(avx2)
SRS_DECLARE(avx512)
#undef SRS_DECLARE

} // namespace srs
