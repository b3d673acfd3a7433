// Sums of products and eigenvectors in one order, whatever the machine: each sum is taken one term after another, and
// what is done to many numbers at once is done to each alone, so that instruction sets change the speed only.
// Tests: tests/native/test_numerics.py.
#pragma once
#include <cstddef>
#include <cstdint>

namespace srs {

#define SRS_DECLARE(isa)                                                                                               \
    namespace isa {                                                                                                    \
    void add_products(const double *a, const double *b, int64_t n_terms, int64_t n, int64_t m, double *out);          \
    void tridiagonalise(double *a, int64_t n, double *diagonal, double *beside, double *factors, double *scratch);    \
    void reflect_back(const double *a, int64_t n, const double *factors, double *vectors, int64_t count, double *scratch); \
    }
SRS_DECLARE(baseline)
SRS_DECLARE(avx2)
SRS_DECLARE(avx512)
#undef SRS_DECLARE

} // namespace srs
