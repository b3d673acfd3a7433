// Bindings of the CSV tokenizer (ingestion/csv.py tells what each call means) and of the coder (store/manifest.py).
#include "bind/arguments.hpp"
#include "bind/thread_team.hpp"
#include "coding.hpp"
#include "csv/entries.hpp"
#include "csv/table.hpp"
#include "deal.hpp"

#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <mutex>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace nb = nanobind;
using namespace nb::literals;
using srs::as_bytes, srs::Matrix, srs::Vector;

namespace {

using Bytes = srs::Vector<const std::uint8_t>;
using Slots = srs::Vector<const std::int32_t>;

srs::Dialect dialect_of(nb::bytes marks) { // separator, comment, point
    srs::expect_size("marks", marks, 3);
    return {marks.c_str()[0], marks.c_str()[1], marks.c_str()[2]};
}

srs::MissingTexts missing_of(nb::object texts, char point) {
    if (texts.is_none()) return {};
    std::vector<std::string> all;
    for (nb::handle text : texts) {
        const nb::bytes bytes = nb::cast<nb::bytes>(text);
        all.emplace_back(bytes.c_str(), bytes.size());
    }
    return {std::move(all), point};
}

// What is said of cells beforehand. The texts that are found come with where the first of them stood.
std::uint8_t expect_kind(const char *what, std::int64_t kind) {
    if (kind != srs::kUnknown && kind != srs::kCategories && kind != srs::kOnlyNumbers)
        srs::refuse(what, "0, 3 or 4", std::to_string(kind));
    return static_cast<std::uint8_t>(kind);
}

srs::RowKinds row_kinds_of(nb::dict kinds) {
    srs::RowKinds all;
    for (const auto &[name, kind] : kinds) {
        const nb::bytes bytes = nb::cast<nb::bytes>(name);
        all.emplace(std::string(bytes.c_str(), bytes.size()), expect_kind("row_kinds", nb::cast<std::int64_t>(kind)));
    }
    return all;
}

nb::tuple take_texts(srs::Texts &texts) {
    const srs::Texts taken = std::exchange(texts, srs::Texts());
    return nb::make_tuple(as_bytes(taken.bytes), as_bytes(taken.ends), as_bytes(taken.hashes));
}

nb::tuple texts_of(const srs::TextPool &pool) { return nb::make_tuple(as_bytes(pool.bytes), as_bytes(pool.ends)); }

nb::object describe(const srs::Problem &problem) {
    static const char *const names[] = {"none",       "ragged",          "not_a_number",
                                        "infinite",   "many_categories", "long_field",
                                        "open_quote"};
    if (problem.fault == srs::Fault::none) return nb::none();
    return nb::make_tuple(names[static_cast<int>(problem.fault)], problem.line, problem.column,
                          as_bytes(problem.text));
}

template <class Sink> class Reader {
  public:
    template <class... Args>
    Reader(srs::Dialect dialect, std::int64_t line, bool after_return, Args &&...args)
        : sink(std::forward<Args>(args)...), tokens_(dialect, line, after_return) {}

    std::size_t feed(Bytes data, std::size_t start) {
        const char *begin = reinterpret_cast<const char *>(data.data());
        srs::expect_between("start", static_cast<std::int64_t>(start), 0, static_cast<std::int64_t>(data.size()));
        nb::gil_scoped_release release;
        return start + tokens_.feed(begin + start, data.size() - start, sink);
    }

    void finish() { tokens_.finish(sink); }
    std::int64_t line() const { return tokens_.line(); }
    std::int64_t column() const { return tokens_.column(); }
    bool after_return() const { return tokens_.after_return(); }
    nb::object problem() const { return describe(sink.problem); }

    Sink sink;

  private:
    srs::CsvTokenizer<Sink> tokens_;
};

using HeaderReader = Reader<srs::HeaderSink>;

class TableReader : public Reader<srs::TableSink> {
  public:
    TableReader(Slots slots, nb::bytes marks, nb::object missing, std::int64_t line,
                bool after_return, nb::bytes kinds, bool by_row, std::size_t max_category_nbytes,
                nb::dict row_kinds, bool counts)
        : Reader(dialect_of(marks), line, after_return,
                 checked(slots, kinds, by_row),
                 dialect_of(marks), missing_of(missing, dialect_of(marks).point),
                 std::vector<std::uint8_t>(kinds.c_str(), kinds.c_str() + kinds.size()), by_row,
                 max_category_nbytes, row_kinds_of(row_kinds), counts) {
        for (std::size_t i = 0; i < slots.size(); ++i) width_ = std::max<std::int64_t>(width_, slots(i) + std::int64_t(1));
    }

