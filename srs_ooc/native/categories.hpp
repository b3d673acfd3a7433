// The order of categories at a node: a keyed bijection of codes. Twin: tests/helpers/forest_reference.py.
// Included inside a namespace by those who need it: every clone has its own copy.

// A keyed bijection of codes. Every order of a few categories is about equally likely.
template <typename Code> struct CategoryMap {
    static constexpr bool BYTES = sizeof(Code) == 1;
    static constexpr int FIRST_SHIFT = BYTES ? 4 : 8, SECOND_SHIFT = BYTES ? 3 : 6;
    Code flip, factors[3];

    explicit CategoryMap(uint32_t hash) {
        const uint32_t more = BYTES ? hash >> 16 : mix32(hash ^ 0x9E3779B9u);
        flip = static_cast<Code>(hash);
        factors[0] = static_cast<Code>(hash >> (8 * sizeof(Code)) | 1);
        factors[1] = static_cast<Code>(more | 1);
        factors[2] = static_cast<Code>(more >> (8 * sizeof(Code)) | 1);
    }
    SRS_INLINE Code operator()(Code code) const {
        Code x = static_cast<Code>(static_cast<uint32_t>(static_cast<Code>(code ^ flip)) * factors[0]);
        x = static_cast<Code>(static_cast<uint32_t>(static_cast<Code>(x ^ (x >> FIRST_SHIFT))) * factors[1]);
        return static_cast<Code>(static_cast<uint32_t>(static_cast<Code>(x ^ (x >> SECOND_SHIFT))) * factors[2]);
    }
};
