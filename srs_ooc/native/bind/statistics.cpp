// Bindings of numbers that are the same on every machine, and of the rank tests (evidence/rank_tests.py).
#include "bind/arguments.hpp"
#include "isa.hpp"
#include "linalg/tridiagonal.hpp"
#include "ranks/adjusted.hpp"
#include "ranks/risk_sets.hpp"

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
    srs::expect_size("out", out, static_cast<int64_t>(x.size()));
    nb::gil_scoped_release released;
    for (size_t start = 0; start < x.size(); start += PIECE)
        piece(x.data() + start, x.size() - start < PIECE ? x.size() - start : PIECE, out.data() + start);
}

void add_products(Matrix<const double> a, Matrix<const double> b, Matrix<double> out, const std::string &isa) {
    srs::expect_shape("b", b, int64_t(a.shape(0)), int64_t(b.shape(1)));
    srs::expect_shape("out", out, int64_t(a.shape(1)), int64_t(b.shape(1)));
    const srs::Isa &clone = srs::find_isa(isa);
    nb::gil_scoped_release released;
    clone.add_products(a.data(), b.data(), int64_t(a.shape(0)), int64_t(a.shape(1)), int64_t(b.shape(1)), out.data());
}

void top_eigenvectors(Matrix<double> symmetric, Vector<double> values, Matrix<double> vectors, const std::string &isa) {
    const size_t n = symmetric.shape(0), count = values.shape(0);
    srs::expect_shape("symmetric", symmetric, int64_t(std::max<size_t>(n, 1)), int64_t(std::max<size_t>(n, 1)));
    srs::expect_between("values, how many", int64_t(count), 0, int64_t(n));
    srs::expect_shape("vectors", vectors, int64_t(n), int64_t(count));
    const srs::Isa &clone = srs::find_isa(isa);
    nb::gil_scoped_release released;
    std::vector<double> diagonal(n), beside(n), factors(n), scratch(2 * n);
    clone.tridiagonalise(symmetric.data(), int64_t(n), diagonal.data(), beside.data(), factors.data(), scratch.data());
    srs::Tridiagonal reduced(diagonal.data(), beside.data(), int64_t(n));
    for (size_t i = 0; i < count; ++i) values.data()[i] = reduced.value(int64_t(i));
    reduced.vectors(values.data(), int64_t(count), vectors.data());
    clone.reflect_back(symmetric.data(), int64_t(n), factors.data(), vectors.data(), int64_t(count), scratch.data());
}

// Bindings of the rank tests; what each argument means is told in evidence/rank_tests.py.
const srs::LogFactorials &factorials_of(const srs::Target &target) {
    thread_local srs::LogFactorials kept; // eight bytes a row
    kept.reach(target.starts[target.n_strata]);
    return kept;
}

void rank_columns(const char *what, const srs::AnyMatrix &columns, std::size_t n_codes, const srs::Target &target, bool exactly,
                  std::size_t only, const Matrix<double> &log_p, const std::int64_t *scores) {
    srs::with_dtype<std::uint8_t, std::uint16_t>(what, columns, [&](auto code) {
        const auto *all = static_cast<const decltype(code) *>(columns.data());
        nb::gil_scoped_release release;
        const srs::LogFactorials &log_factorial = factorials_of(target);
        srs::Tabulation<decltype(code)> tabulation(target, n_codes, scores);
        for (std::size_t j = 0; j < columns.shape(0); ++j) {
            tabulation.tabulate(all + j * columns.shape(1));
            srs::column_shows(log_factorial, tabulation, target, exactly, only, log_p.data() + j * srs::N_CONTRASTS);
        }
    });
}

// The target's side of the tests, checked; ``scores``: of levels, none where they are ranked.
struct RankTarget {
    Vector<const std::int32_t> rows;
    Vector<const std::int64_t> starts;
    Vector<const std::int32_t> targets;
    std::size_t n_targets;
    bool nominal;
    Vector<const std::int32_t> order;
    Vector<const std::int64_t> scores;
    std::int64_t n_rows = 0; // that a column has at least

