// Three levels and two classes, as of genotypes: one exact test against all orders of the levels.
#pragma once
#include "ranks/linear_test.hpp"

namespace srs {

// The levels' scores where their order is additive, dominant, recessive, and where the middle one differs; what each
// weighs, and how many standard deviations it is away, in a mixture whose likelihood ratio is the statistic.
constexpr std::size_t N_CODINGS = 4;
constexpr double CODINGS[N_CODINGS][3] = {{0, 1, 2}, {0, 1, 1}, {0, 0, 1}, {0, 1, 0}};
constexpr double CODING_WEIGHTS[N_CODINGS] = {0.6, 0.15, 0.15, 0.1}, CODING_DISTANCE = 3.2;
constexpr double THREE_LEVELS_GATE = -2.8; // of the logarithm of Pearson's p-value: beyond .06 it stays

// The logarithm of Pearson's p-value, of two degrees of freedom; ``is_thin``: whether rows are too few for it.
inline double three_levels_asymptotic(const ContingencyTable &table, bool &is_thin) {
    const std::int32_t *cells = table.cells.data();
    const double r = cells[1] + cells[3] + cells[5], n = r + cells[0] + cells[2] + cells[4];
    double sum = 0, commonest = 0;
    for (std::size_t l = 0; l < 3; ++l) {
        const double rows = cells[2 * l] + cells[2 * l + 1], off = cells[2 * l + 1] - r * rows / n;
        sum += off * off / rows, commonest = std::max(commonest, rows);
    }
    is_thin = n < 4 * THICK || std::min({r, n - r, n - commonest}) < THICK;
    return r > 0 && r < n ? -0.5 * sum * n * (n - 1) / (r * (n - r)) : 0;
}

// Of each number drawn of the rarest level, those of the two others beside it at which the statistic, which is
// convex, is as large: two hypergeometric tails.
class ThreeLevelsTest {
  public:
    ThreeLevelsTest(const LogFactorials &log_factorial, const ContingencyTable &table)
        : log_factorial_(log_factorial), n_drawn_(table.targets()[1]) {
        const std::vector<std::int64_t> counts = table.levels();
        std::size_t order[] = {0, 1, 2};
        std::stable_sort(order, order + 3, [&](std::size_t a, std::size_t b) { return counts[a] < counts[b]; });
        for (std::size_t l = 0; l < 3; ++l) counts_[l] = counts[order[l]], n_rows_ += counts_[l];
        const double n = double(n_rows_), r = double(n_drawn_);
        for (std::size_t c = 0; c < N_CODINGS; ++c) {
            double mean = 0, square = 0;
            for (std::size_t l = 0; l < 3; ++l)
                mean += double(counts[l]) * CODINGS[c][l] / n, square += double(counts[l]) * CODINGS[c][l] * CODINGS[c][l];
            const double sd = std::sqrt((square - n * mean * mean) * r * (n - r) / (n * (n - 1)));
            for (std::size_t l = 0; l < 3; ++l) units_[c][l] = CODING_DISTANCE * (CODINGS[c][order[l]] - mean) / sd;
        }
        found_ = value(table.at(order[0], 1), table.at(order[1], 1)) * (1 - 1e-9);
    }
    double log_p() {
        if (!n_drawn_ || n_drawn_ == n_rows_) return 0;
        const std::int64_t rest = n_rows_ - counts_[0], least = std::max<std::int64_t>(0, n_drawn_ - rest);
        const std::int64_t most = std::min(counts_[0], n_drawn_), middle = std::max(least, n_drawn_ * counts_[0] / n_rows_);
        at_ = edges_[0] = edges_[1] = (n_drawn_ - middle) * counts_[1] / rest;
        const double all = log_factorial_.choose(n_rows_, n_drawn_);
        const auto goes_on = [&](std::int64_t k) {
            const double share = log_factorial_.choose(counts_[0], k) + log_factorial_.choose(rest, n_drawn_ - k) - all;
            if (share < log_p_ - 50) return false; // nothing beside what is there
            add(k, share);
            return true;
        };
        goes_on(middle);
        const std::int64_t start[] = {at_, edges_[0], edges_[1]};
        for (std::int64_t k = middle - 1; k >= least && goes_on(k);) --k;
        at_ = start[0], edges_[0] = start[1], edges_[1] = start[2];
        for (std::int64_t k = middle + 1; k <= most && goes_on(k);) ++k;
        return std::min(0.0, log_p_);
    }

  private:
    double value(std::int64_t k, std::int64_t j) const {
        const double drawn[] = {double(k), double(j), double(n_drawn_ - k - j)};
        double sum = 0;
        for (std::size_t c = 0; c < N_CODINGS; ++c)
            sum += CODING_WEIGHTS[c] * own_exp(std::fabs(drawn[0] * units_[c][0] + drawn[1] * units_[c][1] + drawn[2] * units_[c][2]));
        return sum;
    }
    void add(std::int64_t k, double share) {
        const std::int64_t left = n_drawn_ - k, least = std::max<std::int64_t>(0, left - counts_[2]), most = std::min(counts_[1], left);
        at_ = std::clamp(at_, least, most); // the least of the row, near that of the row before
        for (const std::int64_t step : {-1, 1})
            while (least <= at_ + step && at_ + step <= most && value(k, at_ + step) < value(k, at_)) at_ += step;
        if (value(k, at_) >= found_) {
            log_p_ = log_sum(log_p_, share);
            return;
        }
        for (const bool upper : {false, true}) {
            const std::int64_t step = upper ? 1 : -1, end = upper ? most + 1 : least - 1;
            std::int64_t &out = edges_[upper]; // the first as large, or none
            out = upper ? std::clamp(out, at_ + 1, end) : std::clamp(out, end, at_ - 1);
            while (out != end && value(k, out) < found_) out += step;
            while (out != at_ + step && value(k, out - step) >= found_) out -= step;
            const double tail = log_hypergeometric_tail(log_factorial_, counts_[1] + counts_[2], counts_[1], left, out, upper);
            log_p_ = log_sum(log_p_, share + tail);
        }
    }

    const LogFactorials &log_factorial_;
    std::int64_t counts_[3], n_rows_ = 0, n_drawn_, at_ = 0, edges_[2]{}; // levels by their rows, the rarest first
    double units_[N_CODINGS][3], found_ = 0, log_p_ = NEVER;
};

} // namespace srs
