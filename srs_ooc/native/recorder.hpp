// Writing down what a tree does as it grows.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct TreeRecorder {
    const GrowJob &job;

    void leaf(int64_t node, const Facts &f) const {
        TreeRecord &record = *job.record;
        record.column[node] = -1;
        const int64_t n_pairs = job.impurity == VARIANCE ? 1 : f.n_present;
        const int64_t first = __atomic_fetch_add(&record.n_pairs, n_pairs, __ATOMIC_RELAXED);
        record.left[node] = static_cast<int32_t>(first);
        record.right[node] = static_cast<int32_t>(n_pairs);
        if (job.impurity == VARIANCE) {
            record.threshold[node] = static_cast<int32_t>(f.weight);
            record.pair_class[first] = static_cast<int32_t>(f.sum);
            record.pair_count[first] = static_cast<int32_t>(f.sum >> 32);
            return;
        }
        for (int64_t k = 0; k < f.n_present; ++k) {
            record.pair_class[first + k] = f.present[k];
            record.pair_count[first + k] = static_cast<int32_t>(f.stats[(k + 1) * f.width - 1]);
        }
    }

    // Missing values alone on a side are kept apart from all others, also from those not seen at the node.
    void split(int64_t node, const Split &split, uint32_t hash, int64_t n_missing, int64_t n_left, int64_t n) const {
        TreeRecord &record = *job.record;
        record.column[node] = static_cast<int32_t>(split.column);
        record.how[node] = split.how;
        record.hash[node] = hash;
        uint32_t threshold = split.threshold;
        if (split.how == MISSING_LEFT && n_missing == n_left) threshold = 0;
        if (split.how == MISSING_RIGHT && n_missing == n - n_left) threshold = ALL_CODES;
        record.threshold[node] = static_cast<int32_t>(threshold);
    }
};
