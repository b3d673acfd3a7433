// What becomes of CSV fields: header names, or the cells of a table by the role of their column.
#pragma once

#include "csv_tokens.hpp"
#include "exact_number.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace srs {

constexpr std::int32_t kIgnored = -1, kTarget = -2, kRowId = -3; // other slots are stored features

inline std::uint64_t hash_text(const char *text, std::size_t size) { // FNV-1a, then SplitMix64's mix
    std::uint64_t x = 0xCBF29CE484222325u;
    for (std::size_t i = 0; i < size; ++i)
        x = (x ^ static_cast<unsigned char>(text[i])) * 0x100000001B3u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

inline std::string_view trimmed(const char *text, std::size_t size) {
    const char *end = text + size;
    while (text < end && (*text == ' ' || *text == '\t')) ++text;
    while (text < end && (end[-1] == ' ' || end[-1] == '\t')) --end;
    return {text, static_cast<std::size_t>(end - text)};
}

inline bool equal_folded(std::string_view text, std::string_view lower) {
    if (text.size() != lower.size()) return false;
    for (std::size_t i = 0; i < text.size(); ++i)
        if ((text[i] | 0x20) != lower[i]) return false;
    return true;
}

inline std::string_view unsigned_part(std::string_view text) {
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
    return text;
}

// The texts that stand for a missing value: the usual ones, or a list in their place.
class MissingTexts {
  public:
    MissingTexts() = default;
    MissingTexts(std::vector<std::string> texts, char point)
        : listed_(true), texts_(std::move(texts)) {
        for (const std::string &text : texts_) {
            Decimal decimal;
            const char *end = text.data() + text.size();
            has_number_ |= scan_decimal(text.data(), end, decimal, point) == end;
        }
    }

    bool operator()(std::string_view text) const {
        if (listed_) return std::find(texts_.begin(), texts_.end(), text) != texts_.end();
        return text.empty() || text == "NA" || equal_folded(unsigned_part(text), "nan");
    }
    bool has_number() const { return has_number_; } // such as -9 or 999

  private:
    bool listed_ = false, has_number_ = false;
    std::vector<std::string> texts_;
};

inline bool is_infinity(std::string_view text) {
    text = unsigned_part(text);
    return equal_folded(text, "inf") || equal_folded(text, "infinity");
}

// Texts one after another, the end of each, and a hash of each.
struct Texts {
    std::string bytes;
    std::vector<std::uint64_t> ends, hashes;

    void add(std::string_view text) {
        bytes.append(text);
        ends.push_back(bytes.size());
        hashes.push_back(hash_text(text.data(), text.size()));
    }
};

enum class Fault {
    none, ragged, not_a_number, infinite, missing_target, too_many_classes, long_field, open_quote,
    long_label
};

struct Problem {
    Fault fault = Fault::none;
    std::int64_t line = 0, column = 0; // column: of the cell; of a ragged row, the fields found
    std::string text;
};

class HeaderSink {
  public:
    bool stopped() const { return done || problem.fault != Fault::none; }
    bool wants(std::int64_t) const { return true; }
    const char *number(std::int64_t, const char *, const char *) { return nullptr; }
    void field(std::int64_t, const char *text, std::size_t size) { names.add(trimmed(text, size)); }
    void row_start(std::int64_t) {}
    void row_end(std::int64_t, std::int64_t) { done = true; }
    void too_long(std::int64_t column, std::int64_t line) {
        problem = {Fault::long_field, line, column, ""};
    }
    void open_quote(std::int64_t line) { problem = {Fault::open_quote, line, 0, ""}; }

    Texts names;
    Problem problem;
    bool done = false;
};

class TableSink {
  public:
    struct Deferred { // cells left to Python's float()
        std::vector<std::int64_t> columns, rows, lines;
        std::vector<std::uint64_t> ends;
        std::string bytes;
    };

    TableSink(std::vector<std::int32_t> slots, Dialect dialect, MissingTexts missing,
              std::size_t max_classes)
        : slots_(std::move(slots)), dialect_(dialect), is_missing_(std::move(missing)),
          max_classes_(max_classes) {}

    void set_panel(double *panel, std::int64_t n_rows) {
        panel_ = panel;
        panel_rows_ = n_rows;
        row_ = 0;
    }

    bool stopped() const { return row_ == panel_rows_ || problem.fault != Fault::none; }
    bool wants(std::int64_t column) const { return slot(column) != kIgnored; }

    const char *number(std::int64_t column, const char *p, const char *end) {
        const std::int32_t at = slot(column);
        if (at < 0) return nullptr;
        Decimal decimal;
        const char *stop = scan_decimal(p, end, decimal, dialect_.point);
        if (!stop || stop == end) return nullptr;
        if (*stop != dialect_.separator && *stop != '\n' && *stop != '\r') return nullptr;
        const std::string_view text(p, static_cast<std::size_t>(stop - p));
        if (is_missing_.has_number() && is_missing_(text)) return nullptr;
        put_decimal(at, column, decimal, text);
        return stop;
    }

    void field(std::int64_t column, const char *data, std::size_t size) {
        const std::int32_t at = slot(column);
        if (at == kIgnored) return;
        const std::string_view text = trimmed(data, size);
        if (at == kRowId) return ids.add(text);
        if (at == kTarget) return put_label(column, text);
        Decimal decimal;
        if (is_missing_(text)) return put(at, std::numeric_limits<double>::quiet_NaN());
        const char *end = text.data() + text.size();
        if (scan_decimal(text.data(), end, decimal, dialect_.point) == end)
            put_decimal(at, column, decimal, text);
        else
            complain(is_infinity(text) ? Fault::infinite : Fault::not_a_number, column, text);
    }

    void row_start(std::int64_t line) { line_ = line; }

    // A ragged row is reported before a bad cell in it: the cells of a shifted row mislead.
    void row_end(std::int64_t n_fields, std::int64_t line) {
        pending_.line = line;
        if (n_fields != static_cast<std::int64_t>(slots_.size()))
            problem = {Fault::ragged, line, n_fields, ""};
        else if (pending_.fault != Fault::none)
            problem = pending_;
        ++row_;
        ++n_rows;
    }

    void too_long(std::int64_t column, std::int64_t line) {
        problem = {Fault::long_field, line, column, ""};
    }
    void open_quote(std::int64_t line) { problem = {Fault::open_quote, line, 0, ""}; }

    Texts ids;
    std::vector<std::int32_t> labels;   // class number of each row, in order of first appearance
    std::vector<std::string> classes;
    Deferred deferred;
    Problem problem;
    std::int64_t n_rows = 0;
    bool fits_float32 = true;
    std::int64_t row() const { return row_; }

  private:
    static constexpr std::size_t kLongestLabel = 1000; // labels are kept in memory

    std::int32_t slot(std::int64_t column) const {
        return column < static_cast<std::int64_t>(slots_.size()) ? slots_[column] : kIgnored;
    }

    void put(std::int32_t at, double value) { panel_[at * panel_rows_ + row_] = value; }

    void put_decimal(std::int32_t at, std::int64_t column, const Decimal &decimal,
                     std::string_view text) {
        double value;
        if (decimal.digits && decimal.exponent > 309)
            return complain(Fault::infinite, column, text);
        if (to_double(decimal, value)) {
            put(at, value);
            if (fits_float32)
                fits_float32 = std::fabs(value) <= FLT_MAX &&
                               static_cast<double>(static_cast<float>(value)) == value;
            return;
        }
        deferred.columns.push_back(column);
        deferred.rows.push_back(row_);
        deferred.lines.push_back(line_);
        deferred.bytes.append(text);
        if (dialect_.point != '.') // for Python's float()
            std::replace(deferred.bytes.end() - static_cast<std::ptrdiff_t>(text.size()),
                         deferred.bytes.end(), dialect_.point, '.');
        deferred.ends.push_back(deferred.bytes.size());
    }

    void put_label(std::int64_t column, std::string_view text) {
        if (is_missing_(text)) complain(Fault::missing_target, column, text);
        if (text.size() > kLongestLabel) return complain(Fault::long_label, column, text);
        const auto found = class_of_.try_emplace(std::string(text), classes.size());
        if (found.second) {
            classes.emplace_back(text);
            if (classes.size() > max_classes_) complain(Fault::too_many_classes, column, text);
        }
        labels.push_back(static_cast<std::int32_t>(found.first->second));
    }

    void complain(Fault fault, std::int64_t column, std::string_view text) {
        if (pending_.fault == Fault::none)
            pending_ = {fault, 0, column, std::string(text.substr(0, 80))};
    }

    std::vector<std::int32_t> slots_;
    Dialect dialect_;
    MissingTexts is_missing_;
    std::size_t max_classes_;
    double *panel_ = nullptr;
    std::int64_t panel_rows_ = std::numeric_limits<std::int64_t>::max(), row_ = 0, line_ = 0;
    std::unordered_map<std::string, std::size_t> class_of_;
    Problem pending_;
};

} // namespace srs
