// Exact null distributions: of sums of scores drawn, and of sums of products of scores.
#pragma once
#include "ranks/math.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

namespace srs {

// Logarithms of factorials, as far as they were asked for.
class LogFactorials {
  public:
    void reach(std::int64_t n) {
        while (static_cast<std::int64_t>(values_.size()) <= n)
            values_.push_back(values_.back() + own_log(static_cast<double>(values_.size())));
    }
    double operator[](std::int64_t n) const { return values_[static_cast<std::size_t>(n)]; }
    double choose(std::int64_t n, std::int64_t k) const { return (*this)[n] - (*this)[k] - (*this)[n - k]; }

  private:
    std::vector<double> values_{0.0};
};

// Rows of distinct scores, of which some are drawn.
struct Urn {
    std::vector<std::int64_t> counts, scores; // of each level
    std::int64_t n_rows = 0, n_drawn = 0;

    std::size_t base() const { // the most common level: it is what is left over
        return static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    }
    std::int64_t total() const {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < counts.size(); ++i) sum += counts[i] * scores[i];
        return sum;
    }
    double mean() const {
        return double(total()) / double(n_rows) * double(n_drawn);
    }
};

// P(S = first + i) of each i.
struct Pmf {
    std::int64_t first = 0;
    std::vector<double> p;
    std::int64_t last() const { return first + static_cast<std::int64_t>(p.size()) - 1; }
};

// Sums of at least ``mean + distance`` or at most ``mean - distance`` are as extreme.
struct Extreme {
    double mean, distance;
    static constexpr double TOLERANCE = 1e-9;
    static Extreme of(double mean, double sum) {
        const double distance = std::fabs(sum - mean);
        return {mean, distance - TOLERANCE * (1 + distance)};
    }
    bool has(double sum) const { return std::fabs(sum - mean) >= distance; }
    std::int64_t upper() const { return static_cast<std::int64_t>(std::ceil(mean + distance)); }
    std::int64_t lower() const { return static_cast<std::int64_t>(std::floor(mean - distance)); }
};

// log P(K >= k), or P(K <= k), of ones among n_drawn of n_rows, n_ones of which are ones.
inline double log_hypergeometric_tail(const LogFactorials &log_factorial, std::int64_t n_rows, std::int64_t n_ones,
                                      std::int64_t n_drawn, std::int64_t k, bool upper) {
    const std::int64_t least = std::max<std::int64_t>(0, n_drawn + n_ones - n_rows), most = std::min(n_ones, n_drawn);
    if (upper ? k > most : k < least) return NEVER;
    if (upper ? k <= least : k >= most) return 0;
    const double mode = double(n_drawn + 1) * double(n_ones + 1) / double(n_rows + 2);
    if (upper ? double(k) <= mode : double(k) >= mode) // by the other tail, which is smaller
        return own_log(1 - own_exp(log_hypergeometric_tail(log_factorial, n_rows, n_ones, n_drawn,
                                                           upper ? k - 1 : k + 1, !upper)));
    const double start = log_factorial.choose(n_ones, k) + log_factorial.choose(n_rows - n_ones, n_drawn - k) -
                         log_factorial.choose(n_rows, n_drawn);
    const std::int64_t rest = n_rows - n_ones - n_drawn;
    double sum = 1, term = 1;
    if (upper) {
        for (std::int64_t i = k; i < most && term > 1e-18 * sum; ++i)
            sum += term *= double(n_ones - i) * double(n_drawn - i) / (double(i + 1) * double(rest + i + 1));
    } else {
        for (std::int64_t i = k; i > least && term > 1e-18 * sum; --i)
            sum += term *= double(i) * double(rest + i) / (double(n_ones - i + 1) * double(n_drawn - i + 1));
    }
    return std::min(0.0, start + own_log(sum));
}

// Two levels: the hypergeometric distribution.
inline double log_p_two_levels(const LogFactorials &log_factorial, const Urn &urn, const Extreme &extreme) {
    const std::size_t one = urn.scores[1] > urn.scores[0] ? 1 : 0;
    const double step = double(urn.scores[one] - urn.scores[1 - one]), least = double(urn.scores[1 - one] * urn.n_drawn);
    const auto tail = [&](double k, bool upper) {
        return log_hypergeometric_tail(log_factorial, urn.n_rows, urn.counts[one], urn.n_drawn,
                                       static_cast<std::int64_t>(k), upper);
    };
    const double above = tail(std::ceil((extreme.mean + extreme.distance - least) / step), true);
    const double below = tail(std::floor((extreme.mean - extreme.distance - least) / step), false);
    return std::min(0.0, log_sum(above, below));
}

