// The native module: one binding function per source file.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_trees(nb::module_ &module);
void bind_presorted(nb::module_ &module);
void bind_forest(nb::module_ &module);
void bind_draws(nb::module_ &module);
void bind_gather(nb::module_ &module);
void bind_ingest(nb::module_ &module);
void bind_statistics(nb::module_ &module);
void bind_pairs(nb::module_ &module);

NB_MODULE(_native, module) {
    bind_trees(module);
    bind_presorted(module);
    bind_forest(module);
    bind_draws(module);
    bind_gather(module);
    bind_ingest(module);
    bind_statistics(module);
    bind_pairs(module);
}
