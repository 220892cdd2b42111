// The inner parts of a matrix product: tiles of C that stay in registers, and packing into panels.
//
// A tile is up to tile_rows rows by up to tile_vectors vectors. Its A lies as a panel (for each step p the
// numbers of all its rows side by side) or in place, at any strides; its B as a panel (for each step p
// tile_cols numbers) or in place, with columns side by side. Whoever packs panels in another order of
// reading, as a convolution does from images, calls `run_tile` on them directly.
#pragma once

#include <algorithm>

#include "base/parts.h"
#include "base/shuffles.h"

namespace fw {

// As many accumulators as leave room for one row of B and one number of A in the registers.
#if defined(FW_AVX512)
constexpr int tile_rows = 14, tile_vectors = 2;
#elif defined(FW_AVX2)
constexpr int tile_rows = 6, tile_vectors = 2;
#elif defined(__aarch64__)
constexpr int tile_rows = 8, tile_vectors = 3;
#else
constexpr int tile_rows = 4, tile_vectors = 2;
#endif
template <class T> constexpr int tile_cols = tile_vectors * lanes<T>;

// Whether tiles of so few columns as half a vector has stand in half vectors, of which twice as many are added up at a time.
#if defined(FW_AVX512)
template <class T> constexpr bool half_tiles = sizeof(T) == 4;
#else
template <class T> constexpr bool half_tiles = false;
#endif
// Whether a tile of so many columns reads nothing behind them.
template <class T> bool fills(int64_t cols) { return cols % lanes<T> == 0 || (half_tiles<T> && cols == lanes<T> / 2); }

constexpr int AHEAD = 8;  // steps by which B is fetched into the cache beforehand

// -- tiles ----------------------------------------------------------------------------------------

// c[i, j] = sum over p < k of a[i, p] * b[p, j], added to what c holds if `add`.
template <class T> struct Tile {
    const T* a;
    int64_t a_row, a_step;  // a[i, p] lies at a + i * a_row + p * a_step
    const T* b;
    int64_t b_step;         // b[p, j] lies at b + p * b_step + j; vectors are read, see `fills`
    T* c;
    int64_t c_row;
    int64_t k;
    int cols;
    bool add;
    bool turned = false;    // c[i, j] lies at c + j * c_row + i instead of c + i * c_row + j
};

// Any tile of 1 to tile_rows rows and 1 to tile_cols columns. All of them take seconds to compile: once, in tiles.cpp.
template <class T> void run_tile(int rows, const Tile<T>& t);

// The same of 3 or 4 tiles of one row and whole vectors, with one A: alone each would wait for its own sums.
template <class T> void run_rows(int count, const Tile<T>* t);

// -- packing --------------------------------------------------------------------------------------

// to[p * width + i] = src[i * row + p * step] for i < rows and p < k, and 0 for rows <= i < width.
// Writes whole vectors: up to one vector of rubbish after the panel, if width is no multiple of lanes.
template <class T>
void pack_panel(T* to, int width, const T* src, int rows, int64_t row, int64_t step, int64_t k);

}  // namespace fw
