// A tree as bytes: nodes in preorder, numbers as little-endian groups of seven bits.
// tests/helpers/forest_reference.py states the format.
#pragma once
#include "kernels.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace srs {

// Memory for a tree of up to n_leaves leaves; untouched pages cost nothing.
struct RecordMemory {
    std::unique_ptr<int32_t[]> memory;
    TreeRecord record{};

    RecordMemory(int64_t n_leaves, int64_t n_rows, int64_t n_classes) {
        if (n_leaves <= 0) return;
        const int64_t n_nodes = 2 * n_leaves;
        const int64_t n_pairs = n_classes < n_rows / n_leaves ? n_leaves * n_classes : n_rows;
        memory.reset(new int32_t[static_cast<size_t>(6 * n_nodes + 2 * n_pairs)]);
        int32_t *p = memory.get();
        for (int32_t **part : {&record.column, &record.threshold, &record.left, &record.right, &record.how}) {
            *part = p;
            p += n_nodes;
        }
        record.hash = reinterpret_cast<uint32_t *>(p);
        p += n_nodes;
        record.pair_class = p;
        record.pair_count = p + n_pairs;
    }
};

inline void put_number(std::string &out, uint64_t x) {
    for (; x >= 128; x >>= 7) out.push_back(static_cast<char>(x | 128));
    out.push_back(static_cast<char>(x));
}

constexpr int HOW_SHIFT = 33; // a split's tag: its feature + 1, and how it sends rows above that

inline void encode_leaf(const TreeRecord &record, int32_t node, bool regression, std::string &out) {
    put_number(out, 0);
    const int32_t first = record.left[node], n = record.right[node];
    if (regression) { // signs go to the lowest bit
        const uint64_t sum = static_cast<uint64_t>(record.pair_count[first]) << 32 | static_cast<uint32_t>(record.pair_class[first]);
        put_number(out, static_cast<uint64_t>(record.threshold[node]));
        put_number(out, sum << 1 ^ (0 - (sum >> 63)));
        return;
    }
    put_number(out, static_cast<uint64_t>(n));
    for (int32_t i = first; i < first + n; ++i) {
        put_number(out, static_cast<uint64_t>(record.pair_class[i]));
        put_number(out, static_cast<uint64_t>(record.pair_count[i]));
    }
}

inline void encode_tree(const TreeRecord &record, const uint32_t *features, bool regression, std::string &out) {
    std::vector<int32_t> waiting{0};
    while (!waiting.empty()) {
        const int32_t node = waiting.back();
        waiting.pop_back();
        if (record.column[node] < 0) {
            encode_leaf(record, node, regression, out);
            continue;
        }
        const int32_t how = record.how[node];
        put_number(out, uint64_t(features[record.column[node]]) + 1 + (static_cast<uint64_t>(how) << HOW_SHIFT));
        if (how == MAPPED) put_number(out, record.hash[node]);
        put_number(out, static_cast<uint64_t>(record.threshold[node]));
        waiting.push_back(record.right[node]);
        waiting.push_back(record.left[node]);
    }
}

// Reads numbers from bytes; never past their end.
struct NumberReader {
    const uint8_t *at, *end;

    uint64_t next() {
        uint64_t x = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (at == end) break;
            const uint8_t byte = *at++;
            x |= uint64_t(byte & 127) << shift;
            if (byte < 128) return x;
        }
        throw std::invalid_argument("a number of a tree is cut short");
    }
};

} // namespace srs
