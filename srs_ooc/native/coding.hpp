// Codes of the values of columns: of short ones by sorting them, of long ones without.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace srs {

// Ordinal codes of a column: exact ranks where the distinct values fit, quantile bins otherwise.
template <class Value> using KeyOf = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;

// Unsigned integers in the order of the values; -0.0 and 0.0 share one.
template <class Value> KeyOf<Value> to_key(Value value) {
    using Key = KeyOf<Value>;
    constexpr Key top = Key{1} << (8 * sizeof(Key) - 1);
    Key bits;
    value += Value{0};
    std::memcpy(&bits, &value, sizeof bits);
    return bits & top ? ~bits : bits | top;
}

template <class Value> Value from_key(KeyOf<Value> key) {
    using Key = KeyOf<Value>;
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

// Also of a NaN.
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
    using Key = KeyOf<Value>;
    static constexpr std::size_t kCodes = std::numeric_limits<Code>::max() - 1;
    static constexpr Code kMissing = std::numeric_limits<Code>::max();

    explicit ColumnCoder(std::size_t n_rows) : ColumnCoder(n_rows, n_rows) {}

    // Of columns with at most so many values that are there and no zeros.
    ColumnCoder(std::size_t n_rows, std::size_t most) : n_rows_(n_rows), items_(most), spare_(most) {
        starts_.reserve(std::min(n_rows, kCodes) + 1);
    }

    ColumnFacts code(const Value *values, Code *codes) {
        ColumnFacts facts;
        if (code_counts(values, codes, facts)) return facts;
        values_ = values;
        take_rows();
        sort_rows();
        const bool exact = find_starts();
        const auto after = std::upper_bound(starts_.begin(), starts_.end(), n_negative_); // the code of zeros
        const auto of_zero = static_cast<Code>(after - starts_.begin() - 1);
        for (std::size_t i = 0; i < n_rows_; ++i) codes[i] = values[i] == 0 ? of_zero : kMissing;
        for (std::size_t c = 0; c + 1 < starts_.size(); ++c)
            for (std::size_t i = items_before(starts_[c]), end = items_before(starts_[c + 1]); i < end; ++i)
                codes[sorted_[i].row] = static_cast<Code>(c);
        return {static_cast<std::uint32_t>(n_rows_ - n_valid_),
                static_cast<std::uint16_t>(starts_.size() - 1), exact, kind()};
    }

    // Lowest and highest value of each code of the column coded last.
    void ranges(double *lows, double *highs) const {
        for (std::size_t c = 0; c < counts_.size(); ++c) lows[c] = highs[c] = counts_[c];
        if (!counts_.empty()) return;
        for (std::size_t c = 0; c + 1 < starts_.size(); ++c) {
            lows[c] = from_key<Value>(key(starts_[c]));
            highs[c] = from_key<Value>(key(starts_[c + 1] - 1));
        }
    }

  private:
    static constexpr int kKeyBits = 8 * sizeof(Key);
    static constexpr std::int32_t kSpan = std::min<std::size_t>(kCodes, 4096);

    // Added to a value below 2^22, it leaves the nearest whole number in the lowest bits.
    static constexpr Value kWhole = Value{3} / 2 / std::numeric_limits<Value>::epsilon();

    // Whether the values that are there, at least one, are whole numbers that lie close together, and the ends of these.
    bool whole_span(const Value *values, Value &low, Value &high) const {
        typedef Value Lanes __attribute__((vector_size(16)));
        constexpr std::size_t n_lanes = sizeof(Lanes) / sizeof(Value);
        Lanes lows = Lanes{} + kWhole, highs = -lows;
        for (std::size_t start = 0; start < n_rows_; start += 64 * n_lanes) {
            auto other = lows < lows; // none
            for (std::size_t i = start, stop = std::min(n_rows_, start + 64 * n_lanes); i < stop; i += n_lanes) {
                Lanes some = Lanes{} + std::numeric_limits<Value>::quiet_NaN();
                if (n_rows_ - i >= n_lanes) std::memcpy(&some, values + i, sizeof some);
                else std::memcpy(&some, values + i, (n_rows_ - i) * sizeof(Value));
                other |= ((some + kWhole) - kWhole != some) & (some == some);
                lows = some < lows ? some : lows;
                highs = some > highs ? some : highs;
            }
            for (std::size_t j = 0; j < n_lanes; ++j)
                if (other[j]) return false;
        }
        low = lows[0];
        high = highs[0];
        for (std::size_t j = 1; j < n_lanes; ++j) {
            low = std::min<Value>(low, lows[j]);
            high = std::max<Value>(high, highs[j]);
        }
        return low <= high && high - low < kSpan && std::max(-low, high) < (1 << 22);
    }

    // Whole numbers that lie close together need no sorting: a code is the rank among those that are there. False if
    // the values are others.
    bool code_counts(const Value *values, Code *codes, ColumnFacts &facts) {
        Value low = 0, high = 0;
        counts_.clear();
        if (!whole_span(values, low, high)) return false;
        std::uint32_t n_missing = 0;
        for (std::size_t i = 0; i < n_rows_; ++i) {
            const Key gone = values[i] != values[i];
            const Value moved = values[i] - low + kWhole;
            Key bits;
            std::memcpy(&bits, &moved, sizeof bits);
            codes[i] = static_cast<Code>(bits | (Key{0} - gone)); // kMissing where it is gone
            n_missing += static_cast<std::uint32_t>(gone);
        }
        std::array<bool, kSpan + 1> is_there{};
        for (std::size_t i = 0; i < n_rows_; ++i) is_there[std::min<std::size_t>(codes[i], kSpan)] = true;
        std::array<Code, kSpan> ranks{};
        const auto first = static_cast<std::int32_t>(low), n = static_cast<std::int32_t>(high - low) + 1;
        for (std::int32_t c = 0; c < n; ++c) {
            if (!is_there[c]) continue;
            ranks[c] = static_cast<Code>(counts_.size());
            counts_.push_back(c + first);
        }
        if (static_cast<std::int32_t>(counts_.size()) < n)
            for (std::size_t i = 0; i < n_rows_; ++i)
                if (codes[i] != kMissing) codes[i] = ranks[codes[i]];
        const std::uint8_t kind = n == 1 ? kConstant : low == 0 && high == 1 ? kBoolean : kInteger;
        facts = {n_missing, static_cast<std::uint16_t>(counts_.size()), true, kind};
        return true;
    }

    // In order, the i-th value is a zero or that of an item; zeros, of which sparse columns have most, are counted
    // and not sorted.
    bool is_zero(std::size_t i) const { return i - n_negative_ < n_zeros_; }

    // Items among the first i values in order.
    std::size_t items_before(std::size_t i) const {
        return i <= n_negative_ ? i : std::max(i, n_negative_ + n_zeros_) - n_zeros_;
    }

    Key item_key(std::size_t i) const { return to_key(values_[sorted_[i].row]); }
    Key key(std::size_t i) const { return is_zero(i) ? to_key(Value{0}) : item_key(items_before(i)); }

    // Rows with another value than zero, each with the 32 bits of its key below those in which all agree.
    void take_rows() {
        low_ = std::numeric_limits<Key>::max();
        high_ = 0;
        n_items_ = n_negative_ = n_zeros_ = 0;
        for (std::size_t i = 0; i < n_rows_; ++i) {
            const Value value = values_[i];
            n_zeros_ += value == 0;
            if (value == 0 || std::isnan(value)) continue;
            const Key k = to_key(value);
            low_ = std::min(low_, k);
            high_ = std::max(high_, k);
            n_negative_ += value < 0;
            items_[n_items_++].row = static_cast<std::uint32_t>(i);
        }
        n_valid_ = n_items_ + n_zeros_;
        if (n_items_ == 0 || low_ == high_) return;
        const int shift = __builtin_clzll(static_cast<std::uint64_t>(low_ ^ high_)) - (64 - kKeyBits);
        holds_keys_ = kKeyBits - shift <= 32;
        for (std::size_t i = 0; i < n_items_; ++i)
            items_[i].prefix = static_cast<std::uint32_t>(
                static_cast<Key>(to_key(values_[items_[i].row]) << shift) >> (kKeyBits - 32));
    }

    void sort_rows() {
        sorted_ = items_.data();
        if (n_items_ == 0 || low_ == high_) return;
        sorted_ = sort_items(items_.data(), spare_.data(), n_items_);
        if (holds_keys_) return;
        for (std::size_t start = 0, stop; start < n_items_; start = stop) {
            bool mixed = false;
            stop = start + 1;
            for (; stop < n_items_ && sorted_[stop].prefix == sorted_[start].prefix; ++stop)
                mixed |= item_key(stop) != item_key(start);
            if (mixed)
                std::sort(sorted_ + start, sorted_ + stop, [this](Item x, Item y) {
                    return to_key(values_[x.row]) < to_key(values_[y.row]);
                });
        }
    }

    bool same(std::size_t i, std::size_t j) const {
        if (is_zero(i) || is_zero(j)) return is_zero(i) && is_zero(j);
        if (low_ == high_) return true;
        i = items_before(i);
        j = items_before(j);
        if (sorted_[i].prefix != sorted_[j].prefix) return false;
        return holds_keys_ || item_key(i) == item_key(j);
    }

    // Where each code starts among the values in order, and their end: at the distinct values if those
    // fit (true), else at the quantiles.
    bool find_starts() {
        starts_.assign(1, 0);
        if (n_valid_ == 0) return true;
        bool fit = true;
        for (std::size_t i = 1; i < n_valid_ && fit; ++i) {
            if (is_zero(i) && is_zero(i - 1)) i = n_negative_ + n_zeros_ - 1; // the last
            else if (!same(i, i - 1)) {
                fit = starts_.size() < kCodes;
                if (fit) starts_.push_back(i);
            }
        }
        if (!fit) {
            starts_.resize(1);
            for (std::size_t k = 1; k < kCodes; ++k) {
                std::size_t i = k * n_valid_ / kCodes;
                if (same(i, starts_.back())) continue;
                if (is_zero(i)) i = n_negative_;
                else
                    while (same(i, i - 1)) --i;
                starts_.push_back(i);
            }
        }
        starts_.push_back(n_valid_);
        return fit;
    }

    Kind kind() const { // 0 and 1 alone were coded as whole numbers
        if (n_valid_ == 0 || (n_zeros_ == 0 && low_ == high_)) return kConstant;
        return std::all_of(values_, values_ + n_rows_, is_whole<Value>) ? kInteger : kNumeric;
    }

    std::size_t n_rows_;
    std::vector<Item> items_, spare_;
    std::vector<std::size_t> starts_;
    std::vector<std::int32_t> counts_; // by code, of whole numbers that lie close together; else empty
    const Value *values_ = nullptr;
    Item *sorted_ = nullptr;
    Key low_ = 0, high_ = 0;
    bool holds_keys_ = false; // whether prefixes tell all that keys do
    std::size_t n_items_ = 0, n_negative_ = 0, n_zeros_ = 0, n_valid_ = 0;
};

