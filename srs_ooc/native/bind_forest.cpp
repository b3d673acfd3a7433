// Saved trees: from bytes to arrays, and rows walked down them. Twin: tests/helpers/forest_reference.py.
#define SRS_INLINE inline
#include "arrays.hpp"
#include "checks.hpp"
#include "hash.hpp"
#include "tree_bytes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::Matrix, srs::Vector;

namespace {

using srs::mix32;
#include "categories.hpp"

constexpr uint64_t PROBE = 0xFFFFFFFF;
constexpr int64_t LEAF = -1, PROBE_SPLIT = -2;

template <typename T> nb::bytes as_bytes(const std::vector<T> &items) {
    return nb::bytes(reinterpret_cast<const char *>(items.data()), items.size() * sizeof(T));
}

struct Trees {
    bool regression;
    std::vector<int64_t> feature, n_rows, pair_count; // feature may be LEAF or PROBE_SPLIT
    std::vector<int32_t> code, right;                 // of a leaf: its number of pairs, its first pair
    std::vector<int32_t> how, pair_class, root;
    std::vector<uint32_t> hash;

    explicit Trees(bool regression) : regression(regression) {}

    void append_node(srs::NumberReader &in) {
        const uint64_t tag = in.next(), name = tag & ((uint64_t(1) << srs::HOW_SHIFT) - 1), kind = tag >> srs::HOW_SHIFT;
        if (name > PROBE + 1 || kind > srs::MAPPED) throw std::invalid_argument("a tree names no such feature");
        feature.push_back(tag == 0 ? LEAF : name == PROBE + 1 ? PROBE_SPLIT : static_cast<int64_t>(name) - 1);
        how.push_back(static_cast<int32_t>(kind));
        hash.push_back(kind == srs::MAPPED ? static_cast<uint32_t>(in.next()) : 0);
        right.push_back(static_cast<int32_t>(pair_class.size()));
        if (tag == 0) return append_leaf(in);
        const uint64_t threshold = in.next();
        if (name == 0 || threshold > 0x7FFFFFFF) throw std::invalid_argument("a tree names no such feature");
        code.push_back(static_cast<int32_t>(threshold) - (kind == srs::MISSING_LEFT ? 1 : 0));
        n_rows.push_back(0);
    }

    void append_leaf(srs::NumberReader &in) {
        const uint64_t first = in.next();
        if (first > 0x7FFFFFFF) throw std::invalid_argument("a tree names no such feature");
        code.push_back(regression ? 1 : static_cast<int32_t>(first));
        n_rows.push_back(regression ? static_cast<int64_t>(first) : 0);
        for (uint64_t i = 0; !regression && i < first; ++i) {
            pair_class.push_back(static_cast<int32_t>(in.next()));
            pair_count.push_back(static_cast<int64_t>(in.next()));
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
        for (bool complete = false; !complete;) {
            const int32_t node = static_cast<int32_t>(feature.size());
            append_node(in);
            if (feature[node] != LEAF) {
                waiting.push_back(node);
                continue;
            }
            complete = waiting.empty();
            if (complete) break;
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
    {
        nb::gil_scoped_release released;
        const int64_t size = static_cast<int64_t>(data.size());
        for (size_t i = 0; i < starts.size() && i < stops.size(); ++i) {
            if (starts(i) < 0 || starts(i) > stops(i) || stops(i) > size) throw std::invalid_argument("no such bytes");
            trees.append_tree({data.data() + starts(i), data.data() + stops(i)});
        }
    }
    return nb::make_tuple(as_bytes(trees.root), as_bytes(trees.feature), as_bytes(trees.code), as_bytes(trees.right),
                          as_bytes(trees.n_rows), as_bytes(trees.how), as_bytes(trees.hash), as_bytes(trees.pair_class),
                          as_bytes(trees.pair_count));
}

struct Walk {
    const int64_t *slot, *n_rows, *pair_count;
    const int32_t *code, *right, *how, *pair_class;
    const uint32_t *hash;
    const double *threshold, *panel;
    int64_t stride, n_classes;
    int code_nbytes;

    // The place of a category; what is missing is a category of its own.
    int64_t place(int64_t node, double value) const {
        if (code_nbytes == 1) return CategoryMap<uint8_t>(hash[node])(std::isnan(value) ? 0xFF : static_cast<uint8_t>(value));
        return CategoryMap<uint16_t>(hash[node])(std::isnan(value) ? 0xFFFF : static_cast<uint16_t>(value));
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
    for (int64_t i = 0; i < n_nodes; ++i)
        if (slot(i) >= n_slots) throw std::invalid_argument("a tree uses a column that the panel does not have");
    srs::check_below(pair_class, n_classes, "a tree names no such class");
    if (n_panel_rows > static_cast<int64_t>(panel.shape(1))) throw std::invalid_argument("the panel has too few rows");
    const Walk walk{slot.data(), n_rows.data(), pair_count.data(), code.data(), right.data(), how.data(), pair_class.data(),
                    hash.data(), threshold.data(), panel.data(), static_cast<int64_t>(panel.shape(1)), n_classes, code_nbytes};
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
    const int64_t n_room = static_cast<int64_t>(codes.size()) / code_nbytes / std::max<int64_t>(n_rows, 1);
    const int64_t n_classes = static_cast<int64_t>(shares.shape(1));
    if (static_cast<int64_t>(shares.shape(0)) != n || n_columns > n_room) throw std::invalid_argument("no room");
    srs::check_below(rows, n_rows, "no such row");
    srs::check_below(trees.pair_class, n_classes, "a tree names no such class");
    std::vector<int64_t> slot(trees.feature.size()), columns; // a row of the panel for each column that is split on
    std::vector<int64_t> place(static_cast<size_t>(n_columns), -1);
    for (size_t i = 0; i < slot.size(); ++i) {
        slot[i] = trees.feature[i];
        if (slot[i] < 0) continue;
        const uint32_t *found = std::lower_bound(features.data(), features.data() + n_columns, static_cast<uint32_t>(slot[i]));
        const int64_t column = found - features.data();
        if (column == n_columns || *found != static_cast<uint32_t>(slot[i])) throw std::invalid_argument("no such column");
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
                    trees.how.data(), trees.pair_class.data(), trees.hash.data(), threshold.data(), panel.data(), n, n_classes,
                    code_nbytes};
    for (int64_t i = 0; i < n; ++i) walk.add(0, panel.data() + i, 1.0, shares.data() + i * n_classes);
}

} // namespace

void bind_forest(nb::module_ &module) {
    module.def("decode_trees", &decode_trees, "data"_a, "starts"_a, "stops"_a, "regression"_a);
    module.def("predict_block", &predict_block, "data"_a, "regression"_a, "codes"_a.noconvert(), "code_nbytes"_a, "tiled"_a,
               "n_rows"_a, "features"_a.noconvert(), "rows"_a.noconvert(), "shares"_a.noconvert());
    module.def("add_shares", &add_shares, "root"_a, "slot"_a, "threshold"_a, "code"_a, "right"_a, "n_rows"_a,
               "how"_a, "hashes"_a, "pair_class"_a, "pair_count"_a, "code_nbytes"_a, "panel"_a.noconvert(), "shares"_a.noconvert());
}
