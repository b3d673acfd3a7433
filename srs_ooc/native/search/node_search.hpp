// The best split of a node among its candidate columns: by whole tiles, or among columns that are sampled.
#pragma once
#include "search/column_search.hpp"

namespace srs::SRS_ISA {
namespace {

// The best split of a node of a tiled block: whole tiles are scanned, those of a large node by several threads.
template <typename Code> struct TiledSearch {
    using Scan = TileScan<Code>;
    using Data = TreeData<Code>;
    const SearchedNode<Code> &here;

    // Where few columns are candidates all ranges come first, then the tiles that hold candidates.
    Split search() const {
        const GrowJob &job = here.tree.job;
        if (job.max_features >= job.n_columns) return scan_tiles(ALL);
        scan_tiles(RANGES);
        choose();
        return scan_tiles(CHOSEN);
    }

  private:
    static constexpr int64_t ROWS_AHEAD = 16;
    enum Step { ALL, RANGES, CHOSEN };

    // The first candidates in the node's order that are not constant there.
    void choose() const {
        Data &tree = here.tree;
        __builtin_memset(tree.chosen, 0, static_cast<size_t>(tree.padded()));
        tree.candidates.key = derive(here.node.key, CANDIDATE);
        for (int64_t wanted = tree.job.max_features; wanted > 0 && !tree.candidates.exhausted();) {
            const int32_t column = tree.candidates.next();
            tree.chosen[column] = tree.lows[column] != tree.highs[column];
            wanted -= tree.chosen[column];
        }
        tree.candidates.rewind();
    }

    // ---- the tiles of a part of the columns ----------------------------------------------------

    SRS_APART Split scan_part(Step step, const Scan &scan, int64_t from, int64_t to) const {
        const Data &tree = here.tree;
        const Ahead ahead = step == ALL ? lines_ahead() : Ahead{};
        Split best;
        for (int64_t first = from; first < to; first += TILE) {
            alignas(64) Code own[2][TILE];
            Code *low = step == ALL ? own[0] : tree.lows + first, *high = step == ALL ? own[1] : tree.highs + first;
            const BlockLines<Code> lines = tree.block_lines(first, here.node);
            const uint8_t *wanted = first + TILE > tree.job.n_columns ? tree.real + first : nullptr;
            if (step == CHOSEN) {
                wanted = tree.chosen + first;
                uint8_t any = 0;
                for (int l = 0; l < TILE; ++l) any |= wanted[l];
                if (!any) continue;
            } else {
                scan.range(lines, low, high, ahead);
                if (step == RANGES) continue;
            }
            const uint8_t *categories = tree.categories_of_tile(first);
            LaneSearch<Code>{here, scan, low, high, tree.feature_hashes + first, categories, wanted, nullptr, first}.search(lines, best);
        }
        return best;
    }

    // Of a block that the caches cannot hold: a tile that they can hold is asked for while another one is looked at.
    Ahead lines_ahead() const {
        constexpr int64_t CACHED = 1 << 22, TILE_CACHED = 1 << 17; // bytes
        const GrowJob &job = here.tree.job;
        const int64_t tile = job.n_rows * TILE, nbytes = tile * int64_t(sizeof(Code));
        if (nbytes * (here.tree.padded() / TILE) < CACHED) return Ahead{};
        if (nbytes > TILE_CACHED) return Ahead{here.node.n < job.n_rows, ROWS_AHEAD, 0};
        return Ahead{true, 0, tile * (here.node.n >= 64 ? 1 : here.node.n >= 16 ? 2 : 4)};
    }

    // ---- threads share the tiles of a large node -----------------------------------------------

    struct Shared {
        const TiledSearch &search;
        Step step;
        Split best[MAX_THREADS];
    };

    static void work(void *context, int part) {
        Shared &shared = *static_cast<Shared *>(context);
        const SearchedNode<Code> &here = shared.search.here;
        const int64_t tiles = here.tree.padded() / TILE, n = here.tree.job.n_threads;
        Scan scan = here.scan;
        scan.scratch = here.tree.scratches[part];
        shared.best[part] = shared.search.scan_part(shared.step, scan, tiles * part / n * TILE, tiles * (part + 1) / n * TILE);
    }

    Split scan_tiles(Step step) const {
        GrowJob &job = here.tree.job;
        if (job.n_threads < 2 || here.node.n * job.n_columns < SHARED_CELLS)
            return scan_part(step, here.scan, 0, here.tree.padded());
        Shared shared{*this, step, {}};
        job.share(job.threads, &work, &shared);
        Split best;
        for (int part = 0; part < job.n_threads; ++part)
            if (shared.best[part].column >= 0) here.scan.offer(best, shared.best[part]);
        return best;
    }
};

// The best split of a node whose candidates are sampled one after another: only those are looked at.
template <typename Code> struct SampledSearch {
    const SearchedNode<Code> &here;

    Split search() const {
        CandidateSample &candidates = here.tree.candidates;
        candidates.key = derive(here.node.key, CANDIDATE);
        Split best;
        for (int64_t wanted = here.tree.job.max_features; wanted > 0 && !candidates.exhausted();) {
            if (here.by_column()) wanted -= ColumnSearch<Code>{here}.try_column(candidates.next(), best);
            else wanted -= try_columns(wanted, best);
        }
        candidates.rewind();
        return best;
    }

  private:
    // Score up to a tile of columns of a small node at once, fewer with deviations; return how many are not constant.
    SRS_INLINE int64_t try_columns(int64_t wanted, Split &best) const {
        const TreeData<Code> &tree = here.tree;
        alignas(64) int32_t columns[TILE];
        alignas(64) uint32_t hashes[TILE];
        alignas(64) Code low[TILE], high[TILE];
        uint8_t categories[TILE], used[TILE], any = 0;
        const int64_t n = here.tree.candidates.take(columns, wanted < TILE ? wanted : TILE);
        for (int64_t l = n; l < TILE; ++l) columns[l] = columns[0];
        for (int64_t l = 0; l < TILE; ++l) hashes[l] = tree.feature_hashes[columns[l]];
        for (int64_t l = 0; tree.categorical && l < TILE; ++l) any |= categories[l] = tree.categorical[columns[l]];
        copy_lines(columns, n);
        const NodeLines<Code> lines{tree.node_lines};
        here.scan.range(lines, low, high);
        for (int64_t l = 0; l < TILE; ++l) used[l] = l < n;
        LaneSearch<Code>{here, here.scan, low, high, hashes, any ? categories : nullptr, used, columns, 0, n}.search(lines, best);
        int64_t n_varying = 0;
        for (int64_t l = 0; l < n; ++l) n_varying += low[l] != high[l];
        return n_varying;
    }

    // Row by row: the columns are as many at each node, the rows are not, and a short loop's end is hard to guess.
    SRS_INLINE void copy_lines(const int32_t *columns, int64_t n) const {
        const TreeData<Code> &tree = here.tree;
        const GrowJob &job = tree.job;
        const int32_t *r = tree.rows + here.node.start;
        Code *lines = tree.node_lines;
#if defined(__AVX512BW__)
        if constexpr (sizeof(Code) == 1) {
            const ByteCopies copies{static_cast<const Code *>(job.codes), job.n_rows};
            if (tree.by_bytes && copies.is_faster(here.node.n)) return copies.copy(r, here.node.n, columns, n, lines);
        }
#endif
        const Code *from[TILE];
        const int64_t stride = job.tiled ? TILE : 1;
        for (int64_t l = 0; l < n; ++l) from[l] = tree.column(columns[l]).codes;
        for (int64_t i = 0; i < here.node.n; ++i) {
            const int64_t at = r[i] * stride;
            for (int64_t l = 0; l < n; ++l) lines[i * TILE + l] = from[l][at];
        }
    }
};

template <typename Code> struct NodeSearch {
    TreeData<Code> &tree;

    // The best candidate at a node that may be split.
    Split search(const Node &node, const NodeStats &f) const {
        const int32_t *own[MAX_CHANNELS] = {};
        for (int64_t c = 0; c < tree.job.n_channels; ++c) own[c] = tree.numbers[c] + node.start;
        SearchedNode<Code> here(tree, node, f, own);
        Deviations deviations;
        here.choose_way(f, deviations);
        const bool by_tiles = tree.job.tiled && !here.by_column();
        Split split = by_tiles ? TiledSearch<Code>{here}.search() : SampledSearch<Code>{here}.search();
        if (tree.job.best && split.column >= 0) split.threshold = middle(node, split);
        return split;
    }

  private:
    // A best threshold lies midway between the codes it parts, or between their values where these are given.
    uint32_t middle(const Node &node, const Split &split) const {
        const Code shift = split.how == MISSING_LEFT;
        const ColumnCodes<Code> codes = tree.column(split.column);
        uint32_t next = MISSING<Code>;
        for (int64_t i = 0; i < node.n; ++i) {
            const Code x = static_cast<Code>(codes[tree.rows[node.start + i]] + shift);
            next = x > split.threshold && x < next ? x : next;
        }
        if (split.how == MAPPED || (split.how == MISSING_RIGHT && next == MISSING<Code>)) return split.threshold;
        const uint32_t low = split.threshold - shift; // of the missing values alone nothing is known
        if (!tree.job.values || split.threshold < shift) return (split.threshold + next) / 2;
        return CodeValues{tree.job.values, tree.job.n_values - 1}.cut(split.column, HALFWAY, low, next - shift) + shift;
    }
};

} // namespace
} // namespace srs::SRS_ISA
