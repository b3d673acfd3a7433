// Held-out losses of trees on small subsets of columns. Compiled once per instruction set.
//
// Twin: srs_ooc/trees/kernel.py, which grows whole trees with trees.cpp. This file finds the same splits, with the same
// scores, ties and thresholds, from columns that are sorted once for all subsets, and only where some row to predict goes.
// As there, nothing allocates, no inline library function is used, and each header uses those above it.
#include "subsets.hpp"
#include "hash.hpp"
#include <type_traits>
#if defined(__AVX2__)
#include <immintrin.h> // inlined always: no clone can get another's
#endif

namespace srs {
namespace SRS_ISA {
namespace {

#define SRS_INLINE inline __attribute__((always_inline))

#include "carver.hpp"
#include "held_node.hpp"
#include "registers.hpp"
#include "subset_lanes.hpp"
#include "subset_rows.hpp"
#include "subset_places.hpp"
#include "subset_classes.hpp"
#include "subset_columns.hpp"
#include "subset_few_rows.hpp"
#include "subset_splits.hpp"
#include "subset_tree.hpp"
#include "turns.hpp"
#include "subset_judge.hpp"

template <typename Code> void judge_all(SubsetJob &job) {
    SubsetJudge<Code> judge(job);
    judge.carve(static_cast<char *>(job.scratch));
    judge.judge();
}

} // namespace

void judge_subsets(SubsetJob &job) {
    if (job.code_nbytes == 1) judge_all<uint8_t>(job);
    else judge_all<uint16_t>(job);
}

size_t subset_scratch_nbytes(const SubsetJob &job) {
    SubsetJob copy = job;
    SubsetJudge<uint16_t> judge(copy);
    return judge.carve(nullptr);
}

} // namespace SRS_ISA
} // namespace srs
