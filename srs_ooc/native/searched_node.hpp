// A node whose best split is looked for, and which of the faster ways to look can be taken there.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct SearchedNode {
    TreeData<Code> &tree;
    const Node &node;
    TileScan<Code> scan;
    const Deviations *deviations = nullptr; // of its rows, where it is searched with them
    bool in_cells = false;                  // whether it can be searched by counting rows by code

    // `numbers`: [n_channels] of the node's rows.
    SearchedNode(TreeData<Code> &tree, const Node &node, const Facts &f, const int32_t *const *numbers)
        : tree(tree), node(node), scan(tree.job, tree.criterion, f, node.key, numbers, tree.scratches[0]) {}

    // Nodes with targets of one-byte codes; `own`: room for the deviations of its rows.
    SRS_INLINE void choose_way(const Facts &f, Deviations &own) {
        if (sizeof(Code) != 1 || tree.criterion.impurity != VARIANCE) return;
        const GrowJob &job = tree.job;
        const int32_t *weights = job.n_channels == 2 ? scan.numbers[0] : nullptr, *sums = scan.numbers[job.n_channels - 1];
        if (node.n > most_wide()) {
            in_cells = job.best && CellLanes::can_hold(f, weights, sums);
            return;
        }
        own.set(f, weights, sums);
        if (job.best || !job.tiled || own.is_narrow) deviations = &own;
    }

    // Whether a column of the node is looked at on its own.
    SRS_INLINE bool by_column() const {
        const GrowJob &job = tree.job;
        if (deviations) return false;
        if (job.best && sizeof(Code) != 1) return node.n > FEW_ROWS;
        if (job.best && !job.tiled && tree.criterion.impurity == VARIANCE && node.n <= tree.NODE_LINES) {
            // Trying all rows costs n^2 whatever the lanes in use, counting codes costs all lanes' cells.
            const int64_t most = job.max_features < job.n_columns ? job.max_features : job.n_columns;
            const int64_t lanes = most < TILE ? most : TILE;
            if (lanes < TILE / 3 || (node.n > lanes && node.n <= FEW_ROWS)) return node.n > 4;
        }
        return !job.tiled && node.n > tree.NODE_LINES;
    }

  private:
    // Rows up to which a node with targets is searched with their deviations.
    SRS_INLINE int64_t most_wide() const {
        if (tree.job.best) return SortedLanes::MOST;
        return tree.job.values ? 0 : tree.job.tiled ? DrawnLanes::TILED : tree.NODE_LINES;
    }
};
