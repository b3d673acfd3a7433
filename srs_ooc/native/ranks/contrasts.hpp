// What a column can show: location, spread, and what is missing; and asymptotic tests of each, by the normal and chi-squared
// approximations.
#pragma once
#include "ranks/math.hpp"
#include "ranks/table.hpp"

#include <cmath>

namespace srs {

enum Contrast : std::size_t { LOCATION, SPREAD, ABSENCE, N_CONTRASTS };

// Whether distances from the middle show anything else than the order of the levels does. They do not where there are
// two levels, or all others are on one side of the nearest one.
inline bool has_spread(std::size_t n_levels, std::size_t nearest, bool even) {
    return n_levels > 2 && (even || (nearest > 0 && nearest + 1 < n_levels));
}

// Levels by how far their midranks are from the middle of the rows, nearest first, equal ones put together, with that
// for a score: Ansari and Bradley's, turned round. False where these show nothing else than the order of the levels.
inline bool fold(const ContingencyTable &table, bool in_strata, ContingencyTable &out) {
    const std::size_t n_levels = table.n_levels, n_targets = table.n_targets;
    if (n_levels < 3) return false;
    const std::vector<std::int64_t> counts = table.levels();
    const std::int64_t n = std::accumulate(counts.begin(), counts.end(), std::int64_t(0));
    std::vector<std::int64_t> distances = double_midranks(counts);
    std::size_t above = 0; // the first level beyond the middle; ``below``: one past the last before it
    while (distances[above] <= n + 1) ++above;
    for (std::int64_t &d : distances) d = 2 * std::abs(d - (n + 1));
    std::size_t below = above;
    const bool even = distances[below - 1] == distances[above];
    if (!has_spread(n_levels, distances[below - 1] < distances[above] ? below - 1 : above, even)) return false;
    out.n_targets = n_targets, out.n_levels = 0, out.target_scores = table.target_scores;
    out.cells.reserve(n_levels * n_targets);
    while (below > 0 || above < n_levels) {
        const bool takes_below = above == n_levels || (below > 0 && distances[below - 1] <= distances[above]);
        const std::size_t level = takes_below ? --below : above++;
        const std::int32_t *own = table.cells.data() + level * n_targets;
        if (out.scores.empty() || out.scores.back() != distances[level]) {
            out.scores.push_back(distances[level]), ++out.n_levels;
            out.cells.insert(out.cells.end(), own, own + n_targets);
            continue;
        }
        std::int32_t *to = out.cells.data() + (out.n_levels - 1) * n_targets;
        for (std::size_t y = 0; y < n_targets; ++y) to[y] += own[y];
    }
    out.scores = grid_scores(std::move(out.scores), n, in_strata);
    return true;
}

// Rows with a value and rows without, by stratum; ``absent`` [stratum][target].
inline Strata by_absence(const Strata &strata, const std::vector<std::int32_t> &absent) {
    Strata out;
    for (std::size_t h = 0; h < strata.size(); ++h) {
        if (!strata[h].n_levels) continue;
        const std::size_t n_targets = strata[h].n_targets;
        const std::int32_t *own = absent.data() + h * n_targets;
        if (std::none_of(own, own + n_targets, [](std::int32_t rows) { return rows > 0; })) continue;
        ContingencyTable two{2, n_targets, std::vector<std::int32_t>(2 * n_targets, 0), {}, strata[h].target_scores};
        for (std::size_t i = 0; i < strata[h].cells.size(); ++i) two.cells[i % n_targets] += strata[h].cells[i];
        std::copy(own, own + n_targets, two.cells.begin() + static_cast<std::ptrdiff_t>(n_targets));
        out.push_back(std::move(two));
    }
    return out;
}

// One contrast: sums of scores by class, or of products of scores, less their means, and their variances.
struct Asymptotic {
    std::vector<double> sums, variances;
    bool is_there = false; // by the column's margins alone
    double log_p = 0;
    int n_present = 0;        // classes
    std::size_t farthest = 0; // the class that differs most from the rest
    double one = 0;           // the logarithm of its p-value

