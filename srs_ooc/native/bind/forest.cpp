// Bindings of saved trees: read from bytes, asked what they say of rows, and what they would say of others.
#include "bind/arguments.hpp"
#include "bind/thread_team.hpp"
#include "grow/tree_bytes.hpp"
#include "hash.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::as_bytes, srs::in_threads, srs::Matrix, srs::Vector;

namespace {

// ---- from bytes to arrays, and rows walked down them. Twin: tests/helpers/forest_reference.py --------------------------
constexpr uint64_t PROBE = 0xFFFFFFFF;
constexpr int64_t LEAF = -1, PROBE_SPLIT = -2;

struct Trees {
    bool regression;
    std::vector<int64_t> feature, n_rows, pair_count; // feature may be LEAF or PROBE_SPLIT
    std::vector<int32_t> code, right;                 // of a leaf: its number of pairs, its first pair
    std::vector<int32_t> how, pair_class, root;
    std::vector<uint32_t> hash;

    explicit Trees(bool regression) : regression(regression) {}

    // What a tree counts or names, but its features: of 31 bits.
    static int32_t next_small(srs::NumberReader &in) {
        const uint64_t number = in.next();
        if (number > 0x7FFFFFFF) throw std::invalid_argument("a tree holds a number that is too large");
        return static_cast<int32_t>(number);
    }

    void append_node(srs::NumberReader &in) {
        const uint64_t tag = in.next(), name = tag & ((uint64_t(1) << srs::HOW_SHIFT) - 1), kind = tag >> srs::HOW_SHIFT;
        if (name > PROBE + 1 || kind > srs::MAPPED) throw std::invalid_argument("a tree names no such feature");
        feature.push_back(tag == 0 ? LEAF : name == PROBE + 1 ? PROBE_SPLIT : static_cast<int64_t>(name) - 1);
        how.push_back(static_cast<int32_t>(kind));
        hash.push_back(kind == srs::MAPPED ? static_cast<uint32_t>(in.next()) : 0);
        right.push_back(static_cast<int32_t>(pair_class.size()));
        if (tag == 0) return append_leaf(in);
        if (name == 0) throw std::invalid_argument("a tree names no such feature");
        code.push_back(next_small(in) - (kind == srs::MISSING_LEFT ? 1 : 0));
        n_rows.push_back(0);
    }

    void append_leaf(srs::NumberReader &in) {
        const int32_t first = next_small(in);
        code.push_back(regression ? 1 : first);
        n_rows.push_back(regression ? first : 0);
        for (int32_t i = 0; !regression && i < first; ++i) {
            pair_class.push_back(next_small(in));
            pair_count.push_back(next_small(in));
            n_rows.back() += pair_count.back();
        }
        if (!regression) return;
        const uint64_t doubled = in.next();
        pair_class.push_back(0);
        pair_count.push_back(static_cast<int64_t>(doubled >> 1 ^ (0 - (doubled & 1))));
    }

