// What is known of each feature: adding the outcome of an iteration, and the probe's test. Twins: NumPy, in the tests.
#include "arrays.hpp"

#include <algorithm>
#include <cstdint>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Vector;

namespace {

constexpr std::size_t AHEAD = 16; // features whose sums are asked for before they are needed: most are in no cache

// ``n_better`` is empty where nothing is compared with; ``changed``: pages of ``page_items`` items.
void add_outcome(Vector<const std::uint32_t> features, Vector<const std::int64_t> importance, std::int64_t compared_with,
                 Vector<std::int64_t> sums, Vector<std::uint32_t> n_drawn, Vector<std::uint32_t> n_better,
                 Vector<bool> changed, std::size_t page_items) {
    const std::size_t n = features.size(), n_items = sums.size();
    const std::uint32_t *items = features.data();
    if (importance.size() != n || n_drawn.size() != n_items || (n_better.size() != 0 && n_better.size() != n_items) ||
        page_items == 0 || changed.size() * page_items < n_items)
        throw nb::value_error("expected an importance for each feature, and counts for each sum");
    if (n > 0 && *std::max_element(items, items + n) >= n_items)
        throw nb::index_error("expected features that have sums");
    nb::gil_scoped_release released;
    for (std::size_t i = 0; i < n; ++i) {
        if (i + AHEAD < n) {
            __builtin_prefetch(sums.data() + items[i + AHEAD], 1);
            __builtin_prefetch(n_drawn.data() + items[i + AHEAD], 1);
        }
        const std::uint32_t item = items[i];
        const std::int64_t own = importance.data()[i];
        if (own != 0) sums.data()[item] += own;
        n_drawn.data()[item] += 1;
        if (n_better.size() && own > compared_with) n_better.data()[item] += 1;
        changed.data()[item / page_items] = true;
    }
}

// Whether each feature was drawn more than ``min_draws`` times, and better in at least that share of them.
void passes(Vector<const std::uint32_t> features, Vector<const std::uint32_t> n_drawn, Vector<const std::uint32_t> n_better,
            std::uint64_t min_draws, std::uint64_t numerator, std::uint64_t denominator, Vector<bool> out) {
    using Wide = unsigned __int128;
    const std::size_t n = features.size();
    const std::uint32_t *items = features.data();
    if (out.size() != n || n_better.size() != n_drawn.size())
        throw nb::value_error("expected a place for each feature, and both counts");
    if (n > 0 && *std::max_element(items, items + n) >= n_drawn.size())
        throw nb::index_error("expected features that have counts");
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t drawn = n_drawn.data()[items[i]], better = n_better.data()[items[i]];
        out.data()[i] = drawn > min_draws && Wide(better) * denominator >= Wide(drawn) * numerator;
    }
}

} // namespace

void bind_tally(nb::module_ &module) {
    module.def("add_outcome", &add_outcome, "features"_a.noconvert(), "importance"_a.noconvert(), "compared_with"_a,
               "sums"_a.noconvert(), "n_drawn"_a.noconvert(), "n_better"_a.noconvert(), "changed"_a.noconvert(),
               "page_items"_a);
    module.def("passes", &passes, "features"_a.noconvert(), "n_drawn"_a.noconvert(), "n_better"_a.noconvert(),
               "min_draws"_a, "numerator"_a, "denominator"_a, "out"_a.noconvert());
}
