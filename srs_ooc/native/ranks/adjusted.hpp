// Scores of columns less what a basis of covariates explains of them, tested in even steps (docs/methods/adjusting.md).
#pragma once
#include "isa.hpp"
#include "ranks/levels.hpp"

#include <array>

namespace srs {

constexpr std::size_t STEPS = 64;
constexpr std::size_t TOGETHER = 1 << 17; // scores that are adjusted together, at least those of a column
constexpr double EXPLAINED = 1e-8; // of a column's variation is left where covariates explain all of it

// Columns of numbers for all rows that were fitted together, an intercept among them.
struct Basis {
    const double *values, *products; // [row][k]; of its columns, [k][l]
    std::size_t n_rows, n_columns;
};

// Whatever is tested of a column is a score for each row that has one; memory is used again.
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
        asked_.clear(), scores_.assign(3 * n_columns * basis_.n_rows, 0.0), n_scores_ = 3 * n_columns;
        for (std::size_t j = 0; j < n_columns; ++j) score_column(columns + j * basis_.n_rows, j, only);
        explain();
        for (const Asked &one : asked_) log_p[one.place] = log_p_of(one, exactly);
    }

    // Appends those of the levels of a column whose codes have no order, one after the other, each against those still to
    // come: of what the basis leaves of each, sums over the rows left are uncorrelated. False where LevelTests has none.
    bool test_levels(const Code *column, bool exactly, std::vector<double> &log_p) {
        const std::vector<std::int32_t> order = order_levels(column);
        if (order.empty()) return false;
        std::vector<std::size_t> places(n_codes_ + 1, 0); // of codes; missing: 0
        for (std::size_t code = 0; code < n_codes_; ++code)
            if (counts_[code])
                places[code] = 1 + static_cast<std::size_t>(std::find(order.begin(), order.end(), numbers_[code]) - order.begin());
        const std::size_t size = std::max<std::size_t>(1, TOGETHER / basis_.n_rows);
        for (std::size_t first = 0; first + 1 < order.size(); first += size)
            test_places(column, places, first, std::min(size, order.size() - 1 - first), exactly, log_p);
        return true;
    }

  private:
    struct Asked {
        std::size_t score, place;  // which of the scores; where its p-value belongs
        std::vector<char> known{}; // rows that have a score; empty: all
    };
    void test_places(const Code *column, const std::vector<std::size_t> &places, std::size_t first, std::size_t count, bool exactly,
                     std::vector<double> &log_p) {
        n_scores_ = count, asked_.clear(), scores_.assign(count * basis_.n_rows, 0.0);
        for (std::size_t j = 0; j < count; ++j) {
            asked_.push_back({j, j, std::vector<char>(basis_.n_rows)});
            for (std::size_t i = 0; i < basis_.n_rows; ++i) {
                const std::size_t place = places[code_of(column, i)];
                asked_.back().known[i] = place > first + j;
                scores_[i * count + j] = place == first + j + 1;
            }
        }
        explain();
        for (const Asked &one : asked_) {
            const double found = log_p_of(one, exactly);
            if (!std::isnan(found)) log_p.push_back(found);
        }
    }
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

    // Centred midranks, twice; their distances from the middle; what is missing.
    void score_column(const Code *column, std::size_t j, std::size_t only) {
        count(column);
        const auto n_missing = static_cast<std::size_t>(counts_[n_codes_]);
        const std::int64_t n = static_cast<std::int64_t>(basis_.n_rows - n_missing);
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
        const auto is_asked = [&](Contrast contrast) { return only == contrast || only == N_CONTRASTS; };
        const bool by_rank = is_asked(LOCATION) && n_levels > 1, by_spread = is_asked(SPREAD) && has_spread(n_levels, nearest, even);
        const bool by_absence = is_asked(ABSENCE) && n_missing && n;
        std::vector<char> known;
        if (n_missing) {
            known.resize(basis_.n_rows);
            for (std::size_t i = 0; i < basis_.n_rows; ++i) known[i] = code_of(column, i) < n_codes_;
        }
        for (std::size_t i = 0; i < basis_.n_rows; ++i) {
            const std::size_t code = code_of(column, i);
            double *own = scores_.data() + i * n_scores_ + 3 * j;
            own[LOCATION] = by_code_[code], own[SPREAD] = std::fabs(by_code_[code]), own[ABSENCE] = code == n_codes_;
        }
        if (by_rank) asked_.push_back({3 * j + LOCATION, j * N_CONTRASTS + LOCATION, known});
        if (by_spread) asked_.push_back({3 * j + SPREAD, j * N_CONTRASTS + SPREAD, known});
        if (by_absence) asked_.push_back({3 * j + ABSENCE, j * N_CONTRASTS + ABSENCE, {}});
    }

    // The coefficients of all scores, in rows known.
    void explain() {
        const std::size_t k = basis_.n_columns;
        coefficients_.assign(k * n_scores_, 0.0);
        isa_.add_products(basis_.values, scores_.data(), std::int64_t(basis_.n_rows), std::int64_t(k), std::int64_t(n_scores_),
                          coefficients_.data());
        std::vector<double> root(k * k), right(k);
        const std::vector<char> *last = nullptr;
        for (const Asked &one : asked_) {
            if (!last || one.known != *last) factor(one.known, root), last = &one.known;
            for (std::size_t a = 0; a < k; ++a) right[a] = coefficients_[a * n_scores_ + one.score];
            solve(root, right);
            for (std::size_t a = 0; a < k; ++a) coefficients_[a * n_scores_ + one.score] = -right[a];
        }
        left_ = scores_;
        isa_.add_products(by_column_.data(), coefficients_.data(), std::int64_t(k), std::int64_t(basis_.n_rows),
                          std::int64_t(n_scores_), left_.data());
    }
    // Cholesky's factor of the products of the basis over the rows known; 0 in place of columns that add nothing there.
    void factor(const std::vector<char> &known, std::vector<double> &root) const {
        const std::size_t k = basis_.n_columns;
        std::copy(basis_.products, basis_.products + k * k, root.begin());
        for (std::size_t i = 0; i < known.size(); ++i) {
            if (known[i]) continue;
            const double *row = basis_.values + i * k;
            for (std::size_t a = 0; a < k; ++a)
                for (std::size_t b = 0; b <= a; ++b) root[a * k + b] -= row[a] * row[b];
        }
        for (std::size_t a = 0; a < k; ++a) {
            double *row = root.data() + a * k;
            for (std::size_t b = 0; b < a; ++b) {
                const double *other = root.data() + b * k;
                for (std::size_t c = 0; c < b; ++c) row[b] -= row[c] * other[c];
                row[b] = other[b] > 0 ? row[b] / other[b] : 0;
                row[a] -= row[b] * row[b];
            }
            row[a] = row[a] > EXPLAINED * basis_.products[a * k + a] ? std::sqrt(row[a]) : 0;
        }
    }
    static void solve(const std::vector<double> &root, std::vector<double> &x) {
        const std::size_t k = x.size();
        for (std::size_t a = 0; a < k; ++a) {
            for (std::size_t b = 0; b < a; ++b) x[a] -= root[a * k + b] * x[b];
            x[a] = root[a * k + a] > 0 ? x[a] / root[a * k + a] : 0;
        }
        for (std::size_t a = k; a-- > 0;) {
            for (std::size_t b = a + 1; b < k; ++b) x[a] -= root[b * k + a] * x[b];
            x[a] = root[a * k + a] > 0 ? x[a] / root[a * k + a] : 0;
        }
    }

    // What is left of a score in even steps; tested within strata. NaN where nothing is left of it.
    double log_p_of(const Asked &one, bool exactly) {
        double least = std::numeric_limits<double>::infinity(), most = -least, sum = 0, before = 0, after = 0, n = 0;
        const auto is_known = [&](std::size_t i) { return one.known.empty() || one.known[i]; };
        for (std::size_t i = 0; i < basis_.n_rows; ++i) {
            if (!is_known(i)) continue;
            const double x = left_[i * n_scores_ + one.score], was = scores_[i * n_scores_ + one.score];
            least = std::min(least, x), most = std::max(most, x);
            n += 1, sum += was, before += was * was, after += x * x;
        }
        if (!(after > EXPLAINED * (before - sum * sum / std::max(n, 1.0)))) return std::numeric_limits<double>::quiet_NaN();
        const double scale = double(STEPS) / (most - least);
        for (std::size_t i = 0; i < basis_.n_rows; ++i)
            steps_[i] = is_known(i) ? static_cast<std::uint8_t>((left_[i * n_scores_ + one.score] - least) * scale + 0.5) : STEPS + 1;
        tabulation_.tabulate(steps_.data());
        const AsymptoticScreen screen(tabulation_.strata, target_.nominal, target_.n_targets, false, target_.shrink);
        if (!screen.location.is_there) return std::numeric_limits<double>::quiet_NaN();
        return contrast_log_p(log_factorial_, tabulation_.strata, screen.location.log_p, gate(screen, target_.nominal),
                              target_, exactly, false);
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
    std::size_t n_scores_ = 0;
    std::vector<double> by_column_, scores_, left_, coefficients_, by_code_; // the basis, [k][row]; scores, [row][score]
    std::vector<std::int64_t> counts_;                                       // rows of each code
    std::vector<std::int32_t> numbers_;                                      // level of each code
    std::vector<std::uint8_t> steps_;
    std::vector<Asked> asked_;
    Tabulation<std::uint8_t> tabulation_;
};

} // namespace srs
