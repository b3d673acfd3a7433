// The numbers of a node by class: rows, and the sums of their channels, of all classes or of those present.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

struct NodeStats {
    const GrowJob &job;
    const Criterion &criterion;
    const int64_t width; // numbers of a class
    // Scratch.
    int64_t *present_stats;  // [n_classes][width]
    int64_t *present_counts; // [n_classes]
    int32_t *present;        // [n_classes]

    int64_t slot_size() const { return job.n_classes * width; }

    void carve(Carver &carver) {
        present_stats = carver.take<int64_t>(slot_size());
        present_counts = carver.take<int64_t>(job.n_classes);
        present = carver.take<int32_t>(job.n_classes);
    }

    // `stats`: [n_classes][width]; what is returned holds until the next call.
    Facts facts_of(int64_t n_rows, const int64_t *stats) {
        Facts f{n_rows, job.min_samples_leaf, 0, width, present, present_counts, present_stats, 0, 0, 0};
        for (int64_t k = 0; k < job.n_classes; ++k, stats += width) {
            if (stats[0] == 0) continue;
            present[f.n_present] = static_cast<int32_t>(k);
            present_counts[f.n_present] = stats[0];
            for (int64_t i = 0; i < width; ++i) present_stats[f.n_present * width + i] = stats[i];
            f.largest = stats[0] > f.largest ? stats[0] : f.largest;
            ++f.n_present;
        }
        f.weight = criterion.weight_of(f, present_stats);
        f.sum = present_stats[width - 1];
        return f;
    }

    // Write those of the children; `left_stats`: [n_present][width] of what goes left.
    void part(const Facts &f, const int64_t *left_stats, int64_t *left, int64_t *other) const {
        for (int64_t i = 0; i < slot_size(); ++i) left[i] = other[i] = 0;
        for (int64_t k = 0; k < f.n_present; ++k)
            for (int64_t i = 0; i < width; ++i) {
                left[f.present[k] * width + i] = left_stats[k * width + i];
                other[f.present[k] * width + i] = f.stats[k * width + i] - left_stats[k * width + i];
            }
    }
};
