// Columns of a PLINK 1 .bed file, two bits a sample, mapped or read: as codes, and counted.
#pragma once
#include "gather/columns.hpp"
#include "isa.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

namespace srs {

constexpr int64_t BED_HEAD_NBYTES = 3;
constexpr int N_DOSAGES = 3;

inline int64_t bed_line_nbytes(int64_t n_samples) { return (n_samples + 3) / 4; }

// Variants as codes in a staging area. `file` is mapped, or null where `descriptor` is read.
class GenotypeLines {
  public:
    GenotypeLines(const GatherRequest &request, const Isa &isa, const uint8_t *file, int32_t descriptor, const uint8_t *present)
        : request_(request), file_(file), descriptor_(descriptor), present_(present), isa_(isa),
          line_nbytes_(bed_line_nbytes(request.n_rows)),
          lines_(file ? 0 : static_cast<size_t>(std::min<int64_t>(TILE, request.n_columns) * line_nbytes_)),
          staging_(static_cast<size_t>(std::min<int64_t>(TILE, request.n_columns) * line_nbytes_ * 4)) {}
    static constexpr bool in_place = false;
    void load(int64_t first, int64_t n, const uint8_t **columns) {
        for (int64_t i = 0; i < n;) {
            const int64_t feature = request_.features[first + i], offset = BED_HEAD_NBYTES + feature * line_nbytes_;
            int64_t run = 1;
            while (run < n - i && int64_t{request_.features[first + i + run]} == feature + run) ++run;
            const uint8_t *lines = file_ ? file_ + offset : lines_.data();
            if (!file_)
                read_fully(descriptor_, offset, run * line_nbytes_, lines_.data(), [] { return std::string("the .bed file"); });
            for (int64_t j = 0; j < run; ++j, ++i) {
                uint8_t *target = staging_.data() + i * line_nbytes_ * 4;
                isa_.decode_genotypes(lines + j * line_nbytes_, line_nbytes_, present_[feature + j], target);
                columns[i] = target;
            }
        }
    }

  private:
    const GatherRequest &request_;
    const uint8_t *file_;
    const int32_t descriptor_;
    const uint8_t *present_;
    const Isa &isa_;
    const int64_t line_nbytes_;
    std::vector<uint8_t> lines_, staging_;
};

// Values of n samples as a line; returns the first that is none of 0, 1, 2 and NaN, or n.
template <class Value> int64_t pack_dosages(const Value *values, int64_t n, uint8_t *line) {
    for (int64_t i = 0; i < n;) {
        uint8_t four = 0;
        for (int shift = 0; shift < 8 && i < n; shift += 2, ++i) {
            const Value value = values[i];
            const int field = value == 0 ? 3 : value == 1 ? 2 : value == 2 ? 0 : 1;
            if (field == 1 && value == value) return i;
            four = static_cast<uint8_t>(four | field << shift);
        }
        *line++ = four;
    }
    return n;
}

// Samples with each dosage, 0, 1, 2, of a variant; `kept` has 01 for each sample that counts, 00 for others.
inline void count_dosages(const uint8_t *line, const uint8_t *kept, int64_t nbytes, uint32_t *counts) {
    const auto count = [](uint64_t pairs) { // of fields of two bits that are 0 or 1
        pairs = (pairs & 0x3333333333333333) + ((pairs >> 2) & 0x3333333333333333);
        pairs = (pairs + (pairs >> 4)) & 0x0f0f0f0f0f0f0f0f;
        return (pairs * 0x0101010101010101) >> 56;
    };
    uint64_t n_none = 0, n_one = 0, n_two = 0;
    for (int64_t i = 0; i < nbytes; i += 8) {
        uint64_t word = 0, mask = 0;
        const auto n = static_cast<size_t>(std::min<int64_t>(8, nbytes - i));
        std::memcpy(&word, line + i, n);
        std::memcpy(&mask, kept + i, n);
        const uint64_t high = word >> 1;
        n_none += count(word & high & mask);
        n_one += count(~word & high & mask);
        n_two += count(~word & ~high & mask);
    }
    counts[0] = static_cast<uint32_t>(n_none);
    counts[1] = static_cast<uint32_t>(n_one);
    counts[2] = static_cast<uint32_t>(n_two);
}

} // namespace srs
