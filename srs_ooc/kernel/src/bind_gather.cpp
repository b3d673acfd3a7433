#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_gather(nb::module_ &) {}