    void append_tree(srs::NumberReader in) {
        const size_t first = feature.size();
        root.push_back(static_cast<int32_t>(first));
        std::vector<int32_t> waiting; // splits whose right child is still to come
        for (;;) {
            const int32_t node = static_cast<int32_t>(feature.size());
            append_node(in);
            if (feature[node] != LEAF) {
                waiting.push_back(node);
                continue;
            }
            if (waiting.empty()) break;
            right[waiting.back()] = node + 1;
            waiting.pop_back();
        }
        if (in.at != in.end) throw std::invalid_argument("a tree is followed by more bytes");
        for (size_t i = feature.size(); i-- > first;)
            if (feature[i] != LEAF) n_rows[i] = n_rows[i + 1] + n_rows[right[i]];
    }
};

nb::tuple decode_trees(Vector<const uint8_t> data, Vector<const int64_t> starts, Vector<const int64_t> stops, bool regression) {
    Trees trees(regression);
    srs::expect_size("stops", stops, static_cast<int64_t>(starts.size()));
    {
        nb::gil_scoped_release released;
        const int64_t size = static_cast<int64_t>(data.size());
        for (size_t i = 0; i < starts.size(); ++i) {
            srs::expect_between("starts", starts(i), 0, size, int64_t(i));
            srs::expect_between("stops", stops(i), starts(i), size, int64_t(i));
            trees.append_tree({data.data() + starts(i), data.data() + stops(i)});
        }
    }
    return nb::make_tuple(as_bytes(trees.root), as_bytes(trees.feature), as_bytes(trees.code), as_bytes(trees.right),
                          as_bytes(trees.n_rows), as_bytes(trees.how), as_bytes(trees.hash), as_bytes(trees.pair_class),
                          as_bytes(trees.pair_count));
}

constexpr int32_t MAX_PROBES = 10000; // splits by the probe above a leaf: both sides of each are walked down, one in the other

// What rows are walked down: splits by columns there are, children after their parents, leaves of pairs there are.
template <typename Walked>
void check_nodes(const Walked &trees, int64_t n_nodes, int64_t n_pairs, int64_t n_slots, const int32_t *root, size_t n_trees) {
    std::vector<int32_t> n_probes(static_cast<size_t>(n_nodes), 0);
    for (size_t t = 0; t < n_trees; ++t) srs::expect_between("root", root[t], 0, n_nodes - 1, int64_t(t));
    for (int64_t i = 0; i < n_nodes; ++i) {
        const int64_t slot = trees.slot[i], right = trees.right[i];
        srs::expect_between("slot", slot, PROBE_SPLIT, n_slots - 1, i);
        srs::expect_between("n_rows", trees.n_rows[i], 1, INT64_MAX, i); // shares are of these
        if (slot == LEAF) {
            srs::expect_between("right", right, 0, n_pairs, i);
            srs::expect_between("code", trees.code[i], 0, n_pairs - right, i);
            continue;
        }
        srs::expect_between("right", right, i + 2, n_nodes - 1, i);
        srs::expect_between("how", trees.how[i], srs::PLAIN, srs::MAPPED, i);
        const int32_t here = n_probes[static_cast<size_t>(i)] + (slot == PROBE_SPLIT);
        srs::expect_between("slot, splits by the probe in a line", here, 0, MAX_PROBES);
        for (const int64_t child : {i + 1, right})
            n_probes[static_cast<size_t>(child)] = std::max(n_probes[static_cast<size_t>(child)], here);
    }
}

void check_sizes(int64_t n_nodes, const Vector<const int32_t> &code, const Vector<const int32_t> &right,
                 const Vector<const int64_t> &n_rows, const Vector<const int32_t> &how, const Vector<const uint32_t> &hash,
                 const Vector<const int32_t> &pair_class, const Vector<const int64_t> &pair_count, int64_t n_classes,
                 int code_nbytes) {
    srs::expect_size("code", code, n_nodes);
    srs::expect_size("right", right, n_nodes);
    srs::expect_size("n_rows", n_rows, n_nodes);
    srs::expect_size("how", how, n_nodes);
    srs::expect_size("hashes", hash, n_nodes);
    srs::expect_size("pair_count", pair_count, static_cast<int64_t>(pair_class.size()));
    srs::expect_below("pair_class", pair_class, n_classes);
    srs::expect_between("code_nbytes", code_nbytes, 1, 2);
}

struct Walk {
    const int64_t *slot, *n_rows, *pair_count;
    const int32_t *code, *right, *how, *pair_class;
    const uint32_t *hash;
    const double *threshold, *panel;
    int64_t stride;
    int code_nbytes;

    // The place of a category; what is missing is a category of its own.
    int64_t place(int64_t node, double value) const {
        if (code_nbytes == 1) return srs::CategoryMap<uint8_t>(hash[node])(std::isnan(value) ? 0xFF : static_cast<uint8_t>(value));
        return srs::CategoryMap<uint16_t>(hash[node])(std::isnan(value) ? 0xFFFF : static_cast<uint16_t>(value));
    }

    bool goes_left(int64_t node, double value) const {
        const bool heavier = n_rows[node + 1] >= n_rows[right[node]];
        if (how[node] == srs::MAPPED) return value < 0 ? heavier : place(node, value) <= code[node];
        if (std::isnan(value)) return how[node] == srs::PLAIN ? heavier : how[node] == srs::MISSING_LEFT;
        return value <= threshold[node];
    }

