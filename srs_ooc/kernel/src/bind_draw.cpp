// Drawing distinct features, and the hashes themselves for the tests: twins of srs_ooc/seeds.py.
#include "hash.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Members of 0 .. bound - 1 met so far: open addressing, at most half full.
class Seen {
  public:
    explicit Seen(size_t capacity) {
        size_t size = 16;
        while (size < 2 * capacity) size *= 2;
        slots_.assign(size, EMPTY);
    }
    bool insert(uint32_t item) {
        const size_t mask = slots_.size() - 1;
        for (size_t i = srs::mix32(item) & mask;; i = (i + 1) & mask) {
            if (slots_[i] == item) return false;
            if (slots_[i] == EMPTY) {
                slots_[i] = item;
                return true;
            }
        }
    }

  private:
    static constexpr uint32_t EMPTY = 0xFFFFFFFFu;
    std::vector<uint32_t> slots_;
};

void draw_distinct(uint64_t key, uint64_t bound, Vector<const uint32_t> excluded, Vector<uint32_t> out) {
    if (bound >= 0xFFFFFFFFull || excluded.size() + out.size() > bound)
        throw std::invalid_argument("cannot draw that many distinct integers");
    nb::gil_scoped_release released;
    Seen seen(excluded.size() + out.size());
    for (size_t i = 0; i < excluded.size(); ++i) seen.insert(excluded.data()[i]);
    size_t n = 0;
    for (uint64_t counter = 0; n < out.size(); ++counter) {
        const auto item = static_cast<uint32_t>(srs::scale_below(srs::derive(key, counter), bound));
        if (seen.insert(item)) out.data()[n++] = item;
    }
}

} // namespace

void bind_draw(nb::module_ &module) {
    module.def("draw_distinct", &draw_distinct, "key"_a, "bound"_a, "excluded"_a, "out"_a);
    module.def("derive", &srs::derive, "key"_a, "word"_a);
    module.def("mix32", &srs::mix32, "x"_a);
}
