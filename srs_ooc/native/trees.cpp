// Growth of one randomized tree (SRS, Algorithm 1, step 2b). Compiled once per instruction set.
//
// The Python twin, tests/helpers/tree_reference.py, states every formula; this file, with what it
// includes, equals it exactly: candidates are compared by float32 scores computed operation by
// operation in the same order, "no decrease" is decided in integers, importances are integers.
// Nothing here allocates, and no inline library function is used, so that clones for different
// instruction sets cannot be mixed up. The headers lie in this file's namespace for the same
// reason; each uses those above it.
#include "trees.hpp"
#include "hash.hpp"
#if defined(__AVX2__)
#include <immintrin.h> // inlined always: no clone can get another's
#endif

namespace srs {
namespace SRS_ISA {
namespace {

#define SRS_INLINE inline __attribute__((always_inline))

// Codes in registers, and as a split sees them.
#include "lanes.hpp"
#include "categories.hpp"
#include "views.hpp"
// What a split is worth, and where thresholds lie between values.
#include "scores.hpp"
#include "values.hpp"
// A split of each of 64 features, or the best one.
#include "tile_node.hpp"
#include "tile_draw.hpp"
#include "tile_counts.hpp"
#include "tile_scores.hpp"
#include "tile_scan.hpp"
#include "tile_best.hpp"
#include "column_best.hpp"
// The same of targets, a register of features at a time.
#include "wide.hpp"
#include "drawn_lanes.hpp"
#include "sorted_lanes.hpp"
#include "cell_lanes.hpp"
// The best split of a node.
#include "candidates.hpp"
#include "byte_copies.hpp"
#include "carver.hpp"
#include "tree_data.hpp"
#include "searched_node.hpp"
#include "lane_search.hpp"
#include "tiled_search.hpp"
#include "column_search.hpp"
#include "drawn_search.hpp"
#include "node_search.hpp"
// The tree.
#include "node_stats.hpp"
#include "row_partition.hpp"
#include "subtree_tasks.hpp"
#include "recorder.hpp"
#include "grower.hpp"

} // namespace

void grow(GrowJob &job) {
    if (job.code_nbytes == 1) Grower<uint8_t>(job).grow();
    else Grower<uint16_t>(job).grow();
}

size_t scratch_nbytes(GrowJob &job) {
    return job.code_nbytes == 1 ? Grower<uint8_t>(job).nbytes() : Grower<uint16_t>(job).nbytes();
}

} // namespace SRS_ISA
} // namespace srs
