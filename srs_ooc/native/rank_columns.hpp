// Rank tests of whole blocks of columns: a cheap look at each, the test itself where that shows anything.
#pragma once

#include "rank_tests.hpp"

namespace srs {

// The target's side of the tests: rows by stratum, and what each has for a target.
struct Target {
    const std::int32_t *rows, *targets; // in the order of strata; targets are classes, or levels
    const std::int64_t *starts;         // of strata
    std::size_t n_strata, n_targets;
    bool nominal;                    // classes rather than levels
    std::vector<std::int32_t> order; // of classes: each is compared with those after it
    bool two_classes() const { return nominal && n_targets == 2; }
};

// A column and the target crossed, by stratum; memory is used again.
template <class Code> class Crossing {
  public:
    explicit Crossing(const Target &target, std::size_t n_codes) : target_(target), slots_(n_codes, 0), strata(target.n_strata) {}

    void cross(const Code *column) {
        for (std::size_t h = 0; h < target_.n_strata; ++h) cross_one(column, target_.starts[h], target_.starts[h + 1], strata[h]);
    }

  private:
    // Only levels there are: most columns have few.
    void cross_one(const Code *column, std::int64_t from, std::int64_t to, Crossed &out) {
        const std::size_t n_codes = slots_.size(), n_targets = target_.n_targets;
        out.n_targets = n_targets, out.n_levels = 0;
        if (static_cast<std::size_t>(to - from) < n_codes / 4) find_sorted(column, from, to);
        else find_counted(column, from, to);
        for (const std::size_t code : present_) slots_[code] = n_targets * out.n_levels++;
        out.cells.assign(out.n_levels * n_targets, 0);
        for (std::int64_t i = from; i < to; ++i) {
            const std::size_t code = column[target_.rows[i]];
            if (code < n_codes) ++out.cells[slots_[code] + static_cast<std::size_t>(target_.targets[i])];
        }
        for (const std::size_t code : present_) slots_[code] = 0;
    }
    void find_sorted(const Code *column, std::int64_t from, std::int64_t to) {
        present_.clear();
        for (std::int64_t i = from; i < to; ++i) {
            const std::size_t code = column[target_.rows[i]];
            if (code < slots_.size() && !slots_[code]) slots_[code] = 1, present_.push_back(code);
        }
        std::sort(present_.begin(), present_.end());
    }
    void find_counted(const Code *column, std::int64_t from, std::int64_t to) {
        std::vector<char> &seen = seen_;
        seen.assign(slots_.size() + 1, 0);
        for (std::int64_t i = from; i < to; ++i)
            seen[std::min<std::size_t>(column[target_.rows[i]], slots_.size())] = 1;
        present_.clear();
        for (std::size_t code = 0; code < slots_.size(); ++code)
            if (seen[code]) present_.push_back(code);
    }

    const Target &target_;
    std::vector<std::size_t> slots_, present_;
    std::vector<char> seen_;

  public:
    std::vector<Crossed> strata;
};

// The tests of the normal and chi-squared approximations, and whether the margins are thick enough for them.
class CheapLook {
  public:
    CheapLook(const std::vector<Crossed> &strata, bool nominal, std::size_t n_targets) {
        sums_.assign(nominal ? n_targets : 1, 0.0), variances_ = sums_, drawn_.assign(n_targets, 0.0);
        for (const Crossed &crossed : strata) add(crossed, nominal);
        finish(nominal);
    }
    double log_p = 0, fewest = 0; // ``fewest``: rows outside the most common level, or of the smallest class
    double n_rows = 0, commonest = 0;

