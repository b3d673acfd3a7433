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
#include "categories.hpp"
#include "views.hpp"
#include "scores.hpp"
#include "tiles.hpp"
#include "best.hpp"
#include "candidates.hpp"
#include "recorder.hpp"

struct Node {
    int64_t start, n, depth;
    uint64_t key;
    int32_t *link; // where its parent's record names it
};

template <typename Code> struct Grower {
    using Scan = TileScan<Code>;
    GrowJob &job;
    Criterion criterion;
    CandidateDraw draw{};
    const int64_t width; // numbers of a class: its rows, and the sums of its channels
    // Scratch, carved in carve_into() in this order.
    TileScratch<Code> scratch;
    int64_t *stack_stats;     // [STACK + 1][n_classes][width]
    int64_t *present_stats;   // [n_classes][width]
    int64_t *present_counts;  // [n_classes]
    int64_t *left_stats;      // [n_classes][width]
    int32_t *present;         // [n_classes]
    int32_t *rows, *right;    // [n_root_rows] each
    int32_t *numbers[MAX_CHANNELS], *right_numbers[MAX_CHANNELS]; // [n_root_rows] channels, as rows lie
    uint32_t *feature_hashes; // [padded columns]
    uint8_t *categorical;     // [padded columns], then 1 for each tile with any; null: there are none
    Code *lows, *highs;       // [padded columns] ranges at the node
    uint8_t *chosen, *real;   // [padded columns] candidates of the node; columns, as against padding
    int32_t *places[2], *segment_of; // [n_root_rows] each, for best splits by sorting
    Code *column_codes;       // [n_root_rows]
    Code *node_lines;         // [NODE_LINES][TILE]
    static constexpr int64_t STACK = 66;       // the larger child waits, so 2**65 rows would be needed
    static constexpr int64_t NODE_LINES = 512; // nodes up to this size have their candidates' codes copied

    explicit Grower(GrowJob &job)
        : job(job), criterion{job.impurity, job.xlogx, job.root_scale}, width(1 + job.n_channels) {}

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

    SRS_INLINE int64_t padded() const { return (job.n_columns + TILE - 1) / TILE * TILE; }

    // Score a split of each lane, or find the best one; drop lanes not wanted, offer the best of the rest.
    template <typename Lines>
    SRS_INLINE void try_tile(const Scan &scan, const Lines lines, const Code *low, const Code *high, const uint32_t *hashes,
                             const uint8_t *categories, const uint8_t *wanted, const int32_t *columns, int64_t first,
                             Split &best) const {
        if (job.best) return try_best(scan, lines, low, high, hashes, categories, wanted, columns, first, best);
        alignas(64) int32_t bits[TILE];
        Drawn<Code> drawn;
        scan.draw(lines, low, high, hashes, categories, drawn);
        scan.score(lines, drawn, bits);
        for (int l = 0; l < TILE; ++l) bits[l] = wanted[l] ? bits[l] : -1;
        scan.offer_lanes(bits, hashes, drawn, columns, first, best);
    }

    template <typename Lines>
    __attribute__((noinline)) void try_best(const Scan &scan, const Lines lines, const Code *low, const Code *high,
                                            const uint32_t *hashes, const uint8_t *categories, const uint8_t *wanted,
                                            const int32_t *columns, int64_t first, Split &best) const {
        BestScan<Code> found(scan);
        found.search(lines, low, high, hashes, categories);
        for (int l = 0; l < TILE; ++l) found.bits[l] = wanted[l] ? found.bits[l] : -1;
        found.offer_lanes(columns, first, best);
    }

    // Whether a column of the node is looked at on its own.
    SRS_INLINE bool by_column(const Node &node) const {
        if (job.best && sizeof(Code) != 1) return node.n > FEW_ROWS;
        return !job.tiled && node.n > NODE_LINES;
    }

    // ---- every column of a tiled block is a candidate ------------------------------------------

    Split scan_all(const Node &node, const Scan &scan) const {
        Split best;
        for (int64_t first = 0; first < job.n_columns; first += TILE) {
            alignas(64) Code low[TILE], high[TILE];
            const BlockLines<Code> lines = block_lines(first, node);
            scan.range(lines, low, high);
            try_tile(scan, lines, low, high, feature_hashes + first, categories_of_tile(first), real + first, nullptr, first, best);
        }
        return best;
    }

    // ---- many of them: all ranges first, then the tiles that hold candidates -------------------

    Split scan_chosen(const Node &node, const Scan &scan) {
        for (int64_t first = 0; first < job.n_columns; first += TILE)
            scan.range(block_lines(first, node), lows + first, highs + first);
        choose(node);
        Split best;
        for (int64_t first = 0; first < job.n_columns; first += TILE) {
            uint8_t any = 0;
            for (int l = 0; l < TILE; ++l) any |= chosen[first + l];
            if (!any) continue;
            try_tile(scan, block_lines(first, node), lows + first, highs + first, feature_hashes + first,
                     categories_of_tile(first), chosen + first, nullptr, first, best);
        }
        return best;
    }

    void choose(const Node &node) {
        __builtin_memset(chosen, 0, static_cast<size_t>(padded()));
        draw.key = derive(node.key, CANDIDATE);
        for (int64_t wanted = job.max_features; wanted > 0 && !draw.exhausted();) {
            const int32_t column = draw.next();
            chosen[column] = lows[column] != highs[column];
            wanted -= chosen[column];
        }
        draw.rewind();
    }

    // ---- few of them: only columns drawn are looked at -----------------------------------------

    Split scan_drawn(const Node &node, const Scan &scan) {
        draw.key = derive(node.key, CANDIDATE);
        Split best;
        for (int64_t wanted = job.max_features; wanted > 0 && !draw.exhausted();) {
            if (by_column(node)) wanted -= try_column(scan, node, draw.next(), best);
            else wanted -= try_columns(scan, node, wanted, best);
        }
        draw.rewind();
        return best;
    }

    // Score one column of a large node; false where it is constant there.
    SRS_INLINE bool try_column(const Scan &scan, const Node &node, int64_t column, Split &best) const {
        const int32_t *r = rows + node.start;
        uint32_t low = code(column, r[0]), high = low;
        for (int64_t i = 0; i < node.n; ++i) {
            const uint32_t x = column_codes[i] = code(column, r[i]);
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        if (low == high) return false;
        if (job.best) return best_of_column(scan, node, column, low, high, best);
        const uint32_t hash = scan.threshold_key(feature_hashes[column]);
        int32_t how = PLAIN;
        if ((categorical && categorical[column]) || high == MISSING<Code>)
            how = see_mapped(scan, node, column, hash, low, high);
        const Code threshold = static_cast<Code>(low + ((uint64_t(hash >> 8) * (high - low)) >> 24));
        const int64_t n_left = column_left(scan, node, threshold);
        const int32_t bits = criterion.score_bits(scan.facts, scan.scratch.left, n_left);
        if (bits >= 0 && bits >= best.score_bits)
            scan.offer(best, Split{bits, scan.tie_key(feature_hashes[column]), column, threshold, how});
        return true;
    }

    // As BestScan::search, for one column.
    bool best_of_column(const Scan &scan, const Node &node, int64_t column, uint32_t low, uint32_t high, Split &best) const {
        const uint32_t tie = scan.tie_key(feature_hashes[column]);
        const bool is_category = categorical && categorical[column];
        const bool with_missing = !is_category && high == MISSING<Code> && low != MISSING<Code>;
        for (int64_t k = 0, i = 0; k < scan.facts.n_present; ++k)
            for (const int64_t stop = i + scan.facts.counts[k]; i < stop; ++i) segment_of[i] = static_cast<int32_t>(k);
        if (is_category) {
            const CategoryMap<Code> map(scan.category_key(feature_hashes[column]));
            for (int64_t i = 0; i < node.n; ++i) column_codes[i] = map(column_codes[i]);
        }
        const ColumnBest<Code> sorting{scan, column_codes, {places[0], places[1]}, segment_of};
        sorting.search(column, tie, is_category ? MAPPED : with_missing ? MISSING_RIGHT : PLAIN, 0, best);
        if (!with_missing) return true;
        for (int64_t i = 0; i < node.n; ++i) ++column_codes[i];
        sorting.search(column, tie, MISSING_LEFT, 1, best);
        return true;
    }

    // A best threshold lies midway between the codes it parts.
    uint32_t middle(const Node &node, const Split &split) const {
        const Code shift = split.how == MISSING_LEFT;
        uint32_t next = MISSING<Code>;
        for (int64_t i = 0; i < node.n; ++i) {
            const Code x = static_cast<Code>(code(split.column, rows[node.start + i]) + shift);
            next = x > split.threshold && x < next ? x : next;
        }
        if (split.how == MAPPED || (split.how == MISSING_RIGHT && next == MISSING<Code>)) return split.threshold;
        return (split.threshold + next) / 2;
    }

    // As TileScan::draw_mapped: change column_codes and their range to what the split sees.
    int32_t see_mapped(const Scan &scan, const Node &node, int64_t column, uint32_t hash, uint32_t &low, uint32_t &high) const {
        const bool is_category = categorical && categorical[column];
        const CategoryMap<Code> map(scan.category_key(feature_hashes[column]));
        Code lowest = MISSING<Code>, highest = 0;
        for (int64_t i = 0; i < node.n; ++i) {
            const Code x = is_category ? map(column_codes[i]) : static_cast<Code>(column_codes[i] + 1);
            column_codes[i] = is_category || (hash & 1) ? x : column_codes[i];
            lowest = x < lowest ? x : lowest;
            highest = x > highest ? x : highest;
        }
        high = highest;
        if (is_category) low = lowest;
        return is_category ? MAPPED : hash & 1 ? MISSING_LEFT : MISSING_RIGHT;
    }

    // Rows and channels of each class whose column_codes are up to the threshold, in scratch.left.
    SRS_INLINE int64_t column_left(const Scan &scan, const Node &node, Code threshold) const {
        const Code *segment = column_codes;
        int64_t n_left = 0, *out = scan.scratch.left;
        for (int64_t k = 0, start = node.start; k < scan.facts.n_present; ++k, out += width) {
            const int64_t n = scan.facts.counts[k];
            int32_t left = 0;
            for (int64_t i = 0; i < n; ++i) left += segment[i] <= threshold;
            n_left += out[0] = left;
            for (int64_t c = 0; c < job.n_channels; ++c) {
                int64_t sum = 0;
                for (int64_t i = 0; i < n; ++i) sum += segment[i] <= threshold ? numbers[c][start + i] : 0;
                out[1 + c] = sum;
            }
            segment += n;
            start += n;
        }
        return n_left;
    }

    // Score up to a tile of columns of a small node at once; return how many are not constant.
    SRS_INLINE int64_t try_columns(const Scan &scan, const Node &node, int64_t wanted, Split &best) {
        alignas(64) int32_t columns[TILE];
        alignas(64) uint32_t hashes[TILE];
        alignas(64) Code low[TILE], high[TILE];
        uint8_t categories[TILE], used[TILE], any = 0;
        const int64_t most = wanted < TILE ? wanted : TILE;
        int64_t n = 0;
        while (n < most && !draw.exhausted()) columns[n++] = draw.next();
        for (int64_t l = n; l < TILE; ++l) columns[l] = columns[0];
        for (int64_t l = 0; l < TILE; ++l) hashes[l] = feature_hashes[columns[l]];
        for (int64_t l = 0; categorical && l < TILE; ++l) any |= categories[l] = categorical[columns[l]];
        copy_lines(node, columns, n);
        const NodeLines<Code> lines{node_lines};
        scan.range(lines, low, high);
        for (int64_t l = 0; l < TILE; ++l) used[l] = l < n;
        try_tile(scan, lines, low, high, hashes, any ? categories : nullptr, used, columns, 0, best);
        int64_t n_varying = 0;
        for (int64_t l = 0; l < n; ++l) n_varying += low[l] != high[l];
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

    template <typename GoesLeft> int64_t partition_by(const Node &node, const Facts &f, const GoesLeft goes_left) {
        return job.n_channels ? move_rows<true>(node, f, goes_left) : move_rows<false>(node, f, goes_left);
    }

    // Move the rows that go left to the front, classes together, in the order they have.
    template <bool CHANNELS, typename GoesLeft>
    int64_t move_rows(const Node &node, const Facts &f, const GoesLeft goes_left) {
        int32_t *r = rows + node.start;
        int64_t n_left = 0, n_right = 0, i = 0;
        for (int64_t k = 0; k < f.n_present; ++k) {
            const int64_t before = n_left;
            int64_t *sums = left_stats + k * width + 1;
            for (int64_t c = 0; CHANNELS && c < job.n_channels; ++c) sums[c] = 0;
            for (const int64_t stop = i + f.counts[k]; i < stop; ++i) {
                const int32_t row = r[i]; // written to both sides, kept on one: no branch to guess
                const bool left = goes_left(row);
                r[n_left] = row;
                right[n_right] = row;
                for (int64_t c = 0; CHANNELS && c < job.n_channels; ++c) {
                    int32_t *own = numbers[c] + node.start;
                    const int32_t number = own[i];
                    own[n_left] = number;
                    right_numbers[c][n_right] = number;
                    sums[c] += left ? number : 0;
                }
                n_left += left;
                n_right += !left;
            }
            left_stats[k * width] = n_left - before;
        }
        const size_t rest = sizeof(int32_t) * static_cast<size_t>(n_right);
        __builtin_memcpy(r + n_left, right, rest);
        for (int64_t c = 0; CHANNELS && c < job.n_channels; ++c)
            __builtin_memcpy(numbers[c] + node.start + n_left, right_numbers[c], rest);
        return n_left;
    }

    int64_t partition(const Node &node, const Facts &f, const Split &split) {
        const Code threshold = static_cast<Code>(split.threshold);
        if (split.how == MAPPED) {
            const CategoryMap<Code> map(category_hash(node, split));
            return partition_by(node, f, [&](int32_t row) { return map(code(split.column, row)) <= threshold; });
        }
        const Code shift = split.how == MISSING_LEFT;
        return partition_by(node, f, [&](int32_t row) { return static_cast<Code>(code(split.column, row) + shift) <= threshold; });
    }

    uint32_t category_hash(const Node &node, const Split &split) const {
        return LaneKey(node.key, CATEGORIES)(feature_hashes[split.column]);
    }

    Facts facts_of(const Node &node, const int64_t *stats) {
        Facts f{node.n, job.min_samples_leaf, 0, width, present, present_counts, present_stats, 0, 0, 0};
        for (int64_t k = 0; k < job.n_classes; ++k, stats += width) {
            if (stats[0] == 0) continue;
            present[f.n_present] = static_cast<int32_t>(k);
            present_counts[f.n_present] = stats[0];
            for (int64_t i = 0; i < width; ++i) present_stats[f.n_present * width + i] = stats[i];
            f.largest = stats[0] > f.largest ? stats[0] : f.largest;
            ++f.n_present;
        }
        f.weight = criterion.weight_of(f, present_stats);
        f.sum = present_stats[width - 1];
        return f;
    }

    // Whether all targets are equal; they may come times their weight.
    bool equal_targets(const Node &node) const {
        const int32_t *sums = numbers[job.n_channels - 1] + node.start, *weights = numbers[0] + node.start;
        for (int64_t i = 1; i < node.n; ++i) {
            const int64_t own = job.n_channels == 1 ? sums[i] : int64_t(sums[i]) * weights[0];
            const int64_t first = job.n_channels == 1 ? sums[0] : int64_t(sums[0]) * weights[i];
            if (own != first) return false;
        }
        return true;
    }

    Split best_split(const Node &node, const Facts &f) {
        const bool limited = job.max_depth >= 0 && node.depth >= job.max_depth;
        const bool pure = job.impurity == VARIANCE ? equal_targets(node) : f.n_present < 2;
        if (pure || limited || node.n < 2 * job.min_samples_leaf) return Split{};
        const int32_t *own[MAX_CHANNELS] = {};
        for (int64_t c = 0; c < job.n_channels; ++c) own[c] = numbers[c] + node.start;
        const Scan scan(job, criterion, f, node.key, own, scratch);
        Split split;
        if (!job.tiled || by_column(node)) split = scan_drawn(node, scan);
        else split = job.max_features >= job.n_columns ? scan_all(node, scan) : scan_chosen(node, scan);
        if (job.best && split.column >= 0) split.threshold = middle(node, split);
        return split;
    }

    // Write the children's numbers into two stack slots.
    void child_stats(const Facts &f, int64_t *left, int64_t *other) const {
        for (int64_t i = 0; i < job.n_classes * width; ++i) left[i] = other[i] = 0;
        for (int64_t k = 0; k < f.n_present; ++k)
            for (int64_t i = 0; i < width; ++i) {
                left[f.present[k] * width + i] = left_stats[k * width + i];
                other[f.present[k] * width + i] = f.stats[k * width + i] - left_stats[k * width + i];
            }
    }

    void grow() {
        prepare();
        const TreeRecorder<Code> recorder{job};
        Node stack[STACK];
        int32_t unlinked = 0;
        stack[0] = Node{0, job.n_root_rows, 0, job.tree_key, &unlinked};
        const int64_t slot_size = job.n_classes * width;
        for (int64_t i = 0; i < slot_size; ++i) stack_stats[i] = job.root_stats[i];
        for (int64_t top = 0; top >= 0;) {
            const Node node = stack[top];
            const int64_t id = job.n_nodes++;
            *node.link = static_cast<int32_t>(id);
            if (node.depth > job.depth) job.depth = node.depth;
            const Facts f = facts_of(node, stack_stats + top * slot_size);
            const Split split = best_split(node, f);
            int64_t n_left = 0, worth = -1;
            if (split.column >= 0) {
                n_left = partition(node, f, split);
                worth = criterion.importance(f, left_stats, n_left);
            }
            if (worth < job.min_decrease) { // rows may have changed places: a leaf's order means nothing
                if (job.record) recorder.leaf(id, f);
                ++job.n_leaves;
                --top;
                continue;
            }
            job.importance[split.column] += worth;
            if (job.record) record_split(recorder, id, node, split, n_left);
            int32_t *left_link = job.record ? job.record->left + id : &unlinked;
            int32_t *right_link = job.record ? job.record->right + id : &unlinked;
            const Node left{node.start, n_left, node.depth + 1, derive(node.key, LEFT), left_link};
            const Node other{node.start + n_left, node.n - n_left, node.depth + 1, derive(node.key, RIGHT), right_link};
            const bool left_first = left.n <= other.n; // the smaller child next: the stack stays shallow
            stack[top] = left_first ? other : left;
            stack[top + 1] = left_first ? left : other;
            int64_t *slot = stack_stats + top * slot_size, *next = slot + slot_size;
            child_stats(f, left_first ? next : slot, left_first ? slot : next);
            ++top;
        }
    }

    void record_split(const TreeRecorder<Code> &recorder, int64_t id, const Node &node, const Split &split, int64_t n_left) const {
        int64_t n_missing = 0;
        if (split.how == MISSING_LEFT || split.how == MISSING_RIGHT)
            for (int64_t i = 0; i < node.n; ++i)
                n_missing += code(split.column, rows[node.start + i]) == MISSING<Code>;
        recorder.split(id, split, split.how == MAPPED ? category_hash(node, split) : 0, n_missing, n_left, node.n);
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
    const int64_t padded = g.padded(), stats = job.n_classes * g.width;
    Carver carver{base};
    g.scratch.counts = carver.take<int32_t>(job.n_classes * TILE);
    g.scratch.sums = carver.take<int64_t>(job.n_classes * job.n_channels * TILE);
    g.scratch.left = carver.take<int64_t>(stats);
    g.scratch.view = carver.take<Code>(255 * TILE);
    g.stack_stats = carver.take<int64_t>(stats * (Grower<Code>::STACK + 1));
    g.present_stats = carver.take<int64_t>(stats);
    g.present_counts = carver.take<int64_t>(job.n_classes);
    g.left_stats = carver.take<int64_t>(stats);
    g.present = carver.take<int32_t>(job.n_classes);
    g.rows = carver.take<int32_t>(job.n_root_rows);
    g.right = carver.take<int32_t>(job.n_root_rows);
    for (int64_t c = 0; c < job.n_channels; ++c) {
        g.numbers[c] = carver.take<int32_t>(job.n_root_rows);
        g.right_numbers[c] = carver.take<int32_t>(job.n_root_rows);
    }
    g.feature_hashes = carver.take<uint32_t>(padded);
    g.categorical = carver.take<uint8_t>(padded + padded / TILE);
    g.lows = carver.take<Code>(padded);
    g.highs = carver.take<Code>(padded);
    g.chosen = carver.take<uint8_t>(padded);
    g.real = carver.take<uint8_t>(padded);
    g.places[0] = carver.take<int32_t>(job.best ? job.n_root_rows : 0);
    g.places[1] = carver.take<int32_t>(job.best ? job.n_root_rows : 0);
    g.segment_of = carver.take<int32_t>(job.best ? job.n_root_rows : 0);
    const int64_t cells = job.best && sizeof(Code) == 1 ? 256 * TILE * job.n_classes : 0;
    g.scratch.cell_counts = carver.take<int32_t>(cells);
    g.scratch.cell_sums = carver.take<int64_t>(cells * job.n_channels);
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
    for (int64_t c = 0; c < job.n_channels; ++c)
        for (int64_t i = 0; i < job.n_root_rows; ++i) numbers[c][i] = job.channels[c * job.n_rows + rows[i]];
    for (int64_t j = 0; j < job.n_columns; ++j) {
        feature_hashes[j] = static_cast<uint32_t>(derive(job.tree_key, job.features[j]) >> 32);
        draw.order[j] = job.order[j];
    }
    for (int64_t j = job.n_columns; j % TILE != 0; ++j) feature_hashes[j] = 0;
    for (int64_t j = 0; j < padded(); ++j) real[j] = j < job.n_columns;
    for (int64_t i = 0; i < NODE_LINES * TILE; ++i) node_lines[i] = 0;
    if (!job.categorical) {
        categorical = nullptr;
        return;
    }
    for (int64_t j = 0; j < padded() + padded() / TILE; ++j) categorical[j] = 0;
    for (int64_t j = 0; j < job.n_columns; ++j) {
        categorical[j] = job.categorical[j];
        categorical[padded() + j / TILE] |= job.categorical[j];
    }
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
