// All classes of the rows against all levels of a column without an order, as one test.
#pragma once
#include "ranks/contrasts.hpp"
#include "ranks/exact.hpp"

#include <cmath>

namespace srs {

// Rows of which some are of a class, and some have a level: how many do both, given these.
struct Overlap {
    std::int64_t n_rows, n_class, n_level;
    double mean() const { return double(n_class) * double(n_level) / double(n_rows); }
    double variance() const {
        return mean() * double(n_rows - n_class) / double(n_rows) * double(n_rows - n_level) / double(n_rows - 1);
    }
    std::int64_t least() const { return std::max<std::int64_t>(0, n_class + n_level - n_rows); }
    std::int64_t most() const { return std::min(n_class, n_level); }
    // The hypergeometric distribution; of wide ones as far as anything is left. Memory is used again.
    void fill(Pmf &law) const {
        const std::int64_t mode = std::clamp((n_class + 1) * (n_level + 1) / (n_rows + 2), least(), most());
        const bool is_wide = most() - least() > WIDE;
        const auto reach = is_wide ? static_cast<std::int64_t>(60 * std::sqrt(variance())) + WIDE / 2 : WIDE;
        const std::int64_t least = std::max(this->least(), mode - reach), most = std::min(this->most(), mode + reach);
        const auto ratio = [&](std::int64_t k) { // of k + 1 to k
            return double(n_class - k) * double(n_level - k) / (double(k + 1) * double(n_rows - n_class - n_level + k + 1));
        };
        law.first = least, law.p.resize(static_cast<std::size_t>(most - least + 1));
        double *p = law.p.data() - least, sum = p[mode] = 1;
        for (std::int64_t k = mode; k > least; --k) sum += p[k - 1] = p[k] > LOST ? p[k] / ratio(k - 1) : 0;
        for (std::int64_t k = mode; k < most; ++k) sum += p[k + 1] = p[k] > LOST ? p[k] * ratio(k) : 0;
        for (double &one : law.p) one /= sum;
    }
    static constexpr std::int64_t WIDE = 4096;
    static constexpr double LOST = 1e-280;
};

// Lancaster's (1949, Biometrika 36) parts of Pearson's chi-squared: each class against those after it, there each level
// against those after it, given the parts before. A part is the squared distance of a count from its mean over its variance,
// summed over strata before it is squared. Parts are then independent but for their shapes, which the margins left decide.
class JointTest {
  public:
    // ``cells``: rows, [stratum][class][level]; classes and levels in the order of their comparisons.
    JointTest(std::vector<std::int64_t> cells, std::size_t n_strata, std::size_t n_classes, std::size_t n_levels)
        : cells_(std::move(cells)), n_strata_(n_strata), n_classes_(n_classes), n_levels_(n_levels) {
        left_.assign(n_strata * n_levels, 0);
        for (std::size_t i = 0; i < cells_.size(); ++i) left_[i / (n_classes * n_levels) * n_levels + i % n_levels] += cells_[i];
        for (std::size_t c = 0; c + 1 < n_classes; ++c) add_parts(c);
    }

    double fewest() const { // rows that a class and a level share on average, at least
        double fewest = std::numeric_limits<double>::infinity();
        for (const Part &part : parts_) fewest = std::min(fewest, part.mean);
        return fewest;
    }
    double asymptotic() const { return log_chi_squared(sum_, int(parts_.size())); }

    // The logarithm of the p-value. Where few tables have these margins all are counted; in strata each part then has its own
    // two-sided p-value, whose squared normal scores are added: at most chi-squared, as each is valid given the ones before.
    double log_p() {
        if (parts_.empty()) return 0;
        const bool is_few = n_tables() <= FEW_TABLES;
        if (is_few && n_strata_ == 1) {
            left_.assign(n_levels_, 0), dealt_.resize(n_classes_ * n_levels_), laws_.resize(dealt_.size());
            for (std::size_t i = 0; i < cells_.size(); ++i) left_[i % n_levels_] += cells_[i];
            return std::min(0.0, own_log(beyond(0, 0, n_rows(), rows_of(0), 0)));
        }
        std::vector<std::vector<Atom>> atoms;
        Pmf own;
        double scores = 0;
        for (const Part &part : parts_) {
            Pmf law{0, {1.0}};
            for (const Overlap &one : part.strata) one.fill(own), law = convolved(own, 1, law);
            const double z = is_few ? normal_score(log_p_of(law, Extreme::of(part.mean, part.count))) : 0;
            scores += z * z;
            if (!is_few) atoms.push_back(atoms_of(part, law));
        }
        return is_few ? log_chi_squared(scores, int(parts_.size())) : saddlepoint(std::move(atoms));
    }

