// Bindings of the scan of all pairs (evidence/pairs.py).
#include "bind/arguments.hpp"
#include "bind/thread_team.hpp"
#include "isa.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::FoundPair, srs::Matrix, srs::TILE, srs::Vector;

namespace {

using Tiles = srs::ArrayOf<uint64_t, nb::ndim<3>>;
using ReadTiles = srs::ArrayOf<const uint64_t, nb::ndim<3>>;

// The cut nearest the median of the counts, or of three levels the other one; codes above it are high. -1: there is none.
int64_t cut_of(const std::vector<int64_t> &counts, bool other) {
    int64_t total = 0, below = 0, cut = -1, least = 0, n_levels = 0, second = -1;
    for (int64_t count : counts) total += count;
    for (size_t code = 0; code < counts.size(); ++code) {
        if (counts[code] == 0) continue;
        below += counts[code];
        n_levels += 1;
        if (below == total) break;
        const int64_t off = std::abs(2 * below - total);
        const bool is_nearer = cut < 0 || off < least;
        second = is_nearer ? cut : static_cast<int64_t>(code);
        if (is_nearer) cut = static_cast<int64_t>(code), least = off;
    }
    if (other) return n_levels == 3 ? second : -1;
    return cut;
}

// Rows by section, and where sections begin: in rows, and in words of 64 rows.
struct Sections {
    std::vector<int64_t> rows, words{0};

    Sections(Vector<const int64_t> bounds, int64_t n_rows, int64_t n_words) {
        srs::expect_bounds("bounds", bounds, n_rows, 1);
        rows.assign(bounds.data(), bounds.data() + bounds.size());
        for (size_t s = 1; s < rows.size(); ++s) words.push_back(words.back() + (rows[s] - rows[s - 1] + 63) / 64);
        srs::expect_between("tiles, words", n_words, words.back(), words.back());
    }
    int64_t n() const { return static_cast<int64_t>(rows.size()) - 1; }
    int64_t n_rows() const { return rows.back(); }
};

template <typename Code>
void halve_column(const Code *column, const int32_t *rows, const Sections &sections, int64_t missing_code, bool other,
                  std::vector<int64_t> &counts, uint64_t *bits) {
    const int64_t n_rows = sections.n_rows();
    std::fill(counts.begin(), counts.end(), 0);
    int64_t n_known = 0;
    for (int64_t i = 0; i < n_rows; ++i) {
        const Code code = column[rows[i]];
        if (code < missing_code) ++counts[code], ++n_known;
    }
    int64_t middle = 0; // what a missing value counts as
    for (int64_t below = counts[0]; n_known > 0 && below <= n_known / 2; below += counts[static_cast<size_t>(middle)]) ++middle;
    counts[static_cast<size_t>(middle)] += n_rows - n_known;
    const int64_t cut = cut_of(counts, other);
    for (int64_t s = 0; s < sections.n(); ++s) {
        uint64_t word = 0;
        int64_t at = sections.words[static_cast<size_t>(s)];
        const int64_t first = sections.rows[static_cast<size_t>(s)], end = sections.rows[static_cast<size_t>(s) + 1];
        for (int64_t i = first; i < end; ++i) {
            const int64_t code = column[rows[i]];
            const bool high = cut >= 0 && (code < missing_code ? code : middle) > cut;
            word |= static_cast<uint64_t>(high) << ((i - first) % 64);
            if ((i - first) % 64 == 63 || i + 1 == end) bits[at++ * TILE] = word, word = 0;
        }
    }
}

// Lays the bits of columns out, from place `first` on: which of the rows, by section, are above the cut.
void halve_columns(srs::AnyMatrix codes, Vector<const int32_t> rows, Vector<const int64_t> bounds, int64_t missing_code, bool other,
                   Tiles tiles, int64_t first) {
    const auto n = static_cast<int64_t>(codes.shape(0)), n_rows = static_cast<int64_t>(codes.shape(1));
    const auto n_words = static_cast<int64_t>(tiles.shape(1));
    srs::expect_between("tiles, the last dimension", int64_t(tiles.shape(2)), TILE, TILE);
    srs::expect_below("rows", rows, n_rows);
    srs::expect_between("missing_code", missing_code, 1, 65535);
    srs::expect_between("first", first, 0, int64_t(tiles.shape(0)) * TILE - n);
    const Sections sections(bounds, static_cast<int64_t>(rows.size()), n_words);
    srs::with_dtype<uint8_t, uint16_t>("codes", codes, [&](auto item) {
        using Code = decltype(item);
        nb::gil_scoped_release released;
        std::vector<int64_t> counts(static_cast<size_t>(missing_code));
        for (int64_t i = 0; i < n; ++i) {
            const int64_t place = first + i;
            halve_column(static_cast<const Code *>(codes.data()) + i * n_rows, rows.data(), sections, missing_code, other, counts,
                         tiles.data() + place / TILE * n_words * TILE + place % TILE);
        }
    });
}

// A larger score is better, then the pair that comes first: in whatever order pairs are found, the same are best.
bool is_better(const FoundPair &a, const FoundPair &b) {
    if (a.score != b.score) return a.score > b.score;
    return a.left != b.left ? a.left < b.left : a.right < b.right;
}

// The best pairs found so far, of which the worst say from what score on another is worth a look.
struct BestPairs {
    std::vector<FoundPair> pairs;
    size_t most;
    double least = 0.0;

