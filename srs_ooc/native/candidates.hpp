// The random order in which a node draws its candidate columns.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

// What derive() makes of the first words, whatever the key.
struct FirstWords {
    static constexpr int64_t N = 64;
    uint64_t mixed[N + 8] = {};
    constexpr FirstWords() {
        for (int64_t i = 0; i < N + 8; ++i) mixed[i] = mix64(static_cast<uint64_t>(i) + WORD_STEP);
    }
};
constexpr FirstWords FIRST_WORDS{};

// The columns of a block in a random order per node: Fisher-Yates from the front over the columns
// by ascending feature, so that a column's place in the block plays no part. Only the columns
// visited cost anything: places before the next one are never looked at again, and rewind() puts
// the few others right.
struct CandidateDraw {
    static constexpr int64_t MOST = TILE; // columns taken at once
    const int32_t *columns; // [n_columns] by ascending feature
    int32_t *order;         // [n_columns] the same, but for what was drawn
    int32_t *drawn;         // [n_columns] places of `order` that were drawn
    int64_t n_columns, n_drawn = 0;
    uint64_t key = 0;

    SRS_INLINE bool exhausted() const { return n_drawn == n_columns; }
    SRS_INLINE int32_t next() {
        int32_t column = 0;
        take(&column, 1);
        return column;
    }

    // Write the next n columns, MOST at most, or as many as are left; return how many.
    SRS_INLINE int64_t take(int32_t *out, int64_t n) {
        n = n < n_columns - n_drawn ? n : n_columns - n_drawn;
        alignas(64) int32_t places[MOST];
        if (n_drawn + n <= FirstWords::N) draw_places<true>(places, n);
        else draw_places<false>(places, n);
        for (int64_t i = 0; i < n; ++i) {
            const int32_t column = order[places[i]];
            order[places[i]] = order[n_drawn + i];
            out[i] = column;
            drawn[n_drawn + i] = places[i];
        }
        n_drawn += n;
        return n;
    }

    SRS_INLINE void rewind() {
        for (int64_t i = 0; i < n_drawn; ++i) order[drawn[i]] = columns[drawn[i]];
        n_drawn = 0;
    }

  private:
    // Whole registers of numbers, for which no short loop is needed: what is too many is not looked at.
    template <bool FIRST> SRS_INLINE void draw_places(int32_t *places, int64_t n) const {
        const uint64_t left = static_cast<uint64_t>(n_columns - n_drawn), first = static_cast<uint64_t>(n_drawn);
        const uint64_t end = n == 1 ? 1 : (static_cast<uint64_t>(n) + 7) / 8 * 8;
        for (uint64_t i = 0; i < end; ++i) {
            const uint64_t hash = mix64(key + (FIRST ? FIRST_WORDS.mixed[first + i] : mix64(first + i + WORD_STEP)));
            places[i] = static_cast<int32_t>(first + i + scale_below(hash, left - i));
        }
    }
};
