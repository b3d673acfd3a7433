// Scratch memory of a kernel, aligned as its registers are.
#pragma once
#include <cstddef>
#include <memory>
#include <new>

namespace srs {

struct AlignedDelete {
    void operator()(void *p) const { ::operator delete(p, std::align_val_t(64)); }
};
using Scratch = std::unique_ptr<void, AlignedDelete>;

inline Scratch take_scratch(size_t nbytes) { return Scratch(::operator new(nbytes, std::align_val_t(64))); }

} // namespace srs
