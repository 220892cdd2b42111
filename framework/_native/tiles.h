// Tiles and panels of `gemm_kernel.h` for kernels that are mostly made of something else: compiled once, in tiles.cpp.
#pragma once

#include "gemm_kernel.h"

namespace fw {

template <class T> void run_any_tile(int rows, const Tile<T>& t);  // as run_tile
template <class T>
void pack_any_panel(T* to, int width, const T* src, int rows, int64_t row, int64_t step, int64_t k);  // as pack_panel

}  // namespace fw
