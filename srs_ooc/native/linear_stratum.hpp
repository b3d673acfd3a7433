// What one stratum adds to a linear test, as an urn or as rows dealt to groups.
#pragma once

#include "null_crossed.hpp"
#include "null_saddlepoint.hpp"
#include "rank_scores.hpp"

namespace srs {

// The part of a linear test that one stratum makes: sums of column score times target score.
struct LinearStratum {
    std::vector<std::int64_t> level_counts, level_scores, target_counts, target_scores;
    std::int64_t n_rows = 0, sum = 0;

    LinearStratum(const Crossed &all, bool in_strata, bool two_classes) {
        const bool by_rank = all.scores.empty();
        if (two_classes) {
            level_scores = by_rank ? rank_scores(all.levels(), in_strata) : all.scores, target_scores = {0, 1};
        } else {
            level_scores = by_rank ? srs::level_scores(all.levels(), in_strata) : all.scores;
            target_scores = srs::level_scores(all.targets(), in_strata);
        }
        const Crossed crossed = merged(all, level_scores, target_scores);
        level_counts = crossed.levels(), target_counts = crossed.targets();
        n_rows = std::accumulate(level_counts.begin(), level_counts.end(), std::int64_t(0));
        for (std::size_t l = 0; l < crossed.n_levels; ++l)
            for (std::size_t y = 0; y < crossed.n_targets; ++y)
                sum += crossed.at(l, y) * level_scores[l] * target_scores[y];
    }
    double mean() const { return dot(level_counts, level_scores) * dot(target_counts, target_scores) / double(n_rows); }
    double variance() const {
        return spread(level_counts, level_scores) * spread(target_counts, target_scores) / double(n_rows - 1);
    }
    std::int64_t span() const { // of the lattice of its sums
        return differences(level_scores) * differences(target_scores);
    }
    // Steps in which its sums come in lumps: between neighbours where levels are few on both sides.
    std::int64_t lumps() const {
        return std::max(span(), smallest_step(level_scores) * smallest_step(target_scores));
    }
    bool is_urn() const { return level_counts.size() == 2 || target_counts.size() == 2; }
    // Two levels on one side: rows of one are drawn, of which the other side has the scores. The sum is
    // ``constant`` and ``span()`` times the urn's.
    Urn urn(std::int64_t &constant) const {
        const bool by_target = target_counts.size() == 2;
        const std::vector<std::int64_t> &drawn = by_target ? target_scores : level_scores;
        const std::vector<std::int64_t> &counts = by_target ? target_counts : level_counts;
        Urn urn{by_target ? level_counts : target_counts, by_target ? level_scores : target_scores, n_rows, counts[1]};
        const std::int64_t step = drawn[1] - drawn[0], unit = span();
        constant = drawn[0] * urn.total() + step * urn.scores[0] * urn.n_drawn;
        const std::int64_t least = urn.scores[0];
        for (std::int64_t &s : urn.scores) s = (s - least) * step / unit;
        return urn;
    }
    Dealt dealt(double unit) const {
        const bool by_target = target_counts.size() <= level_counts.size();
        const std::vector<std::int64_t> &sizes = by_target ? target_counts : level_counts;
        const std::vector<std::int64_t> &weights = by_target ? target_scores : level_scores;
        const std::vector<std::int64_t> &counts = by_target ? level_counts : target_counts;
        const std::vector<std::int64_t> &scores = by_target ? level_scores : target_scores;
        Dealt dealt;
        const double mean = dot(counts, scores) / double(n_rows);
        for (std::size_t i = 0; i < counts.size(); ++i) {
            dealt.counts.push_back(double(counts[i]));
            dealt.scores.push_back((double(scores[i]) - mean) / unit);
        }
        for (std::size_t g = 0; g < sizes.size(); ++g) {
            dealt.sizes.push_back(double(sizes[g]));
            dealt.weights.push_back(double(weights[g] - weights[0]));
        }
        dealt.n_rows = double(n_rows);
        return dealt;
    }

  private:
    using Whole = std::vector<std::int64_t>;
    static double dot(const Whole &counts, const Whole &scores) {
        double sum = 0;
        for (std::size_t i = 0; i < counts.size(); ++i) sum += double(counts[i]) * double(scores[i]);
        return sum;
    }
    double spread(const Whole &counts, const Whole &scores) const {
        const double mean = dot(counts, scores) / double(n_rows);
        double sum = 0;
        for (std::size_t i = 0; i < counts.size(); ++i)
            sum += double(counts[i]) * (double(scores[i]) - mean) * (double(scores[i]) - mean);
        return sum;
    }
    static std::int64_t smallest_step(const Whole &scores) {
        if (scores.size() > COARSE_LEVELS) return 0;
        std::int64_t step = scores[1] - scores[0];
        for (std::size_t i = 2; i < scores.size(); ++i) step = std::min(step, scores[i] - scores[i - 1]);
        return step;
    }
    static std::int64_t differences(const Whole &scores) {
        std::int64_t common = 0;
        for (const std::int64_t s : scores) common = std::gcd(common, s - scores[0]);
        return common;
    }
};

} // namespace srs
