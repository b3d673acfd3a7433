// The best split of a node among its candidate columns: by whole tiles, or by the columns drawn.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct NodeSearch {
    TreeData<Code> &tree;

    // The best candidate at a node that may be split.
    Split search(const Node &node, const Facts &f) const {
        const int32_t *own[MAX_CHANNELS] = {};
        for (int64_t c = 0; c < tree.job.n_channels; ++c) own[c] = tree.numbers[c] + node.start;
        SearchedNode<Code> here(tree, node, f, own);
        Deviations deviations;
        here.choose_way(f, deviations);
        const bool by_tiles = tree.job.tiled && !here.by_column();
        Split split = by_tiles ? TiledSearch<Code>{here}.search() : DrawnSearch<Code>{here}.search();
        if (tree.job.best && split.column >= 0) split.threshold = middle(node, split);
        return split;
    }

  private:
    // A best threshold lies midway between the codes it parts, or between their values where these are given.
    uint32_t middle(const Node &node, const Split &split) const {
        const Code shift = split.how == MISSING_LEFT;
        uint32_t next = MISSING<Code>;
        for (int64_t i = 0; i < node.n; ++i) {
            const Code x = static_cast<Code>(tree.code(split.column, tree.rows[node.start + i]) + shift);
            next = x > split.threshold && x < next ? x : next;
        }
        if (split.how == MAPPED || (split.how == MISSING_RIGHT && next == MISSING<Code>)) return split.threshold;
        const uint32_t low = split.threshold - shift; // of the missing values alone nothing is known
        if (!tree.job.values || split.threshold < shift) return (split.threshold + next) / 2;
        return CodeValues{tree.job.values, tree.job.n_values - 1}.cut(split.column, HALFWAY, low, next - shift) + shift;
    }
};
