#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_code(nb::module_ &) {}
