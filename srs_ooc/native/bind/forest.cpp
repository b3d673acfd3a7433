// Bindings of saved trees: read from bytes, asked what they say of rows, and what they would say of others.
#include "bind/thread_team.hpp"
#include "bind/training.hpp"
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
constexpr int32_t MAX_PROBES = 10000; // splits by the probe above a leaf: both sides of each are walked down, one in the other

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
        for (size_t i = feature.size(); i-- > first;) {
            if (feature[i] != LEAF) n_rows[i] = n_rows[i + 1] + n_rows[right[i]];
            srs::expect_between("n_rows", n_rows[i], 1, INT64_MAX, int64_t(i)); // shares are of these
        }
        check_probes(first);
    }

    void check_probes(size_t first) const {
        std::vector<int32_t> above(feature.size() - first, 0);
        for (size_t i = first; i < feature.size(); ++i) {
            if (feature[i] == LEAF) continue;
            const int32_t here = above[i - first] + (feature[i] == PROBE_SPLIT);
            srs::expect_between("splits by the probe in a line", here, 0, MAX_PROBES);
            above[i + 1 - first] = above[static_cast<size_t>(right[i]) - first] = here;
        }
    }

    // The part of a node's rows that went to its child.
    double part(int64_t child, int64_t node) const { return double(n_rows[child]) / double(n_rows[node]); }

    // What a leaf says of one of its pairs, times a weight.
    double said(int64_t leaf, int32_t pair, double weight) const {
        return weight * (double(pair_count[pair]) / double(n_rows[leaf]));
    }

    // The path of a row from a node on; say(class, amount) of what it ends in, by each side of splits by the probe.
    template <typename GoesLeft, typename Say>
    void walk(const int64_t *slot, int64_t node, double weight, const GoesLeft &goes_left, const Say &say) const {
        for (int64_t at; (at = slot[node]) != LEAF;) {
            if (at >= 0) {
                node = goes_left(node, at) ? node + 1 : right[node];
            } else { // by the probe
                walk(slot, node + 1, weight * part(node + 1, node), goes_left, say);
                weight = weight * part(right[node], node);
                node = right[node];
            }
        }
        for (int32_t i = right[node]; i < right[node] + code[node]; ++i) say(pair_class[i], said(node, i, weight));
    }

    // What rows are asked by: a column there is for each split by a feature; leaves say classes there are.
    void check_asked(size_t first_tree, size_t last_tree, const Vector<const int64_t> &slot, int64_t n_slots, int64_t n_classes) const {
        srs::expect_between("last_tree", int64_t(last_tree), 0, int64_t(root.size()));
        srs::expect_between("first_tree", int64_t(first_tree), 0, int64_t(last_tree));
        srs::expect_size("slot", slot, static_cast<int64_t>(feature.size()));
        for (size_t i = 0; i < feature.size(); ++i)
            srs::expect_between("slot", slot(i), feature[i] < 0 ? feature[i] : 0, feature[i] < 0 ? feature[i] : n_slots - 1, int64_t(i));
        check_classes(n_classes);
    }
    void check_classes(int64_t n_classes) const {
        for (const int32_t named : pair_class) srs::expect_between("a class of a leaf", named, 0, n_classes - 1);
    }
};

Trees decode_trees(Vector<const uint8_t> data, Vector<const int64_t> starts, Vector<const int64_t> stops, bool regression) {
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
    return trees;
}

template <auto ITEMS> auto items_of(nb::handle self) { // they live as long as the trees
    const auto &items = nb::cast<const Trees &>(self).*ITEMS;
    return nb::ndarray<nb::numpy, const std::decay_t<decltype(items[0])>, nb::ndim<1>>(items.data(), {items.size()}, self);
}

struct Walk {
    const Trees &trees;
    const int64_t *slot;
    const double *threshold, *panel;
    int64_t stride;
    int code_nbytes;

    // The place of a category; what is missing is a category of its own.
    int64_t place(int64_t node, double value) const {
        if (code_nbytes == 1) return srs::CategoryMap<uint8_t>(trees.hash[node])(std::isnan(value) ? 0xFF : static_cast<uint8_t>(value));
        return srs::CategoryMap<uint16_t>(trees.hash[node])(std::isnan(value) ? 0xFFFF : static_cast<uint16_t>(value));
    }

    bool goes_left(int64_t node, double value) const {
        const bool heavier = trees.n_rows[node + 1] >= trees.n_rows[trees.right[node]];
        if (trees.how[node] == srs::MAPPED) return value < 0 ? heavier : place(node, value) <= trees.code[node];
        if (std::isnan(value)) return trees.how[node] == srs::PLAIN ? heavier : trees.how[node] == srs::MISSING_LEFT;
        return value <= threshold[node];
    }

    void add(int64_t root, const double *row, double *shares) const {
        trees.walk(slot, root, 1.0, [=](int64_t node, int64_t at) { return goes_left(node, row[at * stride]); },
                   [=](int32_t named, double share) { shares[named] += share; });
    }
};

