// A split of one column of a node of many rows, or its best one.
#pragma once
#include "search/lane_search.hpp"

namespace srs::SRS_ISA {
namespace {

// The best split of one feature whose codes at the node lie in a column: by sorting them, or by counting bytes.
template <typename Code> struct ColumnBest {
    const TileScan<Code> &scan;
    const Code *codes;    // [n] as the split sees them
    int32_t *places[2];   // [n] each: rows of the node by ascending code
    const int32_t *segment_of; // [n] class of each row, among those present

    static constexpr int64_t MAX_INSERTED = 24;    // rows that are sorted by insertion
    static constexpr int64_t MAX_SORTED_BYTES = 8; // rows with targets that are sorted, though codes are bytes

    const int32_t *inserted() const {
        int32_t *order = places[0];
        for (int64_t i = 0; i < scan.stats.n; ++i) {
            const Code code = codes[i];
            int64_t at = i;
            for (; at > 0 && codes[order[at - 1]] > code; --at) order[at] = order[at - 1];
            order[at] = static_cast<int32_t>(i);
        }
        return order;
    }

    // Sort by the lowest byte, then by the next: each pass keeps the order of equal ones.
    const int32_t *sorted() const {
        const int64_t n = scan.stats.n;
        if (n <= MAX_INSERTED) return inserted();
        for (int64_t i = 0; i < n; ++i) places[0][i] = static_cast<int32_t>(i);
        int turn = 0;
        for (int byte = 0; byte < int(sizeof(Code)); ++byte, turn ^= 1) {
            int64_t starts[257] = {};
            for (int64_t i = 0; i < n; ++i) ++starts[((codes[i] >> 8 * byte) & 255) + 1];
            for (int i = 0; i < 256; ++i) starts[i + 1] += starts[i];
            for (int64_t i = 0; i < n; ++i) {
                const int32_t place = places[turn][i];
                places[turn ^ 1][starts[(codes[place] >> 8 * byte) & 255]++] = place;
            }
        }
        return places[turn];
    }

    void search(int64_t column, uint32_t tie, int32_t how, uint32_t shift, Split &best) const {
        const NodeStats &f = scan.stats;
        const bool targets = scan.criterion.impurity == VARIANCE;
        if (targets && sizeof(Code) == 1 && f.n > MAX_SORTED_BYTES) return search_cells(column, tie, how, shift, best);
        const int32_t *order = sorted();
        if (targets) return search_targets(order, column, tie, how, shift, best);
        int64_t *left = scan.scratch.left;
        for (int64_t i = 0; i < f.n_present * f.width; ++i) left[i] = 0;
        for (int64_t i = 0; i + 1 < f.n; ++i) {
            const int32_t row = order[i];
            int64_t *own = left + segment_of[row] * f.width;
            ++own[0];
            for (int64_t c = 0; c + 1 < f.width; ++c) own[1 + c] += scan.numbers[c][row];
            const uint32_t threshold = codes[row];
            if (codes[order[i + 1]] == threshold || threshold < shift) continue;
            const int32_t bits = scan.criterion.score_bits(f, left, i + 1);
            if (bits >= 0 && bits >= best.score_bits)
                scan.offer(best, Split{bits, threshold_tie(tie, threshold, shift), column, threshold, how});
        }
    }

    // The same where rows have targets: of one class, with running sums.
    void search_targets(const int32_t *order, int64_t column, uint32_t tie, int32_t how, uint32_t shift, Split &best) const {
        const NodeStats &f = scan.stats;
        const bool weighted = scan.job.n_channels == 2;
        const int32_t *weights = scan.numbers[0], *sums = scan.numbers[weighted];
        int64_t left[3] = {};
        for (int64_t i = 0; i + 1 < f.n; ++i) {
            const int32_t row = order[i];
            ++left[0];
            left[1] += weighted ? weights[row] : sums[row];
            left[2] += weighted ? sums[row] : 0;
            const uint32_t threshold = codes[row];
            if (codes[order[i + 1]] == threshold || threshold < shift) continue;
            if (left[0] < f.min_leaf || f.n - left[0] < f.min_leaf) continue;
            const int32_t bits = bits_of(scan.criterion.variance_score(f, left, left[weighted]));
            if (bits >= best.score_bits)
                scan.offer(best, Split{bits, threshold_tie(tie, threshold, shift), column, threshold, how});
        }
    }

    // The same of bytes without sorting: the rows and sums of each code, then the codes that came.
    void search_cells(int64_t column, uint32_t tie, int32_t how, uint32_t shift, Split &best) const {
        const NodeStats &f = scan.stats;
        const bool weighted = scan.job.n_channels == 2;
        const int32_t *weights = scan.numbers[0], *sums = scan.numbers[weighted];
        int32_t *counts = scan.scratch.cell_counts;     // [256]
        int64_t *cells = scan.scratch.cell_sums;        // [256][1 + weighted]: weights, sums
        uint64_t came[4] = {};
        for (int64_t i = 0; i < f.n; ++i) { // a code's first row replaces what its cell held before
            const uint32_t at = codes[i];
            const int64_t keep = -int64_t(came[at / 64 % 4] >> at % 64 & 1);
            came[at / 64 % 4] |= uint64_t(1) << at % 64;
            counts[at] = (counts[at] & static_cast<int32_t>(keep)) + 1;
            if (weighted) {
                cells[2 * at] = (cells[2 * at] & keep) + weights[i];
                cells[2 * at + 1] = (cells[2 * at + 1] & keep) + sums[i];
            } else {
                cells[at] = (cells[at] & keep) + sums[i];
            }
        }
        int64_t left[3] = {};
        for (uint32_t word = 0; word < 4; ++word)
            for (uint64_t rest = came[word]; rest != 0; rest &= rest - 1) {
                const uint32_t threshold = 64 * word + static_cast<uint32_t>(__builtin_ctzll(rest));
                left[0] += counts[threshold];
                left[1] += cells[weighted ? 2 * threshold : threshold];
                left[2] += weighted ? cells[2 * threshold + 1] : 0;
                if (left[0] == f.n) return; // nothing is left to go right
                if (threshold < shift || left[0] < f.min_leaf || f.n - left[0] < f.min_leaf) continue;
                const int32_t bits = bits_of(scan.criterion.variance_score(f, left, left[weighted]));
                if (bits >= best.score_bits)
                    scan.offer(best, Split{bits, threshold_tie(tie, threshold, shift), column, threshold, how});
            }
    }
};

// A split of one column of a node of many rows, or its best one: the column's codes at the node are copied first.
template <typename Code> struct ColumnSearch {
    const SearchedNode<Code> &here;

    // Score one column; false where it is constant at the node.
    SRS_INLINE bool try_column(int64_t column, Split &best) const {
        const TreeData<Code> &tree = here.tree;
        const TileScan<Code> &scan = here.scan;
        const ColumnCodes<Code> codes = tree.column(column);
        const int32_t *r = tree.rows + here.node.start;
        const int64_t n = here.node.n;
        Code *copied = tree.column_codes; // named here: a byte written may be part of anything, which would be read again
        uint32_t low = codes[r[0]], high = low;
        for (int64_t i = 0; i < n; ++i) {
            const uint32_t x = copied[i] = codes[r[i]];
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        if (low == high) return false;
        if (tree.job.best) {
            try_best(column, low, high, best);
            return true;
        }
        int32_t how = PLAIN;
        const Code threshold = draw(column, low, high, how);
        const int64_t n_left = count_left(threshold);
        const int32_t bits = tree.criterion.score_bits(scan.stats, scan.scratch.left, n_left);
        if (bits >= 0 && bits >= best.score_bits)
            scan.offer(best, Split{bits, scan.tie_key(tree.feature_hashes[column]), column, threshold, how});
        return true;
    }

  private:
    SRS_INLINE bool is_category(int64_t column) const { return here.tree.categorical && here.tree.categorical[column]; }
    SRS_INLINE CategoryMap<Code> map_of(int64_t column) const {
        return CategoryMap<Code>(here.scan.category_key(here.tree.feature_hashes[column]));
    }

    // As RandomThresholds::draw, of codes from low to high.
    SRS_INLINE Code draw(int64_t column, uint32_t low, uint32_t high, int32_t &how) const {
        const uint32_t hash = here.scan.threshold_key(here.tree.feature_hashes[column]);
        if (is_category(column) || high == MISSING<Code>) how = see_mapped(column, hash, low, high);
        const Code threshold = static_cast<Code>(low + ((uint64_t(hash >> 8) * (high - low)) >> 24));
        if (!here.tree.job.values) return threshold;
        const uint32_t known = high - (how != PLAIN); // with missing values there is one place more
        return static_cast<Code>(RandomThresholds<Code>{here.scan}.value_threshold(column, hash, how, low, known, threshold));
    }

    // As RandomThresholds::draw_mapped: change column_codes and their range to what the split sees.
    int32_t see_mapped(int64_t column, uint32_t hash, uint32_t &low, uint32_t &high) const {
        Code *codes = here.tree.column_codes;
        const bool mapped = is_category(column);
        const CategoryMap<Code> map = map_of(column);
        Code lowest = MISSING<Code>, highest = 0;
        for (int64_t i = 0; i < here.node.n; ++i) {
            const Code x = mapped ? map(codes[i]) : static_cast<Code>(codes[i] + 1);
            codes[i] = mapped || (hash & 1) ? x : codes[i];
            lowest = x < lowest ? x : lowest;
            highest = x > highest ? x : highest;
        }
        high = highest;
        if (mapped) low = lowest;
        return mapped ? MAPPED : hash & 1 ? MISSING_LEFT : MISSING_RIGHT;
    }

    // Rows and channels of each class whose column_codes are up to the threshold, in scratch.left; how many rows.
    SRS_INLINE int64_t count_left(Code threshold) const {
        const TreeData<Code> &tree = here.tree;
        const Code *segment = tree.column_codes;
        int64_t n_left = 0, *out = here.scan.scratch.left;
        for (int64_t k = 0, start = here.node.start; k < here.scan.stats.n_present; ++k, out += tree.width) {
            const int64_t n = here.scan.stats.counts[k];
            int32_t left = 0;
            for (int64_t i = 0; i < n; ++i) left += segment[i] <= threshold;
            n_left += out[0] = left;
            for (int64_t c = 0; c < tree.job.n_channels; ++c) {
                int64_t sum = 0;
                for (int64_t i = 0; i < n; ++i) sum += segment[i] <= threshold ? tree.numbers[c][start + i] : 0;
                out[1 + c] = sum;
            }
            segment += n;
            start += n;
        }
        return n_left;
    }

    // As BestScan::search.
    void try_best(int64_t column, uint32_t low, uint32_t high, Split &best) const {
        const TreeData<Code> &tree = here.tree;
        const TileScan<Code> &scan = here.scan;
        const uint32_t tie = scan.tie_key(tree.feature_hashes[column]);
        const bool mapped = is_category(column);
        const bool with_missing = !mapped && high == MISSING<Code> && low != MISSING<Code>;
        for (int64_t k = 0, i = 0; k < scan.stats.n_present && tree.criterion.impurity != VARIANCE; ++k)
            for (const int64_t stop = i + scan.stats.counts[k]; i < stop; ++i) tree.segment_of[i] = static_cast<int32_t>(k);
        if (mapped) {
            const CategoryMap<Code> map = map_of(column);
            for (int64_t i = 0; i < here.node.n; ++i) tree.column_codes[i] = map(tree.column_codes[i]);
        }
        const ColumnBest<Code> sorting{scan, tree.column_codes, {tree.places[0], tree.places[1]}, tree.segment_of};
        sorting.search(column, tie, mapped ? MAPPED : with_missing ? MISSING_RIGHT : PLAIN, 0, best);
        if (!with_missing) return;
        for (int64_t i = 0; i < here.node.n; ++i) ++tree.column_codes[i];
        sorting.search(column, tie, MISSING_LEFT, 1, best);
    }
};

} // namespace
} // namespace srs::SRS_ISA