    explicit Asymptotic(std::size_t n_sums) : sums(n_sums, 0.0), variances(n_sums, 0.0) {}
    // ``shrink``: of the sums, where something was fitted to the rows.
    void finish(bool nominal, const std::vector<double> &drawn, double n_rows, double shrink) {
        double statistic = 0, most = 0;
        for (std::size_t k = 0; k < sums.size(); ++k) {
            n_present += nominal && drawn[k] > 0;
            if (!(variances[k] > 1e-14)) continue;
            const double share = nominal && sums.size() > 2 ? 1 - drawn[k] / std::max(n_rows, 1.0) : nominal ? 0.5 : 1;
            const double squared = sums[k] * sums[k] / variances[k];
            statistic += share * squared;
            if (squared > most) most = squared, farthest = k;
        }
        log_p = log_chi_squared(statistic * shrink * shrink, nominal ? n_present - 1 : 1);
        if (n_present > 2) one = log_chi_squared(most * shrink * shrink, 1);
    }
    double log_p_of(bool one_against_rest) const { return one_against_rest && n_present > 2 ? shared(log_p, one) : log_p; }
    // Of all classes together and of one against the rest, which was chosen among all (Bonferroni's inequality).
    double shared(double joint, double of_one) const {
        return log_of_two(joint, std::min(0.0, of_one + own_log(double(n_present))));
    }
};

class AsymptoticScreen {
  public:
    // ``with_spread``: of location and of spread, from one reading of the table.
    AsymptoticScreen(const Strata &strata, bool nominal, std::size_t n_targets, bool with_spread, double shrink = 1)
        : location(nominal ? n_targets : 1), spread(with_spread ? location.sums.size() : 0), drawn_(n_targets, 0.0),
          at_(n_targets), by_rank_(n_targets), by_distance_(n_targets) {
        for (const ContingencyTable &table : strata) {
            if (n_targets == 2) add<2>(table, nominal, with_spread);
            else add<0>(table, nominal, with_spread);
        }
        finish(nominal, shrink);
    }
    Asymptotic location, spread;
    double fewest = 0; // rows outside the most common level, or of the smallest class
    double n_rows = 0, commonest = 0;

  private:
    // Sums over the levels of a stratum; ``N`` targets, 0: any number.
    template <std::size_t N> void add(const ContingencyTable &table, bool nominal, bool with_spread) {
        const std::size_t n_targets = N ? N : table.n_targets;
        const bool by_rank = table.scores.empty();
        std::int64_t n_here = 0;
        for (const std::int32_t cell : table.cells) n_here += cell;
        if (n_here < 2) return;
        const double n = double(n_here), middle = 0.5 * (n + 1);
        double at[N + 1] = {}, rank_sums[N + 1] = {}, distance_sums[N + 1] = {};
        double *at_target = N ? at : at_.data(), *by_target = N ? rank_sums : by_rank_.data();
        double *by_distance = N ? distance_sums : by_distance_.data();
        for (std::size_t y = 0; y < n_targets; ++y) at_target[y] = by_target[y] = by_distance[y] = 0;
        double below = 0, common = 0, sum = 0, square = 0, distances = 0, squares = 0, nearest_by = n;
        std::size_t nearest = 0;
        bool even = false;
        for (std::size_t l = 0; l < table.n_levels; ++l) {
            const std::int32_t *cells = table.cells.data() + l * n_targets;
            std::int32_t rows = 0;
            for (std::size_t y = 0; y < n_targets; ++y) rows += cells[y];
            const double count = rows, rank = by_rank ? below + 0.5 * (count + 1) : double(table.scores[l]);
            const double distance = std::fabs(rank - middle);
            below += count, common = std::max(common, count);
            sum += count * rank, square += count * rank * rank;
            distances += count * distance, squares += count * distance * distance;
            even = distance < nearest_by ? false : even || distance == nearest_by;
            if (distance < nearest_by) nearest_by = distance, nearest = l;
            for (std::size_t y = 0; y < n_targets; ++y) {
                const double cell = cells[y];
                at_target[y] += cell, by_target[y] += cell * rank, by_distance[y] += cell * distance;
            }
        }
        location.is_there |= table.n_levels > 1;
        n_rows += n, others_ += n - common, commonest += common;
        for (std::size_t y = 0; y < n_targets; ++y) drawn_[y] += at_target[y];
        const double own = 1 / (n + 1), mean = by_rank ? middle : sum / n;
        const std::int64_t *scores = table.target_scores.empty() ? nullptr : table.target_scores.data();
        add_to(location, by_target, at_target, nominal, n, mean, square - n * mean * mean, by_rank ? own : 1, scores);
        if (!with_spread || !has_spread(table.n_levels, nearest, even)) return;
        const double nearness = distances / n;
        spread.is_there = true;
        add_to(spread, by_distance, at_target, nominal, n, nearness, squares - n * nearness * nearness, own, scores);
    }

