// Bindings of what samplers do with features: draws of distinct ones, in blocks, of weighted subsets; tallies of outcomes.
#include "bind/arguments.hpp"
#include "hash.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Vector;

namespace {

// Drawing distinct features, singly or in blocks of neighbours, and the hashes themselves for the tests: twins of
// tests/helpers/tree_reference.py, tests/helpers/distinct_reference.py and srs_ooc/base/seeds.py.

// Members of 0 .. bound - 1 met so far: open addressing, at most half full.
class Seen {
  public:
    explicit Seen(size_t capacity) {
        size_t size = 16;
        while (size < 2 * capacity) size *= 2;
        slots_.assign(size, EMPTY);
    }
    bool insert(uint32_t item) {
        uint32_t &slot = slots_[place(item)];
        const bool is_new = slot == EMPTY;
        slot = item;
        return is_new;
    }
    bool holds(uint32_t item) const { return slots_[place(item)] == item; }

  private:
    static constexpr uint32_t EMPTY = 0xFFFFFFFFu;
    size_t place(uint32_t item) const {
        const size_t mask = slots_.size() - 1;
        size_t i = srs::mix32(item) & mask;
        while (slots_[i] != item && slots_[i] != EMPTY) i = (i + 1) & mask;
        return i;
    }
    std::vector<uint32_t> slots_;
};

void check_sizes(uint64_t bound, const Vector<const uint32_t> &excluded, size_t n_drawn) {
    if (bound >= 0xFFFFFFFFull || excluded.size() + n_drawn > bound)
        throw std::invalid_argument("cannot draw that many distinct integers");
    srs::expect_below("excluded", excluded, static_cast<int64_t>(bound));
}

void draw_distinct(uint64_t key, uint64_t bound, Vector<const uint32_t> excluded, Vector<uint32_t> out) {
    check_sizes(bound, excluded, out.size());
    nb::gil_scoped_release released;
    Seen seen(excluded.size() + out.size());
    for (size_t i = 0; i < excluded.size(); ++i) seen.insert(excluded.data()[i]);
    size_t n = 0;
    for (uint64_t counter = 0; n < out.size(); ++counter) {
        const auto item = static_cast<uint32_t>(srs::scale_below(srs::derive(key, counter), bound));
        if (seen.insert(item)) out.data()[n++] = item;
    }
}

constexpr uint64_t SHIFT = 1ull << 63, START = SHIFT | 1; // words that no counter reaches

void draw_blocks(uint64_t key, uint64_t bound, uint64_t block_size, Vector<const uint32_t> excluded,
                 Vector<uint32_t> out) {
    check_sizes(bound, excluded, out.size());
    if (block_size < 1 || block_size > bound)
        throw std::invalid_argument("expected blocks of 1 item to all of them");
    if (out.size() == 0) return;
    nb::gil_scoped_release released;
    Seen passed(excluded.size());
    for (size_t i = 0; i < excluded.size(); ++i) passed.insert(excluded.data()[i]);
    const uint64_t shift = srs::scale_below(srs::derive(key, SHIFT), block_size);
    const uint64_t n_blocks = (bound - 1 + shift) / block_size + 1;
    const auto begin_of = [&](uint64_t block) { return block ? block * block_size - shift : 0; };
    size_t n = 0;
    const auto take = [&](uint64_t from, uint64_t to) {
        for (uint64_t item = from; item < to && n < out.size(); ++item)
            if (!passed.holds(static_cast<uint32_t>(item))) out.data()[n++] = static_cast<uint32_t>(item);
    };
    const uint64_t start_key = srs::derive(key, START);
    uint64_t start = srs::scale_below(srs::derive(start_key, 0), bound);
    for (uint64_t counter = 1; passed.holds(static_cast<uint32_t>(start)); ++counter)
        start = srs::scale_below(srs::derive(start_key, counter), bound);
    const uint64_t first = (start + shift) / block_size;
    take(start, std::min(begin_of(first + 1), bound));
    const size_t max_blocks = std::min<size_t>(n_blocks, excluded.size() + out.size() + 1);
    Seen drawn(max_blocks);
    drawn.insert(static_cast<uint32_t>(first));
    uint64_t n_drawn = 1;
    for (uint64_t counter = 0; n < out.size() && n_drawn < n_blocks; ++counter) {
        const uint64_t block = srs::scale_below(srs::derive(key, counter), n_blocks);
        if (!drawn.insert(static_cast<uint32_t>(block))) continue;
        ++n_drawn;
        take(begin_of(block), std::min(begin_of(block + 1), bound));
    }
    take(begin_of(first), start);
}

// Sort items in place, some bits at a time from the lowest: many sooner than by comparing them.
void sort_items(Vector<uint32_t> items) {
    constexpr unsigned BITS = 11;
    constexpr uint32_t MASK = (1u << BITS) - 1;
    nb::gil_scoped_release released;
    const size_t n = items.size();
    uint32_t most = 0, *from = items.data();
    for (size_t i = 0; i < n; ++i) most = std::max(most, from[i]);
    std::vector<uint32_t> room(n);
    uint32_t *to = room.data();
    for (unsigned shift = 0; shift < 32 && most >> shift; shift += BITS) {
        uint32_t ends[MASK + 2] = {}; // one place on, so that sums are where each begins
        for (size_t i = 0; i < n; ++i) ++ends[(from[i] >> shift & MASK) + 1];
        for (uint32_t b = 0; b < MASK; ++b) ends[b + 1] += ends[b];
        for (size_t i = 0; i < n; ++i) to[ends[from[i] >> shift & MASK]++] = from[i];
        std::swap(from, to);
    }
    if (from != items.data()) std::copy(from, from + n, items.data());
}

// Draws of weighted subsets. Twin: samplers/draws.py.
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
    if (largest < 1 || largest > n_candidates || n_candidates >= 0xFFFFFFFFull || !(unit > 0) || !(light > 0))
        throw std::invalid_argument("cannot draw such subsets");
    srs::expect_size("counts", counts, static_cast<int64_t>(heavy.size()));
    srs::expect_room("bounds", bounds, 1, 1);
    srs::expect_below("heavy", heavy, static_cast<int64_t>(n_candidates));
    for (size_t i = 0; i < heavy.size(); ++i) {
        srs::expect_between("counts", counts(i), 1, INT32_MAX, int64_t(i));
        if (i > 0) srs::expect_between("heavy", heavy(i), int64_t(heavy(i - 1)) + 1, UINT32_MAX, int64_t(i));
    }
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
    return srs::as_bytes(members);
}

