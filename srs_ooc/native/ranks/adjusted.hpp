// Scores of columns less what a basis of covariates explains of them, tested in even steps (docs/methods/adjusting.md).
#pragma once
#include "isa.hpp"
#include "ranks/levels.hpp"

#include <array>

namespace srs {

constexpr std::size_t STEPS = 64;
constexpr std::uint8_t UNSCORED = STEPS + 1;
constexpr std::size_t TOGETHER = 1 << 15, FEWEST = 12; // scores that are adjusted together, and columns of them at least
constexpr std::size_t NEAR = 64;          // rows
constexpr double EXPLAINED = 1e-8;        // of a column's variation is left where covariates explain all of it

// Columns of numbers for all rows that were fitted together, an intercept among them.
struct Basis {
    const double *values, *products; // [row][k]; of its columns, [k][l]
    std::size_t n_rows, n_columns;
};

inline const std::int64_t *identity() {
    static const std::array<std::int64_t, STEPS + 1> steps = [] {
        std::array<std::int64_t, STEPS + 1> out{};
        std::iota(out.begin(), out.end(), 0);
        return out;
    }();
    return steps.data();
}

// A score for each code of a column, where it is known; what is not known is left out.
struct CodeScores {
    Codes column;
    std::size_t place; // where its p-value belongs
    std::vector<double> values;
    std::vector<char> known;
    bool all_known = true;
    double squares = 0, about_mean = 0, common = 0; // sums over the rows known; rows of the most common code
};

// Whatever is tested of a column is such a score; memory is used again.
class AdjustedTests {
  public:
    AdjustedTests(const LogFactorials &log_factorial, const Target &target, std::size_t n_codes, const Basis &basis,
                  const LevelLimits &limits, const Isa &isa)
        : log_factorial_(log_factorial), target_(target), n_codes_(n_codes), basis_(basis), limits_(limits), isa_(isa),
          n_tested_(static_cast<std::size_t>(target.starts[target.n_strata])), by_row_(basis.n_columns * basis.n_rows),
          by_column_(by_row_.size()), steps_(basis.n_rows), tabulation_(target, STEPS + 1, identity()) {
        std::vector<char> is_tested(basis.n_rows, 0);
        for (std::size_t i = 0; i < n_tested_; ++i) order_.push_back(static_cast<std::size_t>(target.rows[i])), is_tested[order_.back()] = 1;
        for (std::size_t i = 0; i < basis.n_rows; ++i)
            if (!is_tested[i]) order_.push_back(i);
        for (std::size_t i = 0; i < basis.n_rows; ++i)
            for (std::size_t k = 0; k < basis.n_columns; ++k)
                by_column_[k * basis.n_rows + i] = by_row_[i * basis.n_columns + k] = basis.values[order_[i] * basis.n_columns + k];
        const bool is_one = target.scores || target.two_classes(); // score is enough; else one for each class
        for (std::size_t y = 0; y < (is_one ? 1 : target.n_targets); ++y) {
            scores_of_.emplace_back();
            for (std::size_t i = 0; i < n_tested_; ++i) {
                const std::int32_t own = target.targets[i];
                scores_of_.back().push_back(target.scores ? double(target.scores[own]) : is_one ? own : own == std::int32_t(y));
            }
        }
        std::vector<double> rows(target.n_targets, 0.0);
        for (std::size_t i = 0; i < n_tested_; ++i) rows[static_cast<std::size_t>(target.targets[i])] += 1;
        most_ = *std::max_element(rows.begin(), rows.end());
    }

    // The natural logarithm of the p-value of each contrast, [column][contrast]; as of column_shows.
    void test(Codes columns, std::size_t n_columns, bool exactly, std::size_t only, double *log_p) {
        std::fill(log_p, log_p + n_columns * N_CONTRASTS, std::numeric_limits<double>::quiet_NaN());
        for (std::size_t j = 0; j < n_columns; ++j) {
            score_column(columns.from(j * basis_.n_rows), j * N_CONTRASTS, only);
            if (is_enough() || j + 1 == n_columns)
                test_asked(exactly, [&](std::size_t place, double found) { log_p[place] = found; });
        }
    }

    // What is left of each contrast in even steps, [column][contrast][row]; UNSCORED where there is no score.
    void steps(Codes columns, std::size_t n_columns, std::uint8_t *out) {
        std::fill(out, out + n_columns * N_CONTRASTS * basis_.n_rows, UNSCORED);
        for (std::size_t j = 0; j < n_columns; ++j) {
            score_column(columns.from(j * basis_.n_rows), j * N_CONTRASTS, N_CONTRASTS);
            if (!is_enough() && j + 1 < n_columns) continue;
            explain();
            for (std::size_t s = 0; s < asked_.size(); ++s) {
                const CodeScores &one = asked_[s];
                if (!(one.squares + variation_[s] > EXPLAINED * one.about_mean)) continue;
                take_steps(one, left_.data() + s * basis_.n_rows);
                std::copy(steps_.begin(), steps_.end(), out + one.place * basis_.n_rows);
            }
            asked_.clear();
        }
    }

