// What becomes of CSV fields: header names, or the cells of a table by the role of their column.
#pragma once
#include "csv/number.hpp"
#include "csv/tokens.hpp"
#include "hash.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace srs {

// Distinct texts, numbered in the order of their first appearance, within a bound on memory.
inline std::uint64_t hash_text(const char *text, std::size_t size) { // FNV-1a, then SplitMix64's mix
    std::uint64_t x = 0xCBF29CE484222325u;
    for (std::size_t i = 0; i < size; ++i)
        x = (x ^ static_cast<unsigned char>(text[i])) * 0x100000001B3u;
    return mix64(x);
}

class TextPool {
  public:
    // What a text of so many bytes is counted as: its bytes here and sorted in Python, growing
    // arrays, the table of hashes.
    static constexpr std::size_t cost(std::size_t size) { return 4 * size + 128; }

    // A pool that counts takes no text beyond its bound, but tells what all would have taken.
    explicit TextPool(std::size_t max_nbytes, bool counts = false)
        : room_(max_nbytes), counts_(counts) {}

    // Take memory for something else; false if there is not so much.
    bool reserve(std::size_t nbytes) {
        if (nbytes > room_ && !counts_) return false;
        room_ -= std::min(nbytes, room_);
        taken_ += nbytes;
        return true;
    }

    // What all texts take; where those beyond the bound are very many, about: 3% at most, and above.
    std::size_t needed() const {
        std::size_t sampled = 0;
        for (const auto &[hash, nbytes] : beyond_) sampled += nbytes;
        return taken_ + sampled * (mask_ + 1) + (mask_ ? sampled * (mask_ + 1) / 16 : 0);
    }

    // The number of a text, a new one if it was not met before; -1 where there is no room for it.
    std::int64_t number_of(std::string_view text) {
        if (2 * ends.size() >= table_.size()) grow();
        const std::uint64_t hash = hash_text(text.data(), text.size());
        std::size_t at = hash & (table_.size() - 1);
        for (; table_[at]; at = (at + 1) & (table_.size() - 1)) {
            const std::size_t i = table_[at] - 1;
            if (hashes_[i] == hash && this->text(i) == text) return static_cast<std::int64_t>(i);
        }
        if (counts_ && cost(text.size()) > room_) return count(hash, cost(text.size()));
        if (!reserve(cost(text.size()))) return -1;
        bytes.append(text);
        ends.push_back(bytes.size());
        hashes_.push_back(hash);
        table_[at] = static_cast<std::uint32_t>(ends.size());
        return static_cast<std::int64_t>(ends.size()) - 1;
    }

    std::string_view text(std::size_t i) const {
        const std::size_t start = i ? ends[i - 1] : 0;
        return std::string_view(bytes).substr(start, ends[i] - start);
    }

    std::string bytes;
    std::vector<std::uint64_t> ends;

  private:
    void grow() {
        std::vector<std::uint32_t> wider(table_.empty() ? 64 : 2 * table_.size());
        for (std::size_t i = 0; i < hashes_.size(); ++i) {
            std::size_t at = hashes_[i] & (wider.size() - 1);
            while (wider[at]) at = (at + 1) & (wider.size() - 1);
            wider[at] = static_cast<std::uint32_t>(i + 1);
        }
        table_.swap(wider);
    }

    // Note a text that is not taken, by its hash: of very many only those that the mask leaves. It
    // gets the number of another, as what is read is not kept.
    std::int64_t count(std::uint64_t hash, std::size_t nbytes) {
        if (!(hash & mask_)) beyond_.emplace(hash, nbytes);
        if (beyond_.size() > kMostCounted) {
            mask_ = 2 * mask_ + 1;
            for (auto noted = beyond_.begin(); noted != beyond_.end();)
                noted = noted->first & mask_ ? beyond_.erase(noted) : std::next(noted);
        }
        return ends.empty() ? -1 : 0;
    }

    static constexpr std::size_t kMostCounted = 1 << 16;
    std::size_t room_, taken_ = 0;
    bool counts_;
    std::uint64_t mask_ = 0;
    std::unordered_map<std::uint64_t, std::size_t> beyond_;
    std::vector<std::uint64_t> hashes_;
    std::vector<std::uint32_t> table_;
};

constexpr std::int32_t kIgnored = -1; // other negative slots: -2 - k is text column k, 1 that of row ids

// What the cells of a feature are; found at its first cell that is not missing, unless said.
enum Cells : std::uint8_t { kUnknown, kNumbers, kTexts, kCategories, kOnlyNumbers };

using RowKinds = std::unordered_map<std::string, std::uint8_t>; // kinds of rows by their names

inline std::string_view trimmed(const char *text, std::size_t size) {
    const char *end = text + size;
    while (text < end && (*text == ' ' || *text == '\t')) ++text;
    while (text < end && (end[-1] == ' ' || end[-1] == '\t')) --end;
    return {text, static_cast<std::size_t>(end - text)};
}

inline bool equal_folded(std::string_view text, std::string_view lower) {
    return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) { return (a | 0x20) == b; });
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

    [[gnu::noinline]] void add(std::string_view text) {
        bytes.append(text);
        ends.push_back(bytes.size());
        hashes.push_back(hash_text(text.data(), text.size()));
    }
};

