// Sums of products and eigenvectors in one order, whatever the machine: each sum is taken one term after another, and
// what is done to many numbers at once is done to each alone, so that instruction sets change the speed only.
// Compiled once per instruction set. Tests: tests/native/test_numerics.py.
#include "kernels.hpp"
#include "simd/registers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace srs {
namespace SRS_ISA {

namespace {

constexpr int64_t LANES = SRS_VECTOR_NBYTES / sizeof(double);
typedef double Doubles __attribute__((vector_size(LANES * 8), aligned(8), may_alias));
constexpr int64_t TALL = 4, WIDE = 2 * LANES; // numbers of `out` that are summed together, in registers
constexpr int64_t TERMS = 128;                // that are summed before they are added to `out`: the same in every clone
constexpr double NOTHING = 1e-200;            // of a sum of squares: beyond rounding where the largest number is about 1

// Copy some rows of (.., m) in tiles of `width` columns, the last one filled up with zeros.
void pack(const double *from, int64_t n_terms, int64_t m, int64_t width, double *to) {
    for (int64_t j = 0; j < m; j += width)
        for (int64_t k = 0; k < n_terms; ++k)
            for (int64_t l = 0; l < width; ++l) *to++ = j + l < m ? from[k * m + j + l] : 0.0;
}

void add_tile(const double *a, const double *b, int64_t n_terms, int64_t height, int64_t width, double *out, int64_t m) {
    Doubles sums[TALL][WIDE / LANES] = {};
    for (int64_t k = 0; k < n_terms; ++k)
        for (int64_t j = 0; j < WIDE / LANES; ++j) {
            const Doubles of_b = *reinterpret_cast<const Doubles *>(b + k * WIDE + j * LANES);
            for (int64_t i = 0; i < TALL; ++i) sums[i][j] += a[k * TALL + i] * of_b;
        }
    for (int64_t i = 0; i < height; ++i)
        for (int64_t j = 0; j < width; ++j) out[i * m + j] += sums[i][j / LANES][j % LANES];
}

} // namespace

// out (n, m) += a' b, with a (n_terms, n) and b (n_terms, m).
void add_products(const double *a, const double *b, int64_t n_terms, int64_t n, int64_t m, double *out) {
    const auto padded = [](int64_t size, int64_t tile) { return (size + tile - 1) / tile * tile; };
    const int64_t most = std::min(TERMS, n_terms); // of few terms, n or m may be all rows
    std::vector<double> tall(static_cast<size_t>(most * padded(n, TALL))), wide(static_cast<size_t>(most * padded(m, WIDE)));
    for (int64_t first = 0; first < n_terms; first += TERMS) {
        const int64_t terms = std::min(TERMS, n_terms - first);
        pack(a + first * n, terms, n, TALL, tall.data());
        pack(b + first * m, terms, m, WIDE, wide.data());
        for (int64_t j = 0; j < m; j += WIDE)
            for (int64_t i = 0; i < n; i += TALL)
                add_tile(tall.data() + i * terms, wide.data() + j * terms, terms, std::min(TALL, n - i),
                         std::min(WIDE, m - j), out + i * m + j, m);
    }
}

// Householder's reduction of a symmetric matrix, the largest number of which is about 1 (Golub and Van Loan 2013, Algorithm
// 8.3.1, on the whole matrix). What is right of the diagonal of row k becomes the vector of reflection k. scratch: 2 n numbers.
void tridiagonalise(double *a, int64_t n, double *diagonal, double *beside, double *factors, double *scratch) {
    double *p = scratch, *w = scratch + n;
    for (int64_t k = 0; k + 1 < n; ++k) {
        const int64_t size = n - k - 1;
        double *v = a + k * n + k + 1, *rest = a + (k + 1) * n + k + 1;
        diagonal[k] = a[k * n + k];
        const double tail = std::inner_product(v + 1, v + size, v + 1, 0.0);
        factors[k] = 0;
        beside[k] = v[0];
        if (tail < NOTHING) continue; // what is left of a matrix of low rank: its squares would underflow
        const double length = std::sqrt(v[0] * v[0] + tail);
        beside[k] = v[0] > 0 ? -length : length;
        v[0] -= beside[k];
        factors[k] = 2 / (v[0] * v[0] + tail);
        std::fill(p, p + size, 0.0);
        for (int64_t i = 0; i < size; ++i) {
            const double factor = factors[k] * v[i], *row = rest + i * n;
            for (int64_t j = 0; j < size; ++j) p[j] += factor * row[j];
        }
        const double both = std::inner_product(p, p + size, v, 0.0) * (factors[k] / 2);
        for (int64_t i = 0; i < size; ++i) w[i] = p[i] - both * v[i];
        for (int64_t i = 0; i < size; ++i) {
            double *row = rest + i * n;
            const double own_v = v[i], own_w = w[i];
            for (int64_t j = 0; j < size; ++j) row[j] -= own_v * w[j] + own_w * v[j];
        }
    }
    diagonal[n - 1] = a[n * n - 1];
}

// Apply the reflections to vectors (n, count), the last first. scratch: count numbers.
void reflect_back(const double *a, int64_t n, const double *factors, double *vectors, int64_t count, double *scratch) {
    for (int64_t k = n - 2; k >= 0; --k) {
        if (factors[k] == 0) continue;
        const double *v = a + k * n + k + 1;
        double *rows = vectors + (k + 1) * count;
        std::fill(scratch, scratch + count, 0.0);
        for (int64_t i = 0; i < n - k - 1; ++i)
            for (int64_t j = 0; j < count; ++j) scratch[j] += v[i] * rows[i * count + j];
        for (int64_t i = 0; i < n - k - 1; ++i) {
            const double factor = factors[k] * v[i];
            for (int64_t j = 0; j < count; ++j) rows[i * count + j] -= factor * scratch[j];
        }
    }
}

} // namespace SRS_ISA
} // namespace srs
