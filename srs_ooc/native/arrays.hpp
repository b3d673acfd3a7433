// The arrays that bindings take and fill: contiguous, in memory, of one dimension or two.
// One name for each, so that no two bindings ask for other layouts.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace srs {

template <typename T> using Vector = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <typename T> using Matrix = nanobind::ndarray<T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

} // namespace srs
