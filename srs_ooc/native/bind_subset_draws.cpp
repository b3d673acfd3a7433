// Python binding of the draws of weighted subsets. Twin: samplers/draws.py.
#include "arrays.hpp"
#include "hash.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Vector;

namespace {

constexpr double UNIT = 0x1p-53;

// Features of V, ascending, of which some, `heavy`, have weights of their own; all others weigh the same.
struct Weights {
    uint64_t n_candidates;
    const uint32_t *heavy;
    const int32_t *counts;
    size_t n_heavy;
    double unit, light; // weight of a count; of each other feature

    bool is_heavy(uint32_t item) const { return std::binary_search(heavy, heavy + n_heavy, item); }
};

// One subset; `taken` are places among the heavy ones.
void draw_subset(const Weights &weights, uint64_t key, uint64_t size, std::vector<uint32_t> &out, std::vector<uint8_t> &taken) {
    std::fill(taken.begin(), taken.end(), uint8_t(0));
    const size_t begin = out.size();
    uint64_t counter = 1, left = 0, n_light = weights.n_candidates - weights.n_heavy;
    for (size_t i = 0; i < weights.n_heavy; ++i) left += static_cast<uint64_t>(weights.counts[i]);
    while (out.size() - begin < size) {
        const double heavy = static_cast<double>(left) * weights.unit, light = static_cast<double>(n_light) * weights.light;
        const double uniform = static_cast<double>(srs::derive(key, counter++) >> 11) * UNIT;
        if (left > 0 && (n_light == 0 || uniform * (heavy + light) < heavy)) {
            uint64_t place = srs::scale_below(srs::derive(key, counter++), left);
            size_t i = 0;
            for (;; ++i) {
                if (taken[i]) continue;
                const auto count = static_cast<uint64_t>(weights.counts[i]);
                if (place < count) break;
                place -= count;
            }
            taken[i] = 1;
            left -= static_cast<uint64_t>(weights.counts[i]);
            out.push_back(weights.heavy[i]);
        } else {
            const auto drawn = [&](uint32_t item) {
                return std::find(out.begin() + static_cast<ptrdiff_t>(begin), out.end(), item) != out.end();
            };
            uint32_t item;
            do item = static_cast<uint32_t>(srs::scale_below(srs::derive(key, counter++), weights.n_candidates));
            while (weights.is_heavy(item) || drawn(item));
            --n_light;
            out.push_back(item);
        }
    }
    std::sort(out.begin() + static_cast<ptrdiff_t>(begin), out.end());
}

// Subsets first .. first + bounds.size() - 2 of a sequence; writes where each begins, returns their members.
nb::bytes draw_subsets(uint64_t key, uint64_t first, uint64_t largest, uint64_t n_candidates, Vector<const uint32_t> heavy,
                       Vector<const int32_t> counts, double unit, double light, Vector<int64_t> bounds) {
    if (largest < 1 || largest > n_candidates || n_candidates >= 0xFFFFFFFFull || heavy.size() != counts.size() ||
        heavy.size() > n_candidates || bounds.size() < 1 || !(unit > 0) || !(light > 0))
        throw std::invalid_argument("cannot draw such subsets");
    for (size_t i = 0; i < heavy.size(); ++i)
        if (counts(i) < 1 || heavy(i) >= n_candidates || (i > 0 && heavy(i) <= heavy(i - 1)))
            throw std::invalid_argument("expected ascending features, each with a weight above 0");
    std::vector<uint32_t> members;
    {
        nb::gil_scoped_release released;
        const Weights weights{n_candidates, heavy.data(), counts.data(), heavy.size(), unit, light};
        std::vector<uint8_t> taken(heavy.size());
        bounds(0) = 0;
        for (size_t s = 0; s + 1 < bounds.size(); ++s) {
            const uint64_t own = srs::derive(key, first + s);
            draw_subset(weights, own, 1 + srs::scale_below(srs::derive(own, 0), largest), members, taken);
            bounds(s + 1) = static_cast<int64_t>(members.size());
        }
    }
    return nb::bytes(reinterpret_cast<const char *>(members.data()), members.size() * sizeof(uint32_t));
}

} // namespace

void bind_subset_draws(nb::module_ &module) {
    module.def("draw_subsets", &draw_subsets, "key"_a, "first"_a, "largest"_a, "n_candidates"_a, "heavy"_a.noconvert(),
               "counts"_a.noconvert(), "unit"_a, "light"_a, "bounds"_a.noconvert());
}
