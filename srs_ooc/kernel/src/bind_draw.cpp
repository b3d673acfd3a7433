#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_draw(nb::module_ &) {}
