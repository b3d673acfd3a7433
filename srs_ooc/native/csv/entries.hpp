// Lines "row column [value]" of a MatrixMarket file: entries of a sparse matrix, counted from 1.
#pragma once
#include "csv/number.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace srs {
template <class Value> struct Entry { // of a table: its column, and the row
    std::uint32_t line, item;
    Value cell;
};

struct Entries { // a matrix, and what is known of it so far
    std::uint64_t n_rows, n_columns;
    bool has_value, is_whole;  // whether a line has a value, and that has to be a whole number
    bool is_turned;            // whether the matrix has a column of the table in a row
    std::int64_t *counts;      // entries of each line
    std::uint32_t *last;       // the item of each line that came last, counted from 1
    std::int64_t n_lines = 0;  // of text
    std::uint32_t item = 0;    // that came last
    bool is_distinct = true;   // whether items ascend, and no entry came twice
};

enum class EntryFault { none, fields, row, column, number, whole, wide };

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

inline const char *skip_blanks(const char *p) {
    while (is_blank(*p)) ++p;
    return p;
}

// A place, counted from 1; 0 where there is none, or a larger one than there can be.
inline const char *scan_place(const char *p, std::uint64_t &place) {
    const char *first = p = skip_blanks(p);
    for (place = 0; is_digit(*p); ++p) place = place * 10 + static_cast<unsigned>(*p - '0');
    if (p - first > 18) place = 0;
    return p;
}

inline const char *scan_value(const char *p, const char *end, double &value) {
    const char *next = end - p >= kShortReach ? scan_short(p, '.', value) : nullptr;
    if (next) return next;
    Decimal decimal;
    next = scan_decimal(p, end, decimal);
    if (next) value = to_double(decimal, {p, static_cast<std::size_t>(next - p)});
    return next;
}

// Read whole lines from `start` on, the last of which ends at `end`, until one has a fault; then that is the start.
template <class Value>
EntryFault read_entries(const char *&start, const char *end, Entries &all, Entry<Value> *&out) {
    constexpr double kWhole = 9007199254740992; // 2^53
    for (; start < end; ++all.n_lines) {
        const char *p = skip_blanks(start);
        if (*p == '%') p = static_cast<const char *>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
        if (p[*p == '\r'] == '\n') {
            start = p + (*p == '\r') + 1;
            continue;
        }
        std::uint64_t row, column;
        double value = 1;
        p = scan_place(p, row);
        if (!is_blank(*p)) return EntryFault::fields;
        p = scan_place(p, column);
        if (all.has_value) {
            if (!is_blank(*p)) return EntryFault::fields;
            if (!(p = scan_value(skip_blanks(p), end, value))) return EntryFault::number;
        }
        p = skip_blanks(p);
        p += *p == '\r';
        if (*p++ != '\n') return EntryFault::fields;
        if (row - 1 >= all.n_rows) return EntryFault::row;
        if (column - 1 >= all.n_columns) return EntryFault::column;
        if (all.is_whole && !(std::floor(value) == value && std::fabs(value) < kWhole)) return EntryFault::whole;
        if (static_cast<double>(static_cast<Value>(value)) != value) return EntryFault::wide;
        const auto line = static_cast<std::uint32_t>((all.is_turned ? row : column) - 1);
        const auto item = static_cast<std::uint32_t>((all.is_turned ? column : row) - 1);
        all.is_distinct &= (item >= all.item) & (all.last[line] != item + 1);
        all.item = item;
        all.last[line] = item + 1;
        ++all.counts[line];
        *out++ = {line, item, static_cast<Value>(value)};
        start = p;
    }
    return EntryFault::none;
}

} // namespace srs
