// Drawing distinct features, singly or in blocks of neighbours, and the hashes themselves for the tests: twins of
// tests/helpers/tree_reference.py, tests/helpers/distinct_reference.py and srs_ooc/base/seeds.py.
#include "arrays.hpp"
#include "hash.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Vector;

namespace {

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

void check_sizes(uint64_t bound, size_t n_excluded, size_t n_drawn) {
    if (bound >= 0xFFFFFFFFull || n_excluded + n_drawn > bound)
        throw std::invalid_argument("cannot draw that many distinct integers");
}

void draw_distinct(uint64_t key, uint64_t bound, Vector<const uint32_t> excluded, Vector<uint32_t> out) {
    check_sizes(bound, excluded.size(), out.size());
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
    check_sizes(bound, excluded.size(), out.size());
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
    const size_t most_blocks = std::min<size_t>(n_blocks, excluded.size() + out.size() + 1);
    Seen drawn(most_blocks);
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

} // namespace

void bind_draw(nb::module_ &module) {
    module.def("draw_distinct", &draw_distinct, "key"_a, "bound"_a, "excluded"_a, "out"_a);
    module.def("draw_blocks", &draw_blocks, "key"_a, "bound"_a, "block_size"_a, "excluded"_a, "out"_a);
    module.def("derive", &srs::derive, "key"_a, "word"_a);
    module.def("mix32", &srs::mix32, "x"_a);
}
