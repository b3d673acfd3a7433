// Thresholds uniform between the values of codes. Twin: srs_ooc/kernel/reference_splits.py.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

// Where a hash lies between two values, operation by operation as the twin.
SRS_INLINE double between(uint32_t hash, double low, double high) {
    return low + static_cast<double>(hash >> 8) * 0x1p-24 * (high - low);
}

// The values of a column's codes, ascending; a code past the end, of a damaged store, is the last.
template <typename Value> struct ColumnValues {
    const Value *values;
    int64_t last;

    SRS_INLINE int64_t place(uint32_t code) const { return code < last ? code : last; }
    // The last code below `high` whose value is not above the one drawn; low < high.
    uint32_t cut(uint32_t hash, uint32_t low, uint32_t high) const {
        const double at = between(hash, values[place(low)], values[place(high)]);
        while (high - low > 1) {
            const uint32_t middle = low + (high - low) / 2;
            (values[place(middle)] <= at ? low : high) = middle;
        }
        return low;
    }
};

// The same for 64 columns at once, a step of all before the next step of any.
template <typename Value> struct LaneValues {
    const Value *rows[TILE]; // values of each lane's column
    int64_t last;

    void cut(const uint32_t *hashes, const uint32_t *low, const uint32_t *high, uint32_t *cuts) const {
        alignas(64) double at[TILE];
        alignas(64) uint32_t most[TILE];
        const uint32_t end = static_cast<uint32_t>(last);
        uint32_t widest = 0;
        for (int l = 0; l < TILE; ++l) {
            cuts[l] = low[l] < end ? low[l] : end;
            most[l] = high[l] < end ? high[l] : end;
            at[l] = between(hashes[l], rows[l][cuts[l]], rows[l][most[l]]);
            const uint32_t spread = most[l] - cuts[l];
            widest = spread > widest ? spread : widest;
        }
        uint32_t step = 1;
        while (2 * step < widest) step *= 2;
        for (; step > 0; step /= 2)
            for (int l = 0; l < TILE; ++l) {
                uint32_t next = cuts[l] + step;
                next = next < most[l] ? next : cuts[l];
                cuts[l] = rows[l][next] <= at[l] ? next : cuts[l];
            }
    }
};

// Whether a split of missing values from all others was drawn; `known`: the highest code of the others.
SRS_INLINE bool parts_missing(int32_t how, uint32_t threshold, uint32_t low, uint32_t known) {
    return (how == MISSING_LEFT && threshold == low) || (how == MISSING_RIGHT && threshold == known);
}

// The hash a value is drawn by: where values are missing, the first one has drawn their place.
SRS_INLINE uint32_t value_hash(int32_t how, uint32_t hash) { return how == PLAIN ? hash : mix32(hash); }
