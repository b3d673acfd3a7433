// Held-out losses of trees on small subsets of columns. Compiled once per instruction set.
//
// Twin: srs_ooc/trees/kernel.py, which grows whole trees with trees.cpp. This file finds the same splits, with the same
// scores, ties and thresholds, from columns that are sorted once for all subsets, and only where some row to predict goes.
#include "presorted/tree.hpp"

namespace srs::SRS_ISA {
namespace {

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

} // namespace srs::SRS_ISA
