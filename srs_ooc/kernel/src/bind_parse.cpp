#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_parse(nb::module_ &) {}
