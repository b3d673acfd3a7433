// Tails of sums of products of scores by a double saddlepoint (Skovgaard 1987), summed over strata.
#pragma once
#include "ranks/exact.hpp"

#include <vector>

namespace srs {

// A stratum: its rows have levels, and are dealt to groups of fixed sizes; a row of level l in group g adds
// scores[l] weights[g], where weights[0] = 0.
struct Dealt {
    std::vector<double> counts, scores; // by level
    std::vector<double> sizes, weights; // by group
    double n_rows = 0;

    double log_ways(const LogFactorials &log_factorial) const {
        double ways = log_factorial[static_cast<std::int64_t>(n_rows)];
        for (const double size : sizes) ways -= log_factorial[static_cast<std::int64_t>(size)];
        return ways;
    }
};

// The cumulant function of a stratum at tilts (alpha_1 .., t), its slopes and curvatures.
class DealtLaw {
  public:
    explicit DealtLaw(const Dealt &dealt) : dealt_(dealt), n_(dealt.sizes.size() - 1) {
        alpha.resize(n_);
        for (std::size_t g = 0; g < n_; ++g) alpha[g] = own_log(dealt.sizes[g + 1] / dealt.sizes[0]);
        saved_ = alpha;
        slope_.resize(n_), mixed_.resize(n_), square_.resize(n_ * n_), tilted_.resize(n_ + 1);
        along_slope_.resize(n_), along_mixed_.resize(n_);
        evaluate(0);
        value_at_0 = value, log_det_at_0 = log_det;
    }

    void evaluate(double t) {
        value = slope_t = curve_t = 0;
        std::fill(square_.begin(), square_.end(), 0.0);
        std::fill(mixed_.begin(), mixed_.end(), 0.0);
        for (std::size_t g = 0; g < n_; ++g) slope_[g] = -dealt_.sizes[g + 1], value -= alpha[g] * dealt_.sizes[g + 1];
        for (std::size_t l = 0; l < dealt_.counts.size(); ++l) add_level(t, dealt_.counts[l], dealt_.scores[l]);
        solve();
    }

    void step(double scale, double dt) {
        for (std::size_t g = 0; g < n_; ++g)
            alpha[g] = saved_[g] - scale * (along_slope_saved_[g] + along_mixed_saved_[g] * dt);
    }
    void save() { saved_ = alpha, along_slope_saved_ = along_slope_, along_mixed_saved_ = along_mixed_; }

    std::vector<double> alpha;
    double value = 0, slope_t = 0, curve_t = 0; // curve_t: given the sizes of groups
    double log_det = 0, value_at_0 = 0, log_det_at_0 = 0;
    double slope_left = 0; // of the profile: what alpha's own step leaves of slope_t
    double decrement = 0;  // of alpha alone

  private:
    void add_level(double t, double count, double score) {
        double most = 0;
        for (std::size_t g = 0; g < n_; ++g) {
            tilted_[g] = alpha[g] + t * score * dealt_.weights[g + 1];
            most = std::max(most, tilted_[g]);
        }
        double sum = most > 0 ? own_exp(-most) : 1.0, weighted = 0, weighted2 = 0;
        for (std::size_t g = 0; g < n_; ++g) sum += tilted_[g] = own_exp(tilted_[g] - most);
        value += count * (most + own_log(sum));
        for (std::size_t g = 0; g < n_; ++g) {
            const double w = score * dealt_.weights[g + 1], p = tilted_[g] /= sum;
            weighted += p * w, weighted2 += p * w * w;
        }
        slope_t += count * weighted;
        curve_t += count * (weighted2 - weighted * weighted);
        for (std::size_t g = 0; g < n_; ++g) {
            const double p = count * tilted_[g];
            slope_[g] += p;
            mixed_[g] += p * (score * dealt_.weights[g + 1] - weighted);
            double *row = square_.data() + g * n_;
            row[g] += p;
            for (std::size_t h = 0; h <= g; ++h) row[h] -= p * tilted_[h];
        }
    }

    // Cholesky's factor of the curvature in alpha; then the slope and the mixed one along it.
    void solve() {
        log_det = 0;
        for (std::size_t g = 0; g < n_; ++g) {
            double *row = square_.data() + g * n_;
            for (std::size_t h = 0; h < g; ++h) {
                const double *other = square_.data() + h * n_;
                for (std::size_t k = 0; k < h; ++k) row[h] -= row[k] * other[k];
                row[h] /= other[h];
                row[g] -= row[h] * row[h];
            }
            row[g] = std::sqrt(std::max(row[g], 1e-280));
            log_det += 2 * own_log(row[g]);
        }
        along_slope_ = slope_, along_mixed_ = mixed_;
        forward(along_slope_), forward(along_mixed_);
        slope_left = slope_t, decrement = 0;
        for (std::size_t g = 0; g < n_; ++g) {
            slope_left -= along_slope_[g] * along_mixed_[g];
            curve_t -= along_mixed_[g] * along_mixed_[g];
            decrement += along_slope_[g] * along_slope_[g];
        }
        backward(along_slope_), backward(along_mixed_);
    }
    void forward(std::vector<double> &x) const {
        for (std::size_t g = 0; g < n_; ++g) {
            for (std::size_t h = 0; h < g; ++h) x[g] -= square_[g * n_ + h] * x[h];
            x[g] /= square_[g * n_ + g];
        }
    }
    void backward(std::vector<double> &x) const {
        for (std::size_t g = n_; g-- > 0;) {
            for (std::size_t h = g + 1; h < n_; ++h) x[g] -= square_[h * n_ + g] * x[h];
            x[g] /= square_[g * n_ + g];
        }
    }

