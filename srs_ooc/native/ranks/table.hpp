// A column of codes and the target crossed, and the scores of their levels.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace srs {

constexpr std::int64_t GRID = 64; // scores are whole numbers up to it
// Where few levels have many rows each, on a coarser grid: the lattice of their sums is then known, where else its
// points would come in lumps.
constexpr std::int64_t COARSE_GRID = 16, COARSE_ROWS = 64, NEARBY = 50;
constexpr std::size_t COARSE_LEVELS = 16;

// Rows of a stratum by level of the column (ascending) and level of the target.
struct ContingencyTable {
    std::size_t n_levels = 0, n_targets = 0;
    std::vector<std::int32_t> cells;  // [level][target]
    std::vector<std::int64_t> scores; // of levels, ascending; empty: by the ranks of the rows that are here
    std::vector<std::int64_t> target_scores{}; // of levels of the target, likewise
    std::int64_t at(std::size_t level, std::size_t target) const { return cells[level * n_targets + target]; }
    std::vector<std::int64_t> levels() const {
        std::vector<std::int64_t> sums(n_levels, 0);
        for (std::size_t l = 0; l < n_levels; ++l)
            for (std::size_t y = 0; y < n_targets; ++y) sums[l] += at(l, y);
        return sums;
    }
    std::vector<std::int64_t> targets() const {
        std::vector<std::int64_t> sums(n_targets, 0);
        for (std::size_t i = 0; i < cells.size(); ++i) sums[i % n_targets] += cells[i];
        return sums;
    }
};

using Strata = std::vector<ContingencyTable>;

// Twice the midranks of levels with so many rows.
inline std::vector<std::int64_t> double_midranks(const std::vector<std::int64_t> &counts) {
    std::vector<std::int64_t> ranks(counts.size());
    std::int64_t below = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) ranks[i] = 2 * below + counts[i] + 1, below += counts[i];
    return ranks;
}

// Scores from 0 to ``most`` on a grid of so many steps.
inline std::int64_t on_grid(std::int64_t score, std::int64_t most, std::int64_t grid) {
    return (2 * score * grid + most) / (2 * most);
}

// The fewest steps whose grid has every score nearby, if not COARSE_GRID: nearly even scores become even.
inline std::int64_t coarse_grid(const std::vector<std::int64_t> &scores, std::int64_t most) {
    for (std::int64_t grid = 1; grid < COARSE_GRID; ++grid)
        if (std::all_of(scores.begin(), scores.end(), [&](std::int64_t s) {
                return std::abs(s * grid - on_grid(s, most, grid) * most) * NEARBY <= most * grid;
            }))
            return grid;
    return COARSE_GRID;
}

// Ascending scores in the smallest whole numbers that keep their proportions, or on a grid where those are larger;
// in strata on one grid for all, by the rows and one (van Elteren). Those of ``n`` rows are at most twice ``n``.
inline std::vector<std::int64_t> grid_scores(std::vector<std::int64_t> scores, std::int64_t n, bool in_strata) {
    if (in_strata) {
        for (std::int64_t &s : scores) s = (s * GRID + (n + 1)) / (2 * (n + 1));
        return scores;
    }
    const std::int64_t least = scores[0], most = scores.back() - least;
    std::int64_t common = 0;
    for (std::int64_t &s : scores) common = std::gcd(common, s -= least);
    const bool coarse = n > COARSE_ROWS && scores.size() <= COARSE_LEVELS;
    std::int64_t grid = most / std::max<std::int64_t>(common, 1); // keeps proportions
    if (coarse) grid = std::min(grid, coarse_grid(scores, most));
    grid = std::min(grid, GRID);
    for (std::int64_t &s : scores) s = on_grid(s, std::max<std::int64_t>(most, 1), grid);
    return scores;
}

// Scores by midranks.
inline std::vector<std::int64_t> rank_scores(const std::vector<std::int64_t> &counts, bool in_strata) {
    const std::int64_t n = std::accumulate(counts.begin(), counts.end(), std::int64_t(0));
    return grid_scores(double_midranks(counts), n, in_strata);
}

// Levels with no rows taken out; where ``most`` (0: any number) are exceeded neighbours by rank are put together, the
// mean of their scores rounded.
inline ContingencyTable compact(const ContingencyTable &table, std::size_t most) {
    const std::vector<std::int64_t> levels = table.levels(), targets = table.targets();
    const std::int64_t n = std::accumulate(levels.begin(), levels.end(), std::int64_t(0));
    const std::size_t n_present =
        static_cast<std::size_t>(std::count_if(levels.begin(), levels.end(), [](std::int64_t c) { return c > 0; }));
    ContingencyTable out;
    for (std::size_t y = 0; y < targets.size(); ++y) {
        if (!targets[y]) continue;
        ++out.n_targets;
        if (!table.target_scores.empty()) out.target_scores.push_back(table.target_scores[y]);
    }
    const bool all = most == 0 || n_present <= most;
    std::int64_t below = 0, bin = -1, rows = 0, sum = 0;
    for (std::size_t l = 0; l < levels.size(); ++l) {
        if (!levels[l]) continue;
        const std::int64_t own = all ? 0 : (2 * below + levels[l]) * static_cast<std::int64_t>(most) / (2 * n);
        below += levels[l];
        if (all || own != bin) {
            out.cells.resize(out.cells.size() + out.n_targets, 0);
            ++out.n_levels, rows = sum = 0;
        }
        bin = own;
        if (!table.scores.empty()) {
            rows += levels[l], sum += levels[l] * table.scores[l];
            out.scores.resize(out.n_levels);
            out.scores.back() = (2 * sum + rows) / (2 * rows);
        }
        std::int32_t *to = out.cells.data() + (out.n_levels - 1) * out.n_targets;
        for (std::size_t y = 0; y < table.n_targets; ++y)
            if (targets[y]) *to++ += static_cast<std::int32_t>(table.at(l, y));
    }
    return out;
}

