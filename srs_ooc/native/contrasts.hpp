// What a column can show besides location: spread, and what is missing; joined with it to one p-value.
#pragma once

#include "own_math.hpp"
#include "rank_scores.hpp"

namespace srs {

enum Contrast : std::size_t { LOCATION, SPREAD, ABSENCE, N_CONTRASTS };

// Of the chance to be taken for more than noise, what each contrast gets; shared by those that a column has.
constexpr double SHARES[N_CONTRASTS] = {0.6, 0.2, 0.2};

// Whether distances from the middle show anything else than the order of the levels does. They do not where there are
// two levels, or all others are on one side of the nearest one.
inline bool has_spread(std::size_t n_levels, std::size_t nearest, bool even) {
    return n_levels > 2 && (even || (nearest > 0 && nearest + 1 < n_levels));
}

// Levels by how far their midranks are from the middle of the rows, nearest first, equal ones put together, with that
// for a score: Ansari and Bradley's, turned round. False where these show nothing else than the order of the levels.
inline bool fold(const Crossed &crossed, bool in_strata, Crossed &out) {
    const std::size_t n_levels = crossed.n_levels, n_targets = crossed.n_targets;
    if (n_levels < 3) return false;
    const std::vector<std::int64_t> counts = crossed.levels();
    const std::int64_t n = std::accumulate(counts.begin(), counts.end(), std::int64_t(0));
    std::vector<std::int64_t> distances = double_midranks(counts);
    std::size_t above = 0; // the first level beyond the middle; ``below``: one past the last before it
    while (distances[above] <= n + 1) ++above;
    for (std::int64_t &d : distances) d = 2 * std::abs(d - (n + 1));
    std::size_t below = above;
    const bool even = distances[below - 1] == distances[above];
    if (!has_spread(n_levels, distances[below - 1] < distances[above] ? below - 1 : above, even)) return false;
    out.n_targets = n_targets, out.n_levels = 0;
    out.cells.reserve(n_levels * n_targets);
    while (below > 0 || above < n_levels) {
        const bool takes_below = above == n_levels || (below > 0 && distances[below - 1] <= distances[above]);
        const std::size_t level = takes_below ? --below : above++;
        const std::int32_t *own = crossed.cells.data() + level * n_targets;
        if (out.scores.empty() || out.scores.back() != distances[level]) {
            out.scores.push_back(distances[level]), ++out.n_levels;
            out.cells.insert(out.cells.end(), own, own + n_targets);
            continue;
        }
        std::int32_t *to = out.cells.data() + (out.n_levels - 1) * n_targets;
        for (std::size_t y = 0; y < n_targets; ++y) to[y] += own[y];
    }
    out.scores = grid_scores(std::move(out.scores), n, in_strata);
    return true;
}

// Rows with a value and rows without, by stratum; ``absent`` [stratum][target].
inline std::vector<Crossed> by_absence(const std::vector<Crossed> &strata, const std::vector<std::int32_t> &absent) {
    std::vector<Crossed> out;
    for (std::size_t h = 0; h < strata.size(); ++h) {
        if (!strata[h].n_levels) continue;
        const std::size_t n_targets = strata[h].n_targets;
        const std::int32_t *own = absent.data() + h * n_targets;
        if (std::none_of(own, own + n_targets, [](std::int32_t rows) { return rows > 0; })) continue;
        Crossed two{2, n_targets, std::vector<std::int32_t>(2 * n_targets, 0), {}};
        for (std::size_t i = 0; i < strata[h].cells.size(); ++i) two.cells[i % n_targets] += strata[h].cells[i];
        std::copy(own, own + n_targets, two.cells.begin() + static_cast<std::ptrdiff_t>(n_targets));
        out.push_back(std::move(two));
    }
    return out;
}

// A p-value, and the contrast that has it.
struct Shown {
    double log_p = 0;
    std::size_t contrast = N_CONTRASTS; // none
};

// The smallest p-value by its share (Bonferroni's inequality with weights): whatever the contrasts have to do with
// one another. Which are there follows from the column's margins, which all is given: not from what goes with what.
class Joined {
  public:
    void add(Contrast contrast, double log_p) { log_p_[contrast] = log_p, there_[contrast] = true; }
    Shown shown() const {
        double all = 0;
        for (std::size_t i = 0; i < N_CONTRASTS; ++i) all += there_[i] ? SHARES[i] : 0;
        Shown best;
        for (std::size_t i = 0; i < N_CONTRASTS; ++i) {
            if (!there_[i]) continue;
            const double log_p = log_p_[i] - (all > SHARES[i] ? own_log(SHARES[i] / all) : 0.0);
            if (log_p < best.log_p) best = {log_p, i};
        }
        return best;
    }

  private:
    double log_p_[N_CONTRASTS] = {};
    bool there_[N_CONTRASTS] = {};
};

} // namespace srs
