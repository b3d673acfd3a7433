// Python binding that makes the probe: a column of a block, copied with its rows permuted.
#include "arrays.hpp"
#include "checks.hpp"
#include "hash.hpp"
#include "trees.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::TILE, srs::Vector;

namespace {

// Fisher-Yates from the end, as tests/helpers/tree_reference.py `shuffled`.
template <typename Code> void shuffle_column(const Code *from, Code *to, int64_t n_rows, int64_t stride, uint64_t key) {
    std::vector<Code> column(static_cast<size_t>(n_rows));
    for (int64_t i = 0; i < n_rows; ++i) column[static_cast<size_t>(i)] = from[i * stride];
    for (int64_t i = n_rows - 1; i > 0; --i) {
        const auto j = srs::scale_below(srs::derive(key, static_cast<uint64_t>(i)), static_cast<uint64_t>(i) + 1);
        std::swap(column[static_cast<size_t>(i)], column[j]);
    }
    for (int64_t i = 0; i < n_rows; ++i) to[i * stride] = column[static_cast<size_t>(i)];
}

void copy_shuffled(Vector<uint8_t> block, int64_t n_columns, int64_t n_rows, int64_t code_nbytes, bool tiled,
                   int64_t source, int64_t target, uint64_t key) {
    const int64_t columns = srs::columns_with_padding(n_columns, tiled);
    if (source < 0 || target < 0 || source >= n_columns || target >= n_columns ||
        static_cast<int64_t>(block.size()) < columns * n_rows * code_nbytes)
        throw std::invalid_argument("no such column in the block");
    nb::gil_scoped_release released;
    const auto offset = [&](int64_t column) { return tiled ? column / TILE * TILE * n_rows + column % TILE : column * n_rows; };
    const int64_t stride = tiled ? TILE : 1;
    if (code_nbytes == 1) {
        shuffle_column(block.data() + offset(source), block.data() + offset(target), n_rows, stride, key);
    } else {
        auto *codes = reinterpret_cast<uint16_t *>(block.data());
        shuffle_column(codes + offset(source), codes + offset(target), n_rows, stride, key);
    }
}

} // namespace

void bind_probe(nb::module_ &module) {
    module.def("copy_shuffled", &copy_shuffled, "block"_a, "n_columns"_a, "n_rows"_a, "code_nbytes"_a, "tiled"_a,
               "source"_a, "target"_a, "key"_a);
}
