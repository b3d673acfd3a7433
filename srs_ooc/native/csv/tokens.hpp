// Splits CSV bytes into fields; may stop and go on at any byte.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace srs {

// The rules are those of Python's csv module: a quote is special only at the start of a field, ""
// inside quotes is one quote, rows end at \n, \r or \r\n. Blank lines are skipped, and lines that start
// with the comment byte. Where a space separates, a run of spaces is one, and those at the ends of a
// line are none: tables aligned with spaces have them.
//
// Sink: stopped(); wants(column) whether a field's text is needed; number(column, p, end) which may
// take a field that lies whole in the buffer and return its end; field(column, text, size);
// row_start(line); row_end(n_fields, line); problem, which is said here of fields and quotes without end.
struct Dialect {
    char separator = ',', comment = '\0', point = '.'; // no comments where comment is NUL
};

enum class Fault { none, ragged, not_a_number, infinite, many_categories, long_field, open_quote };

struct Problem {
    Fault fault = Fault::none;
    std::int64_t line = 0, column = 0; // column: of the cell; of a ragged row, the fields found
    std::string text;
};

template <class Sink> class CsvTokenizer {
  public:
    CsvTokenizer(Dialect dialect, std::int64_t line, bool after_return)
        : separator_(dialect.separator), comment_(dialect.comment),
          collapses_(dialect.separator == ' '), line_(line), after_return_(after_return) {}

    std::int64_t line() const { return line_; }
    bool after_return() const { return after_return_; }
    std::int64_t column() const { return column_; }

    // Consume bytes until they end or the sink stops; return how many were consumed.
    std::size_t feed(const char *data, std::size_t size, Sink &sink) {
        const char *p = data, *end = data + size;
        while (p < end && !sink.stopped()) p = step(p, end, sink);
        return static_cast<std::size_t>(p - data);
    }

    // Tell the sink that the text has ended.
    void finish(Sink &sink) {
        if (at_ == At::row_start || at_ == At::comment || sink.stopped()) return;
        if (at_ == At::quoted) {
            sink.problem = {Fault::open_quote, row_line_, 0, ""};
            return;
        }
        if (at_ == At::field_start) {
            if (drops_empty_end()) return end_row(sink);
            carry_.clear();
        }
        sink.field(column_, carry_.data(), carry_.size());
        end_row(sink);
    }

  private:
    enum class At { row_start, comment, field_start, plain, quoted, quote };
    static constexpr std::size_t kLongestField = 1 << 20;

    const char *step(const char *p, const char *end, Sink &sink) {
        switch (at_) {
        case At::row_start:
            if (*p == '\n' || *p == '\r') {
                line_ += !(after_return_ && *p == '\n');
                after_return_ = *p == '\r';
                return p + 1;
            }
            after_return_ = false;
            if (collapses_ && *p == ' ') return p + 1;
            if (*p == comment_ && comment_ != '\0') {
                at_ = At::comment;
                return p + 1;
            }
            row_line_ = line_;
            sink.row_start(line_);
            at_ = At::field_start;
            [[fallthrough]];
        case At::field_start:
            if (collapses_ && *p == ' ') return p + 1;
            if ((*p == '\n' || *p == '\r') && drops_empty_end()) return delimiter(p, sink);
            if (const char *stop = sink.number(column_, p, end)) {
                while (*stop == separator_) { // stay here while numbers follow one another
                    ++column_;
                    p = stop + 1;
                    stop = p < end ? sink.number(column_, p, end) : nullptr;
                    if (stop) continue;
                    at_ = At::field_start;
                    return p;
                }
                return delimiter(stop, sink);
            }
            carry_.clear();
            if (*p == '"') {
                at_ = At::quoted;
                return p + 1;
            }
            at_ = At::plain;
            [[fallthrough]];
        case At::plain:
            return plain(p, end, sink);
        case At::comment:
            while (p < end && *p != '\n' && *p != '\r') ++p;
            if (p < end) at_ = At::row_start;
            return p;
        case At::quoted:
            return quoted(p, end, sink);
        case At::quote:
            at_ = *p == '"' ? At::quoted : At::plain;
            if (*p != '"') return p;
            keep(p, 1, sink);
            return p + 1;
        }
        return end;
    }

    const char *plain(const char *p, const char *end, Sink &sink) {
        const char *q = p;
        while (q < end && *q != separator_ && *q != '\n' && *q != '\r') ++q;
        if (q < end && carry_.empty()) {
            sink.field(column_, p, static_cast<std::size_t>(q - p));
            return delimiter(q, sink);
        }
        keep(p, static_cast<std::size_t>(q - p), sink);
        if (q == end) return end;
        sink.field(column_, carry_.data(), carry_.size());
        return delimiter(q, sink);
    }

    const char *quoted(const char *p, const char *end, Sink &sink) {
        const char *q = p;
        for (; q < end && *q != '"'; ++q) line_ += *q == '\n';
        keep(p, static_cast<std::size_t>(q - p), sink);
        if (q == end) return end;
        at_ = At::quote;
        return q + 1;
    }

    void keep(const char *p, std::size_t size, Sink &sink) {
        if (!sink.wants(column_)) return;
        if (carry_.size() + size > kLongestField)
            sink.problem = {Fault::long_field, row_line_, column_, ""};
        else
            carry_.append(p, size);
    }

    const char *delimiter(const char *p, Sink &sink) {
        if (*p == separator_) {
            ++column_;
            at_ = At::field_start;
        } else {
            end_row(sink);
            ++line_;
            after_return_ = *p == '\r';
        }
        return p + 1;
    }

    // Take back the field that a separator at the end of a line would begin.
    bool drops_empty_end() {
        if (!collapses_ || column_ == 0) return false;
        --column_;
        return true;
    }

    void end_row(Sink &sink) {
        sink.row_end(column_ + 1, row_line_);
        column_ = 0;
        at_ = At::row_start;
    }

    char separator_, comment_;
    bool collapses_;
    At at_ = At::row_start;
    std::int64_t line_, row_line_ = 0, column_ = 0;
    bool after_return_;
    std::string carry_;
};

} // namespace srs
