// Ranks of rows by how far each is from its stratum, among all: what very small strata show together.
#pragma once

#include "rank_scores.hpp"

namespace srs {

constexpr std::int64_t TINY_STRATUM = 10; // rows at most

// Scores of the levels of tiny strata (Hodges and Lehmann 1962, Ann. Math. Statist. 33): midranks over the whole
// column, each less the mean of its stratum, and of these the midranks over all rows of strata with two levels or more.
class AlignedRanks {
  public:
    // ``codes``: of all levels, stratum by stratum.
    void score(std::vector<Crossed> &strata, const std::vector<std::size_t> &codes, std::size_t n_codes) {
        const std::int64_t n = align(strata, codes, n_codes);
        std::int64_t below = 0;
        for (std::int64_t &rows : rows_) {
            if (!rows) continue;
            const std::int64_t twice = 2 * below + rows + 1;
            below += rows;
            rows = (twice * GRID + (n + 1)) / (2 * (n + 1));
        }
        std::size_t at = 0;
        for (Crossed &crossed : strata)
            for (std::int64_t &score : crossed.scores) score = rows_[places_[at++]];
    }

  private:
    // Counts the rows at each distance from the mean of their stratum; returns how many they are.
    std::int64_t align(std::vector<Crossed> &strata, const std::vector<std::size_t> &codes, std::size_t n_codes) {
        const std::int64_t most = 2 * rank_codes(strata, codes, n_codes);
        rows_.assign(static_cast<std::size_t>(2 * most + 1), 0), places_.clear();
        std::int64_t n_ranked = 0;
        std::size_t at = 0;
        for (Crossed &crossed : strata) {
            std::int64_t n = 0, sum = 0;
            for (std::size_t l = 0; l < crossed.n_levels; ++l)
                n += counts_[at + l], sum += counts_[at + l] * ranks_[codes[at + l]];
            const bool is_ranked = crossed.n_levels > 1;
            n_ranked += is_ranked ? n : 0;
            crossed.scores.resize(crossed.n_levels);
            for (std::size_t l = 0; l < crossed.n_levels; ++l, ++at) {
                const std::int64_t distance = (n * ranks_[codes[at]] - sum) / n; // rounded to 0: alike on both sides
                places_.push_back(static_cast<std::size_t>(most + distance));
                rows_[places_.back()] += is_ranked ? counts_[at] : 0;
            }
        }
        return n_ranked;
    }
    std::int64_t rank_codes(const std::vector<Crossed> &strata, const std::vector<std::size_t> &codes, std::size_t n_codes) {
        ranks_.assign(n_codes, 0), counts_.clear();
        std::int64_t n = 0;
        for (const Crossed &crossed : strata)
            for (std::size_t l = 0; l < crossed.n_levels; ++l) {
                std::int64_t count = 0;
                for (std::size_t y = 0; y < crossed.n_targets; ++y) count += crossed.at(l, y);
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
