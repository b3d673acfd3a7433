// The clones of the kernel for instruction sets, and which of them this machine can run.
#pragma once
#include "linear_algebra.hpp"
#include "sorted_trees.hpp"
#include "subsets.hpp"
#include "trees.hpp"

#include <stdexcept>
#include <string>
#include <vector>

namespace srs {

#define SRS_CLONE(isa)                                                                             \
    {#isa, srs::isa::grow, srs::isa::scratch_nbytes, srs::isa::judge_subsets, srs::isa::subset_scratch_nbytes,        \
     srs::isa::grow_sorted, srs::isa::sorted_scratch_nbytes, srs::isa::add_products, srs::isa::tridiagonalise,         \
     srs::isa::reflect_back}

struct Isa {
    const char *name;
    void (*grow)(srs::GrowJob &);
    size_t (*scratch_nbytes)(srs::GrowJob &);
    void (*judge_subsets)(srs::SubsetJob &);
    size_t (*subset_scratch_nbytes)(const srs::SubsetJob &);
    void (*grow_sorted)(srs::SortedJob &);
    size_t (*sorted_scratch_nbytes)(const srs::SortedJob &);
    void (*add_products)(const double *, const double *, int64_t, int64_t, int64_t, double *);
    void (*tridiagonalise)(double *, int64_t, double *, double *, double *, double *);
    void (*reflect_back)(const double *, int64_t, const double *, double *, int64_t, double *);
};

// The instruction sets this machine can run, best first.
inline const std::vector<Isa> &isas() {
    static const std::vector<Isa> available = [] {
        std::vector<Isa> list;
#ifdef SRS_HAVE_AVX512
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
            list.push_back(SRS_CLONE(avx512));
#endif
#ifdef SRS_HAVE_AVX2
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
            list.push_back(SRS_CLONE(avx2));
#endif
        list.push_back(SRS_CLONE(baseline));
        return list;
    }();
    return available;
}

inline const Isa &find_isa(const std::string &name) {
    for (const Isa &isa : isas())
        if (name.empty() || name == isa.name) return isa;
    throw std::invalid_argument("instruction set '" + name + "' is not available on this machine");
}

#undef SRS_CLONE

} // namespace srs