// How much of the rows the most common level must have for a fourth, or an eighth, of the rows to be the unit.
inline std::int64_t units_beside_common(std::int64_t most, std::int64_t n) {
    return 4 * most >= 3 * n ? 4 : 2 * most >= n ? 8 : 0;
}

// Scores of a column, or of a target with levels. Where one level has half of the rows ranks tell little of the
// others but on which side of it they are: they are rounded, counted from it.
inline std::vector<std::int64_t> level_scores(const std::vector<std::int64_t> &counts, bool in_strata) {
    const std::int64_t n = std::accumulate(counts.begin(), counts.end(), std::int64_t(0));
    const std::size_t common = static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    const std::int64_t units = units_beside_common(counts[common], n);
    if (!units) return rank_scores(counts, in_strata);
    std::vector<std::int64_t> scores = double_midranks(counts);
    const std::int64_t from = scores[common], step = in_strata ? GRID / units : 1;
    for (std::int64_t &s : scores) {
        const std::int64_t rounded = (std::abs(s - from) * units + n) / (2 * n);
        s = step * (units + (s < from ? -rounded : rounded));
    }
    return scores;
}

// Levels of the same score put together.
inline ContingencyTable merged(const ContingencyTable &table, std::vector<std::int64_t> &level_scores,
                               std::vector<std::int64_t> &target_scores) {
    ContingencyTable out;
    std::vector<std::size_t> to_level, to_target;
    const auto number = [](std::vector<std::int64_t> &scores, std::vector<std::size_t> &to) {
        std::vector<std::int64_t> kept;
        for (const std::int64_t s : scores) {
            if (kept.empty() || kept.back() != s) kept.push_back(s);
            to.push_back(kept.size() - 1);
        }
        scores = kept;
    };
    number(level_scores, to_level), number(target_scores, to_target);
    out.n_levels = level_scores.size(), out.n_targets = target_scores.size();
    out.cells.assign(out.n_levels * out.n_targets, 0);
    for (std::size_t l = 0; l < table.n_levels; ++l)
        for (std::size_t y = 0; y < table.n_targets; ++y)
            out.cells[to_level[l] * out.n_targets + to_target[y]] += static_cast<std::int32_t>(table.at(l, y));
    return out;
}

// Ranks of rows by how far each is from its stratum, among all: what very small strata show together.
constexpr std::int64_t TINY_STRATUM = 10; // rows at most

// Scores of the levels of tiny strata (Hodges and Lehmann 1962, Ann. Math. Statist. 33): midranks over the whole
// column, each less the mean of its stratum, and of these the midranks over all rows of strata with two levels or more.
class AlignedRanks {
  public:
    // ``codes``: of all levels, stratum by stratum.
    void score(Strata &strata, const std::vector<std::size_t> &codes, std::size_t n_codes) {
        const std::int64_t n = align(strata, codes, n_codes);
        std::int64_t below = 0;
        for (std::int64_t &rows : rows_) {
            if (!rows) continue;
            const std::int64_t twice = 2 * below + rows + 1;
            below += rows;
            rows = (twice * GRID + (n + 1)) / (2 * (n + 1));
        }
        std::size_t at = 0;
        for (ContingencyTable &table : strata)
            for (std::int64_t &score : table.scores) score = rows_[places_[at++]];
    }

  private:
    // Counts the rows at each distance from the mean of their stratum; returns how many they are.
    std::int64_t align(Strata &strata, const std::vector<std::size_t> &codes, std::size_t n_codes) {
        const std::int64_t most = 2 * rank_codes(strata, codes, n_codes);
        rows_.assign(static_cast<std::size_t>(2 * most + 1), 0), places_.clear();
        std::int64_t n_ranked = 0;
        std::size_t at = 0;
        for (ContingencyTable &table : strata) {
            std::int64_t n = 0, sum = 0;
            for (std::size_t l = 0; l < table.n_levels; ++l)
                n += counts_[at + l], sum += counts_[at + l] * ranks_[codes[at + l]];
            const bool is_ranked = table.n_levels > 1;
            n_ranked += is_ranked ? n : 0;
            table.scores.resize(table.n_levels);
            for (std::size_t l = 0; l < table.n_levels; ++l, ++at) {
                const std::int64_t distance = (n * ranks_[codes[at]] - sum) / n; // rounded to 0: alike on both sides
                places_.push_back(static_cast<std::size_t>(most + distance));
                rows_[places_.back()] += is_ranked ? counts_[at] : 0;
            }
        }
        return n_ranked;
    }
    std::int64_t rank_codes(const Strata &strata, const std::vector<std::size_t> &codes, std::size_t n_codes) {
        ranks_.assign(n_codes, 0), counts_.clear();
        std::int64_t n = 0;
        for (const ContingencyTable &table : strata)
            for (std::size_t l = 0; l < table.n_levels; ++l) {
                std::int64_t count = 0;
                for (std::size_t y = 0; y < table.n_targets; ++y) count += table.at(l, y);
                ranks_[codes[counts_.size()]] += count;
                counts_.push_back(count), n += count;
            }
        std::int64_t below = 0;
        for (std::int64_t &rows : ranks_) {
            const std::int64_t count = rows;
            rows = 2 * below + count + 1, below += count;
        }
        return n;
    }

    std::vector<std::int64_t> ranks_, rows_, counts_; // by code; by distance; by level
    std::vector<std::size_t> places_;                 // of levels in ``rows_``
};

} // namespace srs
