// Columns whose codes have no order: the two change sides, the target is a column, and levels are classes of the rows.
#pragma once
#include "ranks/columns.hpp"

namespace srs {

// What a column must have for its levels to be tested, and what a target has at most.
struct LevelLimits {
    std::int64_t rare; // levels of fewer rows are taken together
    std::size_t most_levels, target_levels;
};

// Classes by one joint test; levels of a target one after the other, as classes are. Memory is used again.
class LevelTests {
  public:
    LevelTests(const LogFactorials &log_factorial, const Target &target, std::size_t n_codes, const LevelLimits &limits)
        : log_factorial_(log_factorial), target_(target), n_codes_(n_codes), limits_(limits), places_(target.n_targets, 0) {
        for (std::size_t place = 0; place < target.order.size(); ++place)
            places_[static_cast<std::size_t>(target.order[place])] = place;
        n_classes_ = target.nominal ? places_.size() : 1;
        for (std::size_t h = 0; h < target.n_strata; ++h)
            for (std::int64_t i = target.starts[h]; i < target.starts[h + 1]; ++i)
                columns_.push_back(h * n_classes_ + (target.nominal ? places_[static_cast<std::size_t>(target.targets[i])] : 0));
    }

    // The natural logarithm of the p-value; false where the column's levels are too few, or too many.
    bool test(Codes column, bool exactly, double &log_p) {
        if (column.is_wide) cross(static_cast<const std::uint16_t *>(column.codes));
        else cross(static_cast<const std::uint8_t *>(column.codes));
        if (!number_levels()) return false;
        log_p = target_.nominal ? of_classes(exactly) : of_numbers(column, exactly);
        return true;
    }

  private:
    std::size_t code_at(Codes column, std::size_t i) const { return std::min(column[static_cast<std::size_t>(target_.rows[i])], n_codes_); }
    // Rows by code, stratum and class; a target of levels is one class. Even rows and odd ones apart, as of cross_all.
    template <typename Code> void cross(const Code *column) {
        const std::size_t n_rows = columns_.size(), n_columns = target_.n_strata * n_classes_;
        std::size_t most = n_codes_ * n_columns < n_rows ? n_codes_ : 0;
        if (!most) for (std::size_t i = 0; i < n_rows; ++i) most = std::max<std::size_t>(most, column[target_.rows[i]]);
        width_ = std::min(most, n_codes_) + 1;
        const std::size_t n_cells = width_ * n_columns;
        crossed_.assign(2 * n_cells, 0);
        std::int32_t *even = crossed_.data(), *odd = even + n_cells;
        const auto cell = [&](std::size_t i) { return std::min<std::size_t>(column[target_.rows[i]], width_ - 1) * n_columns + columns_[i]; };
        std::size_t i = 0;
        for (; i + 1 < n_rows; i += 2) ++even[cell(i)], ++odd[cell(i + 1)];
        if (i < n_rows) ++even[cell(i)];
        for (std::size_t c = 0; c < n_cells; ++c) even[c] += odd[c];
        if (width_ > n_codes_) --width_; // rows without a value
        crossed_.resize(width_ * n_columns);
    }
    // The level of each code, rare ones together as the first, and the order of levels: those of the fewest rows first.
    bool number_levels() {
        const std::size_t n_columns = target_.n_strata * n_classes_;
        sizes_.assign(width_, 0), numbers_.assign(width_ + 1, 0);
        for (std::size_t cell = 0; cell < crossed_.size(); ++cell) sizes_[cell / n_columns] += crossed_[cell];
        std::size_t n_present = 0;
        bool any_rare = false;
        for (const std::int64_t size : sizes_) n_present += size > 0, any_rare |= size > 0 && size < limits_.rare;
        n_levels_ = any_rare;
        for (std::size_t code = 0; code < width_; ++code)
            if (sizes_[code] >= limits_.rare) numbers_[code] = static_cast<std::int32_t>(n_levels_++);
        if (n_present < 3 || n_levels_ < 2 || n_levels_ > limits_.most_levels) return false;
        numbers_[width_] = static_cast<std::int32_t>(n_levels_);
        std::vector<std::int64_t> rows(n_levels_, 0);
        for (std::size_t code = 0; code < width_; ++code) rows[static_cast<std::size_t>(numbers_[code])] += sizes_[code];
        order_.resize(n_levels_);
        std::iota(order_.begin(), order_.end(), 0);
        std::stable_sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
            return rows[static_cast<std::size_t>(a)] < rows[static_cast<std::size_t>(b)];
        });
        return true;
    }
    double of_classes(bool exactly) const {
        std::vector<std::size_t> place_of(n_levels_);
        for (std::size_t place = 0; place < n_levels_; ++place) place_of[static_cast<std::size_t>(order_[place])] = place;
        std::vector<std::int64_t> cells(target_.n_strata * n_classes_ * n_levels_, 0);
        const std::size_t n_columns = target_.n_strata * n_classes_;
        for (std::size_t i = 0; i < crossed_.size(); ++i)
            cells[i % n_columns * n_levels_ + place_of[static_cast<std::size_t>(numbers_[i / n_columns])]] += crossed_[i];
        return joint_log_p({std::move(cells), target_.n_strata, n_classes_, n_levels_}, exactly);
    }
    // Of the rows that have a level, of strata of two or more; a level is a class, and the target a column.
    double of_numbers(Codes column, bool exactly) {
        const std::int64_t n_rows = target_.starts[target_.n_strata];
        rows_.resize(static_cast<std::size_t>(n_rows)), levels_.resize(rows_.size()), answers_.resize(rows_.size());
        starts_.assign(1, 0);
        std::int64_t n = 0;
        for (std::size_t h = 0; h < target_.n_strata; ++h) {
            for (std::int64_t i = target_.starts[h]; i < target_.starts[h + 1]; ++i) {
                const std::int32_t level = numbers_[std::min(code_at(column, static_cast<std::size_t>(i)), width_)];
                const auto to = static_cast<std::size_t>(n);
                rows_[to] = static_cast<std::int32_t>(n), levels_[to] = level;
                answers_[to] = static_cast<std::uint8_t>(target_.targets[i]);
                n += level < static_cast<std::int32_t>(n_levels_);
            }
            if (n - starts_.back() > 1) starts_.push_back(n);
            else n = starts_.back();
        }
        Target within{rows_.data(), levels_.data(), starts_.data(), starts_.size() - 1, n_levels_, true, order_};
        within.one_against_rest = false;
        Tabulation<std::uint8_t> tabulation(within, limits_.target_levels, target_.scores);
        tabulation.tabulate(answers_.data());
        const AsymptoticScreen screen(tabulation.strata, true, n_levels_, false);
        if (!screen.location.is_there) return 0;
        const double bar = 2 * screen.commonest <= screen.n_rows ? LIGHT_GATE : gate(screen, true);
        return contrast_log_p(log_factorial_, tabulation.strata, screen.location, bar, within, exactly, false);
    }

    const LogFactorials &log_factorial_;
    const Target &target_;
    const std::size_t n_codes_;
    const LevelLimits limits_;
    std::size_t n_levels_ = 0, n_classes_ = 1, width_ = 0; // one past the largest code
    std::vector<std::size_t> places_, columns_;            // of classes; stratum and class of each row
    std::vector<std::int32_t> numbers_, crossed_, rows_, levels_, order_;
    std::vector<std::int64_t> sizes_, starts_;
    std::vector<std::uint8_t> answers_;
};

} // namespace srs
