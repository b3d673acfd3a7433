// The largest eigenvalues of a symmetric tridiagonal matrix, and their vectors.
#pragma once
#include "hash.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace srs {

class Tridiagonal {
  public:
    Tridiagonal(const double *diagonal, const double *beside, int64_t n)
        : n_(n), diagonal_(diagonal), beside_(beside), low_(diagonal[0]), high_(diagonal[0]) {
        for (int64_t i = 0; i < n; ++i) { // Gershgorin's circles
            const double around = (i > 0 ? std::fabs(beside[i - 1]) : 0) + (i + 1 < n ? std::fabs(beside[i]) : 0);
            low_ = std::min(low_, diagonal[i] - around);
            high_ = std::max(high_, diagonal[i] + around);
        }
        size_ = std::max(std::fabs(low_), std::fabs(high_));
        least_pivot_ = std::max(size_ * EPS * EPS, std::numeric_limits<double>::min());
    }

    // The eigenvalue with `rank` larger ones, by bisection.
    double value(int64_t rank) const {
        double low = low_, high = high_ + size_ * EPS;
        for (int step = 0; step < 200; ++step) {
            const double middle = low + (high - low) / 2;
            if (!(low < middle && middle < high)) break;
            (n_above(middle) > rank ? low : high) = middle;
        }
        return low + (high - low) / 2;
    }

    // Vectors of ascending or descending values, into columns of `out` (n, count): inverse iteration, orthogonal to
    // those before whose values are near (Peters and Wilkinson 1979).
    void vectors(const double *values, int64_t count, double *out) {
        std::vector<double> found(static_cast<size_t>(count * n_));
        int64_t first = 0; // of those that are near
        double shift = 0;
        for (int64_t j = 0; j < count; ++j) {
            if (j > 0 && std::fabs(values[j] - values[j - 1]) > NEAR * size_) first = j;
            const double apart = 10 * EPS * size_;
            shift = j > first && std::fabs(values[j] - shift) < apart ? shift - apart : values[j];
            factor(shift);
            double *x = found.data() + j * n_;
            for (int64_t i = 0; i < n_; ++i) // any vector with a part in all directions
                x[i] = double(derive(uint64_t(j), uint64_t(i)) >> 11) * 0x1p-53 - 0.5;
            for (int turn = 0; turn < TURNS; ++turn) {
                solve(x);
                normalise(x);
                for (int64_t other = first; other < j; ++other) {
                    const double *y = found.data() + other * n_;
                    const double along = std::inner_product(x, x + n_, y, 0.0);
                    for (int64_t i = 0; i < n_; ++i) x[i] -= along * y[i];
                }
                normalise(x);
            }
            for (int64_t i = 0; i < n_; ++i) out[i * count + j] = x[i];
        }
    }

  private:
    static constexpr double EPS = std::numeric_limits<double>::epsilon(), NEAR = 1e-3;
    static constexpr int TURNS = 4;

    int64_t n_above(double x) const { // by the signs of the pivots of T - x (Sylvester)
        int64_t count = 0;
        double pivot = 1;
        for (int64_t i = 0; i < n_; ++i) {
            pivot = diagonal_[i] - x - (i > 0 ? beside_[i - 1] * beside_[i - 1] / pivot : 0);
            if (std::fabs(pivot) < least_pivot_) pivot = -least_pivot_;
            count += pivot > 0;
        }
        return count;
    }

    void factor(double shift) { // T - shift with exchanges of rows: three diagonals, and what is below
        const auto size = static_cast<size_t>(n_);
        for (auto *of : {&pivots_, &second_, &third_, &below_}) of->assign(size, 0.0);
        exchanged_.assign(size, 0);
        double own = diagonal_[0] - shift, next = n_ > 1 ? beside_[0] : 0;
        for (size_t i = 0; i + 1 < size; ++i) {
            double lower[3] = {beside_[i], diagonal_[i + 1] - shift, i + 2 < size ? beside_[i + 1] : 0};
            double upper[3] = {own, next, 0};
            if (std::fabs(lower[0]) > std::fabs(upper[0])) {
                std::swap(lower, upper);
                exchanged_[i] = 1;
            }
            if (std::fabs(upper[0]) < least()) upper[0] = least();
            below_[i] = lower[0] / upper[0];
            pivots_[i] = upper[0], second_[i] = upper[1], third_[i] = upper[2];
            own = lower[1] - below_[i] * upper[1];
            next = lower[2] - below_[i] * upper[2];
        }
        pivots_[size - 1] = std::fabs(own) < least() ? least() : own;
    }

    double least() const { return std::max(EPS * size_, std::numeric_limits<double>::min()); }

    void solve(double *x) const {
        const auto size = static_cast<size_t>(n_);
        for (size_t i = 0; i + 1 < size; ++i) {
            if (exchanged_[i]) std::swap(x[i], x[i + 1]);
            x[i + 1] -= below_[i] * x[i];
        }
        for (size_t i = size; i-- > 0;) {
            if (i + 1 < size) x[i] -= second_[i] * x[i + 1];
            if (i + 2 < size) x[i] -= third_[i] * x[i + 2];
            x[i] /= pivots_[i];
        }
    }

    void normalise(double *x) const {
        double largest = 0, sum = 0;
        for (int64_t i = 0; i < n_; ++i) largest = std::max(largest, std::fabs(x[i]));
        if (!(largest > 0)) return;
        for (int64_t i = 0; i < n_; ++i) x[i] /= largest, sum += x[i] * x[i];
        const double length = std::sqrt(sum);
        for (int64_t i = 0; i < n_; ++i) x[i] /= length;
    }

    int64_t n_;
    const double *diagonal_, *beside_;
    double low_, high_, size_ = 0, least_pivot_ = 0;
    std::vector<double> pivots_, second_, third_, below_;
    std::vector<uint8_t> exchanged_;
};

} // namespace srs
