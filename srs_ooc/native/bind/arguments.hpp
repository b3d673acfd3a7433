// What bindings take: the arrays, one name for each layout, and checks that several make, with one message.
#pragma once
#include "kernels.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace srs {

template <typename T> using Vector = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <typename T> using Matrix = nanobind::ndarray<T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

// Checks of what is handed to bindings, where several make the same one: each has one home, and one message.

// Columns that a block has room for: of a tiled one, whole tiles.
inline int64_t columns_with_padding(int64_t n_columns, bool tiled) {
    return tiled ? (n_columns + TILE - 1) / TILE * TILE : n_columns;
}

inline void check_block(int64_t nbytes, int64_t n_columns, int64_t n_rows, int64_t code_nbytes, bool tiled) {
    if (nbytes < columns_with_padding(n_columns, tiled) * n_rows * code_nbytes)
        throw std::invalid_argument("the block is smaller than its rows times its columns");
}

// Items that are 0 .. bound - 1; `message` says what one that is not would name.
template <typename Items> void check_below(const Items &items, int64_t bound, const char *message) {
    for (size_t i = 0; i < items.size(); ++i)
        if (static_cast<int64_t>(items.data()[i]) < 0 || static_cast<int64_t>(items.data()[i]) >= bound)
            throw std::invalid_argument(message);
}

} // namespace srs