    explicit BestPairs(size_t most_) : most(most_) {}
    void add(const FoundPair *found, int64_t n, int64_t left, int64_t right) {
        for (int64_t i = 0; i < n; ++i)
            pairs.push_back({found[i].score, static_cast<int32_t>(left + found[i].left), static_cast<int32_t>(right + found[i].right)});
        if (pairs.size() > 2 * most) keep();
    }
    void join(const BestPairs &others) {
        pairs.insert(pairs.end(), others.pairs.begin(), others.pairs.end());
        keep();
    }
    void keep() {
        if (pairs.size() <= most) return;
        std::nth_element(pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(most) - 1, pairs.end(), is_better);
        pairs.resize(most);
        least = pairs.back().score;
    }
};

struct Scan {
    const srs::Isa &isa;
    const uint64_t *bits;
    Sections sections;
    int64_t n_tiles, n_columns, n_targets;
    std::vector<double> coefficients, scales, sums;

    Scan(const srs::Isa &isa_, ReadTiles tiles, Sections sections_, int64_t n_columns_, Matrix<const double> given)
        : isa(isa_), bits(tiles.data()), sections(std::move(sections_)), n_tiles(static_cast<int64_t>(tiles.shape(0))),
          n_columns(n_columns_), n_targets(static_cast<int64_t>(given.shape(0))),
          coefficients(given.data(), given.data() + given.size()), sums(static_cast<size_t>(n_tiles * (2 + n_targets) * TILE)) {
        for (int64_t target = 0; target < n_targets; ++target) {
            double squares = 0.0;
            for (int64_t s = 0; s < sections.n(); ++s) squares += coefficient(target, s) * coefficient(target, s) * rows_of(s);
            scales.push_back(squares > 0.0 ? static_cast<double>(sections.n_rows()) / std::sqrt(squares) : 0.0);
        }
        for (int64_t tile = 0; tile < n_tiles; ++tile)
            for (int64_t c = 0; c < TILE; ++c) add_up(words(tile) + c, sums_of(tile) + c);
    }
    double coefficient(int64_t target, int64_t s) const { return coefficients[static_cast<size_t>(target * sections.n() + s)]; }
    double rows_of(int64_t s) const {
        return static_cast<double>(sections.rows[static_cast<size_t>(s) + 1] - sections.rows[static_cast<size_t>(s)]);
    }
    const uint64_t *words(int64_t tile) const { return bits + tile * sections.words.back() * TILE; }
    double *sums_of(int64_t tile) { return sums.data() + tile * (2 + n_targets) * TILE; }
    const double *sums_of(int64_t tile) const { return sums.data() + tile * (2 + n_targets) * TILE; }

    void add_up(const uint64_t *column, double *out) const {
        const auto n = static_cast<double>(sections.n_rows());
        double signs = -n;
        for (int64_t s = 0; s < sections.n(); ++s) {
            int64_t count = 0;
            for (int64_t w = sections.words[static_cast<size_t>(s)]; w < sections.words[static_cast<size_t>(s) + 1]; ++w)
                count += __builtin_popcountll(column[w * TILE]);
            signs += 2.0 * static_cast<double>(count);
            for (int64_t target = 0; target < n_targets; ++target)
                out[(2 + target) * TILE] += 2.0 * coefficient(target, s) * static_cast<double>(count);
        }
        const double spread = n * n - signs * signs;
        out[0] = signs;
        out[TILE] = spread > 0.0 ? 1.0 / std::sqrt(spread) : 0.0;
    }

