// Tiles of products of images whose channels lie side by side, which stay in registers.
#pragma once

#include "conv/conv_kernel.h"

namespace fw::windows {

constexpr int64_t row_lanes = lanes<float>, row_block = 2 * row_lanes;

// y[i * y_pixel + j] = start[j] + sum over stretches and p < run of x[offset + i * pixel + p] * w[., j]
struct LastTile {
    const float* x;
    int64_t pixel;
    const int64_t* offset;
    int64_t stretches, run;
    const float* w;      // steps follow each other, one or two vectors each
    float* y;
    int64_t y_pixel, cols;  // columns up to two vectors
    const float* start;  // a number for each row, or null for 0
    const Epilogue<float>* end;  // of rows from `end_row` on; or null
    int64_t end_row;
};

// For `pixels` pixels that follow each other, cut into tiles as even as may be.
void run_last_tiles(LastTile t, int64_t pixels);

// Some lines of one image: where their windows begin, and what is multiplied with them.
struct Lines {
    const float *x, *y;
    int64_t count;
};

// c[i * c_row + j] += sum over all pixels of y[i] * x[j], i < rows <= tile_rows; whole vectors of c
struct SumTile {
    const Lines *lines, *stop;
    int64_t x_at, y_at;  // in each window, in each pixel
    int64_t x_line, y_line, x_pixel, y_pixel, length;
    int64_t rows, cols;  // columns up to two vectors
    float* c;
    int64_t c_row;
};
void run_sum_tile(const SumTile& t);

}  // namespace fw::windows
