// What trees are grown on, each checked once, where it is made: a block of codes, a response, rows, limits of trees.
#pragma once
#include "bind/arguments.hpp"

#include <cstdlib>

namespace srs {

// Memory of codes, which gathers fill anew, and of the values that they stand for, if any.
struct Block {
    Vector<uint8_t> codes;
    int64_t n_columns, n_rows; // that there is room for
    int code_nbytes;
    bool tiled;
    Matrix<const double> values; // [n_columns, padded as codes are][n_values], or of no items

    void check() const {
        expect_block("codes", codes, n_columns, n_rows, code_nbytes, tiled);
        if (tiled && reinterpret_cast<uintptr_t>(codes.data()) % 64 != 0)
            refuse("codes", "tiles aligned to 64 bytes", "another address");
        if (values.size()) expect_room("values", values, columns_with_padding(n_columns, tiled), int64_t(values.shape(1)));
    }
    // Hand the first columns, of these features, to a job.
    void give(BlockJob &job, const Vector<const uint32_t> &features) const {
        expect_between("features, how many", int64_t(features.size()), 0, n_columns);
        job.codes = codes.data();
        job.code_nbytes = code_nbytes;
        job.n_rows = n_rows;
        job.n_columns = int64_t(features.size());
        job.features = features.data();
        job.tiled = tiled;
        job.values = values.size() ? values.data() : nullptr;
        job.n_values = int64_t(values.shape(1));
    }
    int64_t place(int64_t column, int64_t row) const { // of a code
        return tiled ? (column / TILE * n_rows + row) * TILE + column % TILE : column * n_rows + row;
    }
};

struct Response {
    Vector<const int32_t> labels;
    int64_t n_classes;
    Matrix<const int32_t> channels;
    bool regression;
    int64_t n_rows = 0, n_channels = 0, largest = 1; // the largest number of a channel, whatever its sign

    void check() {
        n_rows = int64_t(labels.size()), n_channels = int64_t(channels.shape(0));
        expect_between("labels, how many", n_rows, 1, INT32_MAX);
        expect_between("n_classes", n_classes, 1, regression ? 1 : INT32_MAX);
        expect_below("labels", labels, n_classes);
        expect_between("channels, how many", n_channels, regression, MAX_CHANNELS);
        expect_shape("channels", channels, n_channels, n_rows);
        for (size_t i = 0; i < channels.size(); ++i) largest = std::max(largest, std::abs(int64_t(channels.data()[i])));
        expect_between("channels, the largest", largest, 1, INT32_MAX);
    }
    int64_t flush() const { return INT32_MAX / largest; } // rows whose channels add up within 32 bits
};

struct TrainingRows {
    Response response;
    Vector<const int32_t> order; // grouped by class
    Matrix<const int64_t> root_stats;
    double root_scale;
    Vector<const int64_t> xlogx;

    int64_t size() const { return int64_t(order.size()); }
    void check() const { // class by class
        expect_between("order, how many", size(), 1, INT32_MAX);
        expect_below("order", order, response.n_rows);
        expect_shape("root_stats", root_stats, response.n_classes, 1 + response.n_channels);
        expect_finite("root_scale", root_scale);
        int64_t at = 0;
        for (int64_t k = 0; k < response.n_classes; ++k) {
            const int64_t first = at, place = k * int64_t(root_stats.shape(1));
            expect_between("root_stats", root_stats(k, 0), 0, size() - first, place);
            at += root_stats(k, 0);
            for (int64_t c = 0; c < response.n_channels; ++c) {
                int64_t sum = 0;
                for (int64_t i = first; i < at; ++i) sum += response.channels(c, order(i));
                expect_between("root_stats", root_stats(k, 1 + c), sum, sum, place + 1 + c);
            }
        }
        expect_between("root_stats, its rows", at, size(), size());
    }
};

struct TreeLimits {
    int64_t max_features, max_depth, min_samples_leaf, min_decrease;
    bool best;
    int impurity;

    void check() const {
        expect_between("max_features", max_features, 1, INT64_MAX);
        expect_between("min_decrease", min_decrease, 0, INT64_MAX); // no split is worth less than none
        expect_between("impurity", impurity, GINI, VARIANCE);
    }
    // Hand the limits to a job; no leaf can hold more than all rows: larger bounds mean the same, and cannot overflow.
    template <typename Job> void give(Job &job, int64_t n_rows) const {
        job.max_depth = max_depth;
        job.min_samples_leaf = std::clamp<int64_t>(min_samples_leaf, 1, n_rows + 1);
    }
};

} // namespace srs