    // A column whose codes have no order: its levels one after the other, each against those still to come; of what the basis
    // leaves of each, sums over the rows left are uncorrelated. Squared normal scores are added. False where LevelTests has none.
    bool test_levels(Codes column, bool exactly, double &log_p) {
        const std::vector<std::int32_t> order = order_levels(column);
        if (order.empty()) return false;
        double scores = 0;
        int degrees = 0;
        for (std::size_t j = 0; j + 1 < order.size(); ++j) {
            CodeScores &one = ask(column, j);
            one.all_known = j == 0 && !counts_[n_codes_];
            for (std::size_t code = 0; code < n_codes_; ++code) {
                const auto place = std::find(order.begin(), order.end(), numbers_[code]) - order.begin();
                one.known[code] = place >= static_cast<std::ptrdiff_t>(j);
                one.values[code] = place == static_cast<std::ptrdiff_t>(j);
            }
            weigh(one);
            if (is_enough() || j + 2 == order.size())
                test_asked(exactly, [&](std::size_t, double found) {
                    if (std::isnan(found)) return;
                    const double z = normal_score(found);
                    scores += z * z, ++degrees;
                });
        }
        log_p = log_chi_squared(scores, degrees);
        return true;
    }

  private:
    bool is_enough() const { return asked_.size() >= FEWEST && asked_.size() * basis_.n_rows > TOGETHER; }
    std::size_t code_of(Codes column, std::size_t i) const { return std::min(column[i], n_codes_); }
    void count(Codes column) {
        counts_.assign(n_codes_ + 1, 0);
        for (std::size_t i = 0; i < basis_.n_rows; ++i) ++counts_[code_of(column, i)];
    }
    CodeScores &ask(Codes column, std::size_t place) {
        const bool all_known = !counts_[n_codes_];
        asked_.push_back({column, place, std::vector<double>(n_codes_ + 1, 0.0), std::vector<char>(n_codes_ + 1, 1), all_known});
        asked_.back().known[n_codes_] = 0;
        return asked_.back();
    }

    void weigh(CodeScores &one) const {
        double n = 0, sum = 0, squares = 0, common = 0;
        for (std::size_t code = 0; code <= n_codes_; ++code) {
            const double rows = one.known[code] ? double(counts_[code]) : 0, product = rows * one.values[code];
            n += rows, sum += product, squares += product * one.values[code];
            common = std::max(common, rows);
        }
        one.squares = squares, one.common = common;
        one.about_mean = one.squares - sum * sum / std::max(n, 1.0);
    }

    // Nearly the normal quantile of a centred midrank, twice (Tukey's, lambda 1/4), by roots that are the same on every machine.
    static double quantile(double rank, double n) {
        return std::sqrt(std::sqrt((n + rank) / (2 * n))) - std::sqrt(std::sqrt((n - rank) / (2 * n)));
    }

