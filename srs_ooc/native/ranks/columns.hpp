// Rank tests of whole blocks of columns: an asymptotic screen of each, the test itself where that shows anything.
#pragma once
#include "ranks/linear_test.hpp"

#include <limits>

namespace srs {

// The target's side of the tests: rows by stratum, and what each has for a target.
struct Target {
    const std::int32_t *rows, *targets; // in the order of strata; targets are classes, or levels
    const std::int64_t *starts;         // of strata
    std::size_t n_strata, n_targets;
    bool nominal;                    // classes rather than levels
    std::vector<std::int32_t> order; // of classes: each is compared with those after it
    const std::int64_t *scores = nullptr; // of levels, ascending; else they are ranked in each stratum
    bool screened = false; // whether the asymptotic test is enough
    double shrink = 1; // of what sums differ by from their means, where something was fitted to the rows
    bool one_against_rest = true; // whether each class is tested against all others, besides all of them together
    bool two_classes() const { return nominal && n_targets == 2; }
    bool has_tiny_strata() const { // none is larger
        std::int64_t most = 0;
        for (std::size_t h = 0; h < n_strata; ++h) most = std::max(most, starts[h + 1] - starts[h]);
        return n_strata > 1 && most <= TINY_STRATUM;
    }
};

// A column of codes of one byte or two: where a row costs far more than to ask which, tests are compiled once for both.
struct Codes {
    const void *codes;
    bool is_wide;
    std::size_t operator[](std::size_t i) const {
        return is_wide ? static_cast<const std::uint16_t *>(codes)[i] : static_cast<const std::uint8_t *>(codes)[i];
    }
    Codes from(std::size_t i) const { return {static_cast<const char *>(codes) + (i << is_wide), is_wide}; }
};

// A column and the target crossed, by stratum; memory is used again.
template <class Code> class Tabulation {
  public:
    // ``scores``: of codes, ascending; else they are ranked.
    explicit Tabulation(const Target &target, std::size_t n_codes, const std::int64_t *scores = nullptr)
        : target_(target), n_codes_(n_codes), scores_(scores), slots_(n_codes + 1, 0),
          tiny_strata(!scores && target.has_tiny_strata()), strata(target.n_strata), absent(target.n_strata * target.n_targets) {}

    void tabulate(const Code *column) {
        codes_.clear(), n_absent = 0;
        for (std::size_t h = 0; h < target_.n_strata; ++h) {
            tabulate_one(column, target_.starts[h], target_.starts[h + 1], strata[h]);
            take_absent(strata[h], absent.data() + h * target_.n_targets);
            if (target_.scores) strata[h].target_scores.assign(target_.scores, target_.scores + target_.n_targets);
            if (!scores_) continue;
            strata[h].scores.clear();
            for (const std::size_t code : present_) strata[h].scores.push_back(scores_[code]);
        }
        if (tiny_strata) aligned_.score(strata, codes_, n_codes_);
    }

  private:
    // Only levels there are: most columns have few. What is missing comes last.
    void tabulate_one(const Code *column, std::int64_t from, std::int64_t to, ContingencyTable &out) {
        const std::size_t n_targets = target_.n_targets;
        out.n_targets = n_targets, out.n_levels = 0;
        if ((n_codes_ + 1) * n_targets <= 2 * static_cast<std::size_t>(to - from)) {
            if (n_targets == 2) cross_all<2>(column, from, to, out);
            else cross_all<0>(column, from, to, out);
            if (tiny_strata) codes_.insert(codes_.end(), present_.begin(), present_.end());
            return;
        }
        if (static_cast<std::size_t>(to - from) < n_codes_ / 4) find_sorted(column, from, to);
        else find_counted(column, from, to);
        for (const std::size_t code : present_) slots_[code] = n_targets * out.n_levels++;
        slots_[n_codes_] = n_targets * out.n_levels;
        out.cells.assign((out.n_levels + 1) * n_targets, 0);
        for (std::int64_t i = from; i < to; ++i)
            ++out.cells[slots_[code_at(column, i)] + static_cast<std::size_t>(target_.targets[i])];
        for (const std::size_t code : present_) slots_[code] = 0;
        if (tiny_strata) codes_.insert(codes_.end(), present_.begin(), present_.end());
    }
    // Where all codes are few beside the rows: counted at once, even rows and odd ones apart, as those next to each
    // other are often of the same cell; levels with no rows are then left out. ``N`` targets, 0: any number.
    template <std::size_t N> void cross_all(const Code *column, std::int64_t from, std::int64_t to, ContingencyTable &out) {
        const std::size_t n_targets = N ? N : target_.n_targets, n_cells = (n_codes_ + 1) * n_targets;
        crossed_.assign(2 * n_cells, 0);
        std::int32_t *even = crossed_.data(), *odd = even + n_cells;
        const auto cell = [&](std::int64_t i) {
            return code_at(column, i) * n_targets + static_cast<std::size_t>(target_.targets[i]);
        };
        std::int64_t i = from;
        for (; i + 1 < to; i += 2) ++even[cell(i)], ++odd[cell(i + 1)];
        if (i < to) ++even[cell(i)];
        for (std::size_t c = 0; c < n_cells; ++c) even[c] += odd[c];
        present_.resize(n_codes_ + 1), out.cells.resize(n_cells);
        for (std::size_t code = 0; code <= n_codes_; ++code) {
            const std::int32_t *own = even + code * n_targets;
            std::int32_t *left = out.cells.data() + out.n_levels * n_targets, any = 0;
            for (std::size_t y = 0; y < n_targets; ++y) any |= own[y], left[y] = own[y];
            present_[out.n_levels] = code;
            out.n_levels += code < n_codes_ && any;
        }
        present_.resize(out.n_levels), out.cells.resize((out.n_levels + 1) * n_targets);
    }
    void take_absent(ContingencyTable &table, std::int32_t *own) {
        const std::size_t n_cells = table.n_levels * table.n_targets;
        for (std::size_t y = 0; y < table.n_targets; ++y) n_absent += own[y] = table.cells[n_cells + y];
        table.cells.resize(n_cells);
    }
    std::size_t code_at(const Code *column, std::int64_t i) const {
        return std::min<std::size_t>(column[target_.rows[i]], n_codes_);
    }
    void find_sorted(const Code *column, std::int64_t from, std::int64_t to) {
        present_.clear();
        for (std::int64_t i = from; i < to; ++i) {
            const std::size_t code = code_at(column, i);
            if (code < n_codes_ && !slots_[code]) slots_[code] = 1, present_.push_back(code);
        }
        std::sort(present_.begin(), present_.end());
    }
    void find_counted(const Code *column, std::int64_t from, std::int64_t to) {
        std::vector<char> &seen = seen_;
        seen.assign(n_codes_ + 1, 0);
        for (std::int64_t i = from; i < to; ++i) seen[code_at(column, i)] = 1;
        present_.clear();
        for (std::size_t code = 0; code < n_codes_; ++code)
            if (seen[code]) present_.push_back(code);
    }

    const Target &target_;
    std::size_t n_codes_;
    const std::int64_t *scores_;
    std::vector<std::size_t> slots_, present_, codes_;
    std::vector<char> seen_;
    std::vector<std::int32_t> crossed_; // rows of a stratum, [half][code][target]
    AlignedRanks aligned_;

  public:
    bool tiny_strata; // ranks are then aligned
    Strata strata;
    std::vector<std::int32_t> absent; // rows with no value, [stratum][target]
    std::int64_t n_absent = 0;
};

// The natural logarithm of a contrast's p-value: where the asymptotic screen shows anything, or ``exactly``, the test itself.
// Of more than two classes all are tested together, and the one that differs most against the rest.
inline double contrast_log_p(const LogFactorials &log_factorial, const Strata &strata, const Asymptotic &found, double gate,
                             const Target &target, bool exactly, bool by_spread) {
    const double screened = found.log_p_of(target.one_against_rest);
    if (!exactly && (target.screened || screened > gate)) return screened;
    const bool in_strata = target.n_strata > 1;
    if (!target.nominal || target.two_classes())
        return linear_log_p(log_factorial, strata, in_strata, target.two_classes(), by_spread, target.shrink);
    const double joint = classes_log_p(log_factorial, strata, in_strata, target.order, by_spread, target.shrink);
    if (!target.one_against_rest || found.n_present < 3) return joint;
    std::vector<std::int32_t> order{static_cast<std::int32_t>(found.farthest)};
    for (const std::int32_t y : target.order)
        if (y != order[0]) order.push_back(y);
    const Strata parts = against_later(strata, in_strata, order, 0, by_spread);
    return found.shared(joint, linear_log_p(log_factorial, parts, in_strata, true, false, target.shrink));
}

// The natural logarithm of the p-value of each contrast, [contrast]; NaN where the column has none, which follows from its
// margins, or where it is not the ``only`` one asked for, if not all are.
template <class Code>
inline void column_shows(const LogFactorials &log_factorial, const Tabulation<Code> &tabulation, const Target &target,
                         bool exactly, std::size_t only, double *log_p) {
    std::fill(log_p, log_p + N_CONTRASTS, std::numeric_limits<double>::quiet_NaN());
    const auto is_asked = [&](Contrast contrast) { return only == contrast || only == N_CONTRASTS; };
    const auto test = [&](Contrast contrast, const Strata &strata, const Asymptotic &found, double gate) {
        if (!found.is_there || !is_asked(contrast)) return;
        log_p[contrast] = contrast_log_p(log_factorial, strata, found, gate, target, exactly, contrast == SPREAD);
    };
    const ContingencyTable &first = tabulation.strata[0];
    const bool has_three = target.two_classes() && target.n_strata == 1 && first.n_levels == 3 && first.scores.empty();
    const bool with_spread = is_asked(SPREAD) && !tabulation.tiny_strata && !has_three;
    const AsymptoticScreen screen(tabulation.strata, target.nominal, target.n_targets, with_spread);
    const double bar = gate(screen, target.nominal);
    test(LOCATION, tabulation.strata, screen.location, bar);
    test(SPREAD, tabulation.strata, screen.spread, bar);
    if (has_three && is_asked(LOCATION)) // as of genotypes: additive, or whatever else three levels can be
        log_p[LOCATION] = log_of_two(log_p[LOCATION], joint_log_p(first, target.order, exactly), 0.65);
    if (!tabulation.n_absent || !is_asked(ABSENCE)) return;
    const Strata two = by_absence(tabulation.strata, tabulation.absent);
    const AsymptoticScreen other(two, target.nominal, target.n_targets, false);
    test(ABSENCE, two, other.location, gate(other, target.nominal));
}

} // namespace srs