    void check() {
        const auto n = static_cast<int64_t>(rows.size()), most = static_cast<int64_t>(n_targets);
        srs::expect_below("rows", rows, INT32_MAX);
        for (std::size_t i = 0; i < rows.size(); ++i) n_rows = std::max<std::int64_t>(n_rows, std::int64_t(rows(i)) + 1);
        srs::expect_bounds("starts", starts, n, 0);
        srs::expect_between("n_targets", most, 1, std::max<int64_t>(nominal ? int64_t(order.size()) : n, 1));
        srs::expect_size("targets", targets, n);
        srs::expect_below("targets", targets, most);
        srs::expect_size("order", order, nominal ? most : 0);
        srs::expect_below("order", order, most);
        srs::expect_size_or_none("scores", scores, most);
        for (size_t i = 0; i < scores.size(); ++i)
            srs::expect_between("scores", scores(i), i ? scores(i - 1) + 1 : 0, 65535, int64_t(i));
    }
};

// What covariates span.
struct Covariates {
    Matrix<const double> basis, products;
    double shrink;

    void check() const {
        srs::expect_shape("products", products, int64_t(basis.shape(1)), int64_t(basis.shape(1)));
        if (!(shrink > 0 && shrink <= 1)) srs::refuse("shrink", "above 0, up to 1", std::to_string(shrink));
    }
};

// A test's target, of columns that fit; ``covariates``, or null: what was fitted to the rows.
srs::Target target_of(const char *what, const srs::AnyMatrix &columns, std::size_t n_codes, const RankTarget &of,
                      const Covariates *covariates, const Matrix<double> &log_p) {
    srs::expect_between("n_codes", static_cast<int64_t>(n_codes), 0, 65536);
    srs::expect_between((what + std::string(", their rows")).c_str(), static_cast<int64_t>(columns.shape(1)), of.n_rows, INT64_MAX);
    srs::expect_shape("log_p", log_p, static_cast<int64_t>(columns.shape(0)), srs::N_CONTRASTS);
    return {of.rows.data(), of.targets.data(), of.starts.data(), of.starts.size() - 1, of.n_targets, of.nominal,
            std::vector<std::int32_t>(of.order.data(), of.order.data() + of.order.size()),
            of.scores.size() ? of.scores.data() : nullptr, false, covariates ? covariates->shrink : 1.0};
}

srs::Codes codes_of(const srs::AnyMatrix &columns) {
    return srs::with_dtype<std::uint8_t, std::uint16_t>("columns", columns, [&](auto code) {
        return srs::Codes{columns.data(), sizeof code > 1};
    });
}

// Has work done on what tests columns that covariates are taken off.
template <typename Work>
void adjust(const srs::AnyMatrix &columns, std::size_t n_codes, const srs::Target &target, const Covariates &covariates,
            const srs::LevelLimits &limits, const std::string &isa, const Work work) {
    const std::size_t n_rows = columns.shape(1), k = covariates.basis.shape(1);
    srs::expect_shape("basis", covariates.basis, static_cast<int64_t>(n_rows), static_cast<int64_t>(k));
    const srs::Isa &clone = srs::find_isa(isa);
    nb::gil_scoped_release release;
    const srs::Basis fitted{covariates.basis.data(), covariates.products.data(), n_rows, k};
    srs::AdjustedTests tests(factorials_of(target), target, n_codes, fitted, limits, clone);
    work(tests);
}

