// The clones of the kernels for instruction sets, which of them this machine can run, and memory for them.
#pragma once
#include "kernels.hpp"

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace srs {

#define SRS_CLONE(isa)                                                                                                 \
    {#isa, isa::grow, isa::scratch_nbytes, isa::judge_subsets, isa::subset_scratch_nbytes, isa::grow_sorted,           \
     isa::sorted_scratch_nbytes, isa::add_products, isa::tridiagonalise, isa::reflect_back, isa::lay_out,   \
     isa::decode_genotypes, isa::scan_pairs}

struct Isa {
    const char *name;
    decltype(&baseline::grow) grow;
    decltype(&baseline::scratch_nbytes) scratch_nbytes;
    decltype(&baseline::judge_subsets) judge_subsets;
    decltype(&baseline::subset_scratch_nbytes) subset_scratch_nbytes;
    decltype(&baseline::grow_sorted) grow_sorted;
    decltype(&baseline::sorted_scratch_nbytes) sorted_scratch_nbytes;
    decltype(&baseline::add_products) add_products;
    decltype(&baseline::tridiagonalise) tridiagonalise;
    decltype(&baseline::reflect_back) reflect_back;
    decltype(&baseline::lay_out) lay_out;
    decltype(&baseline::decode_genotypes) decode_genotypes;
    decltype(&baseline::scan_pairs) scan_pairs;
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

// Whether this machine has an instruction that counts the bits of words of a register.
inline bool counts_words() {
#ifdef SRS_HAVE_AVX512
    return __builtin_cpu_supports("avx512vpopcntdq");
#else
    return false;
#endif
}

inline const Isa &find_isa(const std::string &name) {
    for (const Isa &isa : isas())
        if (name.empty() || name == isa.name) return isa;
    throw std::invalid_argument("instruction set '" + name + "' is not available on this machine");
}

#undef SRS_CLONE

// Scratch memory of a kernel, aligned as its registers are.
struct AlignedDelete {
    void operator()(void *p) const { ::operator delete(p, std::align_val_t(64)); }
};
using Scratch = std::unique_ptr<void, AlignedDelete>;

inline Scratch take_scratch(size_t nbytes) { return Scratch(::operator new(nbytes, std::align_val_t(64))); }

} // namespace srs
