// Binding of the column coder; what each argument means is told in store/manifest.py.
#include "arrays.hpp"
#include "code_columns.hpp"
#include "long_column.hpp"

#include <nanobind/stl/pair.h>

#include <cfloat>
#include <cmath>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Matrix, srs::Vector;

namespace {

struct Found { // what coding finds of each column
    Vector<std::uint32_t> n_missing;
    Vector<std::uint16_t> n_codes;
    Vector<bool> exact;
    Vector<std::uint8_t> kinds;
    Matrix<double> lows, highs; // of width 0 where ranges are not wanted
};

template <class Coder, class Value, class Code>
void code_all(Coder coder, const Matrix<const Value> &values, const Matrix<Code> &codes, const Found &found) {
    const std::size_t n_columns = values.shape(0), n_rows = values.shape(1);
    const std::size_t width = found.lows.shape(1);
    for (std::size_t j = 0; j < n_columns; ++j) {
        const srs::ColumnFacts facts =
            coder.code(values.data() + j * n_rows, codes.data() + j * n_rows);
        found.n_missing.data()[j] = facts.n_missing;
        found.n_codes.data()[j] = facts.n_codes;
        found.exact.data()[j] = facts.exact;
        found.kinds.data()[j] = facts.kind;
        if (width) coder.ranges(found.lows.data() + j * width, found.highs.data() + j * width);
    }
}

template <class Value, class Code>
void code_columns(Matrix<const Value> values, Matrix<Code> codes, Vector<std::uint32_t> n_missing,
                  Vector<std::uint16_t> n_codes, Vector<bool> exact, Vector<std::uint8_t> kinds,
                  Matrix<double> lows, Matrix<double> highs, std::size_t long_rows) {
    const std::size_t n_rows = values.shape(1);
    const Found found{n_missing, n_codes, exact, kinds, lows, highs};
    nb::gil_scoped_release release;
    if constexpr (sizeof(Code) == 1) {
        if (n_rows >= long_rows)
            return code_all(srs::LongColumnCoder<Value>(n_rows), values, codes, found);
    }
    code_all(srs::ColumnCoder<Value, Code>(n_rows), values, codes, found);
}

template <class Value, class Code> void bind_one(nb::module_ &module) {
    module.def("code_columns", &code_columns<Value, Code>, "values"_a.noconvert(),
               "codes"_a.noconvert(), "n_missing"_a.noconvert(), "n_codes"_a.noconvert(),
               "exact"_a.noconvert(), "kinds"_a.noconvert(), "lows"_a.noconvert(), "highs"_a.noconvert(),
               "long_rows"_a);
}

// What there is to know of some values at once.
struct Look {
    std::int64_t infinite = -1; // the first infinite one
    bool narrow = true;         // whether all survive the round trip through float

    void take(double value, std::int64_t i) {
        if (std::isinf(value) && infinite < 0) infinite = i;
        if (std::fabs(value) > FLT_MAX || static_cast<double>(static_cast<float>(value)) < value ||
            static_cast<double>(static_cast<float>(value)) > value)
            narrow = false; // never of a NaN
    }
};

std::pair<std::int64_t, bool> look_at(Matrix<const double> values) {
    const std::int64_t n = static_cast<std::int64_t>(values.size());
    nb::gil_scoped_release release;
    Look look;
    for (std::int64_t i = 0; i < n; ++i) look.take(values.data()[i], i);
    return {look.infinite, look.narrow};
}

// Rows (m, n_columns) into the columns first .. first + m - 1 of a panel, whose line s is columns[s].
std::pair<std::int64_t, bool> put_rows(Matrix<const double> rows, Vector<const std::int64_t> columns,
                                       Matrix<double> panel, std::size_t first) {
    const std::size_t m = rows.shape(0), width = rows.shape(1), panel_rows = panel.shape(1);
    if (columns.size() != panel.shape(0) || first + m > panel_rows)
        throw nb::value_error("expected a panel with a line for each column and room for the rows");
    nb::gil_scoped_release release;
    Look look;
    for (std::size_t s = 0; s < columns.size(); ++s) {
        const std::size_t column = static_cast<std::size_t>(columns.data()[s]);
        double *out = panel.data() + s * panel_rows + first;
        for (std::size_t r = 0; r < m; ++r) {
            out[r] = rows.data()[r * width + column];
            look.take(out[r], static_cast<std::int64_t>(r * width + column));
        }
    }
    return {look.infinite, look.narrow};
}

} // namespace

void bind_code(nb::module_ &module) {
    bind_one<double, std::uint8_t>(module);
    bind_one<double, std::uint16_t>(module);
    bind_one<float, std::uint8_t>(module);
    bind_one<float, std::uint16_t>(module);
    module.def("look_at", &look_at, "values"_a.noconvert());
    module.def("put_rows", &put_rows, "rows"_a.noconvert(), "columns"_a.noconvert(),
               "panel"_a.noconvert(), "first"_a);
}