void add_shares(const Trees &trees, size_t first_tree, size_t last_tree, Vector<const int64_t> slot, Vector<const double> threshold, int code_nbytes,
                Matrix<const double> panel, Matrix<double> shares) {
    const int64_t n_classes = static_cast<int64_t>(shares.shape(1)), n_panel_rows = static_cast<int64_t>(shares.shape(0));
    nb::gil_scoped_release released;
    trees.check_asked(first_tree, last_tree, slot, static_cast<int64_t>(panel.shape(0)), n_classes);
    srs::expect_size("threshold", threshold, static_cast<int64_t>(slot.size()));
    srs::expect_between("code_nbytes", code_nbytes, 1, 2);
    srs::expect_between("shares, its rows", n_panel_rows, 0, static_cast<int64_t>(panel.shape(1)));
    const Walk walk{trees, slot.data(), threshold.data(), panel.data(), static_cast<int64_t>(panel.shape(1)), code_nbytes};
    for (size_t t = first_tree; t < last_tree; ++t)
        for (int64_t r = 0; r < n_panel_rows; ++r) walk.add(trees.root[t], walk.panel + r, shares.data() + r * n_classes);
}

// One tree walked by rows of the block that it was grown on.
void predict_block(Vector<const uint8_t> data, bool regression, const srs::Block &block, Vector<const uint32_t> features,
                   Vector<const int32_t> rows, Matrix<double> shares) {
    nb::gil_scoped_release released;
    Trees trees(regression);
    trees.append_tree({data.data(), data.data() + data.size()});
    const int64_t n = static_cast<int64_t>(rows.size()), n_columns = static_cast<int64_t>(features.size());
    const int64_t n_classes = static_cast<int64_t>(shares.shape(1));
    srs::expect_between("features, how many", n_columns, 0, block.n_columns);
    for (int64_t i = 1; i < n_columns; ++i) srs::expect_between("features", features(i), int64_t(features(i - 1)) + 1, UINT32_MAX, i);
    srs::expect_shape("shares", shares, n, n_classes);
    srs::expect_below("rows", rows, block.n_rows);
    trees.check_classes(n_classes);
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
    const uint8_t *codes = block.codes.data();
    const uint32_t missing = block.code_nbytes == 1 ? 0xFF : 0xFFFF;
    for (size_t c = 0; c < columns.size(); ++c)
        for (int64_t i = 0; i < n; ++i) {
            const int64_t at = block.place(columns[c], rows(i));
            const uint32_t code = block.code_nbytes == 1 ? codes[at] : codes[2 * at] | uint32_t(codes[2 * at + 1]) << 8;
            panel[c * static_cast<size_t>(n) + static_cast<size_t>(i)] = code == missing ? std::nan("") : code;
        }
    const Walk walk{trees, slot.data(), threshold.data(), panel.data(), n, block.code_nbytes};
    for (int64_t i = 0; i < n; ++i) walk.add(0, panel.data() + i, shares.data() + i * n_classes);
}

constexpr double UNITS = 68719476736.0; // 2^36, of changes of loss
// Some trees, and rows that they are asked about.
struct Panel {
    const Trees &trees;
    const int32_t *roots;
    int64_t n_trees;
    const int64_t *slot;
    double units; // a leaf's say is counted in whole numbers of 1 / units
    const uint8_t *codes, *altered, *votes; // votes: null where every tree votes on every row
    int64_t n_rows, n_slots, n_outputs;
    int64_t *base, *effects;
};

// One row walked down trees, with its own codes and with those of one slot altered.
template <typename Code> struct Row {
    const Panel &panel;
    const Trees &trees;
    const Code *codes, *altered; // of this row in the first slot
    int64_t *base, *effects;
    std::vector<int64_t> &parted; // slots whose altered code leads off the row's path so far

    bool goes_left(int64_t node, Code code) const {
        constexpr Code MISSING = static_cast<Code>(~Code{0});
        const int32_t how = trees.how[node];
        if (how == srs::MAPPED) return srs::CategoryMap<Code>(trees.hash[node])(code) <= trees.code[node];
        if (code == MISSING) {
            if (how != srs::PLAIN) return how == srs::MISSING_LEFT;
            return trees.n_rows[node + 1] >= trees.n_rows[trees.right[node]];
        }
        return static_cast<int32_t>(code) <= trees.code[node];
    }

    int64_t counted(double share) const { return static_cast<int64_t>(std::floor(share * panel.units + 0.5)); }

    // The path of the row with `slot` altered, from a node on; what it ends in is added.
    void walk_altered(int64_t from, int64_t slot, double weight) const {
        trees.walk(panel.slot, from, weight,
                   [&](int64_t node, int64_t at) { return goes_left(node, (at == slot ? altered : codes)[at * panel.n_rows]); },
                   [&](int32_t named, double share) { effects[slot * panel.n_outputs + named] += counted(share); });
    }

    // The path of the row as it is; what it ends in is taken from each slot that would lead elsewhere.
    void walk(int64_t node, double weight) const {
        const size_t before = parted.size();
        for (;;) {
            const int64_t at = panel.slot[node];
            if (at >= 0) {
                const int64_t left = node + 1, right = trees.right[node];
                const bool goes = goes_left(node, codes[at * panel.n_rows]);
                if (goes_left(node, altered[at * panel.n_rows]) != goes &&
                    std::find(parted.begin(), parted.end(), at) == parted.end()) {
                    parted.push_back(at);
                    walk_altered(goes ? right : left, at, weight);
                }
                node = goes ? left : right;
            } else if (at == PROBE_SPLIT) {
                walk(node + 1, weight * trees.part(node + 1, node));
                weight = weight * trees.part(trees.right[node], node);
                node = trees.right[node];
            } else {
                for (int32_t i = trees.right[node]; i < trees.right[node] + trees.code[node]; ++i) {
                    const int64_t share = counted(trees.said(node, i, weight));
                    base[trees.pair_class[i]] += share;
                    for (const int64_t slot : parted) effects[slot * panel.n_outputs + trees.pair_class[i]] -= share;
                }
                break;
            }
        }
        parted.resize(before);
    }
};

