// What a gather is asked for, and where its columns come from: chunk files of the store, mapped into memory or read.
#pragma once
#include "kernels.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

namespace srs {

struct GatherRequest {
    const uint32_t *features;
    int64_t n_columns;    // of the block
    int64_t n_features;   // of the store
    int64_t chunk_features;
    int64_t n_rows;       // of the store
    const int32_t *rows;  // rows to keep, or null for all
    bool is_ascending;    // are they, or are they all
    int64_t n_kept;       // rows of the block
    int64_t code_nbytes;
    bool tiled;
    uint8_t *out;

    // Whether caches would not keep the block until it is looked at.
    bool is_large() const { return n_columns * n_kept * code_nbytes >= (8 << 20); }

    GatherRequest tiles(int64_t first, int64_t last) const {
        GatherRequest part = *this;
        part.features += first * TILE;
        part.n_columns = std::min(n_columns, last * TILE) - first * TILE;
        part.out += first * TILE * n_kept * code_nbytes;
        return part;
    }
};

class MappedChunks { // chunk files mapped into memory
  public:
    MappedChunks(const GatherRequest &request, const uint64_t *addresses) : request_(request), addresses_(addresses) {}
    static constexpr bool in_place = true;
    void load(int64_t first, int64_t n, const uint8_t **columns) {
        const int64_t column_nbytes = request_.n_rows * request_.code_nbytes;
        for (int64_t i = 0; i < n; ++i) {
            const int64_t feature = request_.features[first + i];
            const auto *chunk = reinterpret_cast<const uint8_t *>(addresses_[feature / request_.chunk_features]);
            columns[i] = chunk + (feature % request_.chunk_features) * column_nbytes;
        }
    }

  private:
    const GatherRequest &request_;
    const uint64_t *addresses_;
};

// `name` says which file it is, for the error of a file that ends before.
template <typename Name>
void read_fully(int32_t descriptor, int64_t offset, int64_t nbytes, uint8_t *target, const Name &name) {
    while (nbytes > 0) {
        const ssize_t got = pread(descriptor, target, static_cast<size_t>(nbytes), offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            throw std::runtime_error(name() + " at byte " + std::to_string(offset) + ": expected " +
                                     std::to_string(nbytes) + " more bytes, found " +
                                     (got < 0 ? std::strerror(errno) : "the end of the file"));
        target += got;
        offset += got;
        nbytes -= got;
    }
}

class ChunkFiles { // chunk files read into a staging area, neighbours in one read
  public:
    ChunkFiles(const GatherRequest &request, const int32_t *descriptors)
        : request_(request), descriptors_(descriptors),
          staging_(static_cast<size_t>(TILE * request.n_rows * request.code_nbytes)) {}
    static constexpr bool in_place = false;
    void load(int64_t first, int64_t n, const uint8_t **columns) {
        const int64_t column_nbytes = request_.n_rows * request_.code_nbytes;
        for (int64_t i = 0; i < n;) {
            const int64_t feature = request_.features[first + i], chunk = feature / request_.chunk_features;
            const int64_t place = feature % request_.chunk_features, most = std::min(n - i, request_.chunk_features - place);
            int64_t run = 1;
            while (run < most && int64_t{request_.features[first + i + run]} == feature + run) ++run;
            uint8_t *target = staging_.data() + i * column_nbytes;
            read_fully(descriptors_[chunk], place * column_nbytes, run * column_nbytes, target,
                       [&] { return "chunk file " + std::to_string(chunk); });
            for (int64_t j = 0; j < run; ++j, ++i) columns[i] = target + j * column_nbytes;
        }
    }

  private:
    const GatherRequest &request_;
    const int32_t *descriptors_;
    std::vector<uint8_t> staging_;
};

} // namespace srs
