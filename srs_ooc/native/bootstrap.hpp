// Rows drawn with replacement, and their numbers at the root: the twin of TrainingRows.resampled.
// A row that was drawn more than once comes once, with its times for a weight, where rows have no
// weights of their own: splits and importances are the same numbers, and there are fewer rows.
#pragma once
#include "hash.hpp"
#include "trees.hpp"

#include <algorithm>
#include <vector>

namespace srs {

struct BootstrapSample {
    static constexpr uint64_t BOOTSTRAP = 22; // base/seeds.py
    static constexpr int64_t MOST_TIMES = 16; // trees/response.py: bits of a weight times a target
    std::vector<int32_t> times, rows, channels;
    std::vector<int64_t> stats;

    void draw(GrowJob &job, const GrowJob &all, uint64_t key) {
        const int64_t n = all.n_root_rows;
        const uint64_t drawing = derive(key, BOOTSTRAP);
        times.assign(static_cast<size_t>(n), 0);
        for (int64_t i = 0; i < n; ++i) {
            const uint64_t hash = derive(drawing, static_cast<uint64_t>(i));
            ++times[scale_below(hash, static_cast<uint64_t>(n))];
        }
        const int64_t most = *std::max_element(times.begin(), times.end());
        if (all.n_channels == 1 && all.min_samples_leaf == 1 && most <= MOST_TIMES) weigh(job, all, most);
        else repeat(job, all);
        job.rows = rows.data();
        job.n_root_rows = static_cast<int64_t>(rows.size());
        job.root_stats = stats.data();
    }

  private:
    void weigh(GrowJob &job, const GrowJob &all, int64_t most) {
        channels.resize(static_cast<size_t>(2 * all.n_rows));
        rows.clear();
        stats.assign(3, 0);
        for (int64_t i = 0; i < all.n_root_rows; ++i) {
            const int32_t count = times[static_cast<size_t>(i)], row = all.rows[i];
            if (count == 0) continue;
            const int32_t sum = count * all.channels[row];
            channels[static_cast<size_t>(row)] = count;
            channels[static_cast<size_t>(all.n_rows + row)] = sum;
            rows.push_back(row);
            stats[1] += count;
            stats[2] += sum;
        }
        stats[0] = static_cast<int64_t>(rows.size());
        job.channels = channels.data();
        job.n_channels = 2;
        job.flush = std::max<int64_t>(1, all.flush / most);
    }

    void repeat(GrowJob &job, const GrowJob &all) {
        rows.clear();
        stats.assign(static_cast<size_t>(1 + all.n_channels), 0);
        stats[0] = all.n_root_rows;
        for (int64_t i = 0; i < all.n_root_rows; ++i) {
            const int64_t count = times[static_cast<size_t>(i)];
            for (int64_t c = 0; c < all.n_channels; ++c)
                stats[static_cast<size_t>(1 + c)] += count * all.channels[c * all.n_rows + all.rows[i]];
            rows.insert(rows.end(), static_cast<size_t>(count), all.rows[i]);
        }
        job.channels = all.channels;
        job.n_channels = all.n_channels;
        job.flush = all.flush;
    }
};

} // namespace srs