class HeaderSink {
  public:
    bool stopped() const { return done || problem.fault != Fault::none; }
    bool wants(std::int64_t) const { return true; }
    const char *number(std::int64_t, const char *, const char *) { return nullptr; }
    void field(std::int64_t, const char *text, std::size_t size) { names.add(trimmed(text, size)); }
    void row_start(std::int64_t) {}
    void row_end(std::int64_t, std::int64_t) { done = true; }

    Texts names;
    Problem problem;
    bool done = false;
};

class TableSink {
  public:
    // by_row: a row is a feature, so that its cells are of one kind; else a column is one. The kinds
    // of rows that are said stand by their names, the first column.
    TableSink(std::vector<std::int32_t> slots, Dialect dialect, MissingTexts missing,
              std::vector<std::uint8_t> kinds, bool by_row, std::size_t max_category_nbytes,
              RowKinds row_kinds, bool counts = false)
        : categories(max_category_nbytes, counts), cells(std::move(kinds)), slots_(std::move(slots)),
          dialect_(dialect), is_missing_(std::move(missing)), by_row_(by_row),
          row_kinds_(std::move(row_kinds)) {
        std::int32_t least = kIgnored;
        for (const std::int32_t slot : slots_) least = std::min(least, slot);
        texts.resize(static_cast<std::size_t>(kIgnored - least));
        cells.resize(by_row ? 1 : slots_.size(), kUnknown);
    }

    void set_panel(double *panel, std::int64_t n_rows) {
        panel_ = panel;
        panel_rows_ = n_rows;
        row_ = first_ = 0;
    }

    // Rows are gathered, so many at a time, before they go to the panel: a cell there lies far from the next of its
    // row, and those of eight rows are one line of the cache.
    void stage(std::int64_t n_rows) {
        staged_rows_ = n_rows;
        staged_.resize(static_cast<std::size_t>(n_rows) * slots_.size());
    }

    void flush() {
        const std::int64_t n = staged_rows_ ? row_ - first_ : 0;
        const double *rows = staged_.data();
        for (const std::int32_t at : slots_) {
            if (at >= 0) {
                double *line = panel_ + at * panel_rows_ + first_;
                for (std::int64_t r = 0; r < n; ++r) line[r] = rows[r * static_cast<std::int64_t>(slots_.size())];
            }
            ++rows;
        }
        first_ = row_;
    }

    bool stopped() const { return row_ == panel_rows_ || problem.fault != Fault::none; }
    bool wants(std::int64_t column) const { return slot(column) != kIgnored; }

    const char *number(std::int64_t column, const char *p, const char *end) {
        const std::int32_t at = slot(column_ = column);
        if (at < 0 || cells_at(column) == kCategories) return nullptr;
        double value;
        const bool is_number = cells_at(column) == kNumbers || cells_at(column) == kOnlyNumbers;
        if (end - p >= kShortReach && is_number && !is_missing_.has_number()) {
            const char *stop = scan_short(p, dialect_.point, value);
            if (stop && ends_field(*stop)) {
                put_value(at, value);
                return stop;
            }
        }
        Decimal decimal;
        const char *stop = scan_decimal(p, end, decimal, dialect_.point);
        if (!stop || stop == end || !ends_field(*stop)) return nullptr;
        const std::string_view text(p, static_cast<std::size_t>(stop - p));
        if (is_missing_.has_number() && is_missing_(text)) return nullptr;
        put_number(at, column, decimal, text);
        return stop;
    }

    void field(std::int64_t column, const char *data, std::size_t size) {
        const std::int32_t at = slot(column_ = column);
        if (at == kIgnored) return;
        const std::string_view text = trimmed(data, size);
        if (at < kIgnored) {
            if (at == kIgnored - 2 && row_kinds_.size()) take_row_kind(text);
            return texts[static_cast<std::size_t>(kIgnored - 1 - at)].add(text);
        }
        if (is_missing_(text)) return put(at, std::numeric_limits<double>::quiet_NaN());
        if (cells_at(column) == kCategories) return put_category(at, column, text);
        Decimal decimal;
        const char *end = text.data() + text.size();
        if (scan_decimal(text.data(), end, decimal, dialect_.point) == end)
            put_number(at, column, decimal, text);
        else if (is_infinity(text))
            complain(Fault::infinite, column, text);
        else
            put_text(at, column, text);
    }

    void row_start(std::int64_t line) {
        line_ = line;
        if (by_row_) cells[0] = kUnknown;
    }

    // A ragged row is reported before a bad cell in it: the cells of a shifted row mislead.
    void row_end(std::int64_t n_fields, std::int64_t line) {
        if (pending_.line == 0) pending_.line = line;
        if (n_fields != static_cast<std::int64_t>(slots_.size()))
            problem = {Fault::ragged, line, n_fields, ""};
        else if (pending_.fault != Fault::none)
            problem = pending_;
        if (texts.size()) lines.push_back(line);
        if (by_row_) row_cells.push_back(static_cast<char>(cells[0]));
        ++row_;
        ++n_rows;
        if (staged_rows_ && (row_ - first_ == staged_rows_ || row_ == panel_rows_)) flush();
    }

