// Binding of the rank tests; what each argument means is told in evidence/rank_tests.py.
#include "arrays.hpp"
#include "rank_columns.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using srs::Matrix, srs::Vector;

namespace {

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
    srs::Crossing<Code> crossing(target, n_codes);
    for (std::size_t j = 0; j < columns.shape(0); ++j) {
        crossing.cross(columns.data() + j * columns.shape(1));
        const srs::Shown shown = srs::column_shows(log_factorial, crossing, target, exactly, only);
        log_p.data()[j] = shown.log_p, contrasts.data()[j] = static_cast<std::uint8_t>(shown.contrast);
    }
}

template <class Code> void bind_one(nb::module_ &module) {
    module.def("rank_tests", &rank_tests<Code>, "columns"_a.noconvert(), "n_codes"_a, "rows"_a.noconvert(),
               "starts"_a.noconvert(), "targets"_a.noconvert(), "n_targets"_a, "nominal"_a, "order"_a.noconvert(), "exactly"_a, "only"_a,
               "log_p"_a.noconvert(), "contrasts"_a.noconvert());
}

} // namespace

void bind_tests(nb::module_ &module) {
    bind_one<std::uint8_t>(module);
    bind_one<std::uint16_t>(module);
}