    void add(int64_t node, const double *row, double weight, double *shares) const {
        for (;;) {
            const int64_t at = slot[node];
            if (at >= 0) {
                node = goes_left(node, row[at * stride]) ? node + 1 : right[node];
            } else if (at == PROBE_SPLIT) {
                const double n = static_cast<double>(n_rows[node]);
                add(node + 1, row, weight * (static_cast<double>(n_rows[node + 1]) / n), shares);
                node = right[node];
                weight = weight * (static_cast<double>(n_rows[node]) / n);
            } else {
                const double n = static_cast<double>(n_rows[node]);
                for (int32_t i = right[node]; i < right[node] + code[node]; ++i)
                    shares[pair_class[i]] += weight * (static_cast<double>(pair_count[i]) / n);
                return;
            }
        }
    }
};

void add_shares(Vector<const int32_t> root, Vector<const int64_t> slot, Vector<const double> threshold,
                Vector<const int32_t> code, Vector<const int32_t> right, Vector<const int64_t> n_rows,
                Vector<const int32_t> how, Vector<const uint32_t> hash, Vector<const int32_t> pair_class,
                Vector<const int64_t> pair_count, int code_nbytes, Matrix<const double> panel, Matrix<double> shares) {
    const int64_t n_nodes = static_cast<int64_t>(slot.size()), n_slots = static_cast<int64_t>(panel.shape(0));
    const int64_t n_classes = static_cast<int64_t>(shares.shape(1)), n_panel_rows = static_cast<int64_t>(shares.shape(0));
    nb::gil_scoped_release released;
    check_sizes(n_nodes, code, right, n_rows, how, hash, pair_class, pair_count, n_classes, code_nbytes);
    srs::expect_size("threshold", threshold, n_nodes);
    srs::expect_between("shares, its rows", n_panel_rows, 0, static_cast<int64_t>(panel.shape(1)));
    const Walk walk{slot.data(), n_rows.data(), pair_count.data(), code.data(), right.data(), how.data(), pair_class.data(),
                    hash.data(), threshold.data(), panel.data(), static_cast<int64_t>(panel.shape(1)), code_nbytes};
    check_nodes(walk, n_nodes, static_cast<int64_t>(pair_class.size()), n_slots, root.data(), root.size());
    for (size_t t = 0; t < root.size(); ++t)
        for (int64_t r = 0; r < n_panel_rows; ++r)
            walk.add(root(t), walk.panel + r, 1.0, shares.data() + r * n_classes);
}

// One tree walked by rows of the block that it was grown on.
void predict_block(Vector<const uint8_t> data, bool regression, Vector<const uint8_t> codes, int code_nbytes, bool tiled,
                   int64_t n_rows, Vector<const uint32_t> features, Vector<const int32_t> rows, Matrix<double> shares) {
    nb::gil_scoped_release released;
    Trees trees(regression);
    trees.append_tree({data.data(), data.data() + data.size()});
    const int64_t n = static_cast<int64_t>(rows.size()), n_columns = static_cast<int64_t>(features.size());
    const int64_t n_classes = static_cast<int64_t>(shares.shape(1));
    srs::expect_block("codes", codes, n_columns, n_rows, code_nbytes, tiled);
    for (int64_t i = 1; i < n_columns; ++i) srs::expect_between("features", features(i), int64_t(features(i - 1)) + 1, UINT32_MAX, i);
    srs::expect_shape("shares", shares, n, n_classes);
    srs::expect_below("rows", rows, n_rows);
    for (const int32_t named : trees.pair_class) srs::expect_between("data, a class", named, 0, n_classes - 1);
    std::vector<int64_t> slot(trees.feature.size()), columns; // a row of the panel for each column that is split on
    std::vector<int64_t> place(static_cast<size_t>(n_columns), -1);
    for (size_t i = 0; i < slot.size(); ++i) {
        slot[i] = trees.feature[i];
        if (slot[i] < 0) continue;
        const uint32_t *found = std::lower_bound(features.data(), features.data() + n_columns, static_cast<uint32_t>(slot[i]));
        const int64_t column = found - features.data();
        if (column == n_columns || *found != static_cast<uint32_t>(slot[i])) srs::refuse("features", "feature " + std::to_string(slot[i]) + ", of a split", "no such column");
        if (place[static_cast<size_t>(column)] < 0) {
            place[static_cast<size_t>(column)] = static_cast<int64_t>(columns.size());
            columns.push_back(column);
        }
        slot[i] = place[static_cast<size_t>(column)];
    }
    std::vector<double> panel(columns.size() * static_cast<size_t>(n)), threshold(trees.code.begin(), trees.code.end());
    const uint32_t missing = code_nbytes == 1 ? 0xFF : 0xFFFF;
    for (size_t c = 0; c < columns.size(); ++c)
        for (int64_t i = 0; i < n; ++i) {
            const int64_t column = columns[c], r = rows(i);
            const int64_t at = tiled ? (column / srs::TILE * n_rows + r) * srs::TILE + column % srs::TILE : column * n_rows + r;
            const uint32_t code = code_nbytes == 1 ? codes(at) : codes(2 * at) | uint32_t(codes(2 * at + 1)) << 8;
            panel[c * static_cast<size_t>(n) + static_cast<size_t>(i)] = code == missing ? std::nan("") : code;
        }
    const Walk walk{slot.data(), trees.n_rows.data(), trees.pair_count.data(), trees.code.data(), trees.right.data(),
                    trees.how.data(), trees.pair_class.data(), trees.hash.data(), threshold.data(), panel.data(), n, code_nbytes};
    check_nodes(walk, static_cast<int64_t>(slot.size()), static_cast<int64_t>(trees.pair_class.size()),
                static_cast<int64_t>(columns.size()), trees.root.data(), 1);
    for (int64_t i = 0; i < n; ++i) walk.add(0, panel.data() + i, 1.0, shares.data() + i * n_classes);
}

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
        if (how == srs::MAPPED) return srs::CategoryMap<Code>(forest.hash[node])(code) <= forest.code[node];
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
    const bool asks = votes.shape(0) > 0;
    check_sizes(n_nodes, code, right, n_rows, how, hash, pair_class, pair_count, n_outputs, code_nbytes);
    srs::expect_between("bits", bits, 0, 62);
    srs::expect_shape("codes", codes, n_slots, n * code_nbytes);
    srs::expect_shape("altered", altered, n_slots, n * code_nbytes);
    srs::expect_block("codes", codes, 0, 1, code_nbytes, false);
    srs::expect_block("altered", altered, 0, 1, code_nbytes, false);
    srs::expect_shape("effects", effects, n, n_slots * n_outputs);
    if (asks) srs::expect_shape("votes", votes, n_trees, n);
    const Forest forest{slot.data(), n_rows.data(),     pair_count.data(), code.data(),           right.data(),
                        how.data(),  pair_class.data(), hash.data(),       std::ldexp(1.0, bits)};
    check_nodes(forest, n_nodes, static_cast<int64_t>(pair_class.size()), n_slots, root.data(), root.size());
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

void check_tally(const Matrix<const int64_t> &effects, const Vector<const int64_t> &n_votes, const Matrix<int64_t> &tally,
                 int64_t n_rows, int64_t n_effects) {
    srs::expect_shape("effects", effects, n_rows, n_effects);
    srs::expect_size("n_votes", n_votes, n_rows);
    srs::expect_below("n_votes", n_votes, INT64_MAX);
    srs::expect_shape("tally", tally, static_cast<int64_t>(tally.shape(0)), 3);
}

// Sums over rows what effects do to the right votes, and to the probability of the true class.
void tally_classes(Matrix<const int64_t> base, Matrix<const int64_t> effects, Vector<const int64_t> n_votes,
                   Vector<const int64_t> truth, Matrix<int64_t> tally, int64_t n_threads) {
    const int64_t n = static_cast<int64_t>(base.shape(0)), n_outputs = static_cast<int64_t>(base.shape(1));
    const int64_t n_slots = static_cast<int64_t>(tally.shape(0));
    nb::gil_scoped_release released;
    check_tally(effects, n_votes, tally, n, n_slots * n_outputs);
    srs::expect_size("truth", truth, n);
    srs::expect_below("truth", truth, n_outputs);
    const std::vector<int64_t> none(static_cast<size_t>(n_outputs), 0);
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
    srs::expect_shape("base", base, n, 1);
    srs::expect_finite("unit", unit);
    check_tally(effects, n_votes, tally, n, n_slots);
    srs::expect_size("truth", truth, n);
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

void bind_forest(nb::module_ &module) {
    srs::define(module, "decode_trees", &decode_trees, "data"_a, "starts"_a, "stops"_a, "regression"_a);
    srs::define(module, "predict_block", &predict_block, "data"_a, "regression"_a, "codes"_a, "code_nbytes"_a, "tiled"_a,
               "n_rows"_a, "features"_a, "rows"_a, "shares"_a);
    srs::define(module, "add_shares", &add_shares, "root"_a, "slot"_a, "threshold"_a, "code"_a, "right"_a, "n_rows"_a,
               "how"_a, "hashes"_a, "pair_class"_a, "pair_count"_a, "code_nbytes"_a, "panel"_a, "shares"_a);
    srs::define(module, "add_effects", &add_effects, "root"_a, "slot"_a, "code"_a, "right"_a, "n_rows"_a, "how"_a, "hashes"_a,
               "pair_class"_a, "pair_count"_a, "code_nbytes"_a, "codes"_a, "altered"_a, "votes"_a, "bits"_a, "base"_a,
               "effects"_a, "n_threads"_a);
    srs::define(module, "tally_classes", &tally_classes, "base"_a, "effects"_a, "n_votes"_a, "truth"_a, "tally"_a, "n_threads"_a);
    srs::define(module, "tally_targets", &tally_targets, "base"_a, "effects"_a, "n_votes"_a, "truth"_a, "unit"_a, "tally"_a,
               "n_threads"_a);
}
