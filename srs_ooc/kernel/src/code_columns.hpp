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

// Sort keys; bytes in which all keys agree are skipped. The sorted keys are in the returned array.
template <class Key> Key *sort_keys(Key *keys, Key *spare, std::size_t n) {
    if (n < 128) {
        std::sort(keys, keys + n);
        return keys;
    }
    constexpr int n_bytes = sizeof(Key);
    std::size_t counts[n_bytes][256] = {};
    for (std::size_t i = 0; i < n; ++i)
        for (int b = 0; b < n_bytes; ++b) ++counts[b][(keys[i] >> (8 * b)) & 0xff];
    for (int b = 0; b < n_bytes; ++b) {
        std::size_t *at = counts[b];
        if (at[(keys[0] >> (8 * b)) & 0xff] == n) continue;
        std::size_t total = 0;
        for (int v = 0; v < 256; ++v) total += std::exchange(at[v], total);
        for (std::size_t i = 0; i < n; ++i) spare[at[(keys[i] >> (8 * b)) & 0xff]++] = keys[i];
        std::swap(keys, spare);
    }
    return keys;
}

// Number of edges <= key, edges ascending.
template <class Key> std::size_t n_edges_up_to(const Key *edges, std::size_t n, Key key) {
    const Key *base = edges;
    if (n == 0) return 0;
    while (n > 1) {
        const std::size_t half = n / 2;
        base += base[half - 1] <= key ? half : 0;
        n -= half;
    }
    return static_cast<std::size_t>(base - edges) + (*base <= key);
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

    explicit ColumnCoder(std::size_t n_rows) : keys_(n_rows), spare_(n_rows) {
        edges_.reserve(std::min(n_rows, kCodes));
    }

    ColumnFacts code(const Value *values, Code *codes) {
        const std::size_t n_rows = keys_.size();
        n_valid_ = 0;
        for (std::size_t i = 0; i < n_rows; ++i) {
            keys_[n_valid_] = to_key(values[i]);
            n_valid_ += !std::isnan(values[i]);
        }
        sorted_ = sort_keys(keys_.data(), spare_.data(), n_valid_);
        const bool exact = find_edges();
        for (std::size_t i = 0; i < n_rows; ++i)
            codes[i] = std::isnan(values[i])
                           ? kMissing
                           : static_cast<Code>(n_edges_up_to(edges_.data(), edges_.size(),
                                                             to_key(values[i])));
        const std::size_t n_codes = n_valid_ ? edges_.size() + 1 : 0;
        return {static_cast<std::uint32_t>(n_rows - n_valid_), static_cast<std::uint16_t>(n_codes),
                exact, kind()};
    }

    // Lowest and highest value of each code of the column coded last.
    void ranges(double *lows, double *highs) const {
        std::size_t start = 0, code = 0;
        while (start < n_valid_) {
            const std::size_t stop =
                code < edges_.size()
                    ? std::lower_bound(sorted_ + start, sorted_ + n_valid_, edges_[code]) - sorted_
                    : n_valid_;
            lows[code] = from_key<Value>(sorted_[start]);
            highs[code] = from_key<Value>(sorted_[stop - 1]);
            start = stop;
            ++code;
        }
    }

  private:
    Kind kind() const {
        if (n_valid_ == 0 || sorted_[0] == sorted_[n_valid_ - 1]) return kConstant;
        for (std::size_t i = 0; i < n_valid_; ++i) {
            const Value value = from_key<Value>(sorted_[i]);
            if (value != std::floor(value)) return kNumeric;
        }
        const Value low = from_key<Value>(sorted_[0]), high = from_key<Value>(sorted_[n_valid_ - 1]);
        const bool is_boolean = low == 0 && high == 1; // both whole: nothing lies between
        return is_boolean ? kBoolean : kInteger;
    }

    // Edges at the distinct values if those fit (true), else at the quantiles.
    bool find_edges() {
        edges_.clear();
        if (n_valid_ == 0) return true;
        bool fit = true;
        for (std::size_t i = 1; i < n_valid_ && fit; ++i) {
            if (sorted_[i] == sorted_[i - 1]) continue;
            fit = edges_.size() + 1 < kCodes;
            if (fit) edges_.push_back(sorted_[i]);
        }
        if (fit) return true;
        edges_.clear();
        for (std::size_t k = 1; k < kCodes; ++k) {
            const Key edge = sorted_[k * n_valid_ / kCodes];
            if (edge > (edges_.empty() ? sorted_[0] : edges_.back())) edges_.push_back(edge);
        }
        return false;
    }

    std::vector<Key> keys_, spare_, edges_;
    Key *sorted_ = nullptr;
    std::size_t n_valid_ = 0;
};

} // namespace srs
