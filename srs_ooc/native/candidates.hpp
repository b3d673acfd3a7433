// The random order in which a node draws its candidate columns.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

// What derive() makes of the first words, whatever the key.
struct FirstWords {
    static constexpr int64_t N = 64;
    uint64_t mixed[N] = {};
    constexpr FirstWords() {
        for (int64_t i = 0; i < N; ++i) mixed[i] = mix64(static_cast<uint64_t>(i) + WORD_STEP);
    }
};
constexpr FirstWords FIRST_WORDS{};

// The columns of a block in a random order per node: Fisher-Yates from the front over the columns
// by ascending feature, so that a column's place in the block plays no part. Only the columns
// visited cost anything: rewind() undoes their exchanges.
struct CandidateDraw {
    int32_t *order; // [n_columns] columns by ascending feature
    int32_t *swaps; // [n_columns] scratch
    int64_t n_columns, n_drawn = 0;
    uint64_t key = 0;

    SRS_INLINE bool exhausted() const { return n_drawn == n_columns; }
    SRS_INLINE int32_t next() {
        const int64_t i = n_drawn++;
        const uint64_t hash = i < FirstWords::N ? mix64(key + FIRST_WORDS.mixed[i]) : derive(key, static_cast<uint64_t>(i));
        const int64_t j = i + static_cast<int64_t>(scale_below(hash, static_cast<uint64_t>(n_columns - i)));
        swaps[i] = static_cast<int32_t>(j);
        const int32_t column = order[j];
        order[j] = order[i];
        order[i] = column;
        return column;
    }
    SRS_INLINE void rewind() {
        while (n_drawn > 0) {
            const int64_t i = --n_drawn, j = swaps[i];
            const int32_t column = order[i];
            order[i] = order[j];
            order[j] = column;
        }
    }
};
