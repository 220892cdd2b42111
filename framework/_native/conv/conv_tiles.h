// Convolutions of bfloat16 and their gradients by the matrix unit (gemm/amx.h), or by its twin where `plain` says so.
// Images and kernels may lie in rows or channels last, as the results do. No Python.
#pragma once

#include "conv/conv_stream.h"
#include "gemm/amx.h"

namespace fw::windows {

constexpr int64_t TILE = amx::ROWS * amx::STEPS;  // numbers of a tile
constexpr int64_t WIDE = 2 * amx::ROWS;           // rows and columns of sums at a time

// Whether it takes less time than other ways (the unit must be there), and whether its memory is bounded.
bool tiles_suit(const ConvShape& s);
bool tiles_can(const ConvShape& s);

// x: the images, w: the kernels, y: the results; each a gradient where it is written by the others. bias: a number for each
// row, or null. `last`: of what is written. All run on the pool.
void conv_forward_by_tiles(const ConvShape& s, const GivenImages& x, const GivenImages& w, const Bf16* bias, Bf16* y, bool last,
                           bool plain);
void conv_transposed_by_tiles(const ConvShape& s, const GivenImages& y, const GivenImages& w, Bf16* x, bool last, bool plain);
void conv_weights_by_tiles(const ConvShape& s, const GivenImages& x, const GivenImages& y, Bf16* w, bool last, bool plain);

}  // namespace fw::windows
