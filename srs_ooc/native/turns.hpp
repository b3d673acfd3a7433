// In which order things are looked at: places sorted by heap, since nothing is allocated and no library function is used.
// Included by subsets.cpp only, inside its namespace: every clone has its own copy.

template <typename After> SRS_INLINE void sift(int64_t *turns, int64_t from, int64_t n, const After after) {
    for (int64_t at = from, child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && after(turns[child + 1], turns[child])) ++child;
        if (!after(turns[child], turns[at])) return;
        const int64_t other = turns[at];
        turns[at] = turns[child];
        turns[child] = other;
    }
}

// after(a, b): whether a comes after b, for no two of which it is true both ways.
template <typename After> void sort_turns(int64_t *turns, int64_t n_turns, const After after) {
    for (int64_t i = n_turns / 2; i-- > 0;) sift(turns, i, n_turns, after);
    for (int64_t n = n_turns; n-- > 1;) {
        const int64_t last = turns[n];
        turns[n] = turns[0];
        turns[0] = last;
        sift(turns, 0, n, after);
    }
}
