// What a gather is asked for: which columns of the store, which of their rows, laid out how.
#pragma once
#include <cstdint>

namespace srs {

struct GatherRequest {
    const uint32_t *items;
    int64_t n_items;      // columns of the block
    int64_t n_features;   // of the store: item m n_features + f is feature f in family m, 0 the feature itself
    const int32_t *families; // [n_families][n_kept] row that a decoy of each family takes at each row
    int64_t n_families;
    int64_t chunk_features;
    int64_t n_rows;       // of the store
    const int32_t *rows;  // rows to keep, or null for all
    int64_t n_kept;       // rows of the block
    int64_t code_nbytes;
    bool tiled;
    uint8_t *out;

    int64_t feature(int64_t i) const { return items[i] % n_features; }
    int64_t family(int64_t i) const { return items[i] / n_features; }
    const int32_t *partners(int64_t family) const { return families + (family - 1) * n_kept; }
};

} // namespace srs
