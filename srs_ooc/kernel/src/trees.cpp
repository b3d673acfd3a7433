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

#if defined(__AVX512BW__)
#define SRS_VECTOR_NBYTES 64
#elif defined(__AVX2__)
#define SRS_VECTOR_NBYTES 32
#else
#define SRS_VECTOR_NBYTES 16
#endif

template <typename Code> struct Register;
template <> struct Register<uint8_t> {
    typedef uint8_t Type __attribute__((vector_size(SRS_VECTOR_NBYTES), aligned(SRS_VECTOR_NBYTES), may_alias));
};
template <> struct Register<uint16_t> {
    typedef uint16_t Type __attribute__((vector_size(SRS_VECTOR_NBYTES), aligned(SRS_VECTOR_NBYTES), may_alias));
};

// One code of each feature of a tile, in as many registers as the instruction set needs.
template <typename Code> struct Lanes {
    using R = typename Register<Code>::Type;
    static constexpr int PARTS = TILE * sizeof(Code) / SRS_VECTOR_NBYTES;
    static constexpr int64_t FLUSH = Code(-1); // rows a lane counter can hold
    R part[PARTS];

    static SRS_INLINE Lanes load(const Code *line) {
        Lanes out;
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i) out.part[i] = reinterpret_cast<const R *>(line)[i];
        return out;
    }
    SRS_INLINE void store(Code *line) const {
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i) reinterpret_cast<R *>(line)[i] = part[i];
    }
    SRS_INLINE void clear() {
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i) part[i] = R{};
    }
    SRS_INLINE void widen_range(Lanes &low, Lanes &high) const {
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i) {
            low.part[i] = part[i] < low.part[i] ? part[i] : low.part[i];
            high.part[i] = part[i] > high.part[i] ? part[i] : high.part[i];
        }
    }
    SRS_INLINE void count_at_most(const Lanes &thresholds, Lanes &counters) const {
        _Pragma("GCC unroll 8") for (int i = 0; i < PARTS; ++i)
            counters.part[i] -= (R)(part[i] <= thresholds.part[i]); // a true lane is all ones, that is -1
    }
};

struct Node {
    int64_t start, n, depth;
    uint64_t key;
};

struct Split { // the best candidate so far; ordered by score, then tie hash, then smaller feature
    int32_t score_bits = -1; // a non-negative float compares as its bits do; -1: none
    uint32_t tie = 0;
    int64_t column = -1;
    uint32_t threshold = 0;
};

