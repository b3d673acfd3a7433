// The best split of each of 64 features at a node, exact over the codes.
#pragma once
#include "tile/scan.hpp"

namespace srs::SRS_ISA {
namespace {

constexpr int64_t MAX_TRIED_ROWS = 128;            // nodes up to this size try the codes of their rows

// A threshold's tie hash among those of its feature; `shift`: missing values lie below.
SRS_INLINE uint32_t threshold_tie(uint32_t tie, uint32_t threshold, uint32_t shift) {
    return tie ^ ((threshold + (shift << 16)) * TIE_FACTOR);
}

template <typename Code> struct BestScan {
    using Scan = TileScan<Code>;
    const Scan &scan;
    // The best of each lane so far.
    alignas(64) int32_t bits[TILE], how[TILE];
    alignas(64) uint32_t ties[TILE], thresholds[TILE];
    // This pass over the thresholds.
    alignas(64) int32_t allowed[TILE], pass_how[TILE];
    alignas(64) uint32_t lane_ties[TILE];
    uint32_t shift = 0;

    explicit BestScan(const Scan &scan) : scan(scan) {}

    template <typename Lines>
    void search(const Lines lines, const Code *low, const Code *high, const uint32_t *hashes, const uint8_t *categorical) {
        Code highest = 0;
        for (int l = 0; l < TILE; ++l) {
            highest = high[l] > highest ? high[l] : highest;
            bits[l] = -1;
            ties[l] = thresholds[l] = 0;
            how[l] = pass_how[l] = PLAIN;
            allowed[l] = -1;
        }
        for (int l = 0; l < TILE; ++l) lane_ties[l] = scan.tie_key(hashes[l]);
        shift = 0;
        if (!categorical && highest != MISSING<Code>) return pass(lines);
        LaneMap<Code> map;
        map.set(categorical, hashes, scan.category_key);
        bool any_missing = false;
        for (int l = 0; l < TILE; ++l) {
            const bool is_category = categorical && categorical[l];
            const bool with_missing = !is_category && high[l] == MISSING<Code> && low[l] != MISSING<Code>;
            any_missing |= with_missing;
            map.shift[l] = 0;
            pass_how[l] = is_category ? MAPPED : with_missing ? MISSING_RIGHT : PLAIN;
        }
        pass_mapped(lines, map);
        if (!any_missing) return;
        shift = 1;
        for (int l = 0; l < TILE; ++l) {
            allowed[l] = pass_how[l] == MISSING_RIGHT ? -1 : 0;
            map.shift[l] = pass_how[l] == MISSING_RIGHT;
            pass_how[l] = MISSING_LEFT;
        }
        pass_mapped(lines, map);
    }

    template <typename Lines> SRS_INLINE void pass(const Lines lines) {
        if (scan.stats.n <= MAX_TRIED_ROWS || sizeof(Code) != 1) try_rows(lines.chunk(scan.stats.n));
        else try_codes(lines);
    }

    SRS_APART void pass_mapped(const BlockLines<Code> lines, const LaneMap<Code> &map) {
        pass(MappedLines<Code>{lines, &map, scan.scratch.view});
    }

    // Every row's code as a threshold.
    template <typename Lines> SRS_INLINE void try_rows(const Lines lines) {
        alignas(64) int32_t found[TILE];
        for (int64_t i = 0; i < scan.stats.n; ++i) {
            const Code *line = lines[i];
            scan.score_lines(lines, line, -1, found);
            keep(found, line);
        }
    }

    // Rows of each code of each feature, then every code as a threshold.
    template <typename Lines> void try_codes(Lines lines) {
        const NodeStats &f = scan.stats;
        const int64_t n_channels = scan.job.n_channels, cells = f.n_present * TILE, sums = cells * n_channels;
        int32_t *counts = scan.scratch.cell_counts;
        int64_t *numbers = scan.scratch.cell_sums;
        for (int64_t i = 0; i < 256 * cells; ++i) counts[i] = 0;
        for (int64_t i = 0; i < 256 * sums; ++i) numbers[i] = 0;
        for (int64_t k = 0, row = 0; k < f.n_present; ++k)
            for (int64_t rest = f.counts[k]; rest > 0;) {
                const int64_t n = rest < 255 ? rest : 255;
                const auto chunk = lines.chunk(n);
                for (int64_t i = 0; i < n; ++i, ++row) {
                    const Code *line = chunk[i];
                    for (int l = 0; l < TILE; ++l) ++counts[line[l] * cells + k * TILE + l];
                    for (int64_t c = 0; c < n_channels; ++c)
                        for (int l = 0; l < TILE; ++l)
                            numbers[line[l] * sums + (k * n_channels + c) * TILE + l] += scan.numbers[c][row];
                }
                lines = lines.from(n);
                rest -= n;
            }
        for (int64_t i = 0; i < cells; ++i) scan.scratch.counts[i] = 0;
        for (int64_t i = 0; i < sums; ++i) scan.scratch.sums[i] = 0;
        for (int code = 0; code < 256; ++code, counts += cells, numbers += sums) try_code(code, counts, numbers);
    }

    void try_code(int code, const int32_t *counts, const int64_t *numbers) {
        const int64_t cells = scan.stats.n_present * TILE;
        alignas(64) int32_t found[TILE], here[TILE] = {};
        alignas(64) Code line[TILE];
        for (int64_t k = 0; k < cells; k += TILE)
            for (int l = 0; l < TILE; ++l) here[l] |= counts[k + l];
        int32_t any = 0;
        for (int l = 0; l < TILE; ++l) any |= here[l];
        if (any == 0) return;
        for (int64_t i = 0; i < cells; ++i) scan.scratch.counts[i] += counts[i];
        for (int64_t i = 0; i < cells * scan.job.n_channels; ++i) scan.scratch.sums[i] += numbers[i];
        TileScores<Code>{scan, -1}.score_counted(found);
        for (int l = 0; l < TILE; ++l) {
            found[l] = here[l] ? found[l] : -1;
            line[l] = static_cast<Code>(code);
        }
        keep(found, line);
    }

    // Keep what is better than the best so far.
    SRS_INLINE void keep(const int32_t *found, const Code *line) {
        const uint32_t least = shift; // nothing but missing values lies below, which was tried the other way
        for (int l = 0; l < TILE; ++l) {
            const uint32_t threshold = line[l], tie = threshold_tie(lane_ties[l], threshold, shift);
            const int32_t own = allowed[l] && threshold >= least ? found[l] : -1;
            const bool better = own > bits[l] || (own == bits[l] && tie > ties[l]);
            bits[l] = better ? own : bits[l];
            ties[l] = better ? tie : ties[l];
            thresholds[l] = better ? threshold : thresholds[l];
            how[l] = better ? pass_how[l] : how[l];
        }
    }

    // Offer the lanes' best; lane l is column columns[l], or first + l without `columns`.
    void offer_lanes(const int32_t *columns, int64_t first, Split &best) const {
        for (int l = 0; l < TILE; ++l)
            if (bits[l] >= 0 && bits[l] >= best.score_bits)
                scan.offer(best, Split{bits[l], ties[l], columns ? columns[l] : first + l, thresholds[l], how[l]});
    }
};

} // namespace
} // namespace srs::SRS_ISA
