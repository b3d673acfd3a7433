// Logarithms and powers of arrays, of sums, products and quotients alone. Twin: srs_ooc/base/elementary.py.
#include "arrays.hpp"

#include <cmath>
#include <cstddef>
#include <stdexcept>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Vector;

namespace {

constexpr double LN2_HIGH = 0.6931471805598903, LN2_LOW = 5.497923018708371e-14, INV_LN2 = 1.4426950408889634;
constexpr double SQRT_HALF = 0.7071067811865476, LARGEST_POWER = 700.0;
constexpr int LOG_TERMS = 12, EXP_TERMS = 14;
constexpr size_t PIECE = 64; // numbers that go through each term together

void log_piece(const double *x, size_t n, double *out) {
    double exponent[PIECE], s[PIECE], square[PIECE], series[PIECE];
    for (size_t i = 0; i < n; ++i) {
        int e;
        double m = std::frexp(x[i], &e);
        const bool small = m < SQRT_HALF;
        m = small ? 2.0 * m : m;
        exponent[i] = static_cast<double>(e - small);
        s[i] = (m - 1.0) / (m + 1.0);
        square[i] = s[i] * s[i];
        series[i] = 1.0 / (2 * LOG_TERMS - 1);
    }
    for (int k = LOG_TERMS - 2; k >= 0; --k)
        for (size_t i = 0; i < n; ++i) series[i] = series[i] * square[i] + 1.0 / (2 * k + 1);
    for (size_t i = 0; i < n; ++i) out[i] = exponent[i] * LN2_HIGH + (2.0 * s[i] * series[i] + exponent[i] * LN2_LOW);
}

void exp_piece(const double *x, size_t n, double *out) {
    double k[PIECE], r[PIECE], series[PIECE];
    for (size_t i = 0; i < n; ++i) {
        const double within = x[i] < -LARGEST_POWER ? -LARGEST_POWER : x[i] > LARGEST_POWER ? LARGEST_POWER : x[i];
        k[i] = std::nearbyint(within * INV_LN2);
        r[i] = (within - k[i] * LN2_HIGH) - k[i] * LN2_LOW;
        series[i] = 1.0;
    }
    for (int term = EXP_TERMS; term > 0; --term)
        for (size_t i = 0; i < n; ++i) series[i] = series[i] * (r[i] / term) + 1.0;
    for (size_t i = 0; i < n; ++i) out[i] = std::isnan(k[i]) ? k[i] : std::ldexp(series[i], static_cast<int>(k[i]));
}

template <typename Piece> void in_pieces(Vector<const double> x, Vector<double> out, const Piece piece) {
    if (x.size() != out.size()) throw std::invalid_argument("expected as much room as there are numbers");
    nb::gil_scoped_release released;
    for (size_t start = 0; start < x.size(); start += PIECE)
        piece(x.data() + start, x.size() - start < PIECE ? x.size() - start : PIECE, out.data() + start);
}

} // namespace

void bind_elementary(nb::module_ &module) {
    module.def("logs", [](Vector<const double> x, Vector<double> out) { in_pieces(x, out, log_piece); },
               "x"_a.noconvert(), "out"_a.noconvert());
    module.def("powers", [](Vector<const double> x, Vector<double> out) { in_pieces(x, out, exp_piece); },
               "x"_a.noconvert(), "out"_a.noconvert());
}
