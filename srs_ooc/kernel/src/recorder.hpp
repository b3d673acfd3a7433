// Writing down what a tree does as it grows.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct TreeRecorder {
    const GrowJob &job;

    void leaf(int64_t node, const Facts &f) const {
        TreeRecord &record = *job.record;
        record.column[node] = -1;
        record.left[node] = static_cast<int32_t>(record.n_pairs);
        if (job.impurity == VARIANCE) {
            record.threshold[node] = static_cast<int32_t>(f.weight);
            record.right[node] = 1;
            record.pair_class[record.n_pairs] = static_cast<int32_t>(f.sum);
            record.pair_count[record.n_pairs++] = static_cast<int32_t>(f.sum >> 32);
            return;
        }
        record.right[node] = static_cast<int32_t>(f.n_present);
        for (int64_t k = 0; k < f.n_present; ++k) {
            record.pair_class[record.n_pairs] = f.present[k];
            record.pair_count[record.n_pairs++] = static_cast<int32_t>(f.stats[(k + 1) * f.width - 1]);
        }
    }

    // Missing values alone on a side are told from all others, also from those not seen at the node.
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
