// Filling a block from columns, tile by tile or column by column: rows left out.
#pragma once
#include "gather/columns.hpp"
#include "isa.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace srs {

// Copy the rows that are kept of each column, and point `columns` there.
template <typename Code>
void copy_rows(const GatherRequest &request, int64_t n, const Code **columns, std::vector<Code> &copies) {
    for (int64_t i = 0; i < n; ++i) {
        const int32_t *rows = request.rows;
        const Code *from = columns[i];
        const int64_t n_kept = request.n_kept;
        Code *target = copies.data() + i * n_kept;
#pragma GCC unroll 4
        for (int64_t r = 0; r < n_kept; ++r) target[r] = from[rows[r]];
        columns[i] = target;
    }
}

inline int64_t tile_size(const GatherRequest &request, int64_t first) {
    return std::min<int64_t>(request.n_columns - first, TILE);
}

// Whether columns are copied before they are laid out: tiles can be of ascending rows.
inline bool copies_rows(const GatherRequest &request) {
    return request.tiled ? !request.is_ascending : request.rows != nullptr;
}

// Room of a gather, made before it: no memory is taken while mapped files are read.
template <typename Code> struct GatherRoom {
    explicit GatherRoom(const GatherRequest &request)
        : copies(copies_rows(request) ? static_cast<size_t>(TILE * request.n_kept) : 0),
          empty(request.tiled ? static_cast<size_t>(request.n_rows) : 0) {}
    std::vector<Code> copies;
    const std::vector<Code> empty;
};

template <typename Code, typename Source>
void fill(const GatherRequest &request, const Isa &isa, Source &source, GatherRoom<Code> &room) {
    const Code *columns[2][TILE];
    auto *out = reinterpret_cast<Code *>(request.out);
    const auto load = [&](int64_t first, const Code **target) {
        const int64_t n = tile_size(request, first);
        source.load(first, n, reinterpret_cast<const uint8_t **>(target));
        for (int64_t i = n; i < TILE; ++i) target[i] = room.empty.data();
    };
    const bool copied = copies_rows(request);
    const bool streamed = request.is_large() && reinterpret_cast<uintptr_t>(out) % 64 == 0;
    if (request.n_columns > 0) load(0, columns[0]);
    for (int64_t first = 0, turn = 0; first < request.n_columns; first += TILE, turn ^= 1) {
        const Code **now = columns[turn], **next = columns[turn ^ 1];
        const int64_t n = tile_size(request, first);
        const bool more = first + TILE < request.n_columns;
        if (first > 0 && !Source::in_place) load(first, now);
        if (more && Source::in_place) load(first + TILE, next);
        if (copied) copy_rows(request, n, now, room.copies);
        Code *target = out + first * request.n_kept;
        if (!request.tiled) {
            for (int64_t i = 0; i < n; ++i)
                std::memcpy(target + i * request.n_kept, now[i], static_cast<size_t>(request.n_kept) * sizeof(Code));
        } else {
            const int32_t *rows = copied ? nullptr : request.rows;
            isa.lay_out({now, more && Source::in_place ? next : nullptr, rows ? request.n_rows : request.n_kept, rows,
                         request.n_kept, sizeof(Code), streamed, target});
        }
    }
}

} // namespace srs