  private:
    static constexpr double FEW_TABLES = 20000, FINE = 6; // atoms a standard deviation at most
    struct Part {
        std::vector<Overlap> strata;
        double mean = 0, variance = 0, count = 0;
        double squared(double at) const { return (at - mean) * (at - mean) / variance; }
    };
    struct Atom {
        double squared, p;
    };

    std::int64_t rows_of(std::size_t c) const {
        return std::accumulate(cells_.begin() + std::ptrdiff_t(c * n_levels_), cells_.begin() + std::ptrdiff_t((c + 1) * n_levels_), std::int64_t(0));
    }
    std::int64_t n_rows() const { return std::accumulate(left_.begin(), left_.end(), std::int64_t(0)); }

    // Those of a class; its rows are then gone.
    void add_parts(std::size_t c) {
        std::vector<Part> parts(n_levels_ - 1);
        for (std::size_t h = 0; h < n_strata_; ++h) {
            const std::int64_t *own = cells_.data() + (h * n_classes_ + c) * n_levels_;
            std::int64_t *all = left_.data() + h * n_levels_;
            std::int64_t n_rows = std::accumulate(all, all + n_levels_, std::int64_t(0));
            std::int64_t n_class = std::accumulate(own, own + n_levels_, std::int64_t(0));
            for (std::size_t l = 0; l + 1 < n_levels_; n_rows -= all[l], n_class -= own[l], ++l) {
                const Overlap one{n_rows, n_class, all[l]};
                if (n_rows < 2 || !(one.variance() > 0)) continue;
                parts[l].mean += one.mean(), parts[l].variance += one.variance(), parts[l].count += double(own[l]);
                parts[l].strata.push_back(one);
            }
            for (std::size_t l = 0; l < n_levels_; ++l) all[l] -= own[l];
        }
        for (Part &part : parts)
            if (part.variance > 0) sum_ += part.squared(part.count), parts_.push_back(std::move(part));
    }

    // At least as many tables as have these margins: by the rows of classes, or by the counts of each part.
    double n_tables() const {
        double tables = 1, counts = 1;
        for (std::size_t c = 0; c + 1 < n_classes_; ++c) {
            double rows = 0;
            for (std::size_t h = 0; h < n_strata_; ++h) rows += double(rows_of(h * n_classes_ + c));
            for (std::size_t l = 1; l < n_levels_; ++l) tables *= (rows + double(l)) / double(l);
        }
        for (const Part &part : parts_) {
            double own = 1;
            for (const Overlap &one : part.strata) own += double(one.most() - one.least());
            counts *= own;
        }
        return std::min(tables, counts);
    }

    // The chance that the parts from this one on bring the sum to what it is; one stratum.
    double beyond(std::size_t c, std::size_t l, std::int64_t n_rows, std::int64_t n_class, double sum) {
        if (sum >= sum_ - Extreme::TOLERANCE * (1 + sum_)) return 1;
        if (l + 1 == n_levels_) {
            if (c + 2 == n_classes_) return 0;
            const std::vector<std::int64_t> before = left_;
            std::int64_t rows = 0, last = n_class;
            for (std::size_t i = 0; i < n_levels_; ++i) left_[i] -= i == l ? last : dealt_[c * n_levels_ + i], rows += left_[i];
            const double found = beyond(c + 1, 0, rows, rows_of(c + 1), sum);
            left_ = before;
            return found;
        }
        const Overlap one{n_rows, n_class, left_[l]};
        const Part part{{}, one.mean(), n_rows < 2 ? 0 : one.variance(), 0};
        Pmf &law = laws_[c * n_levels_ + l];
        one.fill(law);
        double found = 0;
        for (std::size_t i = 0; i < law.p.size(); ++i) {
            const std::int64_t k = law.first + std::int64_t(i);
            dealt_[c * n_levels_ + l] = k;
            found += law.p[i] * beyond(c, l + 1, n_rows - left_[l], n_class - k, sum + (part.variance > 0 ? part.squared(double(k)) : 0));
        }
        return found;
    }

