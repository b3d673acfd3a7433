// Feeds made-up text to the CSV reader, whole and cut anywhere, to be built with sanitizers.
//
//     fuzz_parse SEED SECONDS
//
// Ends with an error where cutting a text changes what is read. Every number that was read is
// printed with its bits; what they ought to be is for the caller (tests/ingestion/test_csv.py).
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "csv/table.hpp"

namespace {

using Random = std::mt19937_64;

const char *const kPieces[] = {
    "1",    "-2.5", "1e",   "e9",     "E-3",  "nan", "NA",   "inf",        "-Infinity", ",",  ",",
    ";",    " ",    "\t",   "#",      "\"",   "\"\"", "\n",  "\n",         "\r",        "\r\n", "\xff",
    "\xc3\xa9", ".", "u",   "1,5,r,u\n", "+", "12345678", "0.000001", "99999999999999999999", "1e400",
    "4.9e-324", "1e-400", "7,8,s,v\r\n", "x", "", "\"1.25\",\"a\nb\",t,w\n"};

std::string make_number(Random &random) {
    std::string text;
    const auto digits = [&](std::uint64_t most) {
        for (std::uint64_t n = random() % (most + 1); n--;)
            text += static_cast<char>('0' + random() % 10);
    };
    if (random() % 3 == 0) text += "+-"[random() % 2];
    digits(random() % 8 ? 7 : 25);
    if (random() % 2) text += '.', digits(random() % 8 ? 8 : 25);
    if (random() % 4 == 0) {
        text += "eE"[random() % 2];
        if (random() % 2) text += "+-"[random() % 2];
        digits(3);
    }
    return text;
}

std::string make_text(Random &random) {
    std::string text;
    const std::uint64_t style = random() % 4;
    for (std::uint64_t n = random() % 60; n--;) {
        if (style == 0)
            text += make_number(random) + "," + make_number(random) + ",r,u\n";
        else if (random() % 6 == 0)
            text += static_cast<char>(random());
        else if (random() % 3 == 0)
            text += make_number(random);
        else
            text += kPieces[random() % (sizeof kPieces / sizeof *kPieces)];
    }
    return text;
}

struct Found {
    std::vector<std::uint64_t> bits;
    std::string texts;
    int fault;
    std::int64_t line, column, n_rows;
    bool operator==(const Found &other) const {
        return bits == other.bits && texts == other.texts && fault == other.fault &&
               line == other.line && column == other.column && n_rows == other.n_rows;
    }
};

struct Case {
    srs::Dialect dialect;
    std::vector<std::string> missing;
    bool lists_missing, by_row;
    std::uint8_t first_kind, second_kind;
};

Case make_case(Random &random) {
    Case made;
    made.dialect = {",;\t "[random() % 4], "\0#"[random() % 2], ".,"[random() % 4 == 0]};
    if (made.dialect.separator == ',') made.dialect.point = '.'; // they always differ
    made.lists_missing = random() % 3 == 0;
    made.missing = {"NA", "-9", ""};
    made.by_row = random() % 4 == 0;
    made.first_kind = random() % 3 ? srs::kUnknown : srs::kCategories;
    made.second_kind = random() % 3 ? srs::kUnknown : srs::kOnlyNumbers;
    return made;
}

// Each piece lies in memory of its own size, so that a read past its end is seen.
Found read(const std::string &text, const Case &made, Random *cutter) {
    constexpr std::int64_t panel_rows = 64;
    std::vector<double> panel(2 * panel_rows, 77.0);
    srs::MissingTexts missing;
    if (made.lists_missing) missing = srs::MissingTexts(made.missing, made.dialect.point);
    std::vector<std::uint8_t> kinds;
    if (!made.by_row) kinds = {made.first_kind, made.second_kind, 0, 0};
    srs::TableSink sink({0, 1, -3, -2}, made.dialect, missing, kinds, made.by_row, 2000,
                        {{"a", srs::kCategories}, {"1", srs::kOnlyNumbers}});
    sink.set_panel(panel.data(), panel_rows);
    srs::CsvTokenizer<srs::TableSink> tokens(made.dialect, 1, false);
    for (std::size_t at = 0; at < text.size() && !sink.stopped();) {
        std::size_t size = text.size() - at;
        if (cutter) size = 1 + (*cutter)() % (size < 40 ? size : 40);
        const std::unique_ptr<char[]> piece(new char[size]);
        std::memcpy(piece.get(), text.data() + at, size);
        at += tokens.feed(piece.get(), size, sink);
    }
    tokens.finish(sink);
    Found found{{}, "", static_cast<int>(sink.problem.fault), sink.problem.line, sink.problem.column,
                sink.n_rows};
    if (sink.problem.fault != srs::Fault::none) return found;
    for (std::int64_t column = 0; column < 2; ++column)
        for (std::int64_t row = 0; row < sink.row(); ++row) {
            std::uint64_t bits;
            std::memcpy(&bits, &panel[static_cast<std::size_t>(column * panel_rows + row)], sizeof bits);
            found.bits.push_back(bits);
        }
    for (const srs::Texts &texts : sink.texts) found.texts += texts.bytes + '|';
    found.texts += sink.categories.bytes;
    return found;
}

void print_number(Random &random) {
    const std::string text = make_number(random);
    const std::string padded = text + std::string(srs::kShortReach, ',');
    srs::Decimal decimal;
    double value;
    std::uint64_t bits;
    const char *end = text.data() + text.size();
    if (srs::scan_decimal(text.data(), end, decimal) == end) {
        value = srs::to_double(decimal, text);
        std::memcpy(&bits, &value, sizeof bits);
        std::printf("%s %016" PRIx64 "\n", text.c_str(), bits);
    }
    const char *stop = srs::scan_short(padded.data(), '.', value);
    if (stop == padded.data() + text.size()) {
        std::memcpy(&bits, &value, sizeof bits);
        std::printf("%s %016" PRIx64 "\n", text.c_str(), bits);
    }
}

} // namespace

int main(int, char **arguments) {
    Random random(std::strtoull(arguments[1], nullptr, 10));
    const auto stop = std::chrono::steady_clock::now() +
                      std::chrono::milliseconds(static_cast<long>(1000 * std::atof(arguments[2])));
    std::uint64_t n_texts = 0;
    do {
        const Case made = make_case(random);
        const std::string text = make_text(random);
        const Found whole = read(text, made, nullptr);
        for (int cut = 0; cut < 3; ++cut)
            if (!(read(text, made, &random) == whole)) {
                std::fprintf(stderr, "cutting changes what is read of: ");
                for (const char c : text) std::fprintf(stderr, "\\x%02x", static_cast<unsigned char>(c));
                std::fprintf(stderr, "\n");
                return 1;
            }
        if (n_texts++ % 8 == 0) print_number(random);
    } while (std::chrono::steady_clock::now() < stop);
    std::fprintf(stderr, "%" PRIu64 " texts\n", n_texts);
    return 0;
}