    std::size_t feed(Bytes data, std::size_t start) {
        if (width_ > 0 && !panel_.is_valid()) srs::refuse("panel", "one that set_panel was given", "none");
        return Reader::feed(data, start);
    }

    void set_panel(Matrix<double> panel) {
        if (static_cast<std::int64_t>(panel.shape(0)) < width_)
            srs::refuse("panel", std::to_string(width_) + " columns or more", std::to_string(panel.shape(0)));
        panel_ = panel; // keeps the memory alive
        sink.set_panel(panel.data(), static_cast<std::int64_t>(panel.shape(1)));
    }

    nb::tuple take_texts(std::size_t column) {
        return ::take_texts(column < sink.texts.size() ? sink.texts[column] : none_);
    }
    void finish() {
        Reader::finish();
        if (panel_.is_valid()) sink.flush();
    }
    void stage(std::int64_t n_rows) {
        srs::expect_between("n_rows", n_rows, 0, 64);
        sink.stage(n_rows);
    }

  private:
    static std::vector<std::int32_t> checked(const Slots &slots, const nb::bytes &kinds, bool by_row) {
        const auto n = static_cast<std::int64_t>(slots.size());
        const std::int64_t least = srs::kIgnored - 2 - n; // the target's and row ids' are kept free
        for (std::size_t i = 0; i < slots.size(); ++i) srs::expect_between("slots", slots(i), least, n - 1, int64_t(i));
        if (kinds.size() > 0) srs::expect_size("kinds", kinds, by_row ? 1 : n);
        for (std::size_t i = 0; i < kinds.size(); ++i) expect_kind("kinds", static_cast<unsigned char>(kinds.c_str()[i]));
        return {slots.data(), slots.data() + slots.size()};
    }

    std::int64_t width_ = 0; // columns of a panel that cells go to
    Matrix<double> panel_;
    srs::Texts none_;
};

struct TextCoder {
    TextCoder(std::size_t max_nbytes, bool counts) : pool(max_nbytes, counts) {}

    // The number of each text; fewer where there is no room for the next.
    nb::bytes code(nb::bytes blob, Vector<const std::uint64_t> ends) {
        const auto size = static_cast<std::int64_t>(blob.size());
        for (std::size_t i = 0; i < ends.size(); ++i)
            srs::expect_between("ends", static_cast<std::int64_t>(ends(i)), i ? static_cast<std::int64_t>(ends(i - 1)) : 0, size,
                                static_cast<std::int64_t>(i));
        std::vector<std::int32_t> numbers;
        numbers.reserve(ends.size());
        std::size_t start = 0;
        for (std::size_t i = 0; i < ends.size(); start = ends.data()[i++]) {
            const std::int64_t number =
                pool.number_of({blob.c_str() + start, ends.data()[i] - start});
            if (number < 0) break;
            numbers.push_back(static_cast<std::int32_t>(number));
        }
        return as_bytes(numbers);
    }

    srs::TextPool pool;
};

// Let blocks of 512 kB and more be mappings of their own, whatever was freed before: glibc otherwise
// keeps freed ones in its heap, as resident memory.
void return_large_blocks() {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 512 << 10);
    mallopt(M_TRIM_THRESHOLD, 2 << 20); // pieces of files come and go
    malloc_trim(0);
#endif
}

// Let freed blocks of up to 4 MB be used again, of which each thread may keep 8 MB: pages that go back to
// the system between uses are zeroed and mapped anew each time.
void reuse_blocks() {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
}

nb::object parse_decimal(nb::bytes text) {
    const char *end = text.c_str() + text.size();
    srs::Decimal decimal;
    if (srs::scan_decimal(text.c_str(), end, decimal) != end) return nb::none();
    return nb::float_(srs::to_double(decimal, {text.c_str(), text.size()}));
}

// Entries of a MatrixMarket file into the records of a scratch file; formats/matrix_market.py tells of it.
class EntryReader {
  public:
    EntryReader(std::uint32_t n_rows, std::uint32_t n_columns, bool has_value, bool is_whole, bool is_turned)
        : counts_(is_turned ? n_rows : n_columns), last_(counts_.size()),
          all_{n_rows, n_columns, has_value, is_whole, is_turned, counts_.data(), last_.data()} {}

