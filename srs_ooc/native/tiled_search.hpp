// The best split of a node of a tiled block: whole tiles are scanned, those of a large node by several threads.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

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
    enum Step { ALL, RANGES, CHOSEN };

    // The first candidates in the node's order that are not constant there.
    void choose() const {
        Data &tree = here.tree;
        __builtin_memset(tree.chosen, 0, static_cast<size_t>(tree.padded()));
        tree.draw.key = derive(here.node.key, CANDIDATE);
        for (int64_t wanted = tree.job.max_features; wanted > 0 && !tree.draw.exhausted();) {
            const int32_t column = tree.draw.next();
            tree.chosen[column] = tree.lows[column] != tree.highs[column];
            wanted -= tree.chosen[column];
        }
        tree.draw.rewind();
    }

    // ---- the tiles of a part of the columns ----------------------------------------------------

    SRS_INLINE Split scan_part(Step step, const Scan &scan, int64_t from, int64_t to) const {
        if (step == ALL) return scan_all(scan, from, to);
        return step == RANGES ? find_ranges(scan, from, to) : scan_chosen(scan, from, to);
    }

    SRS_INLINE Split scan_all(const Scan &scan, int64_t from, int64_t to) const {
        const Data &tree = here.tree;
        Split best;
        for (int64_t first = from; first < to; first += TILE) {
            alignas(64) Code low[TILE], high[TILE];
            const BlockLines<Code> lines = tree.block_lines(first, here.node);
            scan.range(lines, low, high);
            const bool is_padded = first + TILE > tree.job.n_columns;
            const uint8_t *wanted = is_padded ? tree.real + first : nullptr;
            const uint8_t *categories = tree.categories_of_tile(first);
            const LaneSearch<Code> lanes{here, scan, low, high, tree.feature_hashes + first, categories, wanted, nullptr, first};
            lanes.search(lines, best);
        }
        return best;
    }

    SRS_INLINE Split find_ranges(const Scan &scan, int64_t from, int64_t to) const {
        const Data &tree = here.tree;
        for (int64_t first = from; first < to; first += TILE)
            scan.range(tree.block_lines(first, here.node), tree.lows + first, tree.highs + first);
        return Split{};
    }

    SRS_INLINE Split scan_chosen(const Scan &scan, int64_t from, int64_t to) const {
        const Data &tree = here.tree;
        Split best;
        for (int64_t first = from; first < to; first += TILE) {
            uint8_t any = 0;
            for (int l = 0; l < TILE; ++l) any |= tree.chosen[first + l];
            if (!any) continue;
            const LaneSearch<Code> lanes{here, scan, tree.lows + first, tree.highs + first, tree.feature_hashes + first,
                                         tree.categories_of_tile(first), tree.chosen + first, nullptr, first};
            lanes.search(tree.block_lines(first, here.node), best);
        }
        return best;
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