  private:
    void add(const Crossed &crossed, bool nominal) {
        by_target_.assign(crossed.n_targets, 0.0), at_target_.assign(crossed.n_targets, 0.0);
        double *by_target = by_target_.data(), *at_target = at_target_.data();
        double n = 0, common = 0, square = 0;
        for (std::size_t l = 0; l < crossed.n_levels; ++l) {
            const std::int32_t *cells = crossed.cells.data() + l * crossed.n_targets;
            std::int32_t rows = 0;
            for (std::size_t y = 0; y < crossed.n_targets; ++y) rows += cells[y];
            const double count = rows;
            if (count == 0) continue;
            const double rank = n + 0.5 * (count + 1);
            n += count, common = std::max(common, count), square += count * rank * rank;
            for (std::size_t y = 0; y < crossed.n_targets; ++y) {
                by_target[y] += double(cells[y]) * rank;
                at_target[y] += double(cells[y]);
            }
        }
        if (n < 2) return;
        const double mean = 0.5 * (n + 1), spread = square - n * mean * mean, weight = 1 / (n + 1);
        n_rows += n, others_ += n - common, commonest += common;
        for (std::size_t y = 0; y < crossed.n_targets; ++y) drawn_[y] += at_target_[y];
        if (nominal) {
            for (std::size_t y = 0; y < crossed.n_targets; ++y) {
                sums_[y] += (by_target_[y] - at_target_[y] * mean) * weight;
                variances_[y] += spread * at_target_[y] * (n - at_target_[y]) / (n * (n - 1)) * weight * weight;
            }
            return;
        }
        double below = 0, sum = 0, squares = 0;
        for (std::size_t y = 0; y < crossed.n_targets; ++y) {
            const double score = below + 0.5 * (at_target_[y] + 1) - mean;
            below += at_target_[y];
            sum += by_target_[y] * score, squares += at_target_[y] * score * score;
        }
        sums_[0] += sum * weight * weight;
        variances_[0] += spread * squares / (n - 1) * weight * weight * weight * weight;
    }

    void finish(bool nominal) {
        fewest = others_;
        int present = 0;
        double statistic = 0, most = 0;
        for (const double rows : drawn_) most = std::max(most, rows);
        if (!nominal) fewest = std::min(fewest, n_rows - most);
        for (std::size_t k = 0; k < sums_.size(); ++k) {
            if (nominal && drawn_[k] > 0) ++present, fewest = std::min(fewest, drawn_[k]);
            const double share = nominal && sums_.size() > 2 ? 1 - drawn_[k] / std::max(n_rows, 1.0) : nominal ? 0.5 : 1;
            if (variances_[k] > 1e-14) statistic += share * sums_[k] * sums_[k] / variances_[k];
        }
        log_p = log_chi_squared(statistic, nominal ? present - 1 : 1);
    }

    std::vector<double> sums_, variances_, drawn_, by_target_, at_target_;
    double others_ = 0;
};

constexpr double THICK = 25; // rows
// Logarithms of p-values beyond which the test itself is made: 0.32; 0.045; where nothing is common 0.01, and
// where that goes for the levels of a target as well 0.0027.
constexpr double THIN_GATE = -1.15, THICK_GATE = -3.1, FINE_GATE = -4.6, FINEST_GATE = -5.9;

inline double gate(const CheapLook &look, bool nominal) {
    if (look.fewest < THICK) return THIN_GATE;
    if (4 * look.commonest > look.n_rows || look.n_rows < 4 * THICK) return THICK_GATE;
    return nominal ? FINE_GATE : FINEST_GATE;
}

// The natural logarithm of a column's p-value; ``exactly``: the test itself whatever the cheap look shows.
inline double column_log_p(const LogFactorials &log_factorial, const std::vector<Crossed> &strata, const Target &target,
                           bool exactly) {
    const CheapLook look(strata, target.nominal, target.n_targets);
    if (!(look.log_p < 0)) return 0;
    if (!exactly && look.log_p > gate(look, target.nominal)) return look.log_p;
    const bool in_strata = target.n_strata > 1;
    if (!target.nominal || target.two_classes())
        return linear_log_p(log_factorial, strata, in_strata, target.two_classes());
    return classes_log_p(log_factorial, strata, in_strata, target.order);
}

} // namespace srs