    // Returns how many bytes of the text were read, how many records came of it, the fault, 0 if there is none, how
    // many lines were read in all, and whether no entry came twice so far.
    nb::tuple read(nb::bytes text, Matrix<std::uint8_t> out) {
        const char *begin = text.c_str(), *end = begin + text.size();
        while (end > begin && end[-1] != '\n') --end;
        const auto size = static_cast<std::int64_t>(out.shape(1));
        if (!(size == 12 || size == 16) || reinterpret_cast<std::uintptr_t>(out.data()) % 8 != 0)
            srs::refuse("out", "aligned records of 12 or 16 bytes", std::to_string(size));
        srs::expect_between("out, its bytes", static_cast<std::int64_t>(out.nbytes()), (end - begin) / 4 * size, INT64_MAX);
        return size == 12 ? read_as<float>(begin, end, out) : read_as<double>(begin, end, out);
    }
    nb::bytes counts() const { return as_bytes(counts_); }

  private:
    template <class Value> nb::tuple read_as(const char *begin, const char *end, const Matrix<std::uint8_t> &out) {
        auto *first = reinterpret_cast<srs::Entry<Value> *>(out.data()), *stop = first;
        srs::EntryFault fault;
        const char *read = begin;
        {
            nb::gil_scoped_release release;
            fault = srs::read_entries(read, end, all_, stop);
        }
        return nb::make_tuple(read - begin, stop - first, static_cast<int>(fault), all_.n_lines, all_.is_distinct);
    }

    std::vector<std::int64_t> counts_;
    std::vector<std::uint32_t> last_;
    srs::Entries all_;
};

struct Found { // what coding finds of each column
    Vector<std::uint32_t> n_missing;
    Vector<std::uint16_t> n_codes;
    Vector<bool> exact;
    Vector<std::uint8_t> kinds;
    Matrix<double> lows, highs; // of width 0 where ranges are not wanted
};

template <class Coder, class Value, class Code>
void code_all(Coder coder, const Matrix<const Value> &values, const Matrix<Code> &codes, const Found &found) {
    const std::size_t n_columns = values.shape(0), n_rows = values.shape(1);
    const std::size_t width = found.lows.shape(1);
    for (std::size_t j = 0; j < n_columns; ++j) {
        const srs::ColumnFacts facts =
            coder.code(values.data() + j * n_rows, codes.data() + j * n_rows);
        found.n_missing.data()[j] = facts.n_missing;
        found.n_codes.data()[j] = facts.n_codes;
        found.exact.data()[j] = facts.exact;
        found.kinds.data()[j] = facts.kind;
        if (width) coder.ranges(found.lows.data() + j * width, found.highs.data() + j * width);
    }
}

void code_columns(srs::AnyMatrix values, srs::AnyOutput codes, Vector<std::uint32_t> n_missing,
                  Vector<std::uint16_t> n_codes, Vector<bool> exact, Vector<std::uint8_t> kinds,
                  Matrix<double> lows, Matrix<double> highs, std::size_t long_rows) {
    const auto m = static_cast<std::int64_t>(values.shape(0)), n_rows = static_cast<std::int64_t>(values.shape(1));
    const auto width = static_cast<std::int64_t>(lows.shape(1));
    srs::expect_between("values, its rows", n_rows, 0, UINT32_MAX);
    srs::expect_shape("codes", codes, m, n_rows);
    srs::expect_size("n_missing", n_missing, m);
    srs::expect_size("n_codes", n_codes, m);
    srs::expect_size("exact", exact, m);
    srs::expect_size("kinds", kinds, m);
    srs::with_dtype<std::uint8_t, std::uint16_t>("codes", codes, [&](auto code) {
        constexpr std::int64_t most = std::numeric_limits<decltype(code)>::max() - 1;
        srs::expect_shape("lows", lows, m, width ? std::max(width, std::min(most, n_rows)) : 0);
        srs::expect_shape("highs", highs, m, width);
        srs::with_dtype<float, double>("values", values, [&](auto value) {
            using Value = decltype(value);
            using Code = decltype(code);
            const Matrix<const Value> all(values);
            const Matrix<Code> out(codes);
            const Found found{n_missing, n_codes, exact, kinds, lows, highs};
            const std::size_t n = all.shape(1);
            nb::gil_scoped_release release;
            if constexpr (sizeof(Code) == 1)
                if (n >= long_rows) return code_all(srs::LongColumnCoder<Value>(n, long_rows / 8), all, out, found);
            code_all(srs::ColumnCoder<Value, Code>(n), all, out, found);
        });
    });
}

