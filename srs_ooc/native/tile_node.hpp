// A node as 64 features are looked at in it at once: its numbers, its random numbers, memory to work in.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

// Memory of one thread for scoring a tile.
template <typename Code> struct TileScratch {
    int32_t *counts; // [n_classes][TILE] rows of each class going left
    int64_t *sums;   // [n_classes][n_channels][TILE] their channels
    int64_t *left;   // [n_classes][1 + n_channels] both, for one lane
    Code *view;      // [255][TILE]
    int32_t *cell_counts; // for best splits of bytes: [256][n_classes][TILE] rows of each code
    int64_t *cell_sums;   // [256][n_classes][n_channels][TILE] their channels
};

template <typename Code> struct TileNode {
    const GrowJob &job;
    const Criterion &criterion;
    const Facts &facts;
    const int32_t *const *numbers; // [n_channels] of the node's rows
    TileScratch<Code> scratch;
    LaneKey threshold_key, tie_key, category_key;
    bool narrow; // every class's rows fit a lane counter, and nothing but rows counts

    TileNode(const GrowJob &job, const Criterion &criterion, const Facts &facts, uint64_t node_key,
             const int32_t *const *numbers, const TileScratch<Code> &scratch)
        : job(job), criterion(criterion), facts(facts), numbers(numbers), scratch(scratch),
          threshold_key(node_key, THRESHOLD), tie_key(node_key, TIE), category_key(node_key, CATEGORIES),
          narrow(criterion.impurity == GINI && job.n_channels == 0 && facts.n <= SMALL_NODE &&
                 facts.largest <= Lanes<Code>::FLUSH) {}
};