    // Normal scores of centred midranks, twice; distances of these from the middle; what is missing.
    void score_column(Codes column, std::size_t place, std::size_t only) {
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
        if (is_asked(LOCATION) && n_levels > 1) {
            std::vector<double> &values = ask(column, place + LOCATION).values;
            for (std::size_t code = 0; code < n_codes_; ++code) values[code] = quantile(by_code_[code], double(n));
        }
        if (is_asked(SPREAD) && has_spread(n_levels, nearest, even)) {
            std::vector<double> &values = ask(column, place + SPREAD).values;
            for (std::size_t code = 0; code < n_codes_; ++code) values[code] = std::fabs(by_code_[code]);
        }
        if (is_asked(ABSENCE) && n_missing && n) {
            CodeScores &one = ask(column, place + ABSENCE);
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
                const CodeScores &one = asked_[s];
                double *own = left_.data() + s * n_rows;
                for (std::size_t i = from; i < std::min(from + NEAR, n_rows); ++i)
                    scores_[i * n + s] = own[i] = one.values[code_of(one.column, order_[i])];
            }
        isa_.add_products(by_row_.data(), scores_.data(), std::int64_t(n_rows), std::int64_t(k), std::int64_t(n), coefficients_.data());
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
    void factor(const CodeScores &one) {
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

    // What is left of a score, tested within strata: asymptotically, and in even steps where that shows anything. NaN where
    // nothing is left of it, or differs in a stratum.
    double log_p_of(std::size_t s, bool exactly) {
        const CodeScores &one = asked_[s];
        const double *left = left_.data() + s * basis_.n_rows;
        if (!(one.squares + variation_[s] > EXPLAINED * one.about_mean)) return std::numeric_limits<double>::quiet_NaN();
        Asymptotic found(scores_of_.size());
        std::vector<double> drawn(found.sums.size(), 0.0);
        double n_rows = 0, fewest = std::numeric_limits<double>::infinity();
        for (std::size_t y = 0; y < found.sums.size(); ++y) {
            n_rows = add_strata(one, left, scores_of_[y].data(), found.sums[y], found.variances[y], drawn[y]);
            found.is_there |= found.variances[y] > 0;
            if (target_.nominal) fewest = std::min({fewest, drawn[y], n_rows - drawn[y]});
        }
        if (!found.is_there) return std::numeric_limits<double>::quiet_NaN();
        found.finish(target_.nominal && drawn.size() > 1, drawn, n_rows, target_.shrink);
        fewest = std::min({fewest, n_rows - one.common, target_.nominal ? fewest : n_rows - most_});
        const double bar = gate(fewest, one.common, n_rows, target_.nominal && fewest < 4 * THICK);
        if (!exactly && found.log_p_of(target_.one_against_rest) > bar) return found.log_p_of(target_.one_against_rest);
        take_steps(one, left);
        tabulation_.tabulate(steps_.data());
        return contrast_log_p(log_factorial_, tabulation_.strata, found, bar, target_, true, false);
    }
    // Adds up products with a score of the target, less their means, and their variances; returns the rows known.
    double add_strata(const CodeScores &one, const double *x, const double *t, double &sum, double &variance, double &drawn) const {
        typedef double Lanes __attribute__((vector_size(32), aligned(8), may_alias));
        double n_rows = 0;
        for (std::size_t h = 0; h < target_.n_strata; ++h) {
            const auto from = static_cast<std::size_t>(target_.starts[h]), to = static_cast<std::size_t>(target_.starts[h + 1]);
            Lanes sums[5] = {}; // of x, its squares, products, t, its squares
            double n = one.all_known ? double(to - from) : 0;
            std::size_t i = from;
            for (; one.all_known && i + 4 <= to; i += 4) {
                const Lanes own = *reinterpret_cast<const Lanes *>(x + i), of = *reinterpret_cast<const Lanes *>(t + i);
                sums[0] += own, sums[1] += own * own, sums[2] += own * of, sums[3] += of, sums[4] += of * of;
            }
            for (; i < to; ++i) {
                const double is_known = one.all_known || one.known[code_of(one.column, order_[i])];
                const double own = is_known * x[i], of = is_known * t[i];
                n += one.all_known ? 0 : is_known;
                sums[0][0] += own, sums[1][0] += own * own, sums[2][0] += own * of, sums[3][0] += of, sums[4][0] += of * of;
            }
            const auto sum_of = [&](std::size_t which) {
                const Lanes &own = sums[which];
                return (own[0] + own[1]) + (own[2] + own[3]);
            };
            const double x_sum = sum_of(0), squares = sum_of(1), t_sum = sum_of(3);
            if (n < 2) continue;
            const double x_variation = std::max(squares - x_sum * x_sum / n, 0.0), t_variation = std::max(sum_of(4) - t_sum * t_sum / n, 0.0);
            n_rows += n, drawn += t_sum, sum += sum_of(2) - x_sum * t_sum / n;
            if (x_variation > EXPLAINED * squares) variance += x_variation * t_variation / (n - 1);
        }
        return n_rows;
    }
    void take_steps(const CodeScores &one, const double *left) {
        const auto is_known = [&](std::size_t i) { return one.all_known || one.known[code_of(one.column, order_[i])]; };
        double least = std::numeric_limits<double>::infinity(), most = -least;
        for (std::size_t i = 0; i < basis_.n_rows; ++i)
            if (is_known(i)) least = std::min(least, left[i]), most = std::max(most, left[i]);
        const double scale = most > least ? double(STEPS) / (most - least) : 0;
        for (std::size_t i = 0; i < basis_.n_rows; ++i)
            steps_[order_[i]] = is_known(i) ? static_cast<std::uint8_t>(static_cast<int>((left[i] - least) * scale + 0.5)) : UNSCORED;
    }

    // Levels of a column, rare ones together as the first, those of the fewest rows first; none where LevelTests has none.
    std::vector<std::int32_t> order_levels(Codes column) {
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
    const std::size_t n_tested_;
    double most_ = 0;                // rows of the most common target
    std::vector<std::size_t> order_; // of rows: those tested by stratum, then those that were fitted only
    std::vector<CodeScores> asked_;
    std::vector<std::vector<double>> scores_of_; // of the target, of the rows tested
    // The basis, [row][k] and [k][row]; scores, [row][score]; what is left of them, [score][row].
    std::vector<double> by_row_, by_column_, scores_, left_, coefficients_, variation_, root_, right_, by_code_;
    std::vector<std::int64_t> counts_;  // rows of each code
    std::vector<std::int32_t> numbers_; // level of each code
    std::vector<std::uint8_t> steps_;
    Tabulation<std::uint8_t> tabulation_;
};

} // namespace srs
