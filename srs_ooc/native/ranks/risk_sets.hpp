// Tests of a column against times to an event by who is at risk at each event, where censoring depends on the column and
// rows do not trade places (docs/methods/censored.md).
#pragma once
#include "ranks/columns.hpp"

#include <array>

namespace srs {

// S: scores of the rows with an event, each less the mean of the rows of its stratum then at risk. Its cumulant function
// has each of these as likely to have the event (Cox 1972). Of events at one time the later ones have that much less of
// those among them at risk (Efron 1977). Tails by Lugannani and Rice (1980), at half a lattice step (Daniels 1987).
class RiskSetTests {
  public:
    // ``times``, ``events``: of rows of the table.
    RiskSetTests(const Target &target, std::size_t n_codes, const std::int32_t *times, const bool *events)
        : target_(target), n_codes_(n_codes), times_(times), events_(events), rows_(target.rows, target.rows + target.starts[target.n_strata]),
          counts_(n_codes + 1, 0), by_code_(n_codes + 1, 0), steps_(rows_.size()) {
        for (std::size_t h = 0; h < target.n_strata; ++h)
            std::sort(rows_.begin() + target.starts[h], rows_.begin() + target.starts[h + 1], [&](std::int32_t a, std::int32_t b) {
                return times[a] != times[b] ? times[a] > times[b] : a < b;
            });
    }

    // The natural logarithm of the two-sided p-value of a contrast.
    double log_p(Codes column, Contrast contrast) {
        score(column, contrast);
        gather();
        evaluate(0);
        if (!(curve_ > 1e-9)) return 0;
        const double z = std::fabs(observed_) / std::sqrt(curve_);
        if (z < (curve_ < THICK ? THIN_Z : THICK_Z) + 1e-9) return log_two_sided(z);
        const double own = log_tail(observed_ > 0 ? 1 : -1, std::fabs(observed_));
        const double other = std::ceil(2 * std::fabs(observed_) - 1e-9) - std::fabs(observed_);
        return std::min(0.0, log_sum(own, log_tail(observed_ > 0 ? -1 : 1, other)));
    }

  private:
    static constexpr std::int32_t ABSENT = -1;
    static constexpr double FARTHEST = 600; // of what is taken to the power
    static constexpr double THIN_Z = 1, THICK_Z = 1.6; // up to which the normal tail is taken, if steps are few or many

    std::size_t code_of(Codes column, std::int32_t row) const { return std::min(column[static_cast<std::size_t>(row)], n_codes_); }

    // Steps of rows: midranks among the rows of their stratum, of all where strata are tiny; two levels, and what is
    // missing, as 0 and 1.
    void score(Codes column, Contrast contrast) {
        const std::size_t n = rows_.size();
        if (contrast == ABSENCE) {
            for (std::size_t i = 0; i < n; ++i) steps_[i] = code_of(column, rows_[i]) == n_codes_;
            return;
        }
        const bool two = count(column, 0, n) == 2;
        if (two || target_.has_tiny_strata()) return rank(column, 0, n, contrast, two);
        for (std::size_t h = 0; h < target_.n_strata; ++h) rank(column, start_of(h), start_of(h + 1), contrast, false);
    }
    std::size_t start_of(std::size_t h) const { return static_cast<std::size_t>(target_.starts[h]); }
    std::size_t count(Codes column, std::size_t from, std::size_t to) {
        present_.clear();
        for (std::size_t i = from; i < to; ++i) {
            const std::size_t code = code_of(column, rows_[i]);
            if (!counts_[code]++ && code < n_codes_) present_.push_back(code);
        }
        std::sort(present_.begin(), present_.end());
        std::int64_t below = 0;
        for (const std::size_t code : present_) by_code_[code] = 2 * below + counts_[code] + 1, below += counts_[code], counts_[code] = 0;
        counts_[n_codes_] = 0, n_known_ = below;
        return present_.size();
    }
    void rank(Codes column, std::size_t from, std::size_t to, Contrast contrast, bool two) {
        count(column, from, to);
        const std::int64_t n = n_known_ + 1;
        for (std::size_t level = 0; level < present_.size(); ++level) {
            std::int64_t &own = by_code_[present_[level]];
            const std::int64_t twice = contrast == SPREAD ? 2 * std::abs(own - n) : own;
            own = two ? static_cast<std::int64_t>(level) : (twice * GRID + n) / (2 * n);
        }
        by_code_[n_codes_] = ABSENT;
        for (std::size_t i = from; i < to; ++i) steps_[i] = static_cast<std::int32_t>(by_code_[code_of(column, rows_[i])]);
    }