// What is known of each feature: adding the outcome of an iteration, and the probe's test. Twins: NumPy, in the tests.
constexpr std::size_t AHEAD = 16; // features whose sums are asked for before they are needed: most are in no cache

// ``n_better`` is empty where nothing is compared with; ``changed``: pages of ``page_items`` items.
void add_outcome(Vector<const std::uint32_t> features, Vector<const std::int64_t> importance, std::int64_t compared_with,
                 Vector<std::int64_t> sums, Vector<std::uint32_t> n_drawn, Vector<std::uint32_t> n_better,
                 Vector<bool> changed, std::size_t page_items) {
    const std::size_t n = features.size(), n_items = sums.size();
    const std::uint32_t *items = features.data();
    srs::expect_size("importance", importance, static_cast<int64_t>(n));
    srs::expect_size("n_drawn", n_drawn, static_cast<int64_t>(n_items));
    srs::expect_size_or_none("n_better", n_better, static_cast<int64_t>(n_items));
    if (page_items == 0) srs::refuse("page_items", "1 or more", "0");
    srs::expect_room("changed", changed, n_items > 0 ? static_cast<int64_t>((n_items - 1) / page_items + 1) : 0, 1);
    srs::expect_below("features", features, static_cast<int64_t>(n_items));
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
    using Product = unsigned __int128;
    const std::size_t n = features.size();
    const std::uint32_t *items = features.data();
    srs::expect_size("out", out, static_cast<int64_t>(n));
    srs::expect_size("n_better", n_better, static_cast<int64_t>(n_drawn.size()));
    srs::expect_below("features", features, static_cast<int64_t>(n_drawn.size()));
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t drawn = n_drawn.data()[items[i]], better = n_better.data()[items[i]];
        out.data()[i] = drawn > min_draws && Product(better) * denominator >= Product(drawn) * numerator;
    }
}

} // namespace

void bind_draws(nb::module_ &module) {
    srs::define(module, "draw_distinct", &draw_distinct, "key"_a, "bound"_a, "excluded"_a, "out"_a);
    srs::define(module, "draw_blocks", &draw_blocks, "key"_a, "bound"_a, "block_size"_a, "excluded"_a, "out"_a);
    module.def("derive", &srs::derive, "key"_a, "word"_a);
    module.def("mix32", &srs::mix32<uint32_t>, "x"_a);
    srs::define(module, "draw_subsets", &draw_subsets, "key"_a, "first"_a, "largest"_a, "n_candidates"_a, "heavy"_a,
               "counts"_a, "unit"_a, "light"_a, "bounds"_a);
    srs::define(module, "sort_items", &sort_items, "items"_a);
    srs::define(module, "add_outcome", &add_outcome, "features"_a, "importance"_a, "compared_with"_a, "sums"_a, "n_drawn"_a,
               "n_better"_a, "changed"_a, "page_items"_a);
    srs::define(module, "passes", &passes, "features"_a, "n_drawn"_a, "n_better"_a, "min_draws"_a, "numerator"_a,
               "denominator"_a, "out"_a);
}
