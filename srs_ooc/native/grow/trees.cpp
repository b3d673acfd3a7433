// Growth of one randomized tree (SRS, Algorithm 1, step 2b). Compiled once per instruction set.
//
// The Python twin, tests/helpers/tree_reference.py, states every formula; this file, with what it
// includes, equals it exactly: candidates are compared by float32 scores computed operation by
// operation in the same order, "no decrease" is decided in integers, importances are integers.
#include "grow/grower.hpp"

namespace srs::SRS_ISA {

void grow(GrowJob &job) {
    if (job.code_nbytes == 1) Grower<uint8_t>(job).grow();
    else Grower<uint16_t>(job).grow();
}

size_t scratch_nbytes(GrowJob &job) {
    return job.code_nbytes == 1 ? Grower<uint8_t>(job).nbytes() : Grower<uint16_t>(job).nbytes();
}

} // namespace srs::SRS_ISA