    // A time of a stratum with events: rows that come in with it, by step; those with an event.
    struct Time {
        std::size_t from, to; // of known_: rows from this time on that no earlier one of these has
        std::int64_t n_at_risk, n_events;
        bool is_first; // of its stratum, the last time
    };
    // Only what is known counts, and only times with events.
    void gather() {
        known_.clear(), had_.clear(), moments_.clear(), observed_ = means_ = 0;
        for (std::size_t h = 0; h < target_.n_strata; ++h) {
            std::int64_t at_risk = 0, sum = 0;
            bool is_first = true;
            std::size_t begun = known_.size();
            for (std::size_t i = start_of(h), to = start_of(h + 1); i < to;) {
                const std::int32_t time = times_[rows_[i]];
                std::int64_t events = 0, steps = 0;
                for (; i < to && times_[rows_[i]] == time; ++i) {
                    if (steps_[i] == ABSENT) continue;
                    known_.push_back(steps_[i]), ++at_risk, sum += steps_[i];
                    if (events_[rows_[i]]) ++events, steps += steps_[i], had_.push_back(steps_[i]);
                }
                if (!events) continue;
                moments_.push_back({begun, known_.size(), at_risk, events, is_first});
                begun = known_.size(), is_first = false;
                observed_ += double(steps);
                for (std::int64_t l = 0; l < events; ++l)
                    means_ += (double(sum) - double(l) / double(events) * double(steps)) / double(at_risk - l);
            }
        }
        observed_ -= means_;
    }

    // Cumulants at t: value (where asked for), slope and curve.
    void evaluate(double t, bool with_value = false) {
        const double from = t > 0 ? double(GRID) : 0;
        for (std::size_t s = 0; s <= GRID; ++s) {
            const double x = double(s), power = own_exp(t * (x - from));
            powers_[s] = {power, power * x, power * x * x};
        }
        value_ = slope_ = curve_ = 0;
        double a[3] = {};
        std::size_t had = 0;
        for (const Time &time : moments_) {
            if (time.is_first) a[0] = a[1] = a[2] = 0;
            for (std::size_t i = time.from; i < time.to; ++i) {
                const auto &own = powers_[static_cast<std::size_t>(known_[i])];
                a[0] += own[0], a[1] += own[1], a[2] += own[2];
            }
            double b[3] = {};
            for (std::int64_t e = 0; e < time.n_events; ++e) {
                const auto &own = powers_[static_cast<std::size_t>(had_[had++])];
                b[0] += own[0], b[1] += own[1], b[2] += own[2];
            }
            for (std::int64_t l = 0; l < time.n_events; ++l) {
                const double gone = double(l) / double(time.n_events), whole = a[0] - gone * b[0];
                const double first = (a[1] - gone * b[1]) / whole;
                slope_ += first, curve_ += (a[2] - gone * b[2]) / whole - first * first;
                if (with_value) value_ += own_log(whole / double(time.n_at_risk - l)) + t * from;
            }
        }
        slope_ -= means_, value_ -= t * means_;
    }

    // The logarithm of P(S >= at), or of P(S <= -at) where ``side`` is -1; at > 0 is on the lattice.
    double log_tail(double side, double at) {
        const double wanted = side * (at - 0.5), range = FARTHEST / double(GRID);
        if (!(side * wanted > 0)) return -LN2;
        double low = 0, high = side * range, t = 0;
        evaluate(0);
        for (int i = 0; i < 100; ++i) {
            const double missing = wanted - slope_;
            if (std::fabs(missing) <= 1e-10 * std::fabs(wanted)) break;
            if (side * missing > 0) low = t; else high = t;
            const double next = curve_ > 0 ? t + missing / curve_ : high;
            const bool inside = side * next > side * low && side * next < side * high;
            const double to = inside ? next : 0.5 * (low + high);
            if (to == t) break;
            t = to;
            evaluate(t);
        }
        if (std::fabs(t) > 0.999 * range) return NEVER;
        evaluate(t, true);
        const double w = std::sqrt(std::max(2 * (t * wanted - value_), 0.0));
        const double half = 0.5 * std::fabs(t), step = own_exp(half) - own_exp(-half);
        if (!(w > 1e-4)) return -LN2;
        const double tail = mills(w) + 1 / (step * std::sqrt(curve_)) - 1 / w;
        return std::min(0.0, log_density(w) + own_log(tail > 0 ? tail : mills(w)));
    }

    const Target &target_;
    const std::size_t n_codes_;
    const std::int32_t *times_;
    const bool *events_;
    std::vector<std::int32_t> rows_; // by stratum, the last time first
    std::vector<std::int64_t> counts_, by_code_;
    std::vector<std::size_t> present_;
    std::vector<std::int32_t> steps_, known_, had_; // of rows_; of those known; of those with an event
    std::vector<Time> moments_;
    std::array<std::array<double, 3>, GRID + 1> powers_{};
    std::int64_t n_known_ = 0;
    double observed_ = 0, means_ = 0, value_ = 0, slope_ = 0, curve_ = 0;
};

} // namespace srs