void rank_tests(srs::AnyMatrix columns, std::size_t n_codes, const RankTarget &of_rows, const Covariates *covariates, bool exactly,
                std::size_t only, Matrix<double> log_p, const std::string &isa) {
    const srs::Target target = target_of("columns", columns, n_codes, of_rows, covariates, log_p);
    srs::expect_between("only", static_cast<int64_t>(only), 0, srs::N_CONTRASTS);
    if (!covariates) return rank_columns("columns", columns, n_codes, target, exactly, only, log_p, nullptr);
    adjust(columns, n_codes, target, *covariates, {1, 2, 0}, isa, [&](srs::AdjustedTests &tests) {
        tests.test(codes_of(columns), columns.shape(0), exactly, only, log_p.data());
    });
}

// What is left of the scores of columns, in even steps: what step_tests take, of any of the rows.
void adjusted_steps(srs::AnyMatrix columns, std::size_t n_codes, const Covariates &covariates, Matrix<std::uint8_t> out,
                    const std::string &isa) {
    srs::expect_between("n_codes", static_cast<int64_t>(n_codes), 0, 65536);
    srs::expect_shape("out", out, static_cast<int64_t>(columns.shape(0)), static_cast<int64_t>(srs::N_CONTRASTS * columns.shape(1)));
    const std::int64_t none = 0;
    const srs::Target nothing{nullptr, nullptr, &none, 0, 1, true, {0}};
    adjust(columns, n_codes, nothing, covariates, {1, 2, 0}, isa, [&](srs::AdjustedTests &tests) {
        tests.steps(codes_of(columns), columns.shape(0), out.data());
    });
}

// The location of columns of steps, which are scores as they are.
void step_tests(srs::AnyMatrix steps, const RankTarget &of_rows, const Covariates &covariates, Matrix<double> log_p) {
    const srs::Target target = target_of("steps", steps, srs::STEPS + 1, of_rows, &covariates, log_p);
    rank_columns("steps", steps, srs::STEPS + 1, target, false, srs::LOCATION, log_p, srs::identity());
}

void risk_set_tests(srs::AnyMatrix columns, std::size_t n_codes, const RankTarget &of_rows, const RankTarget &of_censoring,
                    Vector<const std::int32_t> times, Vector<const bool> events, double bar, Matrix<double> log_p) {
    const srs::Target target = target_of("columns", columns, n_codes, of_rows, nullptr, log_p);
    srs::Target other = target_of("columns", columns, n_codes, of_censoring, nullptr, log_p);
    other.screened = true;
    srs::expect_size("times", times, static_cast<int64_t>(columns.shape(1)));
    srs::expect_size("events", events, static_cast<int64_t>(columns.shape(1)));
    srs::with_dtype<std::uint8_t, std::uint16_t>("columns", columns, [&](auto code) {
        const Matrix<const decltype(code)> own(columns);
        nb::gil_scoped_release release;
        srs::RiskSetTests tests(target, n_codes, times.data(), events.data());
        srs::Tabulation<decltype(code)> tabulation(other, n_codes);
        double differs[srs::N_CONTRASTS];
        for (std::size_t j = 0; j < own.shape(0); ++j) {
            const auto *column = own.data() + j * own.shape(1);
            tabulation.tabulate(column);
            srs::column_shows(factorials_of(other), tabulation, other, false, srs::N_CONTRASTS, differs);
            for (std::size_t c = 0; c < srs::N_CONTRASTS; ++c) {
                double &found = log_p.data()[j * srs::N_CONTRASTS + c];
                if (!std::isnan(found) && differs[c] < bar) found = tests.log_p({column, sizeof code > 1}, srs::Contrast(c));
            }
        }
    });
}

// Tests the levels of some columns, in place of what is there of their location and spread.
template <typename Test>
void each_of_levels(const srs::AnyMatrix &columns, const Vector<const std::int64_t> &which, const Matrix<double> &log_p,
                    const Test test) {
    const srs::Codes codes = codes_of(columns);
    for (std::size_t i = 0; i < which.size(); ++i) {
        const auto j = static_cast<std::size_t>(which.data()[i]);
        double *own = log_p.data() + j * srs::N_CONTRASTS;
        if (test(codes.from(j * columns.shape(1)), own[srs::LOCATION])) own[srs::SPREAD] = std::numeric_limits<double>::quiet_NaN();
    }
}

