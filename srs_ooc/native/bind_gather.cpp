// Filling a block: columns of the store, mapped or read, laid out as columns or as tiles of features.
#include "bus_guard.hpp"
#include "hash.hpp"
#include "trees.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using srs::TILE;

namespace {

template <typename T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// ---- transposing 64 columns into one tile ------------------------------------------------------

typedef uint8_t Bytes __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t Shorts __attribute__((vector_size(16), aligned(1), may_alias));

#if defined(__clang__) || __GNUC__ >= 12
#define SRS_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SRS_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, decltype(a){__VA_ARGS__})
#endif

inline Bytes low_halves(Bytes a, Bytes b) { return SRS_SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23); }
inline Bytes high_halves(Bytes a, Bytes b) { return SRS_SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31); }
inline Shorts low_halves(Shorts a, Shorts b) { return SRS_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
inline Shorts high_halves(Shorts a, Shorts b) { return SRS_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }

template <typename Code> struct Square; // as many columns as a 16-byte register holds codes
template <> struct Square<uint8_t> { using R = Bytes; static constexpr int N = 16, ROUNDS = 4; };
template <> struct Square<uint16_t> { using R = Shorts; static constexpr int N = 8, ROUNDS = 3; };

// Where the lines of a tile go: in order, or, for decoys, each to its partner's place.
struct InOrder {
    int64_t operator()(int64_t row) const { return row; }
};
struct Swapped {
    const int32_t *partners;
    int64_t operator()(int64_t row) const { return partners[row]; }
};

// N columns x N rows: interleaving first and second halves log2(N) times is a transposition.
template <typename Code, typename Place>
inline void transpose_square(const Code *const *columns, int64_t row, Code *tile, const Place place) {
    using S = Square<Code>;
    using R = typename S::R;
    R a[S::N], b[S::N];
#pragma GCC unroll 16
    for (int i = 0; i < S::N; ++i) a[i] = *reinterpret_cast<const R *>(columns[i] + row);
#pragma GCC unroll 4
    for (int round = 0; round < S::ROUNDS; ++round) {
#pragma GCC unroll 16
        for (int i = 0; i < S::N / 2; ++i) {
            b[2 * i] = low_halves(a[i], a[i + S::N / 2]);
            b[2 * i + 1] = high_halves(a[i], a[i + S::N / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < S::N; ++i) a[i] = b[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < S::N; ++i) *reinterpret_cast<R *>(tile + place(row + i) * TILE) = a[i];
}

// Lay 64 columns out row by row; the next tile's columns are asked for meanwhile (they lie at random).
template <typename Code, typename Place>
void fill_tile(const Code *const *columns, const Code *const *next, int64_t n_rows, Code *tile, const Place place) {
    constexpr int N = Square<Code>::N;
    constexpr int64_t LINE = 64 / static_cast<int64_t>(sizeof(Code));
    int64_t row = 0;
    for (; row + N <= n_rows; row += N) {
        if (next) { // a few lines at a time: more would wait for each other
            const int64_t share = TILE * N / LINE, from = row % LINE / N * share;
            for (int64_t l = from; l < from + share; ++l) __builtin_prefetch(next[l] + row, 0, 2);
        }
        for (int l = 0; l < TILE; l += N) transpose_square(columns + l, row, tile + l, place);
    }
    for (; row < n_rows; ++row)
        for (int l = 0; l < TILE; ++l) tile[place(row) * TILE + l] = columns[l][row];
}

// ---- where columns come from -------------------------------------------------------------------

struct Request {
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

class Mapped { // chunk files mapped into memory
  public:
    Mapped(const Request &request, const uint64_t *addresses) : request_(request), addresses_(addresses) {}
    static constexpr bool in_place = true;
    void load(int64_t first, int64_t n, const uint8_t **columns) {
        const int64_t column_nbytes = request_.n_rows * request_.code_nbytes;
        for (int64_t i = 0; i < n; ++i) {
            const int64_t feature = request_.feature(first + i);
            const auto *chunk = reinterpret_cast<const uint8_t *>(addresses_[feature / request_.chunk_features]);
            columns[i] = chunk + (feature % request_.chunk_features) * column_nbytes;
        }
    }

  private:
    const Request &request_;
    const uint64_t *addresses_;
};

class Files { // chunk files read into a staging area, neighbours in one read
  public:
    Files(const Request &request, const int32_t *descriptors)
        : request_(request), descriptors_(descriptors), staging_(static_cast<size_t>(TILE * request.n_rows * request.code_nbytes)) {}
    static constexpr bool in_place = false;
    void load(int64_t first, int64_t n, const uint8_t **columns) {
        const int64_t column_nbytes = request_.n_rows * request_.code_nbytes;
        for (int64_t i = 0; i < n;) {
            const int64_t feature = request_.feature(first + i), chunk = feature / request_.chunk_features;
            int64_t run = 1;
            while (i + run < n && request_.feature(first + i + run) == feature + run &&
                   (feature + run) / request_.chunk_features == chunk)
                ++run;
            uint8_t *target = staging_.data() + i * column_nbytes;
            read(chunk, (feature % request_.chunk_features) * column_nbytes, run * column_nbytes, target);
            for (int64_t j = 0; j < run; ++j, ++i) columns[i] = target + j * column_nbytes;
        }
    }

  private:
    void read(int64_t chunk, int64_t offset, int64_t nbytes, uint8_t *target) {
        while (nbytes > 0) {
            const ssize_t got = pread(descriptors_[chunk], target, static_cast<size_t>(nbytes), offset);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0)
                throw std::runtime_error("chunk file " + std::to_string(chunk) + " at byte " + std::to_string(offset) +
                                         ": expected " + std::to_string(nbytes) + " more bytes, found " +
                                         (got < 0 ? std::strerror(errno) : "the end of the file"));
            target += got;
            offset += got;
            nbytes -= got;
        }
    }
    const Request &request_;
    const int32_t *descriptors_;
    std::vector<uint8_t> staging_;
};

// ---- filling -----------------------------------------------------------------------------------

// Copy the kept rows of each column into `kept`, and point `columns` there.
template <typename Code>
void keep_rows(const Request &request, int64_t n, const Code **columns, std::vector<Code> &kept) {
    for (int64_t i = 0; i < n; ++i) {
        Code *target = kept.data() + i * request.n_kept;
        for (int64_t r = 0; r < request.n_kept; ++r) target[r] = columns[i][request.rows[r]];
        columns[i] = target;
    }
}

// Copy the decoys of a tile that also holds other columns, rows permuted, and point `columns` there.
template <typename Code>
void permute_decoys(const Request &request, int64_t first, int64_t n, const Code **columns, std::vector<Code> &permuted) {
    for (int64_t i = 0; i < n; ++i) {
        const int64_t family = request.family(first + i);
        if (family == 0) continue;
        const int32_t *partners = request.partners(family);
        Code *target = permuted.data() + i * request.n_kept;
        for (int64_t r = 0; r < request.n_kept; ++r) target[r] = columns[i][partners[r]];
        columns[i] = target;
    }
}

// The family of all items of a tile, or -1 where they are of several: items of a family are mostly together.
inline int64_t family_of_tile(const Request &request, int64_t first, int64_t n) {
    for (int64_t i = 1; i < n; ++i)
        if (request.family(first + i) != request.family(first)) return -1;
    return request.family(first);
}

inline int64_t tile_size(const Request &request, int64_t first) { return std::min<int64_t>(request.n_items - first, TILE); }

// Whether decoys are copied before they are laid out.
inline bool copies_decoys(const Request &request, int64_t family) { return family < 0 || (family > 0 && !request.tiled); }

// Room of a gather, made before it: no memory is taken while mapped files are read.
template <typename Code> struct Room {
    explicit Room(const Request &request)
        : kept(request.rows ? static_cast<size_t>(TILE * request.n_kept) : 0), empty(request.tiled ? static_cast<size_t>(request.n_kept) : 0) {
        bool any = false;
        for (int64_t first = 0; first < request.n_items && !any; first += TILE)
            any = copies_decoys(request, family_of_tile(request, first, tile_size(request, first)));
        permuted.resize(any ? static_cast<size_t>(TILE * request.n_kept) : 0);
    }
    std::vector<Code> kept, permuted;
    const std::vector<Code> empty;
};

template <typename Code, typename Source> void fill(const Request &request, Source &source, Room<Code> &room) {
    const Code *columns[2][TILE];
    auto *out = reinterpret_cast<Code *>(request.out);
    const auto load = [&](int64_t first, const Code **target) {
        const int64_t n = tile_size(request, first);
        source.load(first, n, reinterpret_cast<const uint8_t **>(target));
        for (int64_t i = n; i < TILE; ++i) target[i] = room.empty.data();
        return n;
    };
    const bool ahead = Source::in_place && !request.rows;
    if (request.n_items > 0) load(0, columns[0]);
    for (int64_t first = 0, turn = 0; first < request.n_items; first += TILE, turn ^= 1) {
        const Code **now = columns[turn], **next = columns[turn ^ 1];
        const int64_t n = tile_size(request, first);
        const bool more = first + TILE < request.n_items;
        if (first > 0 && !ahead) load(first, now);
        if (more && ahead) load(first + TILE, next);
        if (request.rows) keep_rows(request, n, now, room.kept);
        int64_t family = family_of_tile(request, first, n);
        if (copies_decoys(request, family)) {
            permute_decoys(request, first, n, now, room.permuted);
            family = 0;
        }
        Code *target = out + first * request.n_kept;
        if (!request.tiled) {
            for (int64_t i = 0; i < n; ++i)
                std::memcpy(target + i * request.n_kept, now[i], static_cast<size_t>(request.n_kept) * sizeof(Code));
        } else if (family > 0) { // an involution: where a row comes from is where it goes
            fill_tile<Code>(now, more && ahead ? next : nullptr, request.n_kept, target, Swapped{request.partners(family)});
        } else {
            fill_tile<Code>(now, more && ahead ? next : nullptr, request.n_kept, target, InOrder{});
        }
    }
}

template <typename Code> void fill_mapped(const Request &request, const uint64_t *addresses, size_t n_chunks) {
    Room<Code> room(request);
    Mapped source(request, addresses);
    if (srs::guarded([&] { fill<Code>(request, source, room); })) return;
    const int64_t chunk_nbytes = request.chunk_features * request.n_rows * request.code_nbytes;
    std::string which = "a chunk file";
    for (size_t i = 0; i < n_chunks; ++i)
        if (srs::bus_guard.address - addresses[i] < static_cast<uint64_t>(chunk_nbytes)) which = "chunk file " + std::to_string(i);
    throw std::runtime_error(which + ": expected " + std::to_string(chunk_nbytes) +
                             " bytes, found that it was cut short, or cannot be read");
}

template <typename Code> void fill_read(const Request &request, const int32_t *descriptors) {
    Room<Code> room(request);
    Files source(request, descriptors);
    fill<Code>(request, source, room);
}

Request make_request(Vector<const uint32_t> &items, int64_t n_features, Vector<const int32_t> &families,
                     int64_t chunk_features, int64_t n_rows, Vector<const int32_t> &rows, int64_t code_nbytes, bool tiled,
                     Vector<uint8_t> &out, size_t n_chunks) {
    Request request{};
    request.items = items.data();
    request.n_items = static_cast<int64_t>(items.size());
    request.n_features = n_features;
    request.chunk_features = chunk_features;
    request.n_rows = n_rows;
    request.rows = rows.size() ? rows.data() : nullptr;
    request.n_kept = rows.size() ? static_cast<int64_t>(rows.size()) : n_rows;
    request.code_nbytes = code_nbytes;
    request.tiled = tiled;
    request.out = out.data();
    request.families = families.data();
    request.n_families = request.n_kept > 0 ? static_cast<int64_t>(families.size()) / request.n_kept : 0;
    const int64_t columns = tiled ? (request.n_items + TILE - 1) / TILE * TILE : request.n_items;
    if (static_cast<int64_t>(out.size()) < columns * request.n_kept * code_nbytes)
        throw std::invalid_argument("the block is smaller than its rows times its columns");
    if (n_features < 1 || (n_features - 1) / chunk_features >= static_cast<int64_t>(n_chunks))
        throw std::invalid_argument("feature " + std::to_string(n_features - 1) + " is beyond the last chunk");
    for (int64_t i = 0; i < request.n_items; ++i)
        if (request.family(i) > request.n_families)
            throw std::invalid_argument("item " + std::to_string(request.items[i]) + " is of no family");
    for (size_t i = 0; i < families.size(); ++i)
        if (families.data()[i] < 0 || families.data()[i] >= request.n_kept)
            throw std::invalid_argument("a decoy's row " + std::to_string(families.data()[i]) + " is not in the block");
    for (size_t i = 0; i < rows.size(); ++i)
        if (rows.data()[i] < 0 || rows.data()[i] >= n_rows)
            throw std::invalid_argument("row " + std::to_string(rows.data()[i]) + " is not in the store");
    return request;
}

void gather_mapped(Vector<const uint64_t> addresses, Vector<const uint32_t> items, int64_t n_features,
                   Vector<const int32_t> families, int64_t chunk_features, int64_t n_rows, Vector<const int32_t> rows, int64_t code_nbytes, bool tiled, Vector<uint8_t> out) {
    const Request request = make_request(items, n_features, families, chunk_features, n_rows, rows, code_nbytes, tiled, out, addresses.size());
    nb::gil_scoped_release released;
    if (code_nbytes == 1) fill_mapped<uint8_t>(request, addresses.data(), addresses.size());
    else fill_mapped<uint16_t>(request, addresses.data(), addresses.size());
}

void gather_files(Vector<const int32_t> descriptors, Vector<const uint32_t> items, int64_t n_features,
                   Vector<const int32_t> families, int64_t chunk_features, int64_t n_rows, Vector<const int32_t> rows, int64_t code_nbytes, bool tiled, Vector<uint8_t> out) {
    const Request request = make_request(items, n_features, families, chunk_features, n_rows, rows, code_nbytes, tiled, out, descriptors.size());
    nb::gil_scoped_release released;
    if (code_nbytes == 1) fill_read<uint8_t>(request, descriptors.data());
    else fill_read<uint16_t>(request, descriptors.data());
}

// ---- reading ahead -----------------------------------------------------------------------------

constexpr int64_t PAGE_NBYTES = 4096; // columns less than a page apart are asked for together

inline void ask_for(int descriptor, int64_t offset, int64_t nbytes) {
#if defined(POSIX_FADV_WILLNEED)
    posix_fadvise(descriptor, offset, nbytes, POSIX_FADV_WILLNEED);
#elif defined(F_RDADVISE)
    radvisory advice{offset, static_cast<int>(nbytes)};
    fcntl(descriptor, F_RDADVISE, &advice);
#endif
}

// Ask the system to read columns, ascending ones in the fewest requests, and do not wait for them; how many requests.
int64_t advise_files(Vector<const int32_t> descriptors, Vector<const uint32_t> features, int64_t chunk_features,
                     int64_t column_nbytes) {
    nb::gil_scoped_release released;
    const auto n = static_cast<int64_t>(features.size()), n_chunks = static_cast<int64_t>(descriptors.size());
    int64_t n_requests = 0;
    for (int64_t i = 0; i < n;) {
        const int64_t chunk = features.data()[i] / chunk_features;
        if (chunk >= n_chunks) throw std::invalid_argument("a feature is beyond the last chunk");
        const int64_t begin = features.data()[i] % chunk_features * column_nbytes;
        int64_t end = begin + column_nbytes;
        for (++i; i < n && features.data()[i] / chunk_features == chunk; ++i) {
            const int64_t next = features.data()[i] % chunk_features * column_nbytes;
            if (next < begin || next >= end + PAGE_NBYTES) break;
            end = std::max(end, next + column_nbytes);
        }
        ask_for(descriptors.data()[chunk], begin, end - begin);
        ++n_requests;
    }
    return n_requests;
}

// ---- the probe ---------------------------------------------------------------------------------

// Fisher-Yates from the end, as srs_ooc/trees/reference.py `shuffled`.
template <typename Code> void shuffle_column(const Code *from, Code *to, int64_t n_rows, int64_t stride, uint64_t key) {
    std::vector<Code> column(static_cast<size_t>(n_rows));
    for (int64_t i = 0; i < n_rows; ++i) column[static_cast<size_t>(i)] = from[i * stride];
    for (int64_t i = n_rows - 1; i > 0; --i) {
        const auto j = srs::scale_below(srs::derive(key, static_cast<uint64_t>(i)), static_cast<uint64_t>(i) + 1);
        std::swap(column[static_cast<size_t>(i)], column[j]);
    }
    for (int64_t i = 0; i < n_rows; ++i) to[i * stride] = column[static_cast<size_t>(i)];
}

void copy_shuffled(Vector<uint8_t> block, int64_t n_columns, int64_t n_rows, int64_t code_nbytes, bool tiled,
                   int64_t source, int64_t target, uint64_t key) {
    const int64_t columns = tiled ? (n_columns + TILE - 1) / TILE * TILE : n_columns;
    if (source < 0 || target < 0 || source >= n_columns || target >= n_columns ||
        static_cast<int64_t>(block.size()) < columns * n_rows * code_nbytes)
        throw std::invalid_argument("no such column in the block");
    nb::gil_scoped_release released;
    const auto offset = [&](int64_t column) { return tiled ? column / TILE * TILE * n_rows + column % TILE : column * n_rows; };
    const int64_t stride = tiled ? TILE : 1;
    if (code_nbytes == 1) {
        shuffle_column(block.data() + offset(source), block.data() + offset(target), n_rows, stride, key);
    } else {
        auto *codes = reinterpret_cast<uint16_t *>(block.data());
        shuffle_column(codes + offset(source), codes + offset(target), n_rows, stride, key);
    }
}

} // namespace

void bind_gather(nb::module_ &module) {
    module.def("gather_mapped", &gather_mapped, "addresses"_a, "items"_a, "n_features"_a, "families"_a, "chunk_features"_a,
               "n_rows"_a, "rows"_a, "code_nbytes"_a, "tiled"_a, "out"_a);
    module.def("gather_files", &gather_files, "descriptors"_a, "items"_a, "n_features"_a, "families"_a, "chunk_features"_a,
               "n_rows"_a, "rows"_a, "code_nbytes"_a, "tiled"_a, "out"_a);
    module.def("advise_files", &advise_files, "descriptors"_a, "features"_a, "chunk_features"_a, "column_nbytes"_a);
    module.def("copy_shuffled", &copy_shuffled, "block"_a, "n_columns"_a, "n_rows"_a, "code_nbytes"_a, "tiled"_a,
               "source"_a, "target"_a, "key"_a);
}