    Dealt dealt_;
    std::size_t n_;
    std::vector<double> saved_, slope_, mixed_, square_, tilted_, along_slope_, along_mixed_;
    std::vector<double> along_slope_saved_, along_mixed_saved_;
};

// The cumulant function of a stratum whose distribution is known.
struct KnownLaw {
    Pmf pmf;
    double mean, unit; // subtracted from the sum, which is then divided; negative: for the lower tail
    double value = 0, slope = 0, curve = 0;

    void evaluate(double t) {
        const double by = t / unit;
        std::size_t at = by > 0 ? pmf.p.size() - 1 : 0; // the last sum that there is: from another, all may underflow
        while (!(pmf.p[at] > 0)) at += by > 0 ? -1 : 1;
        const double top = double(pmf.first) + double(at) - mean;
        double sum = 0, first = 0, second = 0;
        for (std::size_t i = 0; i < pmf.p.size(); ++i) {
            if (!(pmf.p[i] > 0)) continue;
            const double x = double(pmf.first) + double(i) - mean - top, p = pmf.p[i] * own_exp(by * x);
            sum += p, first += p * x, second += p * x * x;
        }
        first /= sum, second /= sum;
        value = by * top + own_log(sum);
        slope = (first + top) / unit;
        curve = std::max(0.0, second - first * first) / (unit * unit);
    }
};

// The null distribution of a sum over strata, in units of its standard deviation; ``span`` is its lattice's.
struct Law {
    std::vector<DealtLaw> dealt;
    std::vector<KnownLaw> known;
    double log_ways = 0, span = 0;

    double evaluate(double t) { // returns the value
        double value = 0;
        slope = slope_left = curve = decrement = 0;
        for (DealtLaw &law : dealt) {
            law.evaluate(t);
            value += law.value;
            slope += law.slope_t, slope_left += law.slope_left, curve += law.curve_t, decrement += law.decrement;
        }
        for (KnownLaw &law : known) {
            law.evaluate(t);
            value += law.value;
            slope += law.slope, slope_left += law.slope, curve += law.curve;
        }
        return value;
    }
    double slope = 0, slope_left = 0, curve = 0, decrement = 0;
};

constexpr double ROUNDING = 1e-14; // of a cumulant function, relative: it sums over many rows

// log P(S >= s); ``s`` in standard deviations. Never below what is so: at worst Chernoff's bound.
inline double log_upper_tail(Law law, double s) {
    const double at = s - 0.5 * law.span;
    double at_0 = 0;
    for (const DealtLaw &part : law.dealt) at_0 += part.value_at_0;
    double t = 0, value = law.evaluate(0), bound = 0;
    bool converged = false;
    for (int i = 0; i < 80 && !converged; ++i) {
        if (!(std::fabs(value) <= std::numeric_limits<double>::max())) return bound; // tilts overflow: nothing is above the sum
        // The value of any tilts, at the sum itself, bounds the tail: Chernoff's bound given the sizes.
        if (t > 0) bound = std::min(bound, value - t * s - law.log_ways);
        const double curve = std::max(law.curve, 1e-280), dt = -(law.slope_left - at) / curve;
        const double decrement = law.decrement + dt * dt * curve;
        if (decrement < 1e-16 + ROUNDING * std::fabs(value)) { converged = true; break; }
        const double from = t, before = value - t * at;
        for (DealtLaw &part : law.dealt) part.save();
        double scale = decrement > 64 ? 8 / std::sqrt(decrement) : 1;
        for (int half = 0; half < 40; ++half, scale *= 0.5) {
            t = from + scale * dt;
            for (DealtLaw &part : law.dealt) part.step(scale, dt);
            value = law.evaluate(t);
            if (value - t * at <= before - 0.1 * scale * decrement + 1e-12 + ROUNDING * std::fabs(value)) break;
        }
    }
    if (!(t > 0)) return 0;
    if (!converged) return bound;
    const double w2 = 2 * (t * at - (value - at_0));
    if (!(w2 > 1e-4)) return 0;
    const double w = std::sqrt(w2);
    double log_root = 0;
    for (const DealtLaw &part : law.dealt) log_root += 0.5 * (part.log_det - part.log_det_at_0);
    const double half = 0.5 * t * law.span;
    const double sinh = half < 0.01 ? t * (1 + half * half / 6) : (own_exp(half) - own_exp(-half)) / law.span;
    const double u = sinh * std::sqrt(law.curve) * own_exp(log_root);
    const double bracket = mills(w) + 1 / u - 1 / w;
    if (!(bracket > 0)) return bound;
    return std::min(bound, log_density(w) + own_log(bracket));
}

} // namespace srs
