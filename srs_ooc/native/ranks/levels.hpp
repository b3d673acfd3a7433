// Columns whose codes have no order: the two change sides, the target is a column, and levels are classes of the rows.
#pragma once
#include "ranks/columns.hpp"

namespace srs {

// What a column must have for its levels to be tested, and what a target has at most.
struct LevelLimits {
    std::int64_t rare; // levels of fewer rows are taken together
    std::size_t most_levels, target_levels;
};

// Of more than two classes one after the other is compared with those after it: each test is valid given the ones before.
// Memory is used again.
class LevelTests {
  public:
    LevelTests(const LogFactorials &log_factorial, const Target &target, std::size_t n_codes, const LevelLimits &limits)
        : log_factorial_(log_factorial), target_(target), n_codes_(n_codes), limits_(limits), places_(target.n_targets, 0) {
        for (std::size_t place = 0; place < target.order.size(); ++place)
            places_[static_cast<std::size_t>(target.order[place])] = static_cast<std::int32_t>(place);
    }

    // Appends the natural logarithms of the p-values; false where the column's levels are too few, or too many.
    bool test(Codes column, bool exactly, std::vector<double> &log_p) {
        if (!number_levels(column)) return false;
        const std::size_t n_answers = target_.nominal ? std::max<std::size_t>(target_.order.size(), 1) - 1 : 1;
        const bool crosses = target_.nominal && target_.n_strata == 1;
        if (crosses) cross();
        for (std::size_t answer = 0; answer < n_answers; ++answer) {
            const double found = crosses ? of_class(answer, exactly) : of_rows(static_cast<std::int32_t>(answer), exactly);
            if (!std::isnan(found)) log_p.push_back(found);
        }
        return true;
    }

  private:
    std::size_t code_at(Codes column, std::int64_t i) const {
        return std::min(column[static_cast<std::size_t>(target_.rows[i])], n_codes_);
    }
    // The level of each row, rare ones together as the first; rows without a value come after the last.
    bool number_levels(Codes column) {
        const std::int64_t n_rows = target_.starts[target_.n_strata];
        sizes_.assign(n_codes_ + 1, 0), numbers_.assign(n_codes_ + 1, 0), of_rows_.resize(static_cast<std::size_t>(n_rows));
        for (std::int64_t i = 0; i < n_rows; ++i) ++sizes_[code_at(column, i)];
        std::size_t n_present = 0;
        bool any_rare = false;
        for (std::size_t code = 0; code < n_codes_; ++code)
            n_present += sizes_[code] > 0, any_rare |= sizes_[code] > 0 && sizes_[code] < limits_.rare;
        n_levels_ = any_rare;
        for (std::size_t code = 0; code < n_codes_; ++code)
            if (sizes_[code] >= limits_.rare) numbers_[code] = static_cast<std::int32_t>(n_levels_++);
        if (n_present < 3 || n_levels_ < 2 || n_levels_ > limits_.most_levels) return false;
        numbers_[n_codes_] = static_cast<std::int32_t>(n_levels_);
        std::vector<std::int64_t> rows(n_levels_ + 1, 0);
        for (std::size_t code = 0; code <= n_codes_; ++code) rows[static_cast<std::size_t>(numbers_[code])] += sizes_[code];
        order_.resize(n_levels_);
        std::iota(order_.begin(), order_.end(), 0);
        std::stable_sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
            return rows[static_cast<std::size_t>(a)] < rows[static_cast<std::size_t>(b)];
        });
        for (std::int64_t i = 0; i < n_rows; ++i) of_rows_[static_cast<std::size_t>(i)] = numbers_[code_at(column, i)];
        return true;
    }
    // Without strata all is in one table: rows by class, in the order of classes, and by level.
    void cross() {
        crossed_.assign(places_.size() * (n_levels_ + 1), 0);
        for (std::size_t i = 0; i < of_rows_.size(); ++i) {
            const auto place = static_cast<std::size_t>(places_[static_cast<std::size_t>(target_.targets[i])]);
            ++crossed_[place * (n_levels_ + 1) + static_cast<std::size_t>(of_rows_[i])];
        }
    }
    // The p-value of a class against those after it; NaN where one of the two has no rows.
    double of_class(std::size_t answer, bool exactly) {
        ContingencyTable table{2, n_levels_, std::vector<std::int32_t>(2 * n_levels_, 0), {}};
        std::int32_t *others = table.cells.data(), *own = others + n_levels_;
        for (std::size_t place = answer; place < places_.size(); ++place)
            for (std::size_t l = 0; l < n_levels_; ++l)
                (place == answer ? own : others)[l] += crossed_[place * (n_levels_ + 1) + l];
        const std::vector<std::int64_t> rows = table.levels();
        if (!rows[0] || !rows[1]) return std::numeric_limits<double>::quiet_NaN();
        const Strata strata{std::move(table)};
        const AsymptoticScreen screen(strata, true, n_levels_, false);
        const Target within{nullptr, nullptr, nullptr, 1, n_levels_, true, order_};
        return contrast_log_p(log_factorial_, strata, screen.location.log_p, gate(screen, true), within, exactly, false);
    }
    double of_rows(std::int32_t answer, bool exactly) {
        take_rows(answer);
        const Target within{rows_.data(), levels_.data(), starts_.data(), starts_.size() - 1, n_levels_, true, order_};
        Tabulation<std::uint8_t> tabulation(within, target_.nominal ? 2 : limits_.target_levels, target_.scores);
        tabulation.tabulate(answers_.data());
        double found[N_CONTRASTS];
        column_shows(log_factorial_, tabulation, within, exactly, LOCATION, found);
        return found[LOCATION];
    }
    // The rows with a level and a class not compared yet, of strata of two or more, and the answer of each.
    void take_rows(std::int32_t answer) {
        const std::int64_t n_rows = target_.starts[target_.n_strata];
        rows_.resize(static_cast<std::size_t>(n_rows)), levels_.resize(rows_.size()), answers_.resize(rows_.size());
        starts_.assign(1, 0);
        std::int64_t n = 0;
        for (std::size_t h = 0; h < target_.n_strata; ++h) {
            for (std::int64_t i = target_.starts[h]; i < target_.starts[h + 1]; ++i) {
                const std::int32_t own = target_.targets[i], level = of_rows_[static_cast<std::size_t>(i)];
                const std::int32_t place = target_.nominal ? places_[static_cast<std::size_t>(own)] : own;
                const auto to = static_cast<std::size_t>(n);
                rows_[to] = static_cast<std::int32_t>(n), levels_[to] = level;
                answers_[to] = static_cast<std::uint8_t>(target_.nominal ? place == answer : own);
                n += level < static_cast<std::int32_t>(n_levels_) && (!target_.nominal || place >= answer);
            }
            if (n - starts_.back() > 1) starts_.push_back(n);
            else n = starts_.back();
        }
    }

    const LogFactorials &log_factorial_;
    const Target &target_;
    const std::size_t n_codes_;
    const LevelLimits limits_;
    std::size_t n_levels_ = 0;
    std::vector<std::int32_t> places_, numbers_, of_rows_, crossed_, rows_, levels_, order_; // of classes; of codes; of rows
    std::vector<std::int64_t> sizes_, starts_;
    std::vector<std::uint8_t> answers_;
};

} // namespace srs
