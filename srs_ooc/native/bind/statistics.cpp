// Bindings of numbers that are the same on every machine, and of the rank tests (evidence/rank_tests.py).
#include "bind/arguments.hpp"
#include "isa.hpp"
#include "linalg/tridiagonal.hpp"
#include "ranks/columns.hpp"

#include <nanobind/stl/string.h>

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Matrix, srs::Vector;

namespace {

// Numbers with the same bits on every machine: logarithms and powers of sums, products and quotients alone
// (twin: tests/native/test_numerics.py), sums of products, and eigenvectors.
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

void add_products(Matrix<const double> a, Matrix<const double> b, Matrix<double> out, const std::string &isa) {
    if (a.shape(0) != b.shape(0) || out.shape(0) != a.shape(1) || out.shape(1) != b.shape(1))
        throw std::invalid_argument("expected a (k, n), b (k, m) and out (n, m)");
    const srs::Isa &clone = srs::find_isa(isa);
    nb::gil_scoped_release released;
    clone.add_products(a.data(), b.data(), int64_t(a.shape(0)), int64_t(a.shape(1)), int64_t(b.shape(1)), out.data());
}

void top_eigenvectors(Matrix<double> symmetric, Vector<double> values, Matrix<double> vectors, const std::string &isa) {
    const size_t n = symmetric.shape(0), count = values.shape(0);
    if (n == 0 || symmetric.shape(1) != n || count > n || vectors.shape(0) != n || vectors.shape(1) != count)
        throw std::invalid_argument("expected a (n, n), values (r,) and vectors (n, r), r at most n");
    const srs::Isa &clone = srs::find_isa(isa);
    nb::gil_scoped_release released;
    std::vector<double> diagonal(n), beside(n), factors(n), scratch(2 * n);
    clone.tridiagonalise(symmetric.data(), int64_t(n), diagonal.data(), beside.data(), factors.data(), scratch.data());
    srs::Tridiagonal reduced(diagonal.data(), beside.data(), int64_t(n));
    for (size_t i = 0; i < count; ++i) values.data()[i] = reduced.value(int64_t(i));
    reduced.vectors(values.data(), int64_t(count), vectors.data());
    clone.reflect_back(symmetric.data(), int64_t(n), factors.data(), vectors.data(), int64_t(count), scratch.data());
}

// Binding of the rank tests; what each argument means is told in evidence/rank_tests.py.
template <class Code>
void rank_tests(Matrix<const Code> columns, std::size_t n_codes, Vector<const std::int32_t> rows,
                Vector<const std::int64_t> starts, Vector<const std::int32_t> targets, std::size_t n_targets, bool nominal,
                Vector<const std::int32_t> order, bool exactly, std::size_t only, Vector<double> log_p,
                Vector<std::uint8_t> contrasts) {
    if (rows.size() != targets.size() || starts.size() < 1 || log_p.size() != columns.shape(0) ||
        contrasts.size() != columns.shape(0))
        throw nb::value_error("expected a target for each row, and a p-value for each column");
    const srs::Target target{rows.data(), targets.data(), starts.data(), starts.size() - 1, n_targets, nominal,
                             std::vector<std::int32_t>(order.data(), order.data() + order.size())};
    nb::gil_scoped_release release;
    thread_local srs::LogFactorials log_factorial; // eight bytes a row
    log_factorial.reach(static_cast<std::int64_t>(rows.size()));
    srs::Tabulation<Code> tabulation(target, n_codes);
    for (std::size_t j = 0; j < columns.shape(0); ++j) {
        tabulation.tabulate(columns.data() + j * columns.shape(1));
        const srs::Shown shown = srs::column_shows(log_factorial, tabulation, target, exactly, only);
        log_p.data()[j] = shown.log_p, contrasts.data()[j] = static_cast<std::uint8_t>(shown.contrast);
    }
}

template <class Code> void bind_one(nb::module_ &module) {
    module.def("rank_tests", &rank_tests<Code>, "columns"_a.noconvert(), "n_codes"_a, "rows"_a.noconvert(),
               "starts"_a.noconvert(), "targets"_a.noconvert(), "n_targets"_a, "nominal"_a, "order"_a.noconvert(), "exactly"_a, "only"_a,
               "log_p"_a.noconvert(), "contrasts"_a.noconvert());
}

} // namespace

void bind_statistics(nb::module_ &module) {
    module.def("logs", [](Vector<const double> x, Vector<double> out) { in_pieces(x, out, log_piece); },
               "x"_a.noconvert(), "out"_a.noconvert());
    module.def("powers", [](Vector<const double> x, Vector<double> out) { in_pieces(x, out, exp_piece); },
               "x"_a.noconvert(), "out"_a.noconvert());
    module.def("add_products", &add_products, "a"_a.noconvert(), "b"_a.noconvert(), "out"_a.noconvert(), "isa"_a = "");
    module.def("top_eigenvectors", &top_eigenvectors, "symmetric"_a.noconvert(), "values"_a.noconvert(),
               "vectors"_a.noconvert(), "isa"_a = "");
    bind_one<std::uint8_t>(module);
    bind_one<std::uint16_t>(module);
}
