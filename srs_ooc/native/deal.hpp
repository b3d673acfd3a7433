// Wide rows on their way to columns in another order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace srs {

// Deals the cells of rows into blocks of the lines that they will stand in, and makes the lines of a block. A row
// too long for the cache is written so from its beginning to its end; put in the order of lines, each of its cells
// would be waited for.
class RowDealer {
  public:
    static constexpr std::int64_t kMostLines = std::int64_t{1} << 16;
    static constexpr std::int64_t kMostBlocks = std::numeric_limits<std::uint16_t>::max();

    // columns: of each line, n of them, the column, different ones below width.
    RowDealer(const std::uint32_t *columns, std::int64_t n, std::int64_t width, std::int64_t block_lines, std::int64_t n_parts)
        : n_(n), width_(width), block_lines_(block_lines), n_blocks_((n + block_lines - 1) / block_lines),
          block_of_(width, static_cast<std::uint16_t>(n_blocks_)), places_(n), starts_(n_parts), next_(n_parts) {
        std::vector<std::uint32_t> line_of(width);
        for (std::int64_t s = 0; s < n; ++s) {
            block_of_[columns[s]] = static_cast<std::uint16_t>(s / block_lines);
            line_of[columns[s]] = static_cast<std::uint32_t>(s);
        }
        std::vector<std::int64_t> next(n_blocks_);
        for (std::int64_t b = 0; b < n_blocks_; ++b) next[b] = b * block_lines;
        for (std::int64_t part = 0; part < n_parts; ++part) {
            starts_[part] = next_[part] = next;
            for (std::int64_t c = first(part); c < first(part + 1); ++c) {
                const std::uint16_t block = block_of_[c];
                if (block < n_blocks_)
                    places_[line_of[c]] = static_cast<std::uint16_t>(next[block]++ - block * block_lines);
            }
        }
    }

    std::int64_t n_lines() const { return n_; }
    std::int64_t width() const { return width_; }
    std::int64_t n_parts() const { return static_cast<std::int64_t>(starts_.size()); }
    std::int64_t n_blocks() const { return n_blocks_; }
    std::int64_t lines_of(std::int64_t block) const { return std::min(block_lines_, n_ - block * block_lines_); }
    bool goes(std::int64_t column) const { return block_of_[column] < n_blocks_; }

    // Deal a part of a row; parts of one row may be dealt side by side. look is told of the cells that go.
    template <class Value, class Kept, class Look>
    void deal(std::int64_t part, const Value *row, Kept *dealt, Look &look) {
        std::vector<std::int64_t> &next = next_[part];
        next = starts_[part];
        for (std::int64_t c = first(part), end = first(part + 1), stop; c < end; c = stop) {
            stop = std::min(end, c + 4096); // looked at while in the cache
            for (std::int64_t i = c; i < stop; ++i) look.take(goes(i) ? row[i] : Value{0});
            for (std::int64_t i = c; i < stop; ++i)
                if (goes(i)) dealt[next[block_of_[i]]++] = static_cast<Kept>(row[i]);
        }
    }

    // Lines (lines_of(block), n_rows) of rows that were dealt.
    template <class Kept, class Cell> void lines(std::int64_t block, const Kept *dealt, std::int64_t n_rows, Cell *out) const {
        constexpr std::int64_t together = 64 / sizeof(Cell); // cells of a line that share a line of the cache
        const std::int64_t n = lines_of(block), begin = block * block_lines_;
        for (std::int64_t row = 0; row < n_rows; row += together) {
            const std::int64_t stop = std::min(n_rows, row + together);
            for (std::int64_t s = 0; s < n; ++s) {
                const Kept *cell = dealt + begin + places_[begin + s];
                for (std::int64_t r = row; r < stop; ++r) out[s * n_rows + r] = static_cast<Cell>(cell[r * n_]);
            }
        }
    }

  private:
    std::int64_t first(std::int64_t part) const { return part * width_ / n_parts(); }

    std::int64_t n_, width_, block_lines_, n_blocks_;
    std::vector<std::uint16_t> block_of_;                   // of each column; n_blocks_ where it goes nowhere
    std::vector<std::uint16_t> places_;                     // of each line, in its block as dealt
    std::vector<std::vector<std::int64_t>> starts_, next_;  // by part and block: where cells go from; where the next goes
};

} // namespace srs
