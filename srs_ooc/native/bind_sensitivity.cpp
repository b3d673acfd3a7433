// What trees would say of rows if one feature had another value: all features on a row's paths in
// one walk. Twin: tests/helpers/sensitivity_reference.py.
#define SRS_INLINE inline
#include "arrays.hpp"
#include "checks.hpp"
#include "hash.hpp"
#include "trees.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Matrix, srs::Vector;

namespace {

using srs::mix32;
#include "categories.hpp"

constexpr int64_t PROBE_SPLIT = -2;
constexpr double UNITS = 68719476736.0; // 2^36, of changes of loss

struct Forest {
    const int64_t *slot, *n_rows, *pair_count;
    const int32_t *code, *right, *how, *pair_class;
    const uint32_t *hash;
    double units; // a leaf's say is counted in whole numbers of 1 / units
};

// One row walked down trees, with its own codes and with those of one slot altered.
template <typename Code> struct Row {
    const Forest &forest;
    const Code *codes, *altered; // of this row in the first slot
    int64_t stride, n_outputs;
    int64_t *base, *effects;
    std::vector<int64_t> &parted; // slots whose altered code leads off the row's path so far

    bool goes_left(int64_t node, Code code) const {
        constexpr Code MISSING = static_cast<Code>(~Code{0});
        const int32_t how = forest.how[node];
        if (how == srs::MAPPED) return CategoryMap<Code>(forest.hash[node])(code) <= forest.code[node];
        if (code == MISSING) {
            if (how != srs::PLAIN) return how == srs::MISSING_LEFT;
            return forest.n_rows[node + 1] >= forest.n_rows[forest.right[node]];
        }
        return static_cast<int32_t>(code) <= forest.code[node];
    }

    int64_t said(int64_t node, int32_t pair, double weight) const {
        const double share = static_cast<double>(forest.pair_count[pair]) / static_cast<double>(forest.n_rows[node]);
        return static_cast<int64_t>(std::floor(weight * share * forest.units + 0.5));
    }

    double part(int64_t child, int64_t node) const {
        return static_cast<double>(forest.n_rows[child]) / static_cast<double>(forest.n_rows[node]);
    }

    // The path of the row with `slot` altered, from a node on; what it ends in is added.
    void walk_altered(int64_t node, int64_t slot, double weight) const {
        for (;;) {
            const int64_t at = forest.slot[node];
            if (at >= 0) {
                node = goes_left(node, (at == slot ? altered : codes)[at * stride]) ? node + 1 : forest.right[node];
            } else if (at == PROBE_SPLIT) {
                walk_altered(node + 1, slot, weight * part(node + 1, node));
                weight = weight * part(forest.right[node], node);
                node = forest.right[node];
            } else {
                for (int32_t i = forest.right[node]; i < forest.right[node] + forest.code[node]; ++i)
                    effects[slot * n_outputs + forest.pair_class[i]] += said(node, i, weight);
                return;
            }
        }
    }

    // The path of the row as it is; what it ends in is taken from each slot that would lead elsewhere.
    void walk(int64_t node, double weight) const {
        const size_t before = parted.size();
        for (;;) {
            const int64_t at = forest.slot[node];
            if (at >= 0) {
                const int64_t left = node + 1, right = forest.right[node];
                const bool goes = goes_left(node, codes[at * stride]);
                if (goes_left(node, altered[at * stride]) != goes &&
                    std::find(parted.begin(), parted.end(), at) == parted.end()) {
                    parted.push_back(at);
                    walk_altered(goes ? right : left, at, weight);
                }
                node = goes ? left : right;
            } else if (at == PROBE_SPLIT) {
                walk(node + 1, weight * part(node + 1, node));
                weight = weight * part(forest.right[node], node);
                node = forest.right[node];
            } else {
                for (int32_t i = forest.right[node]; i < forest.right[node] + forest.code[node]; ++i) {
                    const int64_t share = said(node, i, weight);
                    base[forest.pair_class[i]] += share;
                    for (const int64_t slot : parted) effects[slot * n_outputs + forest.pair_class[i]] -= share;
                }
                break;
            }
        }
        parted.resize(before);
    }
};

// Calls work(first, last) on parts of 0 .. n - 1, each in a thread of its own.
template <typename Work> void in_threads(int64_t n, int64_t n_threads, const Work &work) {
    n_threads = std::max<int64_t>(1, std::min(n, n_threads));
    std::vector<std::thread> threads;
    for (int64_t i = 1; i < n_threads; ++i) threads.emplace_back(work, i * n / n_threads, (i + 1) * n / n_threads);
    work(0, n / n_threads);
    for (std::thread &thread : threads) thread.join();
}

struct Panel {
    const uint8_t *codes, *altered, *votes; // votes: null where every tree votes on every row
    int64_t n_rows, n_slots, n_outputs;
    int64_t *base, *effects;
};

template <typename Code>
void walk_rows(const Forest &forest, const int32_t *roots, int64_t n_trees, const Panel &panel, int64_t first, int64_t last) {
    std::vector<int64_t> parted;
    const Code *codes = reinterpret_cast<const Code *>(panel.codes), *altered = reinterpret_cast<const Code *>(panel.altered);
    for (int64_t t = 0; t < n_trees; ++t)
        for (int64_t r = first; r < last; ++r) {
            if (panel.votes && !panel.votes[t * panel.n_rows + r]) continue;
            const Row<Code> row{forest,          codes + r, altered + r, panel.n_rows, panel.n_outputs, panel.base + r * panel.n_outputs,
                                panel.effects + r * panel.n_slots * panel.n_outputs, parted};
            row.walk(roots[t], 1.0);
        }
}

void add_effects(Vector<const int32_t> root, Vector<const int64_t> slot, Vector<const int32_t> code,
                 Vector<const int32_t> right, Vector<const int64_t> n_rows, Vector<const int32_t> how,
                 Vector<const uint32_t> hash, Vector<const int32_t> pair_class, Vector<const int64_t> pair_count,
                 int code_nbytes, Matrix<const uint8_t> codes, Matrix<const uint8_t> altered, Matrix<const uint8_t> votes,
                 int bits, Matrix<int64_t> base, Matrix<int64_t> effects, int64_t n_threads) {
    const int64_t n_nodes = static_cast<int64_t>(slot.size()), n_trees = static_cast<int64_t>(root.size());
    const int64_t n_slots = static_cast<int64_t>(codes.shape(0)), n_outputs = static_cast<int64_t>(base.shape(1));
    const int64_t n = static_cast<int64_t>(base.shape(0));
    nb::gil_scoped_release released;
    for (int64_t i = 0; i < n_nodes; ++i)
        if (slot(i) >= n_slots) throw std::invalid_argument("a tree uses a column that the panel does not have");
    srs::check_below(pair_class, n_outputs, "a tree names no such class");
    const bool fits = static_cast<int64_t>(codes.shape(1)) == n * code_nbytes && altered.shape(0) == codes.shape(0) &&
                      altered.shape(1) == codes.shape(1) && static_cast<int64_t>(effects.shape(0)) == n &&
                      static_cast<int64_t>(effects.shape(1)) == n_slots * n_outputs;
    const bool asks = votes.shape(0) > 0;
    if (!fits || (asks && (static_cast<int64_t>(votes.shape(0)) != n_trees || static_cast<int64_t>(votes.shape(1)) != n)))
        throw std::invalid_argument("the panel has another number of rows");
    const Forest forest{slot.data(), n_rows.data(),     pair_count.data(), code.data(),           right.data(),
                        how.data(),  pair_class.data(), hash.data(),       std::ldexp(1.0, bits)};
    const Panel panel{codes.data(), altered.data(), asks ? votes.data() : nullptr, n, n_slots, n_outputs, base.data(),
                      effects.data()};
    in_threads(n, n_threads, [&](int64_t first, int64_t last) {
        if (code_nbytes == 1) walk_rows<uint8_t>(forest, root.data(), n_trees, panel, first, last);
        else walk_rows<uint16_t>(forest, root.data(), n_trees, panel, first, last);
    });
}

int64_t best_of(const int64_t *shares, const int64_t *effects, int64_t n_outputs) {
    int64_t best = 0;
    for (int64_t k = 1; k < n_outputs; ++k)
        if (shares[k] + effects[k] > shares[best] + effects[best]) best = k;
    return best;
}

// Sums over rows what effects do to the right votes, and to the probability of the true class.
void tally_classes(Matrix<const int64_t> base, Matrix<const int64_t> effects, Vector<const int64_t> n_votes,
                   Vector<const int64_t> truth, Matrix<int64_t> tally, int64_t n_threads) {
    const int64_t n = static_cast<int64_t>(base.shape(0)), n_outputs = static_cast<int64_t>(base.shape(1));
    const int64_t n_slots = static_cast<int64_t>(tally.shape(0));
    nb::gil_scoped_release released;
    if (static_cast<int64_t>(effects.shape(0)) != n || static_cast<int64_t>(effects.shape(1)) != n_slots * n_outputs ||
        static_cast<int64_t>(n_votes.size()) != n || static_cast<int64_t>(truth.size()) != n || tally.shape(1) != 3)
        throw std::invalid_argument("arrays of other shapes");
    const std::vector<int64_t> none(static_cast<size_t>(n_outputs), 0);
    srs::check_below(truth, n_outputs, "no such class");
    in_threads(n_slots, n_threads, [&](int64_t first, int64_t last) {
        for (int64_t r = 0; r < n; ++r) {
            if (n_votes(r) == 0) continue;
            const int64_t *shares = base.data() + r * n_outputs, *row = effects.data() + r * n_slots * n_outputs;
            const bool right = best_of(shares, none.data(), n_outputs) == truth(r);
            for (int64_t s = first; s < last; ++s) {
                const int64_t *of_slot = row + s * n_outputs;
                if (std::all_of(of_slot, of_slot + n_outputs, [](int64_t x) { return x == 0; })) continue;
                const bool still = best_of(shares, of_slot, n_outputs) == truth(r);
                tally(s, 0) += right && !still;
                tally(s, 1) += still && !right;
                tally(s, 2) -= of_slot[truth(r)] / n_votes(r);
            }
        }
    });
}

// Sums over rows what effects add to the squared error of the mean, in units of 2^-36.
void tally_targets(Matrix<const int64_t> base, Matrix<const int64_t> effects, Vector<const int64_t> n_votes,
                   Vector<const double> truth, double unit, Matrix<int64_t> tally, int64_t n_threads) {
    const int64_t n = static_cast<int64_t>(base.shape(0)), n_slots = static_cast<int64_t>(tally.shape(0));
    nb::gil_scoped_release released;
    if (base.shape(1) != 1 || static_cast<int64_t>(effects.shape(0)) != n || static_cast<int64_t>(effects.shape(1)) != n_slots ||
        static_cast<int64_t>(n_votes.size()) != n || static_cast<int64_t>(truth.size()) != n || tally.shape(1) != 3)
        throw std::invalid_argument("arrays of other shapes");
    in_threads(n_slots, n_threads, [&](int64_t first, int64_t last) {
        for (int64_t r = 0; r < n; ++r) {
            if (n_votes(r) == 0) continue;
            const double votes = static_cast<double>(n_votes(r));
            const double error = static_cast<double>(base(r, 0)) / votes * unit - truth(r);
            for (int64_t s = first; s < last; ++s) {
                if (effects(r, s) == 0) continue;
                const double other = static_cast<double>(base(r, 0) + effects(r, s)) / votes * unit - truth(r);
                tally(s, 2) += static_cast<int64_t>(std::floor((other * other - error * error) * UNITS + 0.5));
            }
        }
    });
}

} // namespace

void bind_sensitivity(nb::module_ &module) {
    module.def("add_effects", &add_effects, "root"_a, "slot"_a, "code"_a, "right"_a, "n_rows"_a, "how"_a, "hashes"_a,
               "pair_class"_a, "pair_count"_a, "code_nbytes"_a, "codes"_a.noconvert(), "altered"_a.noconvert(),
               "votes"_a.noconvert(), "bits"_a, "base"_a.noconvert(), "effects"_a.noconvert(), "n_threads"_a);
    module.def("tally_classes", &tally_classes, "base"_a.noconvert(), "effects"_a.noconvert(), "n_votes"_a.noconvert(),
               "truth"_a.noconvert(), "tally"_a.noconvert(), "n_threads"_a);
    module.def("tally_targets", &tally_targets, "base"_a.noconvert(), "effects"_a.noconvert(), "n_votes"_a.noconvert(),
               "truth"_a.noconvert(), "unit"_a, "tally"_a.noconvert(), "n_threads"_a);
}
