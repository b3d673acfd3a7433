// Scores of columns less what a basis of covariates explains of them, tested in even steps (docs/methods/adjusting.md).
#pragma once
#include "isa.hpp"
#include "ranks/levels.hpp"

#include <array>

namespace srs {

constexpr std::size_t STEPS = 64;
constexpr std::size_t TOGETHER = 1 << 15; // scores that are adjusted together, at least those of a column
constexpr std::size_t NEAR = 64;          // rows
constexpr double EXPLAINED = 1e-8;        // of a column's variation is left where covariates explain all of it

// Columns of numbers for all rows that were fitted together, an intercept among them.
struct Basis {
    const double *values, *products; // [row][k]; of its columns, [k][l]
    std::size_t n_rows, n_columns;
};

// A score for each code of a column, where it is known; what is not known is left out.
template <class Code> struct CodeScores {
    const Code *column;
    std::size_t place; // where its p-value belongs
    std::vector<double> values;
    std::vector<char> known;
    bool all_known = true;
    double squares = 0, about_mean = 0, common = 0; // sums over the rows known; rows of the most common code
};

// Whatever is tested of a column is such a score; memory is used again.
template <class Code> class AdjustedTests {
  public:
    AdjustedTests(const LogFactorials &log_factorial, const Target &target, std::size_t n_codes, const Basis &basis,
                  const LevelLimits &limits, const Isa &isa)
        : log_factorial_(log_factorial), target_(target), n_codes_(n_codes), basis_(basis), limits_(limits), isa_(isa),
          by_column_(basis.n_columns * basis.n_rows), steps_(basis.n_rows), tabulation_(target, STEPS + 1, identity()) {
        for (std::size_t i = 0; i < basis.n_rows; ++i)
            for (std::size_t k = 0; k < basis.n_columns; ++k)
                by_column_[k * basis.n_rows + i] = basis.values[i * basis.n_columns + k];
    }

    // The natural logarithm of the p-value of each contrast, [column][contrast]; as of column_shows.
    void test(const Code *columns, std::size_t n_columns, bool exactly, std::size_t only, double *log_p) {
        std::fill(log_p, log_p + n_columns * N_CONTRASTS, std::numeric_limits<double>::quiet_NaN());
        for (std::size_t j = 0; j < n_columns; ++j) {
            score_column(columns + j * basis_.n_rows, j * N_CONTRASTS, only);
            if (asked_.size() * basis_.n_rows > TOGETHER || j + 1 == n_columns)
                test_asked(exactly, [&](std::size_t place, double found) { log_p[place] = found; });
        }
    }

    // Appends those of the levels of a column whose codes have no order, one after the other, each against those still to
    // come: of what the basis leaves of each, sums over the rows left are uncorrelated. False where LevelTests has none.
    bool test_levels(const Code *column, bool exactly, std::vector<double> &log_p) {
        const std::vector<std::int32_t> order = order_levels(column);
        if (order.empty()) return false;
        for (std::size_t j = 0; j + 1 < order.size(); ++j) {
            CodeScores<Code> &one = ask(column, j);
            one.all_known = j == 0 && !counts_[n_codes_];
            for (std::size_t code = 0; code < n_codes_; ++code) {
                const auto place = std::find(order.begin(), order.end(), numbers_[code]) - order.begin();
                one.known[code] = place >= static_cast<std::ptrdiff_t>(j);
                one.values[code] = place == static_cast<std::ptrdiff_t>(j);
            }
            weigh(one);
            if (asked_.size() * basis_.n_rows > TOGETHER || j + 2 == order.size())
                test_asked(exactly, [&](std::size_t, double found) {
                    if (!std::isnan(found)) log_p.push_back(found);
                });
        }
        return true;
    }

  private:
    static const std::int64_t *identity() {
        static const std::array<std::int64_t, STEPS + 1> steps = [] {
            std::array<std::int64_t, STEPS + 1> out{};
            std::iota(out.begin(), out.end(), 0);
            return out;
        }();
        return steps.data();
    }
    std::size_t code_of(const Code *column, std::size_t i) const { return std::min<std::size_t>(column[i], n_codes_); }
    void count(const Code *column) {
        counts_.assign(n_codes_ + 1, 0);
        for (std::size_t i = 0; i < basis_.n_rows; ++i) ++counts_[code_of(column, i)];
    }
    CodeScores<Code> &ask(const Code *column, std::size_t place) {
        const bool all_known = !counts_[n_codes_];
        asked_.push_back({column, place, std::vector<double>(n_codes_ + 1, 0.0), std::vector<char>(n_codes_ + 1, 1), all_known});
        asked_.back().known[n_codes_] = 0;
        return asked_.back();
    }

    void weigh(CodeScores<Code> &one) const {
        double n = 0, sum = 0;
        for (std::size_t code = 0; code <= n_codes_; ++code) {
            if (!counts_[code] || !one.known[code]) continue;
            const double rows = double(counts_[code]), value = one.values[code];
            n += rows, one.common = std::max(one.common, rows), sum += rows * value, one.squares += rows * value * value;
        }
        one.about_mean = one.squares - sum * sum / std::max(n, 1.0);
    }

    // Centred midranks, twice; their distances from the middle; what is missing.
    void score_column(const Code *column, std::size_t place, std::size_t only) {
        count(column);
        const std::int64_t n_missing = counts_[n_codes_], n = static_cast<std::int64_t>(basis_.n_rows) - n_missing;
        by_code_.assign(n_codes_ + 1, 0.0);
        std::size_t n_levels = 0, nearest = 0;
        std::int64_t below = 0, nearest_by = n + 1;
        bool even = false;
        for (std::size_t code = 0; code < n_codes_; ++code) {
            if (!counts_[code]) continue;
            const std::int64_t rank = 2 * below + counts_[code] - n, by = std::abs(rank);
            by_code_[code] = double(rank), below += counts_[code];
            even = by < nearest_by ? false : even || by == nearest_by;
            if (by < nearest_by) nearest_by = by, nearest = n_levels;
            ++n_levels;
        }
        const std::size_t first = asked_.size();
        const auto is_asked = [&](Contrast contrast) { return only == contrast || only == N_CONTRASTS; };
        if (is_asked(LOCATION) && n_levels > 1) ask(column, place + LOCATION).values = by_code_;
        if (is_asked(SPREAD) && has_spread(n_levels, nearest, even)) {
            std::vector<double> &values = ask(column, place + SPREAD).values;
            for (std::size_t code = 0; code < n_codes_; ++code) values[code] = std::fabs(by_code_[code]);
        }
        if (is_asked(ABSENCE) && n_missing && n) {
            CodeScores<Code> &one = ask(column, place + ABSENCE);
            one.values[n_codes_] = one.known[n_codes_] = one.all_known = true;
        }
        for (std::size_t s = first; s < asked_.size(); ++s) weigh(asked_[s]);
    }

    template <typename Found> void test_asked(bool exactly, const Found found) {
        explain();
        for (std::size_t s = 0; s < asked_.size(); ++s) found(asked_[s].place, log_p_of(s, exactly));
        asked_.clear();
    }

    // What the basis leaves of each score in rows known, [score][row], and how much of its variation that is.
    void explain() {
        const std::size_t k = basis_.n_columns, n_rows = basis_.n_rows, n = asked_.size();
        scores_.resize(n * n_rows), left_.resize(n * n_rows), variation_.assign(n, 0.0), coefficients_.assign(k * n, 0.0);
        for (std::size_t from = 0; from < n_rows; from += NEAR) // both ways round, by rows that stay in the cache
            for (std::size_t s = 0; s < n; ++s) {
                const CodeScores<Code> &one = asked_[s];
                double *own = left_.data() + s * n_rows;
                for (std::size_t i = from; i < std::min(from + NEAR, n_rows); ++i)
                    scores_[i * n + s] = own[i] = one.values[code_of(one.column, i)];
            }
        isa_.add_products(basis_.values, scores_.data(), std::int64_t(n_rows), std::int64_t(k), std::int64_t(n), coefficients_.data());
        root_.resize(k * k), right_.resize(k);
        bool is_whole = false;
        for (std::size_t s = 0; s < n; ++s) {
            if (!(is_whole && asked_[s].all_known)) factor(asked_[s]);
            is_whole = asked_[s].all_known;
            for (std::size_t a = 0; a < k; ++a) right_[a] = coefficients_[a * n + s];
            solve();
            for (std::size_t a = 0; a < k; ++a) {
                variation_[s] -= right_[a] * coefficients_[a * n + s];
                coefficients_[a * n + s] = -right_[a];
            }
        }
        isa_.add_products(coefficients_.data(), by_column_.data(), std::int64_t(k), std::int64_t(n), std::int64_t(n_rows), left_.data());
    }
    // Cholesky's factor of the products of the basis over the rows known; 0 in place of columns that add nothing there.
    void factor(const CodeScores<Code> &one) {
        const std::size_t k = basis_.n_columns;
        std::copy(basis_.products, basis_.products + k * k, root_.begin());
        for (std::size_t i = 0; !one.all_known && i < basis_.n_rows; ++i) {
            if (one.known[code_of(one.column, i)]) continue;
            const double *row = basis_.values + i * k;
            for (std::size_t a = 0; a < k; ++a)
                for (std::size_t b = 0; b <= a; ++b) root_[a * k + b] -= row[a] * row[b];
        }
        for (std::size_t a = 0; a < k; ++a) {
            double *row = root_.data() + a * k;
            for (std::size_t b = 0; b < a; ++b) {
                const double *other = root_.data() + b * k;
                for (std::size_t c = 0; c < b; ++c) row[b] -= row[c] * other[c];
                row[b] = other[b] > 0 ? row[b] / other[b] : 0;
                row[a] -= row[b] * row[b];
            }
            row[a] = row[a] > EXPLAINED * basis_.products[a * k + a] ? std::sqrt(row[a]) : 0;
        }
    }
    void solve() {
        const std::size_t k = right_.size();
        for (std::size_t a = 0; a < k; ++a) {
            for (std::size_t b = 0; b < a; ++b) right_[a] -= root_[a * k + b] * right_[b];
            right_[a] = root_[a * k + a] > 0 ? right_[a] / root_[a * k + a] : 0;
        }
        for (std::size_t a = k; a-- > 0;) {
            for (std::size_t b = a + 1; b < k; ++b) right_[a] -= root_[b * k + a] * right_[b];
            right_[a] = root_[a * k + a] > 0 ? right_[a] / root_[a * k + a] : 0;
        }
    }

    // What is left of a score in even steps, tested within strata; NaN where nothing is left of it.
    double log_p_of(std::size_t s, bool exactly) {
        const CodeScores<Code> &one = asked_[s];
        if (!take_steps(one, left_.data() + s * basis_.n_rows, variation_[s])) return std::numeric_limits<double>::quiet_NaN();
        const double screened = screen(one.common);
        if (std::isnan(screened) || (!exactly && screened > gate_)) return screened;
        tabulation_.tabulate(steps_.data());
        return contrast_log_p(log_factorial_, tabulation_.strata, screened, gate_, target_, true, false);
    }
    bool take_steps(const CodeScores<Code> &one, const double *left, double variation) {
        if (!(one.squares + variation > EXPLAINED * one.about_mean)) return false;
        const auto is_known = [&](std::size_t i) { return one.all_known || one.known[code_of(one.column, i)]; };
        double leasts[4], mosts[4]; // in parts that do not wait for one another
        for (std::size_t l = 0; l < 4; ++l) leasts[l] = std::numeric_limits<double>::infinity(), mosts[l] = -leasts[l];
        for (std::size_t i = 0; i < basis_.n_rows; ++i)
            if (is_known(i)) leasts[i % 4] = std::min(leasts[i % 4], left[i]), mosts[i % 4] = std::max(mosts[i % 4], left[i]);
        const double least = *std::min_element(leasts, leasts + 4), most = *std::max_element(mosts, mosts + 4);
        if (!(most > least)) return false;
        const double scale = double(STEPS) / (most - least);
        for (std::size_t i = 0; i < basis_.n_rows; ++i)
            steps_[i] = is_known(i) ? static_cast<std::uint8_t>(static_cast<int>((left[i] - least) * scale + 0.5)) : STEPS + 1;
        return true;
    }

    // The asymptotic test of the steps, as an AsymptoticScreen has it of their table; NaN where none differ in a stratum.
    double screen(double common) {
        const std::size_t n_sums = target_.nominal ? target_.n_targets : 1;
        Asymptotic found(n_sums);
        drawn_.assign(target_.n_targets, 0.0);
        double n_rows = 0;
        for (std::size_t h = 0; h < target_.n_strata; ++h) n_rows += add_stratum(target_.starts[h], target_.starts[h + 1], found);
        if (!found.is_there) return std::numeric_limits<double>::quiet_NaN();
        found.finish(target_.nominal, drawn_, n_rows, target_.shrink);
        double fewest = n_rows - common;
        if (target_.nominal) {
            for (const double rows : drawn_)
                if (rows > 0) fewest = std::min(fewest, rows);
        } else {
            fewest = std::min(fewest, n_rows - *std::max_element(drawn_.begin(), drawn_.end()));
        }
        gate_ = gate(fewest, common, n_rows, target_.nominal && fewest < 4 * THICK);
        return found.log_p;
    }
    double add_stratum(std::int64_t from, std::int64_t to, Asymptotic &found) {
        std::int64_t n = 0, sum = 0, squares = 0;
        at_.assign(target_.n_targets, 0), by_.assign(target_.n_targets, 0);
        std::int64_t second = 0, by_second = 0;
        for (std::int64_t i = from; i < to; ++i) {
            const std::int64_t step = steps_[static_cast<std::size_t>(target_.rows[i])], y = target_.targets[i];
            const std::int64_t is_known = step <= std::int64_t(STEPS), own = is_known * step;
            n += is_known, sum += own, squares += own * own;
            if (at_.size() == 2) second += is_known * y, by_second += own * y;
            else at_[static_cast<std::size_t>(y)] += is_known, by_[static_cast<std::size_t>(y)] += own;
        }
        if (at_.size() == 2) at_ = {n - second, second}, by_ = {sum - by_second, by_second};
        if (n < 2) return 0;
        const double rows = double(n), variation = double(n * squares - sum * sum) / rows;
        found.is_there |= variation > 0;
        if (target_.nominal) {
            for (std::size_t y = 0; y < at_.size(); ++y) {
                const double drawn = double(at_[y]);
                drawn_[y] += drawn, found.sums[y] += double(n * by_[y] - at_[y] * sum) / rows;
                found.variances[y] += variation * drawn * (rows - drawn) / (rows * (rows - 1));
            }
            return rows;
        }
        double below = 0, targets = 0, target_squares = 0, products = 0;
        for (std::size_t y = 0; y < at_.size(); ++y) { // midranks, where they have no scores
            const double here = double(at_[y]), score = target_.scores ? double(target_.scores[y]) : below + 0.5 * (here + 1);
            below += here, drawn_[y] += here;
            targets += here * score, target_squares += here * score * score, products += double(by_[y]) * score;
        }
        const double weight = target_.scores ? 1 : 1 / (rows + 1); // van Elteren's
        found.sums[0] += weight * (products - double(sum) * targets / rows);
        found.variances[0] += weight * weight * variation * (target_squares - targets * targets / rows) / (rows - 1);
        return rows;
    }

    // Levels of a column, rare ones together as the first, those of the fewest rows first; none where LevelTests has none.
    std::vector<std::int32_t> order_levels(const Code *column) {
        count(column);
        std::vector<std::int64_t> rows(1, 0);
        numbers_.assign(n_codes_, 0);
        std::size_t n_present = 0;
        for (std::size_t code = 0; code < n_codes_; ++code) {
            n_present += counts_[code] > 0;
            if (counts_[code] >= limits_.rare) numbers_[code] = static_cast<std::int32_t>(rows.size()), rows.push_back(counts_[code]);
            else rows[0] += counts_[code];
        }
        std::vector<std::int32_t> order;
        for (std::size_t level = 0; level < rows.size(); ++level)
            if (rows[level]) order.push_back(static_cast<std::int32_t>(level));
        if (n_present < 3 || order.size() < 2 || order.size() > limits_.most_levels) return {};
        std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
            return rows[static_cast<std::size_t>(a)] < rows[static_cast<std::size_t>(b)];
        });
        return order;
    }

    const LogFactorials &log_factorial_;
    const Target &target_;
    const std::size_t n_codes_;
    const Basis basis_;
    const LevelLimits limits_;
    const Isa &isa_;
    double gate_ = 0;
    std::vector<CodeScores<Code>> asked_;
    std::vector<double> by_column_, scores_, left_; // the basis, [k][row]; scores, [row][score]; what is left, [score][row]
    std::vector<double> coefficients_, variation_, root_, right_, by_code_, drawn_;
    std::vector<std::int64_t> counts_, at_, by_; // rows of each code; of each target; sums of their steps
    std::vector<std::int32_t> numbers_;          // level of each code
    std::vector<std::uint8_t> steps_;
    Tabulation<std::uint8_t> tabulation_;
};

} // namespace srs