    std::vector<Texts> texts;           // of the text columns
    std::vector<std::int64_t> lines;    // of the rows, where there are text columns
    TextPool categories;                // texts of features; a cell holds the number of its text
    std::vector<std::uint8_t> cells;    // of the columns; by_row of the row alone
    std::string row_cells;              // by_row: of each row
    Problem problem;
    std::int64_t n_rows = 0;
    bool fits_float32 = true;
    std::int64_t row() const { return row_; }

  private:
    void take_row_kind(std::string_view name) {
        const auto found = row_kinds_.find(std::string(name));
        if (found != row_kinds_.end()) cells[0] = found->second;
    }

    std::int32_t slot(std::int64_t column) const {
        return column < static_cast<std::int64_t>(slots_.size()) ? slots_[column] : kIgnored;
    }

    bool ends_field(char c) const { return c == dialect_.separator || c == '\n' || c == '\r'; }

    void put_value(std::int32_t at, double value) {
        put(at, value);
        if (fits_float32)
            fits_float32 = std::fabs(value) <= FLT_MAX &&
                           static_cast<double>(static_cast<float>(value)) == value;
    }

    void put(std::int32_t at, double value) {
        if (staged_rows_) staged_[static_cast<std::size_t>((row_ - first_) * static_cast<std::int64_t>(slots_.size()) + column_)] = value;
        else panel_[at * panel_rows_ + row_] = value;
    }

    std::uint8_t &cells_at(std::int64_t column) { return cells[by_row_ ? 0 : column]; }

    [[gnu::noinline]] void put_number(std::int32_t at, std::int64_t column, const Decimal &decimal,
                    std::string_view text) {
        std::uint8_t &kind = cells_at(column);
        if (kind == kUnknown) kind = kNumbers;
        if (kind == kTexts) return complain_of_first(column);
        const double value = to_double(decimal, text, dialect_.point);
        if (std::isinf(value)) return complain(Fault::infinite, column, text);
        put_value(at, value);
    }

    // A text where no cell was a number so far; 1,5 for 1.5 is not taken for one.
    [[gnu::noinline]] void put_text(std::int32_t at, std::int64_t column, std::string_view text) {
        std::uint8_t &kind = cells_at(column);
        Decimal decimal;
        const char *end = text.data() + text.size(), other = dialect_.point == '.' ? ',' : '.';
        const bool is_other = scan_decimal(text.data(), end, decimal, other) == end;
        if (kind == kNumbers || kind == kOnlyNumbers || text.empty() ||
            (kind == kUnknown && is_other))
            return complain(Fault::not_a_number, column, text);
        const bool is_first = kind == kUnknown;
        kind = kTexts;
        put_category(at, column, text);
        if (is_first) note_first(column, text);
    }

    void put_category(std::int32_t at, std::int64_t column, std::string_view text) {
        const std::int64_t number = categories.number_of(text);
        if (number < 0) return complain(Fault::many_categories, column, text);
        put(at, static_cast<double>(number));
    }

    // Where the first text of a feature stood, should a number follow.
    void note_first(std::int64_t column, std::string_view text) {
        if (first_texts_.empty() && !categories.reserve(8 * cells.size()))
            return complain(Fault::many_categories, column, text);
        first_texts_.resize(cells.size());
        first_lines_.resize(cells.size());
        const std::size_t i = by_row_ ? 0 : static_cast<std::size_t>(column);
        const std::int64_t number = categories.number_of(text);
        first_texts_[i] = static_cast<std::uint32_t>(std::max<std::int64_t>(number, 0));
        first_lines_[i] = static_cast<std::uint32_t>(line_);
        first_column_ = column;
    }

    [[gnu::noinline]] void complain_of_first(std::int64_t column) {
        if (pending_.fault != Fault::none) return;
        const std::size_t i = by_row_ ? 0 : static_cast<std::size_t>(column);
        complain(Fault::not_a_number, by_row_ ? first_column_ : column,
                 categories.text(first_texts_[i]));
        pending_.line = first_lines_[i];
    }

    [[gnu::noinline]] void complain(Fault fault, std::int64_t column, std::string_view text) {
        if (pending_.fault == Fault::none)
            pending_ = {fault, 0, column, std::string(text.substr(0, 80))};
    }

    std::vector<std::int32_t> slots_;
    Dialect dialect_;
    MissingTexts is_missing_;
    bool by_row_;
    RowKinds row_kinds_;
    double *panel_ = nullptr;
    std::int64_t panel_rows_ = std::numeric_limits<std::int64_t>::max(), row_ = 0, line_ = 0;
    std::vector<double> staged_; // rows first_ .. row_ of the panel, by column of the source
    std::int64_t staged_rows_ = 0, first_ = 0, column_ = 0;
    std::vector<std::uint32_t> first_texts_, first_lines_; // by column, where there are texts
    std::int64_t first_column_ = 0;
    Problem pending_;
};

} // namespace srs