// Few levels, most of them rare: all that can be drawn of the rare ones, and hypergeometric tails of the two most
// common ones beside each.
class Enumeration {
  public:
    Enumeration(const LogFactorials &log_factorial, const Urn &urn) : log_factorial_(log_factorial), urn_(urn) {
        order_.resize(urn.counts.size());
        std::iota(order_.begin(), order_.end(), std::size_t(0));
        std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return urn.counts[a] < urn.counts[b]; });
    }
    double n_cases() const {
        double cases = 1;
        for (std::size_t i = 0; i + 2 < order_.size(); ++i) cases *= double(std::min(urn_.counts[order_[i]], urn_.n_drawn) + 1);
        return cases;
    }
    double log_p(const Extreme &extreme) {
        log_p_ = NEVER;
        extreme_ = extreme;
        descend(0, urn_.n_rows, urn_.n_drawn, 0, 0);
        return std::min(0.0, log_p_);
    }

  private:
    void descend(std::size_t i, std::int64_t n_rows, std::int64_t left, double sum, double share) {
        if (share < log_p_ - 50) return; // nothing beside what is there
        if (i + 2 == order_.size()) return tails(n_rows, left, sum, share);
        const std::int64_t count = urn_.counts[order_[i]], rest = n_rows - count;
        for (std::int64_t k = std::max<std::int64_t>(0, left - rest); k <= std::min(count, left); ++k)
            descend(i + 1, rest, left - k, sum + double(k * urn_.scores[order_[i]]),
                    share + log_factorial_.choose(count, k) + log_factorial_.choose(rest, left - k) - log_factorial_.choose(n_rows, left));
    }
    void tails(std::int64_t n_rows, std::int64_t left, double sum, double share) {
        const std::size_t one = order_[order_.size() - 2], base = order_.back();
        const std::int64_t n_ones = urn_.counts[one];
        const double step = double(urn_.scores[one] - urn_.scores[base]);
        const double edge = sum + double(left * urn_.scores[base]) - extreme_.mean; // extreme: |edge + k step| >= distance
        const double x = (-extreme_.distance - edge) / step, y = (extreme_.distance - edge) / step;
        const double low = std::floor(std::min(x, y)), high = std::ceil(std::max(x, y));
        const double least = double(std::max<std::int64_t>(0, left + n_ones - n_rows)), most = double(std::min(n_ones, left));
        const auto tail = [&](double k, bool upper) {
            return log_hypergeometric_tail(log_factorial_, n_rows, n_ones, left, static_cast<std::int64_t>(k), upper);
        };
        if (low >= least) log_p_ = log_sum(log_p_, share + tail(std::min(low, most), false));
        if (high <= most) log_p_ = log_sum(log_p_, share + tail(std::max(high, least), true));
    }

    const LogFactorials &log_factorial_;
    const Urn &urn_;
    std::vector<std::size_t> order_;
    Extreme extreme_{0, 0};
    double log_p_ = NEVER;
};

constexpr double MAX_POINTS = 1 << 17; // of a distribution that is built: a megabyte

// What building a distribution level by level costs, in multiplications; it is wanted only below ``most``.
inline double pmf_cost(const Urn &urn) {
    const std::size_t base = urn.base();
    double low = 0, high = 0, steps = 0, rows = 0;
    const double drawn = double(std::min(urn.n_drawn, urn.n_rows - urn.n_drawn));
    for (std::size_t i = 0; i < urn.counts.size(); ++i) {
        if (i == base) continue;
        const double score = double(urn.scores[i] - urn.scores[base]), count = std::min(double(urn.counts[i]), drawn);
        low = std::min(low, score), high = std::max(high, score);
        rows += count;
        steps += count * std::min(rows, drawn);
    }
    return 0.5 * steps * ((high - low) * std::min(rows, drawn) + 1);
}