void level_tests(srs::AnyMatrix columns, std::size_t n_codes, const RankTarget &of_rows, const Covariates *covariates,
                 bool exactly, Vector<const std::int64_t> which, std::size_t rare, std::size_t most_levels,
                 std::size_t target_levels, Matrix<double> log_p, const std::string &isa) {
    const srs::Target target = target_of("columns", columns, n_codes, of_rows, covariates, log_p);
    srs::expect_below("which", which, static_cast<int64_t>(columns.shape(0)));
    srs::expect_between("rare", static_cast<int64_t>(rare), 1, std::numeric_limits<std::int32_t>::max());
    srs::expect_between("most_levels", static_cast<int64_t>(most_levels), 2, 65536);
    srs::expect_between("target_levels", static_cast<int64_t>(target_levels), 2, 255);
    const srs::LevelLimits limits{static_cast<int64_t>(rare), most_levels, target_levels};
    if (covariates)
        return adjust(columns, n_codes, target, *covariates, limits, isa, [&](srs::AdjustedTests &tests) {
            each_of_levels(columns, which, log_p, [&](srs::Codes column, double &found) { return tests.test_levels(column, exactly, found); });
        });
    nb::gil_scoped_release release;
    srs::LevelTests tests(factorials_of(target), target, n_codes, limits);
    each_of_levels(columns, which, log_p, [&](srs::Codes column, double &found) { return tests.test(column, exactly, found); });
}

} // namespace

void bind_statistics(nb::module_ &module) {
    srs::define(module, "logs", +[](Vector<const double> x, Vector<double> out) { in_pieces(x, out, log_piece); }, "x"_a, "out"_a);
    srs::define(module, "powers", +[](Vector<const double> x, Vector<double> out) { in_pieces(x, out, exp_piece); }, "x"_a, "out"_a);
    srs::define(module, "add_products", &add_products, "a"_a, "b"_a, "out"_a, "isa"_a = "");
    srs::define(module, "top_eigenvectors", &top_eigenvectors, "symmetric"_a, "values"_a, "vectors"_a, "isa"_a = "");
    srs::define_fields<RankTarget, Vector<const std::int32_t>, Vector<const std::int64_t>, Vector<const std::int32_t>, std::size_t,
                       bool, Vector<const std::int32_t>, Vector<const std::int64_t>>(
        module, "RankTarget", "rows"_a, "starts"_a, "targets"_a, "n_targets"_a, "nominal"_a, "order"_a, "scores"_a);
    srs::define_fields<Covariates, Matrix<const double>, Matrix<const double>, double>(
        module, "Covariates", "basis"_a, "products"_a, "shrink"_a);
    srs::define(module, "rank_tests", &rank_tests, "columns"_a, "n_codes"_a, "target"_a, "covariates"_a.none(), "exactly"_a,
                "only"_a, "log_p"_a, "isa"_a = "");
    srs::define(module, "adjusted_steps", &adjusted_steps, "columns"_a, "n_codes"_a, "covariates"_a, "out"_a, "isa"_a = "");
    srs::define(module, "step_tests", &step_tests, "steps"_a, "target"_a, "covariates"_a, "log_p"_a);
    srs::define(module, "risk_set_tests", &risk_set_tests, "columns"_a, "n_codes"_a, "target"_a, "censoring"_a, "times"_a,
                "events"_a, "bar"_a, "log_p"_a);
    srs::define(module, "level_tests", &level_tests, "columns"_a, "n_codes"_a, "target"_a, "covariates"_a.none(), "exactly"_a,
                "which"_a, "rare"_a, "most_levels"_a, "target_levels"_a, "log_p"_a, "isa"_a = "");
}