    // ``variation``: of the scores, whose sums by target are ``by_target``; ``weight``: of each in this stratum;
    // ``scores``: of levels of the target, where these are not ranked here.
    void add_to(Asymptotic &to, const double *by_target, const double *at_target, bool nominal, double n, double mean,
                double variation, double weight, const std::int64_t *scores) const {
        const std::size_t n_targets = drawn_.size();
        if (nominal) {
            for (std::size_t y = 0; y < n_targets; ++y) {
                to.sums[y] += (by_target[y] - at_target[y] * mean) * weight;
                to.variances[y] += variation * at_target[y] * (n - at_target[y]) / (n * (n - 1)) * weight * weight;
            }
            return;
        }
        const double own = scores ? 1 : 1 / (n + 1);
        double middle = 0.5 * (n + 1), below = 0, sum = 0, squares = 0;
        if (scores) {
            middle = 0;
            for (std::size_t y = 0; y < n_targets; ++y) middle += at_target[y] * double(scores[y]) / n;
        }
        for (std::size_t y = 0; y < n_targets; ++y) {
            const double score = (scores ? double(scores[y]) : below + 0.5 * (at_target[y] + 1)) - middle;
            below += at_target[y];
            sum += by_target[y] * score, squares += at_target[y] * score * score;
        }
        to.sums[0] += sum * weight * own;
        to.variances[0] += variation * squares / (n - 1) * weight * weight * own * own;
    }

    void finish(bool nominal, double shrink) {
        fewest = others_;
        double most = 0;
        for (const double rows : drawn_) {
            most = std::max(most, rows);
            if (nominal && rows > 0) fewest = std::min(fewest, rows);
        }
        if (!nominal) fewest = std::min(fewest, n_rows - most);
        location.finish(nominal, drawn_, n_rows, shrink);
        if (!spread.sums.empty()) spread.finish(nominal, drawn_, n_rows, shrink);
    }

    std::vector<double> drawn_, at_, by_rank_, by_distance_;
    double others_ = 0;
};

constexpr double THICK = 25; // rows
// Logarithms of p-values beyond which the test itself is made: 0.32; 0.045; where nothing is common 0.01, and
// where that goes for the levels of a target as well 0.0027. Of
// numbers against categories 0.06, where no value has half of the rows: sums of few such ranks have light tails.
constexpr double THIN_GATE = -1.15, THICK_GATE = -3.1, FINE_GATE = -4.6, FINEST_GATE = -5.9, LIGHT_GATE = -2.8;

inline double gate(double fewest, double commonest, double n_rows, bool nominal) {
    if (fewest < THICK) return THIN_GATE;
    if (4 * commonest > n_rows || n_rows < 4 * THICK) return THICK_GATE;
    return nominal ? FINE_GATE : FINEST_GATE;
}
inline double gate(const AsymptoticScreen &screen, bool nominal) {
    return gate(screen.fewest, screen.commonest, screen.n_rows, nominal);
}

} // namespace srs
