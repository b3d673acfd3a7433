// What the search for splits works on: the codes of the block, the rows of the tree with what they count, a thread's memory.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

struct Node {
    int64_t start, n, depth;
    uint64_t key;
    int32_t *link; // where its parent's record names it
};

template <typename Code> struct TreeData {
    GrowJob &job;
    Criterion criterion;
    CandidateDraw draw{};
    const int64_t width; // numbers of a class: its rows, and the sums of its channels
    // Scratch, carved by carve_shared() and carve_own().
    TileScratch<Code> scratches[MAX_THREADS];
    int32_t *rows;                   // [n_root_rows] a node's rows lie together, grouped by class
    int32_t *numbers[MAX_CHANNELS];  // [n_root_rows] their channels
    uint32_t *feature_hashes;        // [padded columns]
    uint8_t *categorical;            // [padded columns], then 1 for each tile with any; null: there are none
    Code *lows, *highs;              // [padded columns] ranges at the node
    uint8_t *chosen, *real;          // [padded columns] candidates of the node; columns, as against padding
    Code *column_codes;              // [n_root_rows]
    int32_t *places[2], *segment_of; // [n_root_rows] each, for best splits by sorting
    Code *node_lines;                // [NODE_LINES][TILE]
    const bool by_bytes;             // whether codes are copied by permutations of bytes
    static constexpr int64_t NODE_LINES = 512; // nodes up to this size have their candidates' codes copied

    explicit TreeData(GrowJob &job)
        : job(job), criterion{job.impurity, job.xlogx, job.root_scale}, width(1 + job.n_channels),
          by_bytes(can_permute(job)) {}

    static bool can_permute([[maybe_unused]] const GrowJob &job) {
#if defined(__AVX512BW__)
        return sizeof(Code) == 1 && !job.tiled && job.n_rows <= ByteCopies::MOST && ByteCopies::is_there();
#else
        return false;
#endif
    }

    SRS_INLINE Code code(int64_t column, int64_t row) const {
        const Code *codes = static_cast<const Code *>(job.codes);
        if (job.tiled) return codes[((column / TILE) * job.n_rows + row) * TILE + column % TILE];
        return codes[column * job.n_rows + row];
    }

    SRS_INLINE BlockLines<Code> block_lines(int64_t first, const Node &node) const {
        return {static_cast<const Code *>(job.codes) + first * job.n_rows, rows + node.start};
    }

    SRS_INLINE const uint8_t *categories_of_tile(int64_t first) const {
        return categorical && categorical[padded() + first / TILE] ? categorical + first : nullptr;
    }

    // What places the categories of a split's column at a node.
    uint32_t category_hash(const Node &node, const Split &split) const {
        return LaneKey(node.key, CATEGORIES)(feature_hashes[split.column]);
    }

    SRS_INLINE int64_t padded() const { return (job.n_columns + TILE - 1) / TILE * TILE; }
};
