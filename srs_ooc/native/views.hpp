// Codes as a split sees them: missing values put below or above all others, categories in a keyed order.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> constexpr Code MISSING = static_cast<Code>(-1);

// The same for the 64 features of a tile, and a shift by one where missing values go below.
template <typename Code> struct LaneMap {
    using V = Lanes<Code>;
    using R = typename V::R;
    using Map = CategoryMap<Code>;
    alignas(64) Code shift[TILE], mapped[TILE], flip[TILE], factors[3][TILE]; // mapped: all ones for categories
    bool any_mapped;

    // Features that are categories get their bijections, all others a shift by one.
    void set(const uint8_t *categorical, const uint32_t *hashes, const LaneKey &key) {
        any_mapped = categorical != nullptr;
        for (int l = 0; l < TILE; ++l) {
            shift[l] = 1;
            if (!any_mapped) continue;
            const Map map(key(hashes[l]));
            mapped[l] = static_cast<Code>(-int(categorical[l]));
            flip[l] = map.flip;
            for (int j = 0; j < 3; ++j) factors[j][l] = map.factors[j];
        }
    }

    SRS_INLINE V apply(const Code *line) const {
        V out = V::load(line);
        const V by = V::load(shift);
        if (!any_mapped) {
            _Pragma("GCC unroll 8") for (int i = 0; i < V::PARTS; ++i) out.part[i] += by.part[i];
            return out;
        }
        const V mask = V::load(mapped), flips = V::load(flip), a = V::load(factors[0]), b = V::load(factors[1]),
                c = V::load(factors[2]);
        _Pragma("GCC unroll 8") for (int i = 0; i < V::PARTS; ++i) {
            R x = (out.part[i] ^ flips.part[i]) * a.part[i];
            x = (x ^ (x >> Map::FIRST_SHIFT)) * b.part[i];
            x = (x ^ (x >> Map::SECOND_SHIFT)) * c.part[i];
            out.part[i] = (x & mask.part[i]) | ((out.part[i] + by.part[i]) & ~mask.part[i]);
        }
        return out;
    }
};

// The lines of a node's rows in a tile of the block.
template <typename Code> struct BlockLines {
    static constexpr int64_t CHUNK = int64_t(1) << 40;
    const Code *tile;
    const int32_t *rows;
    SRS_INLINE const Code *operator[](int64_t i) const { return tile + int64_t(rows[i]) * TILE; }
    SRS_INLINE BlockLines from(int64_t i) const { return {tile, rows + i}; }
    SRS_INLINE BlockLines chunk(int64_t) const { return *this; }
};

// Lines copied for one node, in the order of its rows.
template <typename Code> struct NodeLines {
    static constexpr int64_t CHUNK = int64_t(1) << 40;
    const Code *lines;
    SRS_INLINE const Code *operator[](int64_t i) const { return lines + i * TILE; }
    SRS_INLINE NodeLines from(int64_t i) const { return {lines + i * TILE}; }
    SRS_INLINE NodeLines chunk(int64_t) const { return *this; }
};

// Lines seen through a map, a chunk at a time.
template <typename Code, typename Lines> struct MappedLines {
    static constexpr int64_t CHUNK = 255;
    Lines lines;
    const LaneMap<Code> *map;
    Code *buffer; // [CHUNK][TILE]
    SRS_INLINE MappedLines from(int64_t i) const { return {lines.from(i), map, buffer}; }
    SRS_INLINE NodeLines<Code> chunk(int64_t n) const {
        for (int64_t i = 0; i < n; ++i) map->apply(lines[i]).store(buffer + i * TILE);
        return {buffer};
    }
};
