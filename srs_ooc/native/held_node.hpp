// A node of a tree that is asked about other rows as it grows, and those rows.
// Included by subsets.cpp and sorted_trees.cpp, inside their namespaces.

constexpr uint32_t TIE_FACTOR = 0x9E3779B1u; // as in tile_best.hpp

struct Node {
    int32_t start, n, held, n_held, depth; // its rows, those to predict
    uint64_t key;
    int64_t total;                         // of its targets; of two classes, rows of the second
};

// Rows to predict, by their places among all of them; a node's lie together.
struct HeldRows {
    uint16_t *places, *spare; // [most rows to predict]

    void carve(Carver &carver, int64_t most) {
        places = carver.take<uint16_t>(most);
        spare = carver.take<uint16_t>(most);
    }

    void take_all(int64_t n) {
        for (int64_t i = 0; i < n; ++i) places[i] = static_cast<uint16_t>(i);
    }

    // Those of a node that go left come first; how many.
    template <typename GoesLeft> SRS_INLINE int32_t part(const Node &node, const GoesLeft goes_left) {
        int32_t n_left = 0, n_right = 0;
        for (int32_t i = node.held; i < node.held + node.n_held; ++i) {
            const uint16_t place = places[i];
            const bool left = goes_left(place);
            places[node.held + n_left] = place;
            spare[n_right] = place;
            n_left += left;
            n_right += !left;
        }
        for (int32_t i = 0; i < n_right; ++i) places[node.held + n_left + i] = spare[i];
        return n_left;
    }
};