// What there is to know of some values at once; without branches, as half of them may go either way.
struct Look {
    bool large = false; // whether one is beyond the largest float, or infinite
    bool lossy = false; // whether one does not survive the round trip through float; never of a NaN

    template <class Value> void take(Value value) {
        const Value size = std::fabs(value), kept = size > FLT_MAX ? Value{0} : size;
        const Value narrow = static_cast<float>(kept);
        large |= size > FLT_MAX;
        lossy |= (narrow < kept) | (narrow > kept);
    }
    void take(const Look &other) {
        large |= other.large;
        lossy |= other.lossy;
    }
    bool narrow() const { return !large && !lossy; }
};

// Place of the first infinite one of some values, `step` apart; -1 if none is.
template <class Value> std::int64_t first_infinite(const Value *values, std::int64_t n, std::int64_t step) {
    for (std::int64_t i = 0; i < n; ++i)
        if (std::isinf(values[i * step])) return i * step;
    return -1;
}

std::pair<std::int64_t, bool> look_at(srs::AnyMatrix values) {
    return srs::with_dtype<float, double>("values", values, [&](auto value) {
        const auto *all = static_cast<const decltype(value) *>(values.data());
        const auto n = static_cast<std::int64_t>(values.size());
        nb::gil_scoped_release release;
        Look look;
        for (std::int64_t i = 0; i < n; ++i) look.take(all[i]);
        return std::pair(look.large ? first_infinite(all, n, 1) : -1, look.narrow());
    });
}

// Rows (m, width) into the columns first .. first + m - 1 of a panel, whose line s is columns[s]. Cells of long
// rows are waited for one by one, so threads share them.
constexpr std::int64_t CELLS_A_THREAD = 1 << 17;

template <class Value, class Kept>
std::pair<std::int64_t, bool> put(const Value *rows, std::int64_t m, std::int64_t width, Vector<const std::uint32_t> columns,
                                  Kept *panel, std::int64_t panel_rows, int n_threads) {
    nb::gil_scoped_release release;
    const auto n = static_cast<std::int64_t>(columns.size());
    std::mutex mutex;
    Look look;
    std::int64_t infinite = -1;
    const auto n_parts = std::clamp<std::int64_t>(n * m / CELLS_A_THREAD, 1, n_threads);
    srs::in_threads(n, static_cast<int>(n_parts), [&](std::int64_t begin, std::int64_t end) {
        Look mine;
        std::int64_t found = -1;
        for (std::int64_t s = begin; s < end; ++s) {
            const std::int64_t column = columns.data()[s];
            Kept *line = panel + s * panel_rows;
            Look here;
            for (std::int64_t r = 0; r < m; ++r) {
                const Value value = rows[r * width + column];
                here.take(value);
                line[r] = static_cast<Kept>(value);
            }
            mine.take(here);
            if (!here.large) continue;
            const std::int64_t place = first_infinite(rows + column, m, width);
            if (place >= 0 && (found < 0 || column + place < found)) found = column + place;
        }
        const std::lock_guard<std::mutex> lock(mutex);
        look.take(mine);
        if (found >= 0 && (infinite < 0 || found < infinite)) infinite = found;
    });
    return {infinite, look.narrow()};
}

std::pair<std::int64_t, bool> put_rows(srs::AnyMatrix rows, Vector<const std::uint32_t> columns, srs::AnyOutput panel,
                                       std::int64_t first, int n_threads) {
    const auto m = static_cast<std::int64_t>(rows.shape(0)), width = static_cast<std::int64_t>(rows.shape(1));
    const auto panel_rows = static_cast<std::int64_t>(panel.shape(1));
    srs::expect_size("columns", columns, static_cast<std::int64_t>(panel.shape(0)));
    srs::expect_between("rows, how many", m, 0, panel_rows);
    srs::expect_between("first", first, 0, panel_rows - m);
    srs::expect_below("columns", columns, width);
    return srs::with_dtype<float, double>("rows", rows, [&](auto value) {
        return srs::with_dtype<float, double>("panel", panel, [&](auto kept) {
            return put(static_cast<const decltype(value) *>(rows.data()), m, width, columns,
                       static_cast<decltype(kept) *>(panel.data()) + first, panel_rows, n_threads);
        });
    });
}

// Wide rows, dealt into the lines of a panel (n_held, n_lines) that holds one after another; scratch.py tells of it.
class RowDealer {
  public:
    RowDealer(Vector<const std::uint32_t> columns, std::int64_t width, std::int64_t block_lines, int n_threads)
        : dealer_(columns.data(), checked(columns, width, block_lines), width, block_lines,
                  std::clamp<std::int64_t>(width / CELLS_A_THREAD, 1, std::max(n_threads, 1))) {}

