// Logarithms, exponentials and tails from IEEE basic operations alone: the same bits on every machine.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace srs {

constexpr double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
constexpr double LOG_2PI = 1.8378770664093454836, SQRT_HALF = 0.70710678118654752440, LN2 = 0.69314718055994530942;
constexpr double NEVER = -std::numeric_limits<double>::infinity();

inline double own_exp(double x) {
    if (!(x > -708.0)) return 0.0;
    if (x > 709.0) return std::numeric_limits<double>::infinity();
    const double k = std::floor(x / LN2 + 0.5), r = (x - k * LN2_HIGH) - k * LN2_LOW;
    const double r2 = r * r, r4 = r2 * r2; // the series, in parts that do not wait for one another
    const double a = (1 + r) + r2 * (1.0 / 2 + r * (1.0 / 6)), b = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    const double c = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    const double sum = a + r4 * (b + r4 * (c + r4 * (1.0 / 479001600 + r * (1.0 / 6227020800.0))));
    const std::uint64_t bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(k) + 1023) << 52;
    double scale;
    std::memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

// Of a positive normal number.
inline double own_log(double x) {
    if (!(x > 0)) return NEVER;
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    double k = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
    bits = (bits & 0xFFFFFFFFFFFFFULL) | (std::uint64_t(1023) << 52);
    double m;
    std::memcpy(&m, &bits, sizeof m);
    if (m > 2 * SQRT_HALF) m *= 0.5, k += 1;
    const double f = (m - 1) / (m + 1), f2 = f * f;
    const double f4 = f2 * f2, f8 = f4 * f4;
    const double a = (1 + f2 * (1.0 / 3)) + f4 * (1.0 / 5 + f2 * (1.0 / 7));
    const double b = (1.0 / 9 + f2 * (1.0 / 11)) + f4 * (1.0 / 13 + f2 * (1.0 / 15));
    const double c = (1.0 / 17 + f2 * (1.0 / 19)) + f4 * (1.0 / 21);
    const double sum = a + f8 * (b + f8 * c);
    return k * LN2_HIGH + (2 * f * sum + k * LN2_LOW);
}

inline double log_sum(double a, double b) { // log(e^a + e^b)
    if (a < b) return log_sum(b, a);
    return b > NEVER ? a + own_log(1 + own_exp(b - a)) : a;
}

// The logarithm of the p-value of two tests together, by h, the harmonic mean of both p-values with weights w and v (Wilson
// 2019, Proc. Natl. Acad. Sci. 116): at most either over its weight. Of independent ones it is at most h with probability
// h + w v h^2 log((1 / h - v) (1 / h - w) / (w v)), and where both are small together less often.
inline double log_of_two(double log_p, double log_q, double w = 0.5) {
    const double v = 1 - w, log_h = -log_sum(own_log(w) - log_p, own_log(v) - log_q), h = own_exp(log_h);
    const double more = h > 0 ? w * v * h * (own_log((1 / h - v) / w) + own_log((1 / h - w) / v)) : 0;
    return std::min(0.0, log_h + own_log(1 + more));
}

// P(Z > z) / density(z) of a standard normal Z, z >= 0.
inline double mills(double z) {
    if (z < 3) { // 1/2 less the series of Abramowitz and Stegun 26.2.11
        double term = z, sum = z;
        for (int k = 1; k < 60 && term > 1e-18 * sum; ++k) sum += term *= z * z / (2 * k + 1);
        return 0.5 * own_exp(0.5 * (z * z + LOG_2PI)) - sum;
    }
    double fraction = z; // 26.2.14
    for (int k = 80; k > 0; --k) fraction = z + k / fraction;
    return 1 / fraction;
}

inline double log_density(double z) { return -0.5 * (z * z + LOG_2PI); }

// log P(|Z| > z), z >= 0; ``ratio`` is mills(z).
inline double log_two_sided(double z, double ratio) { return LN2 + log_density(z) + own_log(ratio); }
inline double log_two_sided(double z) { return log_two_sided(z, mills(z)); }

// The z of which that is ``log_p``.
inline double normal_score(double log_p) {
    if (log_p >= 0) return 0;
    double z = std::sqrt(-2 * log_p);
    for (int i = 0; i < 60; ++i) {
        const double ratio = mills(z), step = (log_two_sided(z, ratio) - log_p) * ratio;
        const double next = z + step > 0 ? z + step : 0.5 * z;
        if (std::fabs(next - z) < 1e-12 * (1 + z)) return next;
        z = next;
    }
    return z;
}

// log P(X > x) of a chi-squared X: the finite sums of 26.4.4 and 26.4.5.
inline double log_chi_squared(double x, int degrees) {
    if (x <= 0 || degrees < 1) return 0;
    const double half = 0.5 * x, log_half = own_log(half);
    double term, tail, start;
    if (degrees % 2) {
        tail = log_two_sided(std::sqrt(x));
        start = 1.5;
        term = -half + 0.5 * log_half + 0.12078223763524522235; // less the logarithm of gamma(3/2)
    } else {
        tail = -half;
        start = 2.0;
        term = -half + log_half;
    }
    for (int step = 0; step < (degrees - 1) / 2; ++step) {
        tail = log_sum(tail, term);
        term += log_half - own_log(start + step);
    }
    return tail < 0 ? tail : 0;
}

} // namespace srs
