// A node of a tree that is asked about other rows as it grows.
// Included by subsets.cpp and sorted_trees.cpp, inside their namespaces.

constexpr uint32_t TIE_FACTOR = 0x9E3779B1u; // as in best.hpp

struct Node {
    int32_t start, n, held, n_held, depth; // its rows, those to predict
    uint64_t key;
    int64_t total;                         // of its targets; of two classes, rows of the second
};
