// How matrix products are shared by threads, and batches of them.
#pragma once

#include <algorithm>

#include "gemm/gemm.h"
#include "base/pool.h"

namespace fw {

constexpr int64_t WORTH_A_THREAD = 400 * 1000;  // multiplications

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The size of the parts when n is cut into as few as `most` allows, all about equal, multiples of `unit`.
inline int64_t even_part(int64_t n, int64_t most, int64_t unit = 1) {
    if (n <= most) return n;
    return ceil_div(ceil_div(n, ceil_div(n, most)), unit) * unit;
}

template <class T> double multiplications(const Gemm<T>& g) {
    return double(g.m) * double(g.n) * double(g.k);
}

template <class T> Gemm<T> part(Gemm<T> g, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    g.a += row * g.a_row;
    g.b += col * g.b_col;
    g.c += row * g.c_row + col;
    g.row += row, g.col += col;
    g.m = rows, g.n = cols;
    return g;
}

struct Grid {
    int64_t rows, cols;  // parts of C
};

// How C is cut for `workers` threads: the cut for which the slowest has least to do, packing included.
template <class T> Grid best_grid(const Gemm<T>& g, int64_t workers, int64_t tile_rows, int64_t tile_cols) {
    constexpr double pack_row = 0.15, pack_col = 0.3;  // a panel's packing, as part of a tile's time
    int64_t high = ceil_div(g.m, tile_rows), wide = ceil_div(g.n, tile_cols);
    Grid best{1, 1};
    double least = -1;
    for (int64_t cols = 1; cols <= std::min(workers, wide); ++cols) {
        int64_t rows = std::min(ceil_div(workers, cols), high);
        double tiles_high = double(ceil_div(high, rows)), tiles_wide = double(ceil_div(wide, cols));
        double rounds = double(ceil_div(rows * cols, workers));
        double time = rounds * (tiles_high * tiles_wide + tiles_high * pack_row + tiles_wide * pack_col);
        if (least < 0 || time < least) least = time, best = {rows, cols};
    }
    return best;
}

// The product by multiply(part), in all threads where that pays; parts are multiples of a tile wide. SPEED: how many times as
// fast as others these multiplications are.
template <int SPEED = 1, class T, class F>
void share(const Gemm<T>& g, int64_t tile_rows, int64_t tile_cols, F&& multiply) {
    double work = multiplications(g) / SPEED;
    if (work < double(worth(WORTH_A_THREAD)) || threads() == 1) return multiply(g);
    // more parts than threads, so that a thread which comes late leaves little to wait for
    int64_t each = work > 250 * WORTH_A_THREAD ? 4 : work > 25 * WORTH_A_THREAD ? 2 : 1;
    Grid grid = best_grid(g, each * threads(), tile_rows, tile_cols);
    int64_t height = ceil_div(g.m, grid.rows);
    int64_t width = ceil_div(ceil_div(g.n, tile_cols), grid.cols) * tile_cols;
    parallel(grid.rows * grid.cols, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int64_t row = i / grid.cols * height, col = i % grid.cols * width;
            if (row < g.m && col < g.n)
                multiply(part(g, row, std::min(height, g.m - row), col, std::min(width, g.n - col)));
        }
    });
}

template <class T> Gemm<T> item(const Gemm<T>& g, const Batch& batch, int64_t index) {
    Gemm<T> one = g;
    for (int d = batch.ndim - 1; d >= 0; --d) {
        int64_t at = index % batch.shape[d];
        index /= batch.shape[d];
        one.a += at * batch.a[d];
        one.b += at * batch.b[d];
        one.c += at * batch.c[d];
    }
    return one;
}

struct Nothing {};

// one(g) for every product of a batch; an `Around` lives while a thread makes some of them.
template <int SPEED = 1, class Around = Nothing, class T, class F>
void share_batch(const Gemm<T>& g, const Batch& batch, F&& one) {
    int64_t count = batch.size();
    if (count == 1) return one(item(g, batch, 0));
    double work = multiplications(g) / SPEED + 1000;
    int64_t share = threads();
    if (work > 2 * WORTH_A_THREAD && count % share != 0 && count < 4 * share) {  // else a thread would rest
        for (int64_t i = 0; i < count; ++i) one(item(g, batch, i));
        return;
    }
    int64_t grain = std::max<int64_t>(1, int64_t(double(worth(WORTH_A_THREAD)) / 2 / work));
    parallel(count, grain, [&](int64_t begin, int64_t end) {
        [[maybe_unused]] Around around;
        for (int64_t i = begin; i < end; ++i) one(item(g, batch, i));
    });
}

}  // namespace fw