    std::pair<std::int64_t, bool> deal(srs::AnyMatrix rows, srs::AnyOutput panel, std::int64_t first) {
        const auto m = static_cast<std::int64_t>(rows.shape(0)), held = static_cast<std::int64_t>(panel.shape(0));
        srs::expect_shape("rows", rows, m, dealer_.width());
        srs::expect_shape("panel", panel, held, dealer_.n_lines());
        srs::expect_between("rows, how many", m, 0, held);
        srs::expect_between("first", first, 0, held - m);
        return srs::with_dtype<float, double>("rows", rows, [&](auto value) {
            return srs::with_dtype<float, double>("panel", panel, [&](auto kept) {
                return deal_as(static_cast<const decltype(value) *>(rows.data()), m,
                               static_cast<decltype(kept) *>(panel.data()) + first * dealer_.n_lines());
            });
        });
    }

    // Fills out (lines of the block, n_rows) with what the first n_rows of a panel hold.
    void lines(srs::AnyMatrix panel, std::int64_t block, srs::AnyOutput out) {
        const auto held = static_cast<std::int64_t>(panel.shape(0)), n_rows = static_cast<std::int64_t>(out.shape(1));
        srs::expect_shape("panel", panel, held, dealer_.n_lines());
        srs::expect_between("block", block, 0, dealer_.n_blocks() - 1);
        srs::expect_shape("out", out, dealer_.lines_of(block), n_rows);
        srs::expect_between("out, its columns", n_rows, 0, held);
        srs::with_dtype<float, double>("panel", panel, [&](auto dealt) {
            srs::with_dtype<float, double>("out", out, [&](auto cell) {
                const auto *cells = static_cast<const decltype(dealt) *>(panel.data());
                nb::gil_scoped_release release;
                dealer_.lines(block, cells, n_rows, static_cast<decltype(cell) *>(out.data()));
            });
        });
    }

  private:
    template <class Value, class Kept> std::pair<std::int64_t, bool> deal_as(const Value *rows, std::int64_t m, Kept *dealt) {
        nb::gil_scoped_release release;
        const std::int64_t width = dealer_.width();
        std::mutex mutex;
        Look look;
        srs::in_threads(dealer_.n_parts(), dealer_.n_parts(), [&](std::int64_t begin, std::int64_t end) {
            Look mine;
            for (std::int64_t part = begin; part < end; ++part)
                for (std::int64_t r = 0; r < m; ++r)
                    dealer_.deal(part, rows + r * width, dealt + r * dealer_.n_lines(), mine);
            const std::lock_guard<std::mutex> lock(mutex);
            look.take(mine);
        });
        for (std::int64_t i = 0; look.large && i < m * width; ++i)
            if (std::isinf(rows[i]) && dealer_.goes(i % width)) return {i, false};
        return {-1, look.narrow()};
    }

    static std::int64_t checked(const Vector<const std::uint32_t> &columns, std::int64_t width, std::int64_t block_lines) {
        const auto n = static_cast<std::int64_t>(columns.size());
        srs::expect_between("width", width, 0, UINT32_MAX);
        srs::expect_between("block_lines", block_lines, 1, srs::RowDealer::kMostLines);
        srs::expect_between("columns, how many", n, 0, block_lines * srs::RowDealer::kMostBlocks);
        srs::expect_below("columns", columns, width);
        std::vector<bool> seen(static_cast<std::size_t>(width));
        for (std::int64_t s = 0; s < n; seen[columns(s++)] = true)
            if (seen[columns(s)]) srs::refuse("columns[" + std::to_string(s) + "]", "another than before", std::to_string(columns(s)));
        return n;
    }

    srs::RowDealer dealer_;
};

} // namespace

