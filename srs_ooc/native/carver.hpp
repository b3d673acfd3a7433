// Hands out consecutive aligned pieces of scratch memory; of none, the pieces are null and their size is counted.
// Included by what is compiled once per instruction set, inside its namespace: every clone has its own copy.

struct Carver {
    char *base;
    size_t used = 0;
    template <typename T> T *take(int64_t n) {
        T *piece = base ? reinterpret_cast<T *>(base + used) : nullptr;
        used += (sizeof(T) * static_cast<size_t>(n) + 63) / 64 * 64;
        return piece;
    }
};
