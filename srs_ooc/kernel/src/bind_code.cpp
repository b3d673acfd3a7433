// Binding of the column coder; what each argument means is told in kernel/code.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>

#include "code_columns.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Value, class Code>
void code_columns(Matrix<const Value> values, Matrix<Code> codes, Vector<std::uint32_t> n_missing,
                  Vector<std::uint16_t> n_codes, Vector<bool> exact, Vector<std::uint8_t> kinds,
                  Matrix<double> lows, Matrix<double> highs) {
    const std::size_t n_columns = values.shape(0), n_rows = values.shape(1);
    const std::size_t width = lows.shape(1); // 0: ranges are not wanted
    nb::gil_scoped_release release;
    srs::ColumnCoder<Value, Code> coder(n_rows);
    for (std::size_t j = 0; j < n_columns; ++j) {
        const srs::ColumnFacts facts =
            coder.code(values.data() + j * n_rows, codes.data() + j * n_rows);
        n_missing.data()[j] = facts.n_missing;
        n_codes.data()[j] = facts.n_codes;
        exact.data()[j] = facts.exact;
        kinds.data()[j] = facts.kind;
        if (width) coder.ranges(lows.data() + j * width, highs.data() + j * width);
    }
}

template <class Value, class Code> void bind_one(nb::module_ &module) {
    module.def("code_columns", &code_columns<Value, Code>, "values"_a.noconvert(),
               "codes"_a.noconvert(), "n_missing"_a.noconvert(), "n_codes"_a.noconvert(),
               "exact"_a.noconvert(), "kinds"_a.noconvert(), "lows"_a.noconvert(), "highs"_a.noconvert());
}

} // namespace

void bind_code(nb::module_ &module) {
    bind_one<double, std::uint8_t>(module);
    bind_one<double, std::uint16_t>(module);
    bind_one<float, std::uint8_t>(module);
    bind_one<float, std::uint16_t>(module);
}
