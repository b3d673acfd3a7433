// Growth of one randomized tree (SRS, Algorithm 1, step 2b). Compiled once per instruction set.
//
// The Python twin, srs_ooc/kernel/reference.py, states every formula; this file equals it exactly:
// candidates are compared by float32 scores computed operation by operation in the same order,
// "no decrease" is decided in integers, importances are integers. Nothing here allocates, and no
// inline library function is used, so that clones for different instruction sets cannot be mixed up.
#include "trees.hpp"
#include "hash.hpp"

namespace srs {
namespace SRS_ISA {
namespace {

#define SRS_INLINE inline __attribute__((always_inline))
#include "lanes.hpp"
#include "scores.hpp"
#include "tiles.hpp"

struct Node {
    int64_t start, n, depth;
    uint64_t key;
    int32_t *link; // where its parent's record names it
};

// The columns of a block in a random order per node: Fisher-Yates from the front over the columns
// by ascending feature, so that a column's place in the block plays no part. Only the columns
// visited cost anything: rewind() undoes their exchanges.
struct CandidateDraw {
    int32_t *order; // [n_columns] columns by ascending feature
    int32_t *swaps; // [n_columns] scratch
    int64_t n_columns, n_drawn = 0;
    uint64_t key = 0;

    SRS_INLINE bool exhausted() const { return n_drawn == n_columns; }
    SRS_INLINE int32_t next() {
        const int64_t i = n_drawn++;
        const uint64_t hash = derive(key, static_cast<uint64_t>(i));
        const int64_t j = i + static_cast<int64_t>(scale_below(hash, static_cast<uint64_t>(n_columns - i)));
        swaps[i] = static_cast<int32_t>(j);
        const int32_t column = order[j];
        order[j] = order[i];
        order[i] = column;
        return column;
    }
    SRS_INLINE void rewind() {
        while (n_drawn > 0) {
            const int64_t i = --n_drawn, j = swaps[i];
            const int32_t column = order[i];
            order[i] = order[j];
            order[j] = column;
        }
    }
};

template <typename Code> struct Grower {
    using Scan = TileScan<Code>;
    GrowJob &job;
    Criterion criterion;
    CandidateDraw draw{};
    // Scratch, carved in carve_into() in this order.
    int32_t *tile_counts;     // [n_classes][TILE] left counts of one tile
    int64_t *stack_counts;    // [STACK + 1][n_classes]
    int64_t *present_counts;  // [n_classes]
    int64_t *left_counts;     // [n_classes]
    int32_t *present;         // [n_classes]
    int32_t *rows, *right;    // [n_root_rows] each
    uint32_t *feature_hashes; // [padded columns]
    Code *lows, *highs;       // [padded columns] ranges at the node
    uint8_t *chosen;          // [padded columns] candidates of the node
    Code *column_codes;       // [n_root_rows]
    Code *node_lines;         // [NODE_LINES][TILE]
    static constexpr int64_t STACK = 66;       // the larger child waits, so 2**65 rows would be needed
    static constexpr int64_t NODE_LINES = 512; // nodes up to this size have their candidates' codes copied

    explicit Grower(GrowJob &job) : job(job), criterion{job.impurity, job.xlogx, job.n_root_rows} {}

    SRS_INLINE Code code(int64_t column, int64_t row) const {
        const Code *codes = static_cast<const Code *>(job.codes);
        if (job.tiled) return codes[((column / TILE) * job.n_rows + row) * TILE + column % TILE];
        return codes[column * job.n_rows + row];
    }

    SRS_INLINE BlockLines<Code> block_lines(int64_t first, const Node &node) const {
        return {static_cast<const Code *>(job.codes) + first * job.n_rows, rows + node.start};
    }

    Scan scan_of(const Node &node, const Facts &f) const {
        return Scan(criterion, f, job.features, node.key, tile_counts, left_counts);
    }

    // ---- every column of a tiled block is a candidate ------------------------------------------

    Split scan_all(const Node &node, const Facts &f) const {
        const Scan scan = scan_of(node, f);
        Split best;
        for (int64_t first = 0; first < job.n_columns; first += TILE) {
            alignas(64) Code low[TILE], high[TILE], thresholds[TILE];
            alignas(64) int32_t bits[TILE];
            const BlockLines<Code> lines = block_lines(first, node);
            scan.range(lines, low, high);
            scan.draw_thresholds(low, high, feature_hashes + first, thresholds);
            scan.score(lines, thresholds, bits);
            for (int64_t l = job.n_columns - first; l < TILE; ++l) bits[l] = -1; // padding lanes
            scan.offer_lanes(bits, feature_hashes + first, thresholds, nullptr, first, best);
        }
        return best;
    }

    // ---- many of them: all ranges first, then the tiles that hold candidates -------------------

    Split scan_chosen(const Node &node, const Facts &f) {
        const Scan scan = scan_of(node, f);
        for (int64_t first = 0; first < job.n_columns; first += TILE)
            scan.range(block_lines(first, node), lows + first, highs + first);
        choose(node);
        Split best;
        for (int64_t first = 0; first < job.n_columns; first += TILE) {
            uint8_t any = 0;
            for (int l = 0; l < TILE; ++l) any |= chosen[first + l];
            if (!any) continue;
            alignas(64) Code thresholds[TILE];
            alignas(64) int32_t bits[TILE];
            scan.draw_thresholds(lows + first, highs + first, feature_hashes + first, thresholds);
            scan.score(block_lines(first, node), thresholds, bits);
            for (int l = 0; l < TILE; ++l) bits[l] = chosen[first + l] ? bits[l] : -1;
            scan.offer_lanes(bits, feature_hashes + first, thresholds, nullptr, first, best);
        }
        return best;
    }

    void choose(const Node &node) {
        __builtin_memset(chosen, 0, static_cast<size_t>((job.n_columns + TILE - 1) / TILE * TILE));
        draw.key = derive(node.key, CANDIDATE);
        for (int64_t wanted = job.max_features; wanted > 0 && !draw.exhausted();) {
            const int32_t column = draw.next();
            chosen[column] = lows[column] != highs[column];
            wanted -= chosen[column];
        }
        draw.rewind();
    }

    // ---- few of them: only columns drawn are looked at -----------------------------------------

    Split scan_drawn(const Node &node, const Facts &f) {
        const Scan scan = scan_of(node, f);
        draw.key = derive(node.key, CANDIDATE);
        Split best;
        for (int64_t wanted = job.max_features; wanted > 0 && !draw.exhausted();) {
            if (node.n > NODE_LINES) wanted -= try_column(scan, node, draw.next(), best);
            else wanted -= try_columns(scan, node, wanted, best);
        }
        draw.rewind();
        return best;
    }

    // Score one column of a large node; false where it is constant there.
    SRS_INLINE bool try_column(const Scan &scan, const Node &node, int64_t column, Split &best) const {
        const int32_t *r = rows + node.start;
        const Facts &f = scan.facts;
        uint32_t low = code(column, r[0]), high = low;
        for (int64_t i = 0; i < node.n; ++i) {
            const uint32_t x = column_codes[i] = code(column, r[i]);
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        if (low == high) return false;
        const uint64_t hash = scan.threshold_key(feature_hashes[column]) >> 8;
        const Code threshold = static_cast<Code>(low + ((hash * (high - low)) >> 24));
        int64_t n_left = 0;
        const Code *segment = column_codes;
        for (int64_t k = 0; k < f.n_present; ++k) {
            int32_t left = 0;
            for (int64_t i = 0; i < f.counts[k]; ++i) left += segment[i] <= threshold;
            segment += f.counts[k];
            n_left += left_counts[k] = left;
        }
        const int32_t bits = criterion.score_bits(f, left_counts, n_left);
        if (bits >= 0 && bits >= best.score_bits)
            scan.offer(best, bits, scan.tie_key(feature_hashes[column]), column, threshold);
        return true;
    }

    // Score up to a tile of columns of a small node at once; return how many are not constant.
    SRS_INLINE int64_t try_columns(const Scan &scan, const Node &node, int64_t wanted, Split &best) {
        alignas(64) int32_t columns[TILE], bits[TILE];
        alignas(64) uint32_t hashes[TILE];
        alignas(64) Code low[TILE], high[TILE], thresholds[TILE];
        const int64_t most = wanted < TILE ? wanted : TILE;
        int64_t n = 0;
        while (n < most && !draw.exhausted()) columns[n++] = draw.next();
        for (int64_t l = n; l < TILE; ++l) columns[l] = columns[0];
        for (int64_t l = 0; l < TILE; ++l) hashes[l] = feature_hashes[columns[l]];
        copy_lines(node, columns, n);
        const NodeLines<Code> lines{node_lines};
        scan.range(lines, low, high);
        scan.draw_thresholds(low, high, hashes, thresholds);
        scan.score(lines, thresholds, bits);
        int64_t n_varying = 0;
        for (int64_t l = 0; l < n; ++l) n_varying += low[l] != high[l];
        for (int64_t l = n; l < TILE; ++l) bits[l] = -1;
        scan.offer_lanes(bits, hashes, thresholds, columns, 0, best);
        return n_varying;
    }

    SRS_INLINE void copy_lines(const Node &node, const int32_t *columns, int64_t n) const {
        const int32_t *r = rows + node.start;
        const Code *codes = static_cast<const Code *>(job.codes);
        const int64_t stride = job.tiled ? TILE : 1;
        for (int64_t l = 0; l < n; ++l) {
            const int64_t column = columns[l];
            const Code *from = codes + (job.tiled ? column / TILE * TILE * job.n_rows + column % TILE : column * job.n_rows);
            for (int64_t i = 0; i < node.n; ++i) node_lines[i * TILE + l] = from[r[i] * stride];
        }
    }

    // ---- the tree ------------------------------------------------------------------------------

    int64_t partition(const Node &node, const Facts &f, const Split &split) {
        int32_t *r = rows + node.start;
        int64_t n_left = 0, n_right = 0, i = 0;
        for (int64_t k = 0; k < f.n_present; ++k) {
            const int64_t before = n_left;
            for (const int64_t stop = i + f.counts[k]; i < stop; ++i) {
                const int32_t row = r[i]; // written to both sides, kept on one: no branch to guess
                const bool goes_left = code(split.column, row) <= split.threshold;
                r[n_left] = row;
                right[n_right] = row;
                n_left += goes_left;
                n_right += !goes_left;
            }
            left_counts[k] = n_left - before;
        }
        __builtin_memcpy(r + n_left, right, sizeof(int32_t) * static_cast<size_t>(n_right));
        return n_left;
    }

    Facts facts_of(const Node &node, const int64_t *counts) {
        int64_t n_present = 0, largest = 0;
        for (int64_t k = 0; k < job.n_classes; ++k)
            if (counts[k] > 0) {
                present[n_present] = static_cast<int32_t>(k);
                present_counts[n_present++] = counts[k];
                largest = counts[k] > largest ? counts[k] : largest;
            }
        return Facts{node.n, job.min_samples_leaf, n_present, present, present_counts, largest};
    }

    Split best_split(const Node &node, const Facts &f) {
        const bool limited = job.max_depth >= 0 && node.depth >= job.max_depth;
        if (f.n_present < 2 || limited || node.n < 2 * job.min_samples_leaf) return Split{};
        if (!job.tiled) return scan_drawn(node, f);
        return job.max_features >= job.n_columns ? scan_all(node, f) : scan_chosen(node, f);
    }

    // Write the children's class counts into two stack slots.
    void child_counts(const Facts &f, int64_t *left, int64_t *other) const {
        for (int64_t k = 0; k < job.n_classes; ++k) left[k] = other[k] = 0;
        for (int64_t k = 0; k < f.n_present; ++k) {
            left[f.present[k]] = left_counts[k];
            other[f.present[k]] = f.counts[k] - left_counts[k];
        }
    }

    void record_leaf(int64_t node, const Facts &f) const {
        TreeRecord &record = *job.record;
        record.column[node] = -1;
        record.threshold[node] = 0;
        record.left[node] = static_cast<int32_t>(record.n_pairs);
        record.right[node] = static_cast<int32_t>(f.n_present);
        for (int64_t k = 0; k < f.n_present; ++k) {
            record.pair_class[record.n_pairs] = f.present[k];
            record.pair_count[record.n_pairs++] = static_cast<int32_t>(f.counts[k]);
        }
    }

    void record_split(int64_t node, const Split &split) const {
        job.record->column[node] = static_cast<int32_t>(split.column);
        job.record->threshold[node] = static_cast<int32_t>(split.threshold);
    }

    void grow() {
        prepare();
        Node stack[STACK];
        int32_t unlinked = 0;
        stack[0] = Node{0, job.n_root_rows, 0, job.tree_key, &unlinked};
        for (int64_t k = 0; k < job.n_classes; ++k) stack_counts[k] = job.class_counts[k];
        for (int64_t top = 0; top >= 0;) {
            const Node node = stack[top];
            const int64_t id = job.n_nodes++;
            *node.link = static_cast<int32_t>(id);
            if (node.depth > job.depth) job.depth = node.depth;
            const Facts f = facts_of(node, stack_counts + top * job.n_classes);
            const Split split = best_split(node, f);
            if (split.column < 0) {
                if (job.record) record_leaf(id, f);
                ++job.n_leaves;
                --top;
                continue;
            }
            const int64_t n_left = partition(node, f, split);
            job.importance[split.column] += criterion.importance(f, left_counts, n_left);
            if (job.record) record_split(id, split);
            int32_t *left_link = job.record ? job.record->left + id : &unlinked;
            int32_t *right_link = job.record ? job.record->right + id : &unlinked;
            const Node left{node.start, n_left, node.depth + 1, derive(node.key, LEFT), left_link};
            const Node other{node.start + n_left, node.n - n_left, node.depth + 1, derive(node.key, RIGHT), right_link};
            const bool left_first = left.n <= other.n; // the smaller child next: the stack stays shallow
            stack[top] = left_first ? other : left;
            stack[top + 1] = left_first ? left : other;
            int64_t *slot = stack_counts + top * job.n_classes, *next = slot + job.n_classes;
            child_counts(f, left_first ? next : slot, left_first ? slot : next);
            ++top;
        }
    }

    void prepare();
};

// Hands out consecutive aligned pieces of the scratch memory.
struct Carver {
    char *base;
    size_t used = 0;
    template <typename T> T *take(int64_t n) {
        T *piece = reinterpret_cast<T *>(base + used);
        used += (sizeof(T) * static_cast<size_t>(n) + 63) / 64 * 64;
        return piece;
    }
};

template <typename Code> size_t carve_into(Grower<Code> &g, char *base) {
    const GrowJob &job = g.job;
    const int64_t padded = (job.n_columns + TILE - 1) / TILE * TILE;
    Carver carver{base};
    g.tile_counts = carver.take<int32_t>(job.n_classes * TILE);
    g.stack_counts = carver.take<int64_t>(job.n_classes * (Grower<Code>::STACK + 1));
    g.present_counts = carver.take<int64_t>(job.n_classes);
    g.left_counts = carver.take<int64_t>(job.n_classes);
    g.present = carver.take<int32_t>(job.n_classes);
    g.rows = carver.take<int32_t>(job.n_root_rows);
    g.right = carver.take<int32_t>(job.n_root_rows);
    g.feature_hashes = carver.take<uint32_t>(padded);
    g.lows = carver.take<Code>(padded);
    g.highs = carver.take<Code>(padded);
    g.chosen = carver.take<uint8_t>(padded);
    g.column_codes = carver.take<Code>(job.n_root_rows);
    g.node_lines = carver.take<Code>(Grower<Code>::NODE_LINES * TILE);
    g.draw.order = carver.take<int32_t>(job.n_columns);
    g.draw.swaps = carver.take<int32_t>(job.n_columns);
    g.draw.n_columns = job.n_columns;
    return carver.used;
}

template <typename Code> void Grower<Code>::prepare() {
    carve_into(*this, static_cast<char *>(job.scratch));
    for (int64_t i = 0; i < job.n_root_rows; ++i) rows[i] = job.rows[i];
    for (int64_t j = 0; j < job.n_columns; ++j) {
        feature_hashes[j] = static_cast<uint32_t>(derive(job.tree_key, job.features[j]) >> 32);
        draw.order[j] = job.order[j];
    }
    for (int64_t j = job.n_columns; j % TILE != 0; ++j) feature_hashes[j] = 0;
    for (int64_t i = 0; i < NODE_LINES * TILE; ++i) node_lines[i] = 0;
}

} // namespace

void grow(GrowJob &job) {
    if (job.code_nbytes == 1) Grower<uint8_t>(job).grow();
    else Grower<uint16_t>(job).grow();
}

size_t scratch_nbytes(GrowJob &job) {
    if (job.code_nbytes == 1) {
        Grower<uint8_t> g(job);
        return carve_into(g, nullptr);
    }
    Grower<uint16_t> g(job);
    return carve_into(g, nullptr);
}

} // namespace SRS_ISA
} // namespace srs
