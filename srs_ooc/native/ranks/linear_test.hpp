// Rank tests of a column of codes against the target, given the margins and within strata.
#pragma once
#include "ranks/contrasts.hpp"
#include "ranks/joint.hpp"
#include "ranks/saddlepoint.hpp"

namespace srs {

// The part of a linear test that one stratum makes: sums of column score times target score.
struct LinearStratum {
    std::vector<std::int64_t> level_counts, level_scores, target_counts, target_scores;
    std::int64_t n_rows = 0, sum = 0;

    LinearStratum(const ContingencyTable &all, bool in_strata, bool two_classes) {
        const bool by_rank = all.scores.empty();
        if (two_classes) {
            level_scores = by_rank ? rank_scores(all.levels(), in_strata) : all.scores, target_scores = {0, 1};
        } else {
            level_scores = by_rank ? srs::level_scores(all.levels(), in_strata) : all.scores;
            target_scores = all.target_scores.empty() ? srs::level_scores(all.targets(), in_strata) : all.target_scores;
        }
        const ContingencyTable table = merged(all, level_scores, target_scores);
        level_counts = table.levels(), target_counts = table.targets();
        n_rows = std::accumulate(level_counts.begin(), level_counts.end(), std::int64_t(0));
        for (std::size_t l = 0; l < table.n_levels; ++l)
            for (std::size_t y = 0; y < table.n_targets; ++y)
                sum += table.at(l, y) * level_scores[l] * target_scores[y];
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

constexpr std::size_t MAX_LEVELS = 32;      // of a column, beside a target with more than two levels
constexpr double EXACT_COST = 4e6, STRATUM_COST = 3e5, CASE_COST = 2000; // multiplications
constexpr double PART_COST = 2e4; // of one of many tests that are joined: about what a saddlepoint takes
constexpr double SMALL_STRATUM = 40;         // rows
constexpr double LUMPY = 8;

// The logarithm of P(|S - E S| >= what it is) of a linear test.
class LinearTest {
  public:
    // ``shrink``: of what the sum differs by from its mean, where something was fitted to the rows; ``most``: what an exact
    // distribution may cost.
    LinearTest(const LogFactorials &log_factorial, std::vector<LinearStratum> strata, double shrink, double most)
        : log_factorial_(log_factorial), strata_(std::move(strata)), most_cost_(most) {
        for (const LinearStratum &stratum : strata_) {
            mean_ += stratum.mean(), variance_ += stratum.variance(), sum_ += double(stratum.sum);
            span_ = std::gcd(span_, stratum.span());
        }
        if (shrink < 1) sum_ = mean_ + shrink * (sum_ - mean_);
    }

    double log_p() const {
        if (!(variance_ > 0)) return 0;
        double log_p = NEVER;
        if (strata_.size() == 1 && strata_[0].is_urn()) log_p = of_urn();
        else if (strata_.size() == 1) log_p = of_products();
        else if (all_known()) log_p = of_known();
        return log_p > NEVER ? log_p : saddlepoint();
    }

    double saddlepoint() const {
        const double sd = std::sqrt(variance_), distance = std::fabs(sum_ - mean_), span = double(span_);
        const double other = std::ceil((2 * distance - 1e-6) / span) * span - distance; // on the other side
        const double up = sum_ > mean_ ? distance : other, down = sum_ > mean_ ? other : distance;
        const double log_p = log_sum(log_upper_tail(law(sd), up / sd), log_upper_tail(law(-sd), down / sd));
        // Few levels on both sides and few rows: so much too small it may be, by comparison with exact ones.
        const bool lumpy = strata_.size() == 1 && !strata_[0].is_urn() && strata_[0].lumps() > span_;
        return std::min(0.0, lumpy ? log_p + own_log(1 + LUMPY / double(strata_[0].n_rows)) : log_p);
    }

  private:
    static double unless_lost(double log_p) { return log_p > -600 ? log_p : NEVER; } // to underflow
    double of_urn() const {
        std::int64_t constant;
        const Urn urn = strata_[0].urn(constant);
        const Extreme extreme = Extreme::of(urn.mean(), (sum_ - double(constant)) / double(span_));
        if (urn.counts.size() == 2) return log_p_two_levels(log_factorial_, urn, extreme);
        Enumeration enumeration(log_factorial_, urn);
        const double cases = CASE_COST * enumeration.n_cases(), cost = pmf_cost(urn);
        if (cases < cost && cases <= most_cost_) return enumeration.log_p(extreme);
        if (cost <= most_cost_) return unless_lost(log_p_of(kept_pmf(log_factorial_, urn), extreme));
        return NEVER;
    }
    double of_products() const {
        const LinearStratum &one = strata_[0];
        if (one.level_counts.size() > COARSE_LEVELS || one.target_counts.size() > COARSE_LEVELS) return NEVER;
        const bool by_target = one.target_counts.size() <= one.level_counts.size();
        ProductSums sums = by_target
            ? ProductSums(one.level_counts, one.level_scores, one.target_counts, one.target_scores, span_)
            : ProductSums(one.target_counts, one.target_scores, one.level_counts, one.level_scores, span_);
        if (sums.cost() > most_cost_) return NEVER;
        return sums.log_p(log_factorial_, std::fabs(sum_ - mean_) / double(span_));
    }
    bool all_known() const {
        double cost = 0, width = 1;
        for (const LinearStratum &stratum : strata_) {
            if (!stratum.is_urn()) return false;
            std::int64_t constant;
            const Urn urn = stratum.urn(constant);
            const double points = double(urn.scores.back()) * double(std::min(urn.n_drawn, urn.n_rows - urn.n_drawn));
            cost += pmf_cost(urn) + width * points;
            width += points * double(stratum.span() / span_);
            if (cost > most_cost_ || width > MAX_POINTS) return false;
        }
        return true;
    }
    double of_known() const {
        Pmf pmf{0, {1.0}};
        double constants = 0;
        for (const LinearStratum &stratum : strata_) {
            std::int64_t constant;
            const Pmf &own = kept_pmf(log_factorial_, stratum.urn(constant));
            pmf = convolved(own, stratum.span() / span_, pmf);
            constants += double(constant);
        }
        const double unit = double(span_);
        return unless_lost(log_p_of(pmf, Extreme::of((mean_ - constants) / unit, (sum_ - constants) / unit)));
    }
    Law law(double unit) const {
        Law law;
        law.span = double(strata_.size() == 1 && !strata_[0].is_urn() ? strata_[0].lumps() : span_) / std::fabs(unit);
        law.dealt.reserve(strata_.size()); // it would grow to twice as much
        for (const LinearStratum &stratum : strata_) {
            if (strata_.size() > 1 && stratum.is_urn() && double(stratum.n_rows) <= SMALL_STRATUM) {
                std::int64_t constant;
                const Urn urn = stratum.urn(constant);
                if (pmf_cost(urn) <= STRATUM_COST) {
                    law.known.push_back({kept_pmf(log_factorial_, urn), urn.mean(), unit / double(stratum.span())});
                    continue;
                }
            }
            const Dealt dealt = stratum.dealt(unit);
            law.log_ways += dealt.log_ways(log_factorial_);
            law.dealt.emplace_back(dealt);
        }
        return law;
    }

    const LogFactorials &log_factorial_;
    std::vector<LinearStratum> strata_;
    const double most_cost_;
    double mean_ = 0, variance_ = 0, sum_ = 0;
    std::int64_t span_ = 0;
};

// What a contrast looks at of a stratum: its levels, or these folded; none where there is nothing to see.
inline ContingencyTable seen(const ContingencyTable &table, bool in_strata, bool by_spread) {
    if (!by_spread) return table;
    ContingencyTable out;
    return fold(table, in_strata, out) ? out : ContingencyTable();
}

// The logarithm of the p-value of a linear test of crossed strata; ``by_spread``: of their levels folded, one stratum
// at a time, as there may be many.
inline double linear_log_p(const LogFactorials &log_factorial, const Strata &strata, bool in_strata,
                           bool two_classes, bool by_spread, double shrink = 1, double most_cost = EXACT_COST) {
    std::vector<LinearStratum> parts;
    parts.reserve(strata.size());
    for (const ContingencyTable &all : strata) {
        const ContingencyTable table = compact(seen(all, in_strata, by_spread), two_classes ? 0 : MAX_LEVELS);
        if (table.n_levels < 2 || table.n_targets < 2) continue;
        LinearStratum part(table, in_strata, two_classes);
        if (part.variance() > 0) parts.push_back(std::move(part));
    }
    return parts.empty() ? 0 : LinearTest(log_factorial, std::move(parts), shrink, most_cost).log_p();
}

// A class and those after it in the order: two levels of a target.
inline Strata against_later(const Strata &strata, bool in_strata, const std::vector<std::int32_t> &order, std::size_t j,
                            bool by_spread) {
    Strata parts;
    for (const ContingencyTable &whole : strata) {
        const ContingencyTable all = seen(whole, in_strata, by_spread);
        ContingencyTable part{all.n_levels, 2, std::vector<std::int32_t>(2 * all.n_levels, 0), all.scores};
        for (std::size_t l = 0; l < all.n_levels; ++l) {
            const std::int32_t *cells = all.cells.data() + l * all.n_targets;
            part.cells[2 * l + 1] = cells[order[j]];
            for (std::size_t k = j + 1; k < order.size(); ++k)
                part.cells[2 * l] += cells[order[k]];
        }
        parts.push_back(std::move(part));
    }
    return parts;
}

// Classes one after the other, each against those still to come: given what the earlier ones took the rest are
// exchangeable, so the p-values are valid one given the other; their normal scores squared are added. Classes of which
// no row is here would add a degree of freedom and nothing else.
inline double classes_log_p(const LogFactorials &log_factorial, const Strata &strata, bool in_strata,
                            const std::vector<std::int32_t> &all, bool by_spread, double shrink = 1) {
    std::vector<std::int64_t> rows(all.size(), 0);
    for (const ContingencyTable &table : strata)
        for (std::size_t i = 0; i < table.cells.size(); ++i) rows[i % table.n_targets] += table.cells[i];
    std::vector<std::int32_t> order;
    for (const std::int32_t y : all)
        if (rows[static_cast<std::size_t>(y)]) order.push_back(y);
    if (strata.size() == 1 && !by_spread && strata[0].n_levels == 2 && strata[0].scores.empty()) return joint_log_p(strata[0], order, true);
    const double cost = order.size() > 5 ? PART_COST : EXACT_COST;
    double sum = 0;
    int degrees = 0;
    for (std::size_t j = 0; j + 1 < order.size(); ++j) {
        const Strata parts = against_later(strata, in_strata, order, j, by_spread);
        const double z = normal_score(linear_log_p(log_factorial, parts, in_strata, true, false, shrink, cost));
        sum += z * z;
        ++degrees;
    }
    return degrees ? log_chi_squared(sum, degrees) : 0;
}

} // namespace srs