    // The upper tail of a sum of independent parts by Lugannani and Rice (1980, Adv. Appl. Prob. 12), at most Chernoff's bound.
    // A part counts as far as the sum at most: counts of long tails would decide where the sum is tilted to.
    double saddlepoint(std::vector<std::vector<Atom>> atoms) const {
        double most = 0, last = 0;
        for (std::vector<Atom> &part : atoms) {
            double top = 0, p = 0;
            for (const Atom &one : part) top = std::max(top, one.squared);
            for (const Atom &one : part)
                if (one.squared >= top * (1 - 1e-9)) p += one.p; // both ends may be as far
            most += top, last += own_log(p);
            for (Atom &one : part) one.squared = std::min(one.squared, sum_); // beyond, it is as far anyway
        }
        if (sum_ >= most * (1 - 1e-9)) return last;
        if (sum_ <= double(parts_.size()) * (1 + 1e-9)) return asymptotic(); // no more than on average
        double t = 0.5 - 0.5 * double(parts_.size()) / sum_; // where it is for chi-squared
        double low = 0, high = std::numeric_limits<double>::infinity(), value = 0, slope = 0, curve = 0;
        for (int i = 0; i < 100; ++i) {
            value = slope = curve = 0;
            for (const std::vector<Atom> &part : atoms) cumulate(part, t, value, slope, curve);
            const double off = sum_ - slope;
            if (std::fabs(off) < 1e-6 * sum_) break;
            (off > 0 ? low : high) = t;
            const double next = t + std::min(off / curve, 1.0);
            t = next > low && next < high ? next : 0.5 * (low + high);
        }
        const double bound = std::min(0.0, value - t * sum_), w = std::sqrt(std::max(-2 * bound, 0.0)), u = t * std::sqrt(curve);
        if (!(w > 0.01)) return asymptotic();
        const double bracket = mills(w) + 1 / u - 1 / w;
        return bracket > 0 ? std::min(bound, log_density(w) + own_log(bracket)) : bound;
    }
    // Neighbours are put together where they are close beside the standard deviation.
    static std::vector<Atom> atoms_of(const Part &part, const Pmf &law) {
        const auto step = std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(part.variance) / FINE));
        std::vector<Atom> out;
        for (std::size_t i = 0; i < law.p.size(); i += step) {
            Atom one{0, 0};
            for (std::size_t j = i; j < std::min(i + step, law.p.size()); ++j)
                one.p += law.p[j], one.squared += law.p[j] * part.squared(double(law.first) + double(j));
            if (one.p > 0) out.push_back({one.squared / one.p, one.p});
        }
        return out;
    }
    static void cumulate(const std::vector<Atom> &part, double t, double &value, double &slope, double &curve) {
        double top = 0, sum = 0, first = 0, second = 0;
        if (t > 0) for (const Atom &one : part) top = std::max(top, one.squared);
        for (const Atom &one : part) {
            const double p = one.p * own_exp(t * (one.squared - top));
            sum += p, first += p * one.squared, second += p * one.squared * one.squared;
        }
        first /= sum;
        value += t * top + own_log(sum), slope += first, curve += std::max(0.0, second / sum - first * first);
    }

    const std::vector<std::int64_t> cells_;
    const std::size_t n_strata_, n_classes_, n_levels_;
    std::vector<std::int64_t> left_, dealt_; // rows of each level not compared yet, [stratum][level]; of a class
    std::vector<Part> parts_;
    std::vector<Pmf> laws_; // of the parts, as tables are counted
    double sum_ = 0;
};

// The test itself is made where the asymptotic p-value is below 0.2 if a class and a level share less than one row on average,
// 0.045 if few, else 0.01.
constexpr double SPARSE_GATE = -1.6;

inline double joint_log_p(JointTest test, bool exactly) {
    const double screened = test.asymptotic(), fewest = test.fewest();
    const double bar = fewest < 1 ? SPARSE_GATE : fewest < THICK ? THICK_GATE : FINE_GATE;
    return exactly || screened < bar ? test.log_p() : screened;
}
inline double joint_log_p(const ContingencyTable &table, const std::vector<std::int32_t> &order, bool exactly) {
    std::vector<std::int64_t> cells;
    for (const std::int32_t y : order)
        for (std::size_t l = 0; l < table.n_levels; ++l) cells.push_back(table.at(l, static_cast<std::size_t>(y)));
    return joint_log_p({std::move(cells), 1, order.size(), table.n_levels}, exactly);
}

} // namespace srs