// Codes of a long column without sorting it: by a table of its distinct values where those fit, else by
// counting its keys digit by digit until the quantiles are found. Memory does not grow with the rows.

// Finds the keys at some ranks among many, which are walked through as often as it takes.
template <class Key> class RankFinder {
  public:
    // different: the bits in which keys differ, not none.
    explicit RankFinder(Key different)
        : shift_(__builtin_clzll(static_cast<std::uint64_t>(different)) - (64 - kKeyBits)),
          n_bits_(kKeyBits - shift_ - __builtin_ctzll(static_cast<std::uint64_t>(different))),
          groups_(1) {}

    // The keys at ascending ranks; walk(take) hands every key to take.
    template <class Walk> std::vector<Key> find(const std::vector<std::size_t> &ranks, Walk walk) {
        do
            refine(ranks, walk);
        while (n_in_groups_ > kGathered && !exhausted());
        return gathered(ranks, walk);
    }

  private:
    static constexpr int kKeyBits = 8 * sizeof(Key), kBits = 11;
    static constexpr std::size_t kDigits = std::size_t{1} << kBits, kGathered = std::size_t{1} << 16;
    static constexpr std::uint16_t kNone = 0xFFFF;

    struct Group { // keys that agree in the digits so far and have a wanted rank among them
        std::size_t below = 0, size = 0; // keys below them; how many they are
    };

    bool exhausted() const { return kBits * static_cast<int>(levels_.size()) >= n_bits_; }

    // The digit of a level; of the last one it may repeat bits of the one before, which are agreed on.
    std::size_t digit(Key key, std::size_t level) const {
        const int down = std::max(0, kKeyBits - kBits * (static_cast<int>(level) + 1));
        return static_cast<std::size_t>(static_cast<Key>(key << shift_) >> down) & (kDigits - 1);
    }

    std::uint16_t group_of(Key key) const {
        std::uint16_t group = 0;
        for (std::size_t l = 0; l < levels_.size() && group != kNone; ++l)
            group = levels_[l][group * kDigits + digit(key, l)];
        return group;
    }

    // Split the groups by the next digit.
    template <class Walk> void refine(const std::vector<std::size_t> &ranks, Walk walk) {
        const std::size_t level = levels_.size();
        std::vector<std::uint32_t> counts(groups_.size() * kDigits);
        walk([&](Key key) {
            const std::uint16_t group = group_of(key);
            if (group != kNone) ++counts[group * kDigits + digit(key, level)];
        });
        std::vector<std::uint16_t> children(counts.size(), kNone);
        std::vector<Group> next;
        std::size_t r = 0;
        n_in_groups_ = 0;
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            std::size_t below = groups_[g].below;
            for (std::size_t d = 0; d < kDigits; ++d) {
                const std::size_t size = counts[g * kDigits + d];
                if (r < ranks.size() && ranks[r] < below + size) {
                    children[g * kDigits + d] = static_cast<std::uint16_t>(next.size());
                    next.push_back({below, size});
                    n_in_groups_ += size;
                    while (r < ranks.size() && ranks[r] < below + size) ++r;
                }
                below += size;
            }
        }
        groups_.swap(next);
        levels_.push_back(std::move(children));
    }

    // Every group is one key, or few keys are left in the groups, which are in order: sort those.
    template <class Walk> std::vector<Key> gathered(const std::vector<std::size_t> &ranks, Walk walk) {
        const bool is_one = exhausted();
        std::vector<Key> keys(is_one ? groups_.size() : 0), found;
        if (!is_one) keys.reserve(n_in_groups_);
        walk([&](Key key) {
            const std::uint16_t group = group_of(key);
            if (group == kNone) return;
            if (is_one) keys[group] = key;
            else keys.push_back(key);
        });
        if (!is_one) std::sort(keys.begin(), keys.end());
        std::size_t g = 0, first = 0;
        for (const std::size_t rank : ranks) {
            while (rank >= groups_[g].below + groups_[g].size) first += groups_[g++].size;
            found.push_back(keys[is_one ? g : first + (rank - groups_[g].below)]);
        }
        return found;
    }

    int shift_, n_bits_; // leading bits in which all keys agree; bits after them that may differ
    std::vector<Group> groups_; // in the order of their keys
    std::size_t n_in_groups_ = 0;
    std::vector<std::vector<std::uint16_t>> levels_; // the group within one for each next digit
};

