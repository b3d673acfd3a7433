#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_trees(nb::module_ &) {}
