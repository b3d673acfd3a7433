// The best split at a node of up to 64 features side by side, by the fastest way that can be taken.
#pragma once
#include "search/tree_data.hpp"
#include "targets/best.hpp"
#include "tile/best.hpp"

namespace srs::SRS_ISA {
namespace {

// A node whose best split is looked for, and which of the faster ways to look can be taken there.
template <typename Code> struct SearchedNode {
    TreeData<Code> &tree;
    const Node &node;
    TileScan<Code> scan;
    const Deviations *deviations = nullptr; // of its rows, where it is searched with them
    bool in_cells = false;                  // whether it can be searched by counting rows by code

    // `numbers`: [n_channels] of the node's rows.
    SearchedNode(TreeData<Code> &tree, const Node &node, const NodeStats &f, const int32_t *const *numbers)
        : tree(tree), node(node), scan(tree.job, tree.criterion, f, node.key, numbers, tree.scratches[0]) {}

    // Nodes with targets of one-byte codes; `own`: room for the deviations of its rows.
    SRS_INLINE void choose_way(const NodeStats &f, Deviations &own) {
        if (sizeof(Code) != 1 || tree.criterion.impurity != VARIANCE) return;
        const GrowJob &job = tree.job;
        const int32_t *weights = job.n_channels == 2 ? scan.numbers[0] : nullptr, *sums = scan.numbers[job.n_channels - 1];
        if (node.n > max_deviation_rows()) {
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
        if (job.best && sizeof(Code) != 1) return node.n > MAX_TRIED_ROWS;
        if (job.best && !job.tiled && tree.criterion.impurity == VARIANCE && node.n <= tree.NODE_LINES) {
            // Trying all rows costs n^2 whatever the lanes in use, counting codes costs all lanes' cells.
            const int64_t max_columns = job.max_features < job.n_columns ? job.max_features : job.n_columns;
            const int64_t lanes = max_columns < TILE ? max_columns : TILE;
            if (lanes < TILE / 3 || (node.n > lanes && node.n <= MAX_TRIED_ROWS)) return node.n > 4;
        }
        return !job.tiled && node.n > tree.NODE_LINES;
    }

  private:
    // Rows up to which a node with targets is searched with their deviations.
    SRS_INLINE int64_t max_deviation_rows() const {
        if (tree.job.best) return SortedLanes::MAX_ROWS;
        return tree.job.values ? 0 : tree.job.tiled ? RandomLanes::TILED : tree.NODE_LINES;
    }
};

template <typename Code> struct LaneSearch {
    const SearchedNode<Code> &here;
    const TileScan<Code> &scan;
    const Code *low, *high;    // [TILE] range of each lane's codes
    const uint32_t *hashes;    // [TILE]
    const uint8_t *categories; // [TILE], or null where no lane is of categories
    const uint8_t *wanted;     // [TILE] lanes not wanted are dropped; null: all are
    const int32_t *columns;    // lane l is column columns[l], or first + l without them
    int64_t first, n_columns = TILE; // columns that there are

    // Score a split of each lane, or find the best one; offer the best of all.
    template <typename Lines> SRS_INLINE void search(const Lines lines, Split &best) const {
        if (here.deviations && try_wide(lines, best)) return;
        if (scan.job.best && try_cells(lines, best)) return;
        if (scan.job.best) return try_best(lines, best);
        alignas(64) int32_t bits[TILE];
        RandomSplits<Code> random;
        RandomThresholds<Code>{scan}.draw(lines, low, high, hashes, categories, columns, first, random);
        scan.score(lines, random, best.score_bits, bits);
        for (int l = 0; wanted && l < TILE; ++l) bits[l] = wanted[l] ? bits[l] : -1;
        scan.offer_lanes(bits, hashes, random, columns, first, best);
    }

  private:
    // Search with the deviations of the node's rows, if that can be done.
    template <typename Lines> SRS_INLINE bool try_wide(const Lines lines, Split &best) const {
        if constexpr (sizeof(Code) == 1) {
            const int n_lanes = lanes_in_use();
            if (!here.deviations || categories || any_missing(n_lanes)) return false;
            const Deviations &own = *here.deviations;
            if (scan.job.best) SortedLanes(scan, own).search(lines, n_lanes, hashes, wanted, columns, first, best);
            else RandomLanes{scan, own}.search(lines, n_lanes, low, high, hashes, wanted, columns, first, best);
            return true;
        }
        return false;
    }

    // Search by counting rows by code, if that can be done.
    template <typename Lines> SRS_INLINE bool try_cells(const Lines lines, Split &best) const {
        if constexpr (sizeof(Code) == 1) {
            const int n_lanes = lanes_in_use();
            if (!here.in_cells || categories || any_missing(n_lanes)) return false;
            const int64_t n_channels = scan.job.n_channels;
            const int32_t *weights = n_channels == 2 ? scan.numbers[0] : nullptr;
            const CellLanes lanes{scan, weights, scan.numbers[n_channels - 1], scan.scratch.cell_sums};
            lanes.search(lines, n_lanes, hashes, wanted, columns, first, best);
            return true;
        }
        return false;
    }

    template <typename Lines> SRS_APART void try_best(const Lines lines, Split &best) const {
        BestScan<Code> found(scan);
        found.search(lines, low, high, hashes, categories);
        for (int l = 0; wanted && l < TILE; ++l) found.bits[l] = wanted[l] ? found.bits[l] : -1;
        found.offer_lanes(columns, first, best);
    }

    // Lanes that are columns, not padding.
    SRS_INLINE int lanes_in_use() const {
        const int64_t rest = columns ? n_columns : scan.job.n_columns - first;
        return static_cast<int>(rest < TILE ? rest : TILE);
    }

    SRS_INLINE bool any_missing(int n_lanes) const {
        Code highest = 0;
        for (int l = 0; l < n_lanes; ++l) highest = high[l] > highest ? high[l] : highest;
        return highest == MISSING<Code>;
    }
};

} // namespace
} // namespace srs::SRS_ISA