// A set of at most so many keys, each with a code.
template <class Key, std::size_t kMost> class KeyTable {
  public:
    void clear() {
        keys_.fill(0); // no key: a NaN
        n_ = 0;
    }

    // False where there are too many.
    bool add(Key key) {
        const std::size_t at = place(key);
        if (keys_[at] == key) return true;
        if (n_ == kMost) return false;
        keys_[at] = key;
        ++n_;
        return true;
    }

    std::vector<Key> sorted() const {
        std::vector<Key> keys;
        for (const Key key : keys_)
            if (key) keys.push_back(key);
        std::sort(keys.begin(), keys.end());
        return keys;
    }

    std::uint8_t &code(Key key) { return codes_[place(key)]; }

  private:
    static constexpr int kBits = 10;

    std::size_t place(Key key) const {
        std::size_t at = (static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15u) >> (64 - kBits);
        while (keys_[at] && keys_[at] != key) at = (at + 1) & (keys_.size() - 1);
        return at;
    }

    std::array<Key, std::size_t{1} << kBits> keys_{};
    std::array<std::uint8_t, std::size_t{1} << kBits> codes_{};
    std::size_t n_ = 0;
};

// Codes columns one at a time, as ColumnCoder does.
template <class Value> class LongColumnCoder {
  public:
    using Key = KeyOf<Value>;
    static constexpr std::size_t kCodes = 254;
    static constexpr std::uint8_t kMissing = 255;
    static constexpr Key kZero = Key{1} << (8 * sizeof(Key) - 1); // to_key(0)

    // Columns of which fewer than `few` values are neither zero nor missing are sorted after all.
    LongColumnCoder(std::size_t n_rows, std::size_t few) : n_rows_(n_rows), few_items_(few) {}

    ColumnFacts code(const Value *values, std::uint8_t *codes) {
        std::size_t n_items = 0;
        for (std::size_t i = 0; i < n_rows_; ++i) n_items += is_item(values[i]);
        few_.reset();
        if (n_items < few_items_) {
            few_ = std::make_unique<ColumnCoder<Value, std::uint8_t>>(n_rows_, n_items);
            return few_->code(values, codes);
        }
        values_ = values;
        codes_ = codes;
        const bool exact = find_range_and_distinct();
        starts_ = exact ? table_.sorted() : quantiles();
        if (exact)
            code_by_table();
        else
            code_by_search();
        return {static_cast<std::uint32_t>(n_rows_ - n_valid_),
                static_cast<std::uint16_t>(starts_.size()), exact, kind()};
    }

    // Lowest and highest value of each code of the column coded last.
    void ranges(double *lows, double *highs) const {
        if (few_) return few_->ranges(lows, highs);
        std::vector<Key> most(starts_);
        for (std::size_t i = 0; i < n_rows_; ++i)
            if (codes_[i] != kMissing) most[codes_[i]] = std::max(most[codes_[i]], to_key(values_[i]));
        for (std::size_t c = 0; c < starts_.size(); ++c) {
            lows[c] = from_key<Value>(starts_[c]);
            highs[c] = from_key<Value>(most[c]);
        }
    }

  private:
    static bool is_item(Value value) { return (value < 0) | (value > 0); }

    // Returns whether the distinct values are few enough for a code each. Zeros, of which sparse columns have most, are
    // counted apart.
    bool find_range_and_distinct() {
        low_ = std::numeric_limits<Key>::max();
        high_ = different_ = 0;
        n_valid_ = n_negative_ = n_zeros_ = 0;
        table_.clear();
        bool few = true;
        for (std::size_t i = 0; i < n_rows_; ++i) {
            n_zeros_ += values_[i] == 0;
            if (!is_item(values_[i])) continue;
            const Key key = to_key(values_[i]);
            different_ |= n_valid_++ ? key ^ high_ : 0;
            low_ = std::min(low_, key);
            high_ = std::max(high_, key);
            n_negative_ += values_[i] < 0;
            few = few && table_.add(key);
        }
        if (n_zeros_ == 0) return few;
        n_valid_ += n_zeros_;
        low_ = std::min(low_, kZero);
        high_ = std::max(high_, kZero);
        return few && table_.add(kZero);
    }

    // The lowest key, and the distinct ones at the quantiles above it.
    std::vector<Key> quantiles() const {
        std::vector<std::size_t> ranks; // among the values that are not zeros
        std::vector<Key> starts{low_};
        for (std::size_t k = 1; k < kCodes; ++k) {
            const std::size_t rank = k * n_valid_ / kCodes;
            if (rank - n_negative_ < n_zeros_) starts.push_back(kZero);
            else ranks.push_back(rank < n_negative_ ? rank : rank - n_zeros_);
        }
        const std::vector<Key> found = RankFinder<Key>(different_).find(ranks, [this](auto take) {
            for (std::size_t i = 0; i < n_rows_; ++i)
                if (is_item(values_[i])) take(to_key(values_[i]));
        });
        starts.insert(starts.end(), found.begin(), found.end());
        std::sort(starts.begin(), starts.end());
        starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
        return starts;
    }

    void code_by_table() {
        for (std::size_t c = 0; c < starts_.size(); ++c)
            table_.code(starts_[c]) = static_cast<std::uint8_t>(c);
        const std::uint8_t of_zero = code_of_zeros();
        for (std::size_t i = 0; i < n_rows_; ++i)
            codes_[i] = is_item(values_[i]) ? table_.code(to_key(values_[i])) : values_[i] == 0 ? of_zero : kMissing;
    }

    // The code is the last start that is not above the value.
    void code_by_search() {
        std::array<Key, 256> starts;
        starts.fill(std::numeric_limits<Key>::max());
        std::copy(starts_.begin(), starts_.end(), starts.begin());
        const std::uint8_t of_zero = code_of_zeros();
        for (std::size_t i = 0; i < n_rows_; ++i) {
            codes_[i] = values_[i] == 0 ? of_zero : kMissing;
            if (!is_item(values_[i])) continue;
            const Key key = to_key(values_[i]);
            std::size_t at = 0;
            for (std::size_t half = 128; half; half /= 2) at += starts[at + half] <= key ? half : 0;
            codes_[i] = static_cast<std::uint8_t>(at);
        }
    }

    // Where there are some.
    std::uint8_t code_of_zeros() const {
        const auto after = std::upper_bound(starts_.begin(), starts_.end(), kZero);
        return static_cast<std::uint8_t>(after - starts_.begin() - 1);
    }

    Kind kind() const {
        if (n_valid_ == 0 || low_ == high_) return kConstant;
        if (!std::all_of(values_, values_ + n_rows_, is_whole<Value>)) return kNumeric;
        return low_ == to_key(Value{0}) && high_ == to_key(Value{1}) ? kBoolean : kInteger;
    }

    std::unique_ptr<ColumnCoder<Value, std::uint8_t>> few_; // of the column coded last, if it has few
    std::size_t n_rows_, few_items_, n_valid_ = 0, n_negative_ = 0, n_zeros_ = 0;
    const Value *values_ = nullptr;
    std::uint8_t *codes_ = nullptr;
    Key low_ = 0, high_ = 0, different_ = 0; // the last: bits in which keys differ
    KeyTable<Key, kCodes> table_;
    std::vector<Key> starts_; // the lowest key of each code
};

} // namespace srs