void bind_ingest(nb::module_ &module) {
    nb::class_<HeaderReader> header(module, "HeaderReader");
    srs::define(header, "feed", &srs::Method<&HeaderReader::feed>::call, "data"_a, "start"_a);
    header
        .def("__init__", [](HeaderReader *self, nb::bytes marks) { new (self) HeaderReader(dialect_of(marks), 1, false); },
             "marks"_a)
        .def("finish", &HeaderReader::finish)
        .def("take_names", [](HeaderReader &self) { return take_texts(self.sink.names); })
        .def_prop_ro("done", [](const HeaderReader &self) { return self.sink.done; })
        .def_prop_ro("line", &HeaderReader::line)
        .def_prop_ro("after_return", &HeaderReader::after_return)
        .def_prop_ro("problem", &HeaderReader::problem);
    nb::class_<TableReader> table(module, "TableReader");
    srs::define(table, "__init__",
                &srs::Constructor<TableReader, Slots, nb::bytes, nb::object, std::int64_t, bool, nb::bytes, bool, std::size_t,
                                  nb::dict, bool>::call,
                "slots"_a, "marks"_a, "missing"_a.none(), "line"_a, "after_return"_a, "kinds"_a, "by_row"_a,
                "max_category_nbytes"_a, "row_kinds"_a, "counts"_a);
    srs::define(table, "set_panel", &srs::Method<&TableReader::set_panel>::call, "panel"_a);
    srs::define(table, "feed", &srs::Method<&TableReader::feed>::call, "data"_a, "start"_a);
    table
        .def("finish", &TableReader::finish)
        .def("stage", &TableReader::stage, "n_rows"_a)
        .def("take_texts", &TableReader::take_texts, "column"_a)
        .def("take_lines", [](TableReader &self) { return as_bytes(std::exchange(self.sink.lines, {})); })
        .def("take_row_cells", [](TableReader &self) { return as_bytes(std::exchange(self.sink.row_cells, {})); })
        .def("cells", [](const TableReader &self) { return as_bytes(self.sink.cells); })
        .def("categories", [](const TableReader &self) { return texts_of(self.sink.categories); })
        .def_prop_ro("texts_nbytes", [](const TableReader &self) { return self.sink.categories.needed(); })
        .def_prop_ro("n_rows", [](const TableReader &self) { return self.sink.n_rows; })
        .def_prop_ro("panel_row", [](const TableReader &self) { return self.sink.row(); })
        .def_prop_ro("column", &TableReader::column)
        .def_prop_ro("line", &TableReader::line)
        .def_prop_ro("fits_float32", [](const TableReader &self) { return self.sink.fits_float32; })
        .def_prop_ro("problem", &TableReader::problem);
    nb::class_<TextCoder> coder(module, "TextCoder");
    srs::define(coder, "code", &srs::Method<&TextCoder::code>::call, "blob"_a, "ends"_a);
    coder.def(nb::init<std::size_t, bool>(), "max_nbytes"_a, "counts"_a)
        .def("texts", [](const TextCoder &self) { return texts_of(self.pool); })
        .def_prop_ro("nbytes", [](const TextCoder &self) { return self.pool.bytes.size(); })
        .def_prop_ro("needed", [](const TextCoder &self) { return self.pool.needed(); })
        .def_prop_ro("size", [](const TextCoder &self) { return self.pool.ends.size(); });
    nb::class_<EntryReader> entries(module, "EntryReader");
    srs::define(entries, "read", &srs::Method<&EntryReader::read>::call, "text"_a, "out"_a);
    entries.def("counts", &EntryReader::counts)
        .def(nb::init<std::uint32_t, std::uint32_t, bool, bool, bool>(), "n_rows"_a, "n_columns"_a, "has_value"_a,
             "is_whole"_a, "is_turned"_a);
    module.def("return_large_blocks", &return_large_blocks);
    module.def("reuse_blocks", &reuse_blocks);
    module.def("parse_decimal", &parse_decimal, "text"_a);
    module.def("hash_text", [](nb::bytes text) { return srs::hash_text(text.c_str(), text.size()); },
               "text"_a);
    srs::define(module, "code_columns", &code_columns, "values"_a, "codes"_a, "n_missing"_a, "n_codes"_a, "exact"_a, "kinds"_a,
                "lows"_a, "highs"_a, "long_rows"_a);
    srs::define(module, "look_at", &look_at, "values"_a);
    nb::class_<RowDealer> dealer(module, "RowDealer");
    srs::define(dealer, "__init__", &srs::Constructor<RowDealer, Vector<const std::uint32_t>, std::int64_t, std::int64_t, int>::call,
                "columns"_a, "width"_a, "block_lines"_a, "n_threads"_a = 1);
    srs::define(dealer, "deal", &srs::Method<&RowDealer::deal>::call, "rows"_a, "panel"_a, "first"_a);
    srs::define(dealer, "lines", &srs::Method<&RowDealer::lines>::call, "panel"_a, "block"_a, "out"_a);
    srs::define(module, "put_rows", &put_rows, "rows"_a, "columns"_a, "panel"_a, "first"_a, "n_threads"_a = 1);
}
