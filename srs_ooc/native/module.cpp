// The native module: one binding function per source file.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_trees(nb::module_ &module);
void bind_draw(nb::module_ &module);
void bind_gather(nb::module_ &module);
void bind_read_ahead(nb::module_ &module);
void bind_probe(nb::module_ &module);
void bind_parse(nb::module_ &module);
void bind_code(nb::module_ &module);
void bind_forest(nb::module_ &module);
void bind_tests(nb::module_ &module);
void bind_subsets(nb::module_ &module);
void bind_subset_draws(nb::module_ &module);
void bind_sorted(nb::module_ &module);
void bind_numerics(nb::module_ &module);
void bind_sensitivity(nb::module_ &module);
void bind_tally(nb::module_ &module);

NB_MODULE(_native, module) {
    bind_trees(module);
    bind_draw(module);
    bind_gather(module);
    bind_read_ahead(module);
    bind_probe(module);
    bind_parse(module);
    bind_code(module);
    bind_forest(module);
    bind_tests(module);
    bind_subsets(module);
    bind_subset_draws(module);
    bind_sorted(module);
    bind_numerics(module);
    bind_sensitivity(module);
    bind_tally(module);
}
