// Distinct texts, numbered in the order of their first appearance, within a bound on memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace srs {

inline std::uint64_t hash_text(const char *text, std::size_t size) { // FNV-1a, then SplitMix64's mix
    std::uint64_t x = 0xCBF29CE484222325u;
    for (std::size_t i = 0; i < size; ++i)
        x = (x ^ static_cast<unsigned char>(text[i])) * 0x100000001B3u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

class TextPool {
  public:
    // What a text of so many bytes is counted as: its bytes here and sorted in Python, growing
    // arrays, the table of hashes.
    static constexpr std::size_t cost(std::size_t size) { return 4 * size + 128; }

    explicit TextPool(std::size_t max_nbytes) : room_(max_nbytes) {}

    // Take memory for something else; false if there is not so much.
    bool reserve(std::size_t nbytes) {
        if (nbytes > room_) return false;
        room_ -= nbytes;
        return true;
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

    std::size_t room_;
    std::vector<std::uint64_t> hashes_;
    std::vector<std::uint32_t> table_;
};

} // namespace srs
