// Thresholds uniform between the values of codes. Twin: tests/helpers/tree_reference.py.
// Included by trees.cpp and sorted_trees.cpp, inside their namespaces: every clone has its own copy.

// Where a hash lies between two values, operation by operation as the twin.
SRS_INLINE double between(uint32_t hash, double low, double high) {
    return low + static_cast<double>(hash >> 8) * 0x1p-24 * (high - low);
}

constexpr uint32_t HALFWAY = 0x80000000u; // a hash that lies in the middle

// The values of a block's codes, ascending in a column; a code past the end, of a damaged store, is the last.
struct CodeValues {
    const double *values; // [columns][last + 1]
    int64_t last;

    SRS_INLINE int64_t place(uint32_t code) const { return code < last ? code : last; }

    // The last code below `high` whose value is not above the one drawn; low < high.
    uint32_t cut(int64_t column, uint32_t hash, uint32_t low, uint32_t high) const {
        const double *own = values + column * (last + 1);
        const double at = between(hash, own[place(low)], own[place(high)]);
        while (high - low > 1) {
            const uint32_t middle = low + (high - low) / 2;
            (own[place(middle)] <= at ? low : high) = middle;
        }
        return low;
    }

    // The same for 64 columns at once, a step of all before the next step of any.
    void cut_lanes(const int64_t *columns, const uint32_t *hashes, const uint32_t *low, const uint32_t *high,
                   uint32_t *cuts) const {
        alignas(64) double at[TILE];
        alignas(64) int64_t here[TILE], most[TILE];
        int64_t widest = 0;
        for (int l = 0; l < TILE; ++l) {
            here[l] = columns[l] * (last + 1) + place(low[l]);
            most[l] = columns[l] * (last + 1) + place(high[l]);
            at[l] = between(hashes[l], values[here[l]], values[most[l]]);
            widest = most[l] - here[l] > widest ? most[l] - here[l] : widest;
        }
        int64_t step = 1;
        while (2 * step < widest) step *= 2;
        for (; step > 0; step /= 2)
            for (int l = 0; l < TILE; ++l) { // a mask, not a condition: no branch to guess
                const int64_t next = here[l] + step < most[l] ? here[l] + step : here[l];
                const int64_t mask = -static_cast<int64_t>(values[next] <= at[l]);
                here[l] += (next - here[l]) & mask;
            }
        for (int l = 0; l < TILE; ++l) cuts[l] = static_cast<uint32_t>(here[l] - columns[l] * (last + 1));
    }
};

// Whether a split of missing values from all others was drawn; `known`: the highest code of the others.
SRS_INLINE bool parts_missing(int32_t how, uint32_t threshold, uint32_t low, uint32_t known) {
    return (how == MISSING_LEFT && threshold == low) || (how == MISSING_RIGHT && threshold == known);
}

// The hash a value is drawn by: where values are missing, the first one has drawn their place.
SRS_INLINE uint32_t value_hash(int32_t how, uint32_t hash) { return how == PLAIN ? hash : mix32(hash); }
