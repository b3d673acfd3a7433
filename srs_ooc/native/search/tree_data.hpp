// What the search for splits works on: candidate columns, the codes of the block, the rows of the tree with what they count,
// a thread's memory.
#pragma once
#include "simd/byte_copies.hpp"
#include "tile/scan.hpp"

namespace srs::SRS_ISA {
namespace {

// What derive() makes of the first words, whatever the key.
struct FirstWords {
    static constexpr int64_t N = 64;
    uint64_t mixed[N + 8] = {};
    constexpr FirstWords() {
        for (int64_t i = 0; i < N + 8; ++i) mixed[i] = mix64(static_cast<uint64_t>(i) + WORD_STEP);
    }
};
constexpr FirstWords FIRST_WORDS{};

// The columns of a block in a random order per node: Fisher-Yates from the front over the columns
// by ascending feature, so that a column's place in the block plays no part. Only the columns
// visited cost anything: places before the next one are never looked at again, and rewind() puts
// the few others right.
struct CandidateSample {
    static constexpr int64_t MAX_TAKEN = TILE; // columns taken at once
    const int32_t *columns; // [n_columns] by ascending feature
    int32_t *order;         // [n_columns] the same, but for what was sampled
    int32_t *sampled;       // [n_columns] places of `order` that were sampled
    int64_t n_columns, n_sampled = 0;
    uint64_t key = 0;

    SRS_INLINE bool exhausted() const { return n_sampled == n_columns; }
    SRS_INLINE int32_t next() {
        int32_t column = 0;
        take(&column, 1);
        return column;
    }

    // Write the next n columns, MAX_TAKEN at most, or as many as are left; return how many.
    SRS_INLINE int64_t take(int32_t *out, int64_t n) {
        n = n < n_columns - n_sampled ? n : n_columns - n_sampled;
        alignas(64) int32_t places[MAX_TAKEN];
        if (n_sampled + n <= FirstWords::N) sample_places<true>(places, n);
        else sample_places<false>(places, n);
        for (int64_t i = 0; i < n; ++i) {
            const int32_t column = order[places[i]];
            order[places[i]] = order[n_sampled + i];
            out[i] = column;
            sampled[n_sampled + i] = places[i];
        }
        n_sampled += n;
        return n;
    }

    SRS_INLINE void rewind() {
        for (int64_t i = 0; i < n_sampled; ++i) order[sampled[i]] = columns[sampled[i]];
        n_sampled = 0;
    }

  private:
    // Whole registers of numbers, for which no short loop is needed: what is too many is not looked at.
    template <bool FIRST> SRS_INLINE void sample_places(int32_t *places, int64_t n) const {
        const uint64_t left = static_cast<uint64_t>(n_columns - n_sampled), first = static_cast<uint64_t>(n_sampled);
        const uint64_t end = n == 1 ? 1 : (static_cast<uint64_t>(n) + 7) / 8 * 8;
        for (uint64_t i = 0; i < end; ++i) {
            const uint64_t hash = mix64(key + (FIRST ? FIRST_WORDS.mixed[first + i] : mix64(first + i + WORD_STEP)));
            places[i] = static_cast<int32_t>(first + i + scale_below(hash, left - i));
        }
    }
};

struct Node {
    int64_t start, n, depth;
    uint64_t key;
    int32_t *link; // where its parent's record names it
};

// A column of the block, in either layout.
template <typename Code> struct ColumnCodes {
    const Code *codes;
    int64_t stride;
    SRS_INLINE Code operator[](int64_t row) const { return codes[row * stride]; }
};

template <typename Code> struct TreeData {
    GrowJob &job;
    Criterion criterion;
    CandidateSample candidates{};
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
        return sizeof(Code) == 1 && !job.tiled && job.n_rows <= ByteCopies::MAX_ROWS && ByteCopies::is_there();
#else
        return false;
#endif
    }

    // ---- memory --------------------------------------------------------------------------------

    // What all threads share.
    void carve_shared(Arena &arena) {
        const int64_t cells = job.best && sizeof(Code) == 1 ? 256 * TILE * job.n_classes : 0;
        for (int i = 0; i < job.n_threads; ++i) {
            TileScratch<Code> &own = scratches[i];
            own.counts = arena.take<int32_t>(job.n_classes * TILE);
            own.sums = arena.take<int64_t>(job.n_classes * job.n_channels * TILE);
            own.left = arena.take<int64_t>(job.n_classes * width);
            own.view = arena.take<Code>(255 * TILE);
            own.cell_counts = arena.take<int32_t>(cells);
            own.cell_sums = arena.take<int64_t>(cells * job.n_channels);
        }
        rows = arena.take<int32_t>(job.n_root_rows);
        for (int64_t c = 0; c < job.n_channels; ++c) numbers[c] = arena.take<int32_t>(job.n_root_rows);
        feature_hashes = arena.take<uint32_t>(padded());
        categorical = arena.take<uint8_t>(padded() + padded() / TILE);
        real = arena.take<uint8_t>(padded());
    }

    // What each thread has of its own.
    void carve_own(Arena &arena) {
        const int64_t sorted = job.best ? job.n_root_rows : 0;
        lows = arena.take<Code>(padded());
        highs = arena.take<Code>(padded());
        chosen = arena.take<uint8_t>(padded());
        places[0] = arena.take<int32_t>(sorted);
        places[1] = arena.take<int32_t>(sorted);
        segment_of = arena.take<int32_t>(sorted);
        column_codes = arena.take<Code>(job.n_root_rows);
        node_lines = arena.take<Code>(NODE_LINES * TILE);
        candidates.order = arena.take<int32_t>(job.n_columns);
        candidates.sampled = arena.take<int32_t>(job.n_columns);
        candidates.columns = job.order;
        candidates.n_columns = job.n_columns;
    }

    void fill_shared() {
        for (int64_t i = 0; i < job.n_root_rows; ++i) rows[i] = job.rows[i];
        for (int64_t c = 0; c < job.n_channels; ++c)
            for (int64_t i = 0; i < job.n_root_rows; ++i) numbers[c][i] = job.channels[c * job.n_rows + rows[i]];
        for (int64_t j = 0; j < job.n_columns; ++j)
            feature_hashes[j] = static_cast<uint32_t>(derive(job.tree_key, job.features[j]) >> 32);
        for (int64_t j = job.n_columns; j % TILE != 0; ++j) feature_hashes[j] = 0;
        for (int64_t j = 0; job.tiled && j < padded(); ++j) real[j] = j < job.n_columns;
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

    void fill_own() {
        for (int64_t j = 0; j < job.n_columns; ++j) candidates.order[j] = job.order[j];
        const int64_t n_lines = job.n_root_rows < NODE_LINES ? job.n_root_rows : NODE_LINES;
        __builtin_memset(node_lines, 0, sizeof(Code) * static_cast<size_t>(n_lines * TILE));
    }

    // Take part in what the first thread has filled.
    void join(const TreeData &first, int number) {
        scratches[0] = first.scratches[number];
        categorical = first.categorical;
    }

    // ---- what it holds -------------------------------------------------------------------------

    SRS_INLINE ColumnCodes<Code> column(int64_t j) const {
        const Code *codes = static_cast<const Code *>(job.codes);
        if (job.tiled) return {codes + j / TILE * TILE * job.n_rows + j % TILE, TILE};
        return {codes + j * job.n_rows, 1};
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

} // namespace
} // namespace srs::SRS_ISA