// The distribution, level by level: of each number drawn so far the weights of its sums.
inline Pmf exact_pmf(const LogFactorials &log_factorial, Urn urn) {
    const bool flipped = 2 * urn.n_drawn > urn.n_rows; // those left are fewer
    if (flipped) urn.n_drawn = urn.n_rows - urn.n_drawn;
    const std::size_t base = urn.base();
    std::int64_t n_other = 0, low = 0, high = 0;
    for (std::size_t i = 0; i < urn.counts.size(); ++i) {
        if (i == base) continue;
        n_other += urn.counts[i];
        low = std::min(low, urn.scores[i] - urn.scores[base]);
        high = std::max(high, urn.scores[i] - urn.scores[base]);
    }
    const std::int64_t most = std::min(urn.n_drawn, n_other);
    std::vector<std::vector<double>> weights(static_cast<std::size_t>(most + 1)); // of j drawn: sums from j low
    for (std::int64_t j = 0; j <= most; ++j)
        weights[static_cast<std::size_t>(j)].assign(static_cast<std::size_t>(j * (high - low) + 1), 0.0);
    weights[0][0] = 1;
    std::int64_t reached = 0;
    for (std::size_t i = 0; i < urn.counts.size(); ++i) {
        if (i == base) continue;
        const std::int64_t count = urn.counts[i], shift = urn.scores[i] - urn.scores[base] - low;
        for (std::int64_t j = std::min(most, reached + count); j > 0; --j) {
            double ways = 1;
            for (std::int64_t k = 1; k <= std::min(count, j); ++k) {
                ways *= double(count - k + 1) / double(k);
                if (j - k > reached) continue;
                const std::vector<double> &from = weights[static_cast<std::size_t>(j - k)];
                double *to = weights[static_cast<std::size_t>(j)].data() + k * shift;
                for (std::size_t s = 0; s < from.size(); ++s) to[s] += ways * from[s];
            }
        }
        reached = std::min(most, reached + count);
    }
    const std::int64_t offset = urn.scores[base] * urn.n_drawn + most * low;
    Pmf pmf{offset, std::vector<double>(static_cast<std::size_t>(most * (high - low) + 1), 0.0)};
    for (std::int64_t j = std::max<std::int64_t>(0, urn.n_drawn - urn.counts[base]); j <= most; ++j) {
        const double share = own_exp(log_factorial.choose(urn.counts[base], urn.n_drawn - j) -
                                     log_factorial.choose(urn.n_rows, urn.n_drawn));
        const std::vector<double> &from = weights[static_cast<std::size_t>(j)];
        double *to = pmf.p.data() + (j - most) * low;
        for (std::size_t s = 0; s < from.size(); ++s) to[s] += share * from[s];
    }
    if (flipped) {
        std::reverse(pmf.p.begin(), pmf.p.end());
        pmf.first = urn.total() - pmf.last();
    }
    return pmf;
}

// Columns often share their margins: those met last are kept, by thread.
inline const Pmf &kept_pmf(const LogFactorials &log_factorial, const Urn &urn) {
    using Key = std::tuple<std::vector<std::int64_t>, std::vector<std::int64_t>, std::int64_t>;
    constexpr std::size_t MAX_KEPT = 64, MAX_KEPT_POINTS = 1 << 16;
    thread_local std::map<Key, Pmf> kept;
    thread_local std::size_t n_points = 0;
    const Key key{urn.counts, urn.scores, urn.n_drawn};
    const auto found = kept.find(key);
    if (found != kept.end()) return found->second;
    if (kept.size() >= MAX_KEPT || n_points > MAX_KEPT_POINTS) kept.clear(), n_points = 0;
    Pmf pmf = exact_pmf(log_factorial, urn);
    n_points += pmf.p.size();
    return kept.emplace(key, std::move(pmf)).first->second;
}

// The distribution of ``stride`` times a's and b's.
inline Pmf convolved(const Pmf &a, std::int64_t stride, const Pmf &b) {
    const std::size_t by = static_cast<std::size_t>(stride);
    Pmf out{a.first * stride + b.first, std::vector<double>((a.p.size() - 1) * by + b.p.size(), 0.0)};
    for (std::size_t i = 0; i < a.p.size(); ++i)
        if (a.p[i] > 0)
            for (std::size_t j = 0; j < b.p.size(); ++j) out.p[i * by + j] += a.p[i] * b.p[j];
    return out;
}

inline double log_p_of(const Pmf &pmf, const Extreme &extreme) {
    double sum = 0;
    for (std::size_t i = 0; i < pmf.p.size(); ++i)
        if (extreme.has(double(pmf.first) + double(i))) sum += pmf.p[i];
    return std::min(0.0, own_log(sum));
}

// The most common level of either side is what is left over: products are counted from its scores.
class ProductSums {
  public:
    using Whole = std::vector<std::int64_t>;
    ProductSums(const Whole &level_counts, const Whole &level_scores, const Whole &group_counts, const Whole &group_scores,
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
        max_rows_ = std::min(rows, dealt);
        width_ = static_cast<std::size_t>(max_rows_ * (most_ - least_) + 1);
    }

    double cost() const {
        double shares = 0;
        for (const std::int64_t count : level_counts_) {
            double own = 1;
            for (const std::int64_t size : sizes_) own *= double(std::min(size, count) + 1);
            shares += own;
        }
        const double points = double(n_states_) * double(width_);
        return points < MAX_POINTS ? shares * points : std::numeric_limits<double>::infinity();
    }

    // log P(|S - mean| >= distance); S counted from the scores of the most common levels, in spans.
    double log_p(const LogFactorials &log_factorial, double distance) {
        weights_.assign(n_states_ * width_, 0.0);
        weights_[static_cast<std::size_t>(-max_rows_ * least_)] = 1;
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
    std::int64_t left_levels_ = 0, least_ = 0, most_ = 0, max_rows_ = 0, span_ = 1;
    std::size_t n_states_ = 1, width_ = 1;
};

} // namespace srs