SRS_INLINE int32_t bits_of(float x) {
    int32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

// Node-wide facts every candidate is scored with.
struct Facts {
    int64_t n, min_leaf, n_present;
    const int32_t *present;      // classes with rows here
    const int64_t *counts;       // their rows, in the order of `present`
};

template <typename Code> struct Grower {
    using V = Lanes<Code>;
    GrowJob &job;
    // Scratch, carved in carve() in this order.
    int32_t *tile_counts;    // [n_classes][TILE] left counts of one tile
    int64_t *stack_counts;   // [STACK][n_classes]
    int64_t *present_counts; // [n_classes]
    int64_t *left_counts;    // [n_classes]
    int32_t *present;        // [n_classes]
    int32_t *rows, *right;   // [n_root_rows] each
    uint32_t *feature_hashes; // [n_columns rounded up to TILE]
    uint32_t *candidate_hashes; // [same]
    int32_t *candidates;     // [n_columns]
    Code *column_codes;      // [n_root_rows]
    static constexpr int64_t STACK = 66; // the larger child waits, so 2**65 rows would be needed

    explicit Grower(GrowJob &job) : job(job) {}

    SRS_INLINE Code code(int64_t column, int64_t row) const {
        const Code *codes = static_cast<const Code *>(job.codes);
        if (job.tiled)
            return codes[((column / TILE) * job.n_rows + row) * TILE + column % TILE];
        return codes[column * job.n_rows + row];
    }

    // ---- scoring -------------------------------------------------------------------------------

    // Gini: sum over classes of D_k^2 / (n_left n_right), D_k = left_k n - count_k n_left.
    template <typename Int> SRS_INLINE float gini_score(const Facts &f, const int64_t *left, int64_t n_left) const {
        float sum = 0.0f;
        for (int64_t k = 0; k < f.n_present; ++k) {
            const float d = static_cast<float>(static_cast<Int>(left[k]) * static_cast<Int>(f.n) -
                                               static_cast<Int>(f.counts[k]) * static_cast<Int>(n_left));
            sum = sum + d * d;
        }
        return sum / (static_cast<float>(n_left) * static_cast<float>(f.n - n_left));
    }

    // Entropy: n H - n_left H_left - n_right H_right in table units; at least 1 where any D_k is not 0.
    int64_t entropy_gain(const Facts &f, const int64_t *left, int64_t n_left) const {
        const int64_t *t = job.xlogx;
        int64_t gain = t[f.n] - t[n_left] - t[f.n - n_left];
        bool changed = false;
        for (int64_t k = 0; k < f.n_present; ++k) {
            gain += t[left[k]] + t[f.counts[k] - left[k]] - t[f.counts[k]];
            changed |= left[k] * f.n != f.counts[k] * n_left;
        }
        return changed ? (gain > 1 ? gain : 1) : 0;
    }

    SRS_INLINE float score(const Facts &f, const int64_t *left, int64_t n_left) const {
        if (job.impurity == ENTROPY) return static_cast<float>(entropy_gain(f, left, n_left));
        return gini_score<int64_t>(f, left, n_left);
    }

    // Importance of a split (Eq. 1 of the paper, unnormalised) in units of 2**-IMPORTANCE_BITS.
    int64_t importance(const Facts &f, const int64_t *left, int64_t n_left) const {
        const double n_root = static_cast<double>(job.n_root_rows);
        double share;
        if (job.impurity == ENTROPY) {
            const int64_t gain = entropy_gain(f, left, n_left);
            if (gain == 0) return 0;
            share = static_cast<double>(gain) / static_cast<double>(int64_t(1) << ENTROPY_BITS) / n_root;
        } else {
            unsigned __int128 numerator = 0;
            for (int64_t k = 0; k < f.n_present; ++k) {
                const __int128 d = left[k] * f.n - f.counts[k] * n_left;
                numerator += static_cast<unsigned __int128>(d * d);
            }
            if (numerator == 0) return 0;
            const double sides = static_cast<double>(n_left) * static_cast<double>(f.n - n_left);
            share = static_cast<double>(numerator) / sides / static_cast<double>(f.n) / n_root;
        }
        const int64_t units = __builtin_llrint(share * static_cast<double>(int64_t(1) << IMPORTANCE_BITS));
        return units > 1 ? units : 1;
    }

    // ---- all columns of a tiled block ----------------------------------------------------------

    SRS_INLINE void tile_range(const Code *tile, const Node &node, Code *low, Code *high) const {
        const int32_t *r = rows + node.start;
        V lo = V::load(tile + int64_t(r[0]) * TILE), hi = lo;
        for (int64_t i = 1; i < node.n; ++i) V::load(tile + int64_t(r[i]) * TILE).widen_range(lo, hi);
        lo.store(low);
        hi.store(high);
    }

    SRS_INLINE void tile_thresholds(const Code *low, const Code *high, const uint32_t *hashes, const LaneKey key,
                                    Code *thresholds) const {
        for (int l = 0; l < TILE; ++l) {
            const uint32_t h = key(hashes[l]) >> 8;
            const uint32_t range = uint32_t(high[l]) - uint32_t(low[l]);
            if (sizeof(Code) == 1) thresholds[l] = static_cast<Code>(low[l] + ((h * range) >> 24));
            else thresholds[l] = static_cast<Code>(low[l] + ((uint64_t(h) * range) >> 24));
        }
    }

    // Rows of one class at or below each lane's threshold, as many as a lane counter holds.
    SRS_INLINE void count_rows(const Code *tile, const int32_t *r, int64_t n, const V &limit, Code *counts) const {
        V counters;
        counters.clear();
        for (int64_t i = 0; i < n; ++i) V::load(tile + int64_t(r[i]) * TILE).count_at_most(limit, counters);
        counters.store(counts);
    }

    SRS_INLINE void count_classes(const Code *tile, const int32_t *r, const Facts &f, const Code *thresholds,
                                  Code *counts) const {
        const V limit = V::load(thresholds);
        for (int64_t k = 0; k < f.n_present; ++k, counts += TILE) {
            count_rows(tile, r, f.counts[k], limit, counts);
            r += f.counts[k];
        }
    }

    SRS_INLINE void count_classes(const Code *tile, const int32_t *r, const Facts &f, const Code *thresholds,
                                  int32_t *counts) const {
        const V limit = V::load(thresholds);
        alignas(64) Code narrow[TILE];
        for (int64_t k = 0; k < f.n_present; ++k, counts += TILE) {
            for (int l = 0; l < TILE; ++l) counts[l] = 0;
            for (int64_t left = f.counts[k]; left > 0;) {
                const int64_t n = left < V::FLUSH ? left : V::FLUSH;
                count_rows(tile, r, n, limit, narrow);
                for (int l = 0; l < TILE; ++l) counts[l] += narrow[l];
                r += n;
                left -= n;
            }
        }
    }

    template <typename Count> SRS_INLINE void tile_gini(const Facts &f, const Count *counts, int32_t *bits) const {
        alignas(64) int32_t n_left[TILE];
        alignas(64) float sums[TILE];
        const int32_t n = static_cast<int32_t>(f.n), min_leaf = static_cast<int32_t>(f.min_leaf);
        if (f.n_present == 2) { // D_0 = -D_1, so the sum is exactly twice one square
            const int32_t c0 = static_cast<int32_t>(f.counts[0]), c1 = static_cast<int32_t>(f.counts[1]);
            for (int l = 0; l < TILE; ++l) {
                const int32_t left_0 = counts[l], left_1 = counts[TILE + l];
                const float d = static_cast<float>(left_1 * c0 - left_0 * c1);
                n_left[l] = left_0 + left_1;
                sums[l] = d * d + d * d;
            }
        } else {
            for (int l = 0; l < TILE; ++l) n_left[l] = counts[l];
            for (int64_t k = 1; k < f.n_present; ++k)
                for (int l = 0; l < TILE; ++l) n_left[l] += counts[k * TILE + l];
            for (int l = 0; l < TILE; ++l) sums[l] = 0.0f;
            for (int64_t k = 0; k < f.n_present; ++k) {
                const int32_t count = static_cast<int32_t>(f.counts[k]);
                for (int l = 0; l < TILE; ++l) {
                    const float d = static_cast<float>(counts[k * TILE + l] * n - count * n_left[l]);
                    sums[l] = sums[l] + d * d;
                }
            }
        }
        for (int l = 0; l < TILE; ++l)
            sums[l] = sums[l] / (static_cast<float>(n_left[l]) * static_cast<float>(n - n_left[l]));
        __builtin_memcpy(bits, sums, sizeof sums);
        for (int l = 0; l < TILE; ++l) {
            const bool valid = n_left[l] >= min_leaf && n - n_left[l] >= min_leaf;
            bits[l] = valid ? bits[l] : -1;
        }
    }

    void tile_scalar(const Facts &f, int32_t *bits) const {
        for (int l = 0; l < TILE; ++l) {
            int64_t n_left = 0;
            for (int64_t k = 0; k < f.n_present; ++k) n_left += left_counts[k] = tile_counts[k * TILE + l];
            const bool valid = n_left >= f.min_leaf && f.n - n_left >= f.min_leaf;
            bits[l] = valid ? bits_of(score(f, left_counts, n_left)) : -1;
        }
    }

    SRS_INLINE void tile_best(const int32_t *bits, int64_t first, const Code *thresholds, const LaneKey tie_key,
                              Split &best) const {
        int32_t top = -1;
        for (int l = 0; l < TILE; ++l) top = bits[l] > top ? bits[l] : top;
        if (top < 0 || top < best.score_bits) return;
        alignas(64) uint32_t ties[TILE];
        uint32_t tie = 0;
        for (int l = 0; l < TILE; ++l) {
            ties[l] = bits[l] == top ? tie_key(feature_hashes[first + l]) : 0;
            tie = ties[l] > tie ? ties[l] : tie;
        }
        int32_t winners = 0; // their number above bit 16, the sum of their lanes below: nearly always one
        for (int l = 0; l < TILE; ++l) winners += bits[l] == top && ties[l] == tie ? (1 << 16) + l : 0;
        const int32_t lane = winners & 0xFFFF;
        if (winners >> 16 == 1) return offer(best, top, tie, first + lane, thresholds[lane]);
        for (int l = 0; l < TILE; ++l)
            if (bits[l] == top && ties[l] == tie) offer(best, top, tie, first + l, thresholds[l]);
    }

    SRS_INLINE void offer(Split &best, int32_t bits, uint32_t tie, int64_t column, uint32_t threshold) const {
        bool better = bits > best.score_bits;
        if (bits == best.score_bits)
            better = tie > best.tie || (tie == best.tie && job.features[column] < job.features[best.column]);
        if (better) best = Split{bits, tie, column, threshold};
    }

    Split scan_tiles(const Node &node, const Facts &f) const {
        const LaneKey threshold_key(node.key, THRESHOLD), tie_key(node.key, TIE);
        Split best;
        int64_t largest = 0;
        for (int64_t k = 0; k < f.n_present; ++k) largest = f.counts[k] > largest ? f.counts[k] : largest;
        const bool narrow = job.impurity == GINI && f.n <= SMALL_NODE && largest <= V::FLUSH;
        for (int64_t first = 0; first < job.n_columns; first += TILE) {
            const Code *tile = static_cast<const Code *>(job.codes) + first * job.n_rows;
            alignas(64) Code low[TILE], high[TILE], thresholds[TILE];
            tile_range(tile, node, low, high);
            tile_thresholds(low, high, feature_hashes + first, threshold_key, thresholds);
            alignas(64) int32_t bits[TILE];
            if (narrow) {
                Code *counts = reinterpret_cast<Code *>(tile_counts);
                count_classes(tile, rows + node.start, f, thresholds, counts);
                tile_gini(f, counts, bits);
            } else {
                count_classes(tile, rows + node.start, f, thresholds, tile_counts);
                if (job.impurity == GINI && f.n <= SMALL_NODE) tile_gini(f, tile_counts, bits);
                else tile_scalar(f, bits);
            }
            for (int64_t l = job.n_columns - first; l < TILE; ++l) bits[l] = -1; // padding lanes
            tile_best(bits, first, thresholds, tie_key, best);
        }
        return best;
    }

    // ---- max_features candidates among the columns not constant here ---------------------------

    // Score one column; false where it is constant at the node.
    SRS_INLINE bool try_column(const Node &node, const Facts &f, int64_t column, const LaneKey threshold_key,
                               const LaneKey tie_key, Split &best) const {
        const int32_t *r = rows + node.start;
        uint32_t low = code(column, r[0]), high = low;
        for (int64_t i = 0; i < node.n; ++i) {
            const uint32_t x = column_codes[i] = code(column, r[i]);
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        if (low == high) return false;
        const uint32_t hash = feature_hashes[column];
        const uint32_t threshold = low + static_cast<uint32_t>((uint64_t(threshold_key(hash) >> 8) * (high - low)) >> 24);
        int64_t n_left = 0;
        const Code *segment = column_codes;
        for (int64_t k = 0; k < f.n_present; ++k) {
            int64_t left = 0;
            for (int64_t i = 0; i < f.counts[k]; ++i) left += segment[i] <= threshold;
            segment += f.counts[k];
            n_left += left_counts[k] = left;
        }
        if (n_left >= f.min_leaf && f.n - n_left >= f.min_leaf)
            offer(best, bits_of(score(f, left_counts, n_left)), tie_key(hash), column, threshold);
        return true;
    }

    SRS_INLINE bool visited_before(int32_t a, int32_t b) const { // order of the candidate draw
        const uint32_t x = candidate_hashes[a], y = candidate_hashes[b];
        return x != y ? x < y : job.features[a] < job.features[b];
    }

    void sort_candidates(int32_t *items, int64_t n) const { // heapsort: nothing inlined from a library
        for (int64_t end = n, start = n / 2; end > 1;) {
            if (start > 0) --start;
            else {
                --end;
                const int32_t top = items[0];
                items[0] = items[end];
                items[end] = top;
            }
            for (int64_t root = start, child; (child = 2 * root + 1) < end; root = child) {
                if (child + 1 < end && visited_before(items[child], items[child + 1])) ++child;
                if (!visited_before(items[root], items[child])) break;
                const int32_t item = items[root];
                items[root] = items[child];
                items[child] = item;
            }
        }
    }

    // Columns are visited in the order of their candidate hashes, drawn in growing slices.
    Split scan_candidates(const Node &node, const Facts &f) const {
        const LaneKey candidate_key(node.key, CANDIDATE), threshold_key(node.key, THRESHOLD), tie_key(node.key, TIE);
        for (int64_t j = 0; j < job.n_columns; ++j) candidate_hashes[j] = candidate_key(feature_hashes[j]);
        Split best;
        int64_t wanted = job.max_features;
        const uint64_t whole = uint64_t(1) << 32;
        uint64_t step = whole / static_cast<uint64_t>(job.n_columns) * static_cast<uint64_t>(wanted + wanted / 4 + 8);
        for (uint64_t from = 0; from < whole && wanted > 0; from += step, step *= 2) {
            const uint64_t last = from + step < whole ? from + step - 1 : whole - 1;
            int64_t n = 0;
            for (int64_t j = 0; j < job.n_columns; ++j)
                if (candidate_hashes[j] >= from && candidate_hashes[j] <= last) candidates[n++] = static_cast<int32_t>(j);
            sort_candidates(candidates, n);
            for (int64_t i = 0; i < n && wanted > 0; ++i)
                wanted -= try_column(node, f, candidates[i], threshold_key, tie_key, best);
        }
        return best;
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
        int64_t n_present = 0;
        for (int64_t k = 0; k < job.n_classes; ++k)
            if (counts[k] > 0) {
                present[n_present] = static_cast<int32_t>(k);
                present_counts[n_present++] = counts[k];
            }
        return Facts{node.n, job.min_samples_leaf, n_present, present, present_counts};
    }

    Split best_split(const Node &node, const Facts &f) const {
        const bool limited = job.max_depth >= 0 && node.depth >= job.max_depth;
        if (f.n_present < 2 || limited || node.n < 2 * job.min_samples_leaf) return Split{};
        return job.tiled && job.max_features >= job.n_columns ? scan_tiles(node, f) : scan_candidates(node, f);
    }

    // Write the children's class counts into two stack slots.
    void child_counts(const Facts &f, int64_t *left, int64_t *other) const {
        for (int64_t k = 0; k < job.n_classes; ++k) left[k] = other[k] = 0;
        for (int64_t k = 0; k < f.n_present; ++k) {
            left[f.present[k]] = left_counts[k];
            other[f.present[k]] = f.counts[k] - left_counts[k];
        }
    }

    void grow() {
        carve();
        Node stack[STACK];
        stack[0] = Node{0, job.n_root_rows, 0, job.tree_key};
        for (int64_t k = 0; k < job.n_classes; ++k) stack_counts[k] = job.class_counts[k];
        for (int64_t top = 0; top >= 0;) {
            const Node node = stack[top];
            ++job.n_nodes;
            if (node.depth > job.depth) job.depth = node.depth;
            const Facts f = facts_of(node, stack_counts + top * job.n_classes);
            const Split split = best_split(node, f);
            if (split.column < 0) {
                ++job.n_leaves;
                --top;
                continue;
            }
            const int64_t n_left = partition(node, f, split);
            job.importance[split.column] += importance(f, left_counts, n_left);
            const Node left{node.start, n_left, node.depth + 1, derive(node.key, LEFT)};
            const Node other{node.start + n_left, node.n - n_left, node.depth + 1, derive(node.key, RIGHT)};
            const bool left_first = left.n <= other.n; // the smaller child next: the stack stays shallow
            stack[top] = left_first ? other : left;
            stack[top + 1] = left_first ? left : other;
            int64_t *slot = stack_counts + top * job.n_classes, *next = slot + job.n_classes;
            child_counts(f, left_first ? next : slot, left_first ? slot : next);
            ++top;
        }
    }

    void carve();
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
    g.candidate_hashes = carver.take<uint32_t>(padded);
    g.candidates = carver.take<int32_t>(job.n_columns);
    g.column_codes = carver.take<Code>(job.n_root_rows);
    return carver.used;
}

template <typename Code> void Grower<Code>::carve() {
    carve_into(*this, static_cast<char *>(job.scratch));
    for (int64_t i = 0; i < job.n_root_rows; ++i) rows[i] = job.rows[i];
    const int64_t padded = (job.n_columns + TILE - 1) / TILE * TILE;
    for (int64_t j = 0; j < padded; ++j)
        feature_hashes[j] = j < job.n_columns ? static_cast<uint32_t>(derive(job.tree_key, job.features[j]) >> 32) : 0;
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
