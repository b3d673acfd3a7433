// Decimal text to the nearest double.
#pragma once

#include <algorithm>
#include <array>
#include <cfloat>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#ifndef __cpp_lib_to_chars // libc++ before LLVM 20
#include <cstdlib>
#ifdef __APPLE__
#include <xlocale.h>
#else
#include <locale.h>
#endif
#endif

namespace srs {

// value = digits * 10^exponent, negated if negative; whole is false if nonzero digits were dropped.
struct Decimal {
    std::uint64_t digits = 0;
    std::int64_t exponent = 0;
    bool negative = false;
    bool whole = true;
};

constexpr int kMaxDigits = 19; // 10^19 - 1 fits 64 bits

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Scan [+-] digits [point digits] [e [+-] digits]; return the end of the number, or nullptr if none.
inline const char *scan_decimal(const char *p, const char *end, Decimal &out, char point = '.') {
    if (p < end && (*p == '-' || *p == '+')) out.negative = *p++ == '-';
    std::uint64_t digits = 0;
    std::int64_t exponent = 0;
    int kept = 0;
    const auto take = [&](bool is_fraction) { // returns whether there are any
        const char *first = p;
        for (; p < end && is_digit(*p); ++p) {
            const unsigned digit = static_cast<unsigned>(*p - '0');
            const bool keeps = kept < kMaxDigits;
            if (keeps) {
                digits = digits * 10 + digit;
                kept += digits != 0;
            } else {
                out.whole &= digit == 0;
            }
            exponent += !keeps - is_fraction;
        }
        return p != first;
    };
    bool any = take(false);
    if (p < end && *p == point) {
        ++p;
        any |= take(true);
    }
    if (!any) return nullptr;
    if (p < end && (*p == 'e' || *p == 'E')) {
        ++p;
        bool down = false;
        if (p < end && (*p == '-' || *p == '+')) down = *p++ == '-';
        const char *first = p;
        std::int64_t power = 0;
        for (; p < end && is_digit(*p); ++p)
            if (power < 1000000000) power = power * 10 + (*p - '0');
        if (p == first) return nullptr;
        exponent += down ? -power : power;
    }
    out.digits = digits;
    out.exponent = exponent;
    return p;
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 Wide;

using Powers = std::array<std::uint64_t, 28>; // 5^27 is the largest below 2^63

constexpr Powers kFive = [] {
    Powers all{1};
    for (std::size_t k = 1; k < all.size(); ++k) all[k] = all[k - 1] * 5;
    return all;
}();

// 2^k / 5^power, rounded down, with k so that bit 63 is the highest.
constexpr Powers kFifth = [] {
    Powers all{std::uint64_t{1} << 63};
    for (std::size_t k = 1; k < all.size(); ++k) {
        int bits = 0;
        while (kFive[k] >> bits) ++bits;
        all[k] = static_cast<std::uint64_t>((static_cast<Wide>(1) << (63 + bits)) / kFive[k]);
    }
    return all;
}();

// Round (bits + a fraction in [0, 1) that is nonzero iff sticky) * 2^exponent; bit 63 of bits is set.
inline double round_to_double(std::uint64_t bits, bool sticky, int exponent) {
    std::uint64_t kept = bits >> 11;
    const std::uint64_t rest = bits & 0x7ff;
    if (rest > 0x400 || (rest == 0x400 && (sticky || (kept & 1)))) ++kept;
    const std::uint64_t scale_bits = static_cast<std::uint64_t>(1023 + exponent + 11) << 52;
    double scale;
    std::memcpy(&scale, &scale_bits, sizeof scale);
    return static_cast<double>(kept) * scale; // both exact, far from the ends of the range
}

inline double times_power(std::uint64_t digits, int power) {
    const Wide product = static_cast<Wide>(digits) * kFive[power];
    const std::uint64_t high = static_cast<std::uint64_t>(product >> 64);
    const int zeros = high ? __builtin_clzll(high)
                           : 64 + __builtin_clzll(static_cast<std::uint64_t>(product));
    const Wide top = product << zeros;
    return round_to_double(static_cast<std::uint64_t>(top >> 64),
                           static_cast<std::uint64_t>(top) != 0, 64 - zeros + power);
}

inline double over_power(std::uint64_t digits, int power) {
    const int up = __builtin_clzll(digits), down = __builtin_clzll(kFive[power]);
    // Times the reciprocal (Lemire 2021), which is too small by less than one unit: so are the upper
    // 64 bits, by less than two, which matters only where they lie that close below a tie or on it.
    const Wide product = static_cast<Wide>(digits << up) * kFifth[power];
    const int top = product >> 127 ? 0 : 1;
    const std::uint64_t bits = static_cast<std::uint64_t>((product << top) >> 64);
    if ((bits & 0x7ff) - 0x3fe > 2) return round_to_double(bits, true, down - up - 63 - power - top);
    const std::uint64_t divisor = kFive[power] << down;
    const Wide dividend = static_cast<Wide>(digits << up) << 63; // quotient in (2^62, 2^64)
    std::uint64_t quotient = static_cast<std::uint64_t>(dividend / divisor);
    bool sticky = static_cast<std::uint64_t>(dividend % divisor) != 0;
    const int zeros = __builtin_clzll(quotient);
    // A one-bit shift leaves the sticky fraction below one unit: still on the same side of a tie,
    // because the ten bits that decide lie above it.
    return round_to_double(quotient << zeros, sticky, down - up - 63 - power - zeros);
}
#endif

constexpr double kTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                           1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// The double nearest to digits * 10^power (ties to even), where that takes one step; else false.
inline bool scale_digits(std::uint64_t digits, std::int64_t power, double &value) {
#if FLT_EVAL_METHOD == 0
    if (digits <= (std::uint64_t{1} << 53) && power >= -22 && power <= 22) {
        value = static_cast<double>(digits); // one exact operation (Clinger 1990)
        value = power < 0 ? value / kTen[-power] : value * kTen[power];
        return true;
    }
#endif
    value = 0.0;
    if (digits == 0) return true;
#ifdef __SIZEOF_INT128__
    if (power >= -27 && power <= 27) {
        value = power < 0 ? over_power(digits, static_cast<int>(-power))
                          : times_power(digits, static_cast<int>(power));
        return true;
    }
#endif
    return false;
}

constexpr std::ptrdiff_t kShortReach = 64; // bytes that scan_short may look at

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && FLT_EVAL_METHOD == 0
// Eight bytes as digits: 0 to 9 where a byte is one.
inline std::uint64_t load_digits(const char *p) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    return word ^ 0x3030303030303030u;
}

// How many of the eight bytes are digits before the first that is none.
inline int count_digits(std::uint64_t word) {
    const std::uint64_t others = ((word + 0x7676767676767676u) | word) & 0x8080808080808080u;
    return others ? __builtin_ctzll(others) >> 3 : 8;
}

// The number of the first n of eight digits.
inline std::uint64_t join_digits(std::uint64_t word, int n) {
    word = (word << (4 * (8 - n))) << (4 * (8 - n)); // zeros in front
    word = (word * 2561) >> 8;
    word = ((word & 0x00FF00FF00FF00FFu) * 6553601) >> 16;
    return ((word & 0x0000FFFF0000FFFFu) * 42949672960001u) >> 32;
}

constexpr std::uint64_t kWholeTen[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// Append the digits at p, at most 24; return the first byte that is none, or nullptr if they may be
// more than 64 bits hold.
inline const char *take_digits(const char *p, std::uint64_t &digits) {
    // The least number to which so many digits are not appended, as 64 bits might not hold that.
    static constexpr std::uint64_t kLeast[] = {UINT64_MAX, 1000000000000000000, 100000000000000000, 10000000000000000,
        1000000000000000, 100000000000000, 10000000000000, 1000000000000, 100000000000};
    const char *last = p + 16;
    for (;; p += 8) {
        const std::uint64_t word = load_digits(p);
        const int n = count_digits(word);
        if (digits >= kLeast[n]) return nullptr;
        digits = digits * kWholeTen[n] + join_digits(word, n);
        if (n < 8) return p + n;
        if (p == last) return nullptr;
    }
}

// Read [+-] digits [point digits] [e [+-] digits] from kShortReach bytes, the double nearest to them;
// return the end, or nullptr if it is none such or has too many digits.
[[gnu::noinline]] inline const char *scan_long(const char *p, char point, double &out) {
    const bool negative = *p == '-';
    p += negative | (*p == '+');
    std::uint64_t digits = 0;
    const char *first = p;
    p = take_digits(p, digits);
    if (!p) return nullptr;
    int power = 0;
    bool any = p != first;
    if (*p == point) {
        first = p + 1;
        p = take_digits(first, digits);
        if (!p) return nullptr;
        power = static_cast<int>(first - p);
        any |= power != 0;
    }
    if (!any) return nullptr;
    if ((*p | 0x20) == 'e') {
        const bool down = *++p == '-';
        p += down | (*p == '+');
        const std::uint64_t word = load_digits(p);
        const int n = count_digits(word);
        if (n == 0 || n > 3) return nullptr;
        const int shift = static_cast<int>(join_digits(word, n));
        power += down ? -shift : shift;
        p += n;
    }
    double value;
    if (!scale_digits(digits, power, value)) return nullptr;
    out = negative ? -value : value;
    return p;
}

// The same. Most numbers have fewer than eight digits on either side: digits and power of ten are exact then.
inline const char *scan_short(const char *p, char point, double &out) {
    const char *first = p;
    const bool negative = *p == '-';
    p += negative | (*p == '+');
    const std::uint64_t before = load_digits(p);
    const int n_before = count_digits(before);
    if (n_before == 8) return scan_long(first, point, out);
    std::uint64_t digits = join_digits(before, n_before);
    p += n_before;
    int n_after = 0;
    if (*p == point) {
        const std::uint64_t after = load_digits(++p);
        n_after = count_digits(after);
        if (n_after == 8) return scan_long(first, point, out);
        digits = digits * kWholeTen[n_after] + join_digits(after, n_after);
        p += n_after;
    }
    if (n_before + n_after == 0) return nullptr;
    if ((*p | 0x20) == 'e') return scan_long(first, point, out);
    const double value = static_cast<double>(digits) / kTen[n_after];
    out = negative ? -value : value;
    return p;
}
#else
inline const char *scan_short(const char *, char, double &) { return nullptr; }
#endif

// The double nearest to a decimal text; an infinity beyond the largest. is_large tells on which side
// it lies where it is out of the range of doubles. Kept out of the loop over cells.
[[gnu::noinline]] inline double nearest_double(std::string_view text, char point, bool is_large) {
    text.remove_prefix(text[0] == '-' || text[0] == '+');
    std::string plain;
    if (point != '.') {
        plain = text;
        std::replace(plain.begin(), plain.end(), point, '.');
        text = plain;
    }
    double value = 0.0;
#ifdef __cpp_lib_to_chars
    const auto found = std::from_chars(text.data(), text.data() + text.size(), value);
    if (found.ec == std::errc::result_out_of_range)
        value = is_large ? std::numeric_limits<double>::infinity() : 0.0;
#else
    static const locale_t ours = newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(nullptr));
    value = strtod_l(std::string(text).c_str(), nullptr, ours);
    static_cast<void>(is_large);
#endif
    return value;
}

// The double nearest to the decimal (ties to even) that was scanned from a text; an infinity beyond
// the largest.
inline double to_double(const Decimal &decimal, std::string_view text, char point = '.') {
    double value;
    if (!(decimal.whole && scale_digits(decimal.digits, decimal.exponent, value)))
        value = nearest_double(text, point, decimal.exponent > 0);
    return decimal.negative ? -value : value;
}

} // namespace srs
