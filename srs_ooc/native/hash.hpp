// Counter-based randomness: the C++ twin of srs_ooc/base/seeds.py, which documents it.
#pragma once
#include <cstdint>

namespace srs {

enum Purpose : uint64_t { THRESHOLD = 6, TIE = 7, CANDIDATE = 8, LEFT = 9, RIGHT = 10, CATEGORIES = 21 };

static constexpr inline uint64_t mix64(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

constexpr uint64_t WORD_STEP = 0x9E3779B97F4A7C15ull;

static inline uint64_t derive(uint64_t key, uint64_t word) {
    return mix64(key + mix64(word + WORD_STEP));
}

// Of one word, or of each in a register of them; inlined always, as LaneKey.
template <typename Words> __attribute__((always_inline)) static inline Words mix32(Words x) {
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
}

// The high word of the 64 x 32-bit product: uniform in 0 .. bound - 1.
static inline uint64_t scale_below(uint64_t x, uint64_t bound) {
    return ((x >> 32) * bound + (((x & 0xFFFFFFFFull) * bound) >> 32)) >> 32;
}

// One purpose at one node: turns a feature's hash, or a register of them, into numbers there.
struct LaneKey {
    uint32_t low, high;
    __attribute__((always_inline)) LaneKey(uint64_t node_key, Purpose purpose) {
        const uint64_t key = derive(node_key, purpose);
        low = static_cast<uint32_t>(key);
        high = static_cast<uint32_t>(key >> 32);
    }
    template <typename Words> __attribute__((always_inline)) Words operator()(const Words feature_hashes) const {
        return mix32((feature_hashes ^ low) + high);
    }
};

// The order of categories at a node: a keyed bijection of codes. Every order of a few categories is about equally likely.
// Twin: tests/helpers/forest_reference.py. Here and in LaneKey all is inlined always: no clone can get another's.
template <typename Code> struct CategoryMap {
    static constexpr bool BYTES = sizeof(Code) == 1;
    static constexpr int FIRST_SHIFT = BYTES ? 4 : 8, SECOND_SHIFT = BYTES ? 3 : 6;
    Code flip, factors[3];

    __attribute__((always_inline)) explicit CategoryMap(uint32_t hash) {
        const uint32_t more = BYTES ? hash >> 16 : mix32(hash ^ 0x9E3779B9u);
        flip = static_cast<Code>(hash);
        factors[0] = static_cast<Code>(hash >> (8 * sizeof(Code)) | 1);
        factors[1] = static_cast<Code>(more | 1);
        factors[2] = static_cast<Code>(more >> (8 * sizeof(Code)) | 1);
    }
    __attribute__((always_inline)) Code operator()(Code code) const {
        Code x = static_cast<Code>(static_cast<uint32_t>(static_cast<Code>(code ^ flip)) * factors[0]);
        x = static_cast<Code>(static_cast<uint32_t>(static_cast<Code>(x ^ (x >> FIRST_SHIFT))) * factors[1]);
        return static_cast<Code>(static_cast<uint32_t>(static_cast<Code>(x ^ (x >> SECOND_SHIFT))) * factors[2]);
    }
};

} // namespace srs