template <typename Code>
void walk_rows(const Panel &panel, int64_t first, int64_t last) {
    std::vector<int64_t> parted;
    const Code *codes = reinterpret_cast<const Code *>(panel.codes), *altered = reinterpret_cast<const Code *>(panel.altered);
    for (int64_t t = 0; t < panel.n_trees; ++t)
        for (int64_t r = first; r < last; ++r) {
            if (panel.votes && !panel.votes[t * panel.n_rows + r]) continue;
            const Row<Code> row{panel, panel.trees, codes + r, altered + r, panel.base + r * panel.n_outputs,
                                panel.effects + r * panel.n_slots * panel.n_outputs, parted};
            row.walk(panel.roots[t], 1.0);
        }
}

void add_effects(const Trees &trees, size_t first_tree, size_t last_tree, Vector<const int64_t> slot, int code_nbytes, Matrix<const uint8_t> codes,
                 Matrix<const uint8_t> altered, Matrix<const uint8_t> votes, int bits, Matrix<int64_t> base,
                 Matrix<int64_t> effects, int64_t n_threads) {
    const int64_t n_slots = static_cast<int64_t>(codes.shape(0)), n_outputs = static_cast<int64_t>(base.shape(1));
    const int64_t n = static_cast<int64_t>(base.shape(0));
    nb::gil_scoped_release released;
    const bool asks = votes.shape(0) > 0;
    trees.check_asked(first_tree, last_tree, slot, n_slots, n_outputs);
    srs::expect_between("bits", bits, 0, 62);
    for (const auto *each : {&codes, &altered}) {
        const char *what = each == &codes ? "codes" : "altered";
        srs::expect_shape(what, *each, n_slots, n * code_nbytes);
        srs::expect_block(what, *each, 0, 1, code_nbytes, false);
    }
    srs::expect_shape("effects", effects, n, n_slots * n_outputs);
    if (asks) srs::expect_shape("votes", votes, static_cast<int64_t>(last_tree - first_tree), n);
    const Panel panel{trees, trees.root.data() + first_tree, int64_t(last_tree - first_tree), slot.data(), std::ldexp(1.0, bits),
                      codes.data(), altered.data(), asks ? votes.data() : nullptr, n, n_slots, n_outputs, base.data(), effects.data()};
    in_threads(n, n_threads, [&](int64_t first, int64_t last) {
        srs::with_code(code_nbytes, [&](auto code) { walk_rows<decltype(code)>(panel, first, last); });
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
    nb::class_<Trees>(module, "Trees")
        .def_prop_ro("root", &items_of<&Trees::root>)
        .def_prop_ro("feature", &items_of<&Trees::feature>)
        .def_prop_ro("code", &items_of<&Trees::code>)
        .def_prop_ro("n_rows", &items_of<&Trees::n_rows>)
        .def_prop_ro("how", &items_of<&Trees::how>);
    srs::define(module, "decode_trees", &decode_trees, "data"_a, "starts"_a, "stops"_a, "regression"_a);
    srs::define(module, "predict_block", &predict_block, "data"_a, "regression"_a, "block"_a, "features"_a, "rows"_a, "shares"_a);
    srs::define(module, "add_shares", &add_shares, "trees"_a, "first_tree"_a, "last_tree"_a, "slot"_a, "threshold"_a, "code_nbytes"_a, "panel"_a, "shares"_a);
    srs::define(module, "add_effects", &add_effects, "trees"_a, "first_tree"_a, "last_tree"_a, "slot"_a, "code_nbytes"_a, "codes"_a, "altered"_a, "votes"_a,
                "bits"_a, "base"_a, "effects"_a, "n_threads"_a);
    srs::define(module, "tally_classes", &tally_classes, "base"_a, "effects"_a, "n_votes"_a, "truth"_a, "tally"_a, "n_threads"_a);
    srs::define(module, "tally_targets", &tally_targets, "base"_a, "effects"_a, "n_votes"_a, "truth"_a, "unit"_a, "tally"_a,
               "n_threads"_a);
}