    // All pairs of a tile with those up to it.
    void with_all(int64_t left, int32_t *counts, FoundPair *found, BestPairs &best) const {
        const auto n_in = [&](int64_t tile) { return std::min(TILE, n_columns - tile * TILE); };
        for (int64_t right = 0; right <= left; ++right) {
            const srs::PairJob job{words(left), words(right), sections.words.data(), sections.n(), n_targets, coefficients.data(),
                                   scales.data(), sums_of(left), sums_of(right), sections.n_rows(), n_in(left), n_in(right),
                                   best.least, srs::counts_words(), counts, found};
            best.add(found, isa.scan_pairs(job), left * TILE, right * TILE);
        }
    }
};

// The best pairs of the columns of some tiles with those before them, and of what is there already: scores, descending.
void scan_pairs(ReadTiles tiles, int64_t n_columns, Vector<const int64_t> bounds, Matrix<const double> coefficients, int64_t first,
                int64_t last, Vector<double> scores, Matrix<int32_t> pairs, int64_t n_threads, const std::string &isa) {
    srs::expect_between("tiles, the last dimension", int64_t(tiles.shape(2)), TILE, TILE);
    const auto n_tiles = static_cast<int64_t>(tiles.shape(0)), most = static_cast<int64_t>(scores.size());
    srs::expect_between("bounds, how many", int64_t(bounds.size()), 2, 1 << 16);
    srs::expect_between("bounds, the last", bounds.data()[bounds.size() - 1], 1, 1 << 16);
    Sections sections(bounds, bounds.data()[bounds.size() - 1], int64_t(tiles.shape(1)));
    srs::expect_shape("coefficients", coefficients, int64_t(coefficients.shape(0)), sections.n());
    srs::expect_between("n_columns", n_columns, (n_tiles - 1) * TILE + 1, n_tiles * TILE);
    srs::expect_between("last", last, 0, n_tiles);
    srs::expect_between("first", first, 0, last);
    srs::expect_between("scores, how many", most, 1, 1 << 20);
    srs::expect_shape("pairs", pairs, most, 2);
    srs::expect_between("n_threads", n_threads, 1, srs::MAX_THREADS);
    const srs::Isa &clone = srs::find_isa(isa);
    nb::gil_scoped_release released;
    const Scan scan(clone, tiles, std::move(sections), n_columns, coefficients);
    n_threads = std::min(n_threads, std::max<int64_t>(last - first, 1));
    std::vector<BestPairs> best(static_cast<size_t>(n_threads), BestPairs(static_cast<size_t>(most)));
    std::vector<FoundPair> found(static_cast<size_t>(n_threads * TILE * TILE));
    std::vector<int32_t> counts(static_cast<size_t>(n_threads * scan.sections.n() * TILE));
    for (int64_t i = 0; i < most && scores.data()[i] > 0.0; ++i)
        best[0].pairs.push_back({scores.data()[i], pairs.data()[2 * i], pairs.data()[2 * i + 1]});
    const double least = int64_t(best[0].pairs.size()) == most ? scores.data()[most - 1] : 0.0;
    for (BestPairs &of : best) {
        of.pairs.reserve(2 * of.most + TILE * TILE); // no thread takes memory
        of.least = least;
    }
    std::atomic<int64_t> next{last - 1};
    srs::in_threads(n_threads, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t thread = begin; thread < end; ++thread)
            for (int64_t left; (left = next.fetch_sub(1)) >= first;)
                scan.with_all(left, counts.data() + thread * scan.sections.n() * TILE, found.data() + thread * TILE * TILE,
                              best[static_cast<size_t>(thread)]);
    });
    for (size_t thread = 1; thread < best.size(); ++thread) best[0].join(best[thread]);
    std::vector<FoundPair> &all = best[0].pairs;
    std::sort(all.begin(), all.end(), is_better);
    for (size_t i = 0; i < all.size() && i < best[0].most; ++i) {
        scores.data()[i] = all[i].score;
        pairs.data()[2 * i] = all[i].left;
        pairs.data()[2 * i + 1] = all[i].right;
    }
}

} // namespace

void bind_pairs(nb::module_ &module) {
    srs::define(module, "halve_columns", &halve_columns, "codes"_a, "rows"_a, "bounds"_a, "missing_code"_a, "other"_a, "tiles"_a,
                "first"_a);
    srs::define(module, "scan_pairs", &scan_pairs, "tiles"_a, "n_columns"_a, "bounds"_a, "coefficients"_a, "first"_a, "last"_a,
                "scores"_a, "pairs"_a, "n_threads"_a = 1, "isa"_a = "");
}
