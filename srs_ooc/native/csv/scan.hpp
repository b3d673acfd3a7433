// Numbers of a piece of text, found by another thread before the tokenizer comes there.
#pragma once
#include "csv/number.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace srs {

struct ScannedNumber {
    std::uint32_t start, stop; // bytes of the piece; at stop there is a separator or the end of a line
    double value;              // finite
};

// What stands between two separators or ends of lines is taken for a field, which inside quotes it is
// not: the tokenizer asks for the number at a byte, and only where a field begins.
inline std::vector<ScannedNumber> scan_numbers(const char *text, std::size_t size, char separator, char point) {
    const auto ends_field = [=](char c) { return c == separator || c == '\n' || c == '\r'; };
    const std::size_t most = size / 8; // a bound on memory; the rest is the tokenizer's
    std::vector<ScannedNumber> found;
    found.reserve(most);
    const char *p = text, *end = text + size;
    while (p < end && found.size() < most) {
        double value;
        const char *stop = end - p >= kShortReach ? scan_short(p, point, value) : nullptr;
        if (!stop || !ends_field(*stop)) {
            Decimal decimal;
            stop = scan_decimal(p, end, decimal, point);
            if (stop && stop < end && ends_field(*stop)) {
                value = to_double(decimal, {p, static_cast<std::size_t>(stop - p)}, point);
                if (std::isinf(value)) stop = nullptr;
            } else {
                stop = nullptr;
            }
        }
        if (stop) {
            found.push_back({static_cast<std::uint32_t>(p - text), static_cast<std::uint32_t>(stop - text), value});
            p = stop;
        }
        while (p < end && !ends_field(*p)) ++p;
        ++p;
    }
    return found;
}

} // namespace srs
