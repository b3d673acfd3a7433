// The exact null distribution of sums of products of scores, where both sides have a few levels and rows.
#pragma once

#include "null_exact.hpp"

namespace srs {

// The most common level of either side is what is left over: products are counted from its scores.
class CrossedSums {
  public:
    using Whole = std::vector<std::int64_t>;
    CrossedSums(const Whole &level_counts, const Whole &level_scores, const Whole &group_counts, const Whole &group_scores,
                std::int64_t span) {
        left_levels_ = without_base(level_counts, level_scores, level_counts_, level_scores_);
        without_base(group_counts, group_scores, sizes_, group_scores_);
        std::int64_t rows = 0, dealt = 0;
        for (const std::int64_t count : level_counts_) rows += count;
        for (const std::int64_t size : sizes_) {
            dealt += size;
            strides_.push_back(n_states_);
            n_states_ *= static_cast<std::size_t>(size + 1);
        }
        for (const std::int64_t a : level_scores_)
            for (const std::int64_t w : group_scores_)
                least_ = std::min(least_, a * w / span), most_ = std::max(most_, a * w / span);
        span_ = span;
        most_rows_ = std::min(rows, dealt);
        width_ = static_cast<std::size_t>(most_rows_ * (most_ - least_) + 1);
    }

    double cost() const {
        double shares = 0;
        for (const std::int64_t count : level_counts_) {
            double own = 1;
            for (const std::int64_t size : sizes_) own *= double(std::min(size, count) + 1);
            shares += own;
        }
        const double points = double(n_states_) * double(width_);
        return points < MOST_POINTS ? shares * points : std::numeric_limits<double>::infinity();
    }

    // log P(|S - mean| >= distance); S counted from the scores of the most common levels, in spans.
    double log_p(const LogFactorials &log_factorial, double distance) {
        weights_.assign(n_states_ * width_, 0.0);
        weights_[static_cast<std::size_t>(-most_rows_ * least_)] = 1;
        for (std::size_t l = 0; l < level_counts_.size(); ++l) {
            after_.assign(weights_.size(), 0.0);
            deal(l, 0, level_counts_[l], 0, 0, 1.0);
            weights_.swap(after_);
        }
        return read(log_factorial, distance);
    }

  private:
    static std::int64_t without_base(const Whole &counts, const Whole &scores, Whole &kept, Whole &kept_scores) {
        const std::size_t base = static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
        for (std::size_t i = 0; i < counts.size(); ++i)
            if (i != base) kept.push_back(counts[i]), kept_scores.push_back(scores[i] - scores[base]);
        return counts[base];
    }
    // All ways to deal ``left`` rows of a level to the groups from g on.
    void deal(std::size_t l, std::size_t g, std::int64_t left, std::size_t moved, std::int64_t sum, double ways) {
        if (g == sizes_.size()) return add(moved, sum, ways);
        double own = ways;
        for (std::int64_t k = 0; k <= std::min(left, sizes_[g]); ++k) {
            if (k) own *= double(left - k + 1) / double(k);
            dealt_.push_back(k);
            deal(l, g + 1, left - k, moved + static_cast<std::size_t>(k) * strides_[g],
                 sum + k * (level_scores_[l] * group_scores_[g] / span_), own);
            dealt_.pop_back();
        }
    }
    bool has_room(std::size_t state) const {
        for (std::size_t g = 0; g < sizes_.size(); ++g)
            if (taken(state, g) + dealt_[g] > sizes_[g]) return false;
        return true;
    }
    std::int64_t taken(std::size_t state, std::size_t g) const {
        return static_cast<std::int64_t>(state / strides_[g]) % (sizes_[g] + 1);
    }
    void add(std::size_t moved, std::int64_t sum, double ways) {
        for (std::size_t state = 0; state + moved < n_states_; ++state) {
            if (!has_room(state)) continue;
            const double *from = weights_.data() + state * width_;
            double *to = after_.data() + (state + moved) * width_;
            const std::int64_t width = static_cast<std::int64_t>(width_);
            for (std::int64_t s = std::max<std::int64_t>(0, -sum); s < width - std::max<std::int64_t>(0, sum); ++s)
                to[s + sum] += ways * from[s];
        }
    }
    double read(const LogFactorials &log_factorial, double distance) const {
        std::vector<double> law(width_, 0.0);
        for (std::size_t state = 0; state < n_states_; ++state) {
            std::int64_t left = left_levels_;
            double log_ways = log_factorial[left_levels_];
            for (std::size_t g = 0; g < sizes_.size(); ++g) {
                const std::int64_t wanted = sizes_[g] - taken(state, g);
                left -= wanted, log_ways -= log_factorial[wanted];
            }
            if (left < 0) continue;
            const double ways = own_exp(log_ways - log_factorial[left]);
            for (std::size_t s = 0; s < width_; ++s) law[s] += ways * weights_[state * width_ + s];
        }
        double total = 0, first = 0, far = 0;
        for (std::size_t s = 0; s < width_; ++s) total += law[s], first += law[s] * double(s);
        const Extreme extreme = {first / total, distance - 1e-7 * (1 + distance)};
        for (std::size_t s = 0; s < width_; ++s)
            if (extreme.has(double(s))) far += law[s];
        return std::min(0.0, own_log(far / total));
    }

    Whole level_counts_, level_scores_, sizes_, group_scores_, dealt_;
    std::vector<std::size_t> strides_;
    std::vector<double> weights_, after_;
    std::int64_t left_levels_ = 0, least_ = 0, most_ = 0, most_rows_ = 0, span_ = 1;
    std::size_t n_states_ = 1, width_ = 1;
};

} // namespace srs
