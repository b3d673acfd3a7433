// Ordinal codes of a column: exact ranks where the distinct values fit, quantile bins otherwise.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace srs {

template <class Value> struct KeyOf;
template <> struct KeyOf<float> { using type = std::uint32_t; };
template <> struct KeyOf<double> { using type = std::uint64_t; };

// Unsigned integers in the order of the values; -0.0 and 0.0 share one.
template <class Value> typename KeyOf<Value>::type to_key(Value value) {
    using Key = typename KeyOf<Value>::type;
    constexpr Key top = Key{1} << (8 * sizeof(Key) - 1);
    Key bits;
    value += Value{0};
    std::memcpy(&bits, &value, sizeof bits);
    return bits & top ? ~bits : bits | top;
}

template <class Value> Value from_key(typename KeyOf<Value>::type key) {
    using Key = typename KeyOf<Value>::type;
    constexpr Key top = Key{1} << (8 * sizeof(Key) - 1);
    const Key bits = key & top ? key & ~top : ~key;
    Value value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// A row and the beginning of its key, to be sorted by the latter.
struct Item {
    std::uint32_t row, prefix;
};

// Sort by prefix with digits of so many bits; digits in which all agree are skipped. The sorted items
// are in the returned array.
template <int kBits> Item *sort_items(Item *items, Item *spare, std::size_t n) {
    constexpr int n_digits = (32 + kBits - 1) / kBits;
    constexpr std::uint32_t mask = (1u << kBits) - 1;
    std::uint32_t counts[n_digits][mask + 1] = {};
    for (std::size_t i = 0; i < n; ++i)
        for (int d = 0; d < n_digits; ++d) ++counts[d][(items[i].prefix >> (kBits * d)) & mask];
    for (int d = 0; d < n_digits; ++d) {
        std::uint32_t *at = counts[d];
        if (at[(items[0].prefix >> (kBits * d)) & mask] == n) continue;
        std::uint32_t total = 0;
        for (std::uint32_t v = 0; v <= mask; ++v) total += std::exchange(at[v], total);
        for (std::size_t i = 0; i < n; ++i)
            spare[at[(items[i].prefix >> (kBits * d)) & mask]++] = items[i];
        std::swap(items, spare);
    }
    return items;
}

inline Item *sort_items(Item *items, Item *spare, std::size_t n) {
    if (n < 64) {
        std::sort(items, items + n, [](Item x, Item y) { return x.prefix < y.prefix; });
        return items;
    }
    return n < 16384 ? sort_items<8>(items, spare, n) : sort_items<11>(items, spare, n);
}

template <class Value> bool is_whole(Value value) {
    constexpr Value big = Value{1} / std::numeric_limits<Value>::epsilon(); // whole from here on
    if (!(std::fabs(value) < big)) return true;
    return static_cast<Value>(static_cast<std::int64_t>(value)) == value;
}

enum Kind : std::uint8_t { kNumeric, kInteger, kBoolean, kCategorical, kConstant };

struct ColumnFacts {
    std::uint32_t n_missing;
    std::uint16_t n_codes;
    bool exact;
    std::uint8_t kind; // what the values show; never kCategorical
};

// Codes columns one at a time; holds the scratch they share.
template <class Value, class Code> class ColumnCoder {
  public:
    using Key = typename KeyOf<Value>::type;
    static constexpr std::size_t kCodes = std::numeric_limits<Code>::max() - 1;
    static constexpr Code kMissing = std::numeric_limits<Code>::max();

    explicit ColumnCoder(std::size_t n_rows) : items_(n_rows), spare_(n_rows) {
        starts_.reserve(std::min(n_rows, kCodes) + 1);
    }

    ColumnFacts code(const Value *values, Code *codes) {
        const std::size_t n_rows = items_.size();
        values_ = values;
        take_rows();
        sort_rows();
        const bool exact = find_starts();
        std::fill(codes, codes + n_rows, kMissing);
        for (std::size_t c = 0; c + 1 < starts_.size(); ++c)
            for (std::size_t i = starts_[c]; i < starts_[c + 1]; ++i)
                codes[sorted_[i].row] = static_cast<Code>(c);
        return {static_cast<std::uint32_t>(n_rows - n_valid_),
                static_cast<std::uint16_t>(starts_.size() - 1), exact, kind()};
    }

    // Lowest and highest value of each code of the column coded last.
    void ranges(double *lows, double *highs) const {
        for (std::size_t c = 0; c + 1 < starts_.size(); ++c) {
            lows[c] = from_key<Value>(key(starts_[c]));
            highs[c] = from_key<Value>(key(starts_[c + 1] - 1));
        }
    }

  private:
    static constexpr int kKeyBits = 8 * sizeof(Key);

    Key key(std::size_t i) const { return to_key(values_[sorted_[i].row]); }

    // Rows with a value, each with the 32 bits of its key below those in which all agree.
    void take_rows() {
        low_ = std::numeric_limits<Key>::max();
        high_ = 0;
        n_valid_ = 0;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            if (std::isnan(values_[i])) continue;
            const Key k = to_key(values_[i]);
            low_ = std::min(low_, k);
            high_ = std::max(high_, k);
            items_[n_valid_++].row = static_cast<std::uint32_t>(i);
        }
        if (n_valid_ == 0 || low_ == high_) return;
        const int shift = __builtin_clzll(static_cast<std::uint64_t>(low_ ^ high_)) - (64 - kKeyBits);
        holds_keys_ = kKeyBits - shift <= 32;
        for (std::size_t i = 0; i < n_valid_; ++i)
            items_[i].prefix = static_cast<std::uint32_t>(
                static_cast<Key>(to_key(values_[items_[i].row]) << shift) >> (kKeyBits - 32));
    }

    void sort_rows() {
        sorted_ = items_.data();
        if (n_valid_ == 0 || low_ == high_) return;
        sorted_ = sort_items(items_.data(), spare_.data(), n_valid_);
        if (holds_keys_) return;
        for (std::size_t start = 0, stop; start < n_valid_; start = stop) {
            bool mixed = false;
            stop = start + 1;
            for (; stop < n_valid_ && sorted_[stop].prefix == sorted_[start].prefix; ++stop)
                mixed |= key(stop) != key(start);
            if (mixed)
                std::sort(sorted_ + start, sorted_ + stop, [this](Item x, Item y) {
                    return to_key(values_[x.row]) < to_key(values_[y.row]);
                });
        }
    }

    bool same(std::size_t i, std::size_t j) const {
        if (low_ == high_) return true;
        if (sorted_[i].prefix != sorted_[j].prefix) return false;
        return holds_keys_ || key(i) == key(j);
    }

    // Where each code starts among the sorted rows, and their end: at the distinct values if those
    // fit (true), else at the quantiles.
    bool find_starts() {
        starts_.assign(1, 0);
        if (n_valid_ == 0) return true;
        bool fit = true;
        for (std::size_t i = 1; i < n_valid_ && fit; ++i) {
            if (same(i, i - 1)) continue;
            fit = starts_.size() < kCodes;
            if (fit) starts_.push_back(i);
        }
        if (!fit) {
            starts_.resize(1);
            for (std::size_t k = 1; k < kCodes; ++k) {
                std::size_t i = k * n_valid_ / kCodes;
                if (same(i, starts_.back())) continue;
                while (same(i, i - 1)) --i;
                starts_.push_back(i);
            }
        }
        starts_.push_back(n_valid_);
        return fit;
    }

    Kind kind() const {
        if (n_valid_ == 0 || low_ == high_) return kConstant;
        for (std::size_t i = 0; i < items_.size(); ++i)
            if (!std::isnan(values_[i]) && !is_whole(values_[i])) return kNumeric;
        // both whole: nothing lies between
        return low_ == to_key(Value{0}) && high_ == to_key(Value{1}) ? kBoolean : kInteger;
    }

    std::vector<Item> items_, spare_;
    std::vector<std::size_t> starts_;
    const Value *values_ = nullptr;
    Item *sorted_ = nullptr;
    Key low_ = 0, high_ = 0;
    bool holds_keys_ = false; // whether prefixes tell all that keys do
    std::size_t n_valid_ = 0;
};

} // namespace srs
