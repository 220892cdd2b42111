// Convolutions of bfloat16 and their gradients, where the processor has products of pairs (`has_dot_bf16`). No Python.
#pragma once

#include "conv/conv_shape.h"
#include "gemm/bf16_tile.h"

namespace fw::windows {

#if FW_DOT_BF16

// Whether windows move by one everywhere: the others' gradient of the images is left to the kernels of float32.
bool steps_of_one(const ConvShape& s);

// x: the images, w: the kernels, y: the results; each a gradient where it is written by the others. bias: a number for each
// row, or null. All run on the pool; they are called without Python's lock.
void conv_forward(const ConvShape& s, const Bf16* x, const Bf16* w, const Bf16* bias, Bf16* y);
void conv_transposed(const ConvShape& s, const Bf16* y, const Bf16* w, Bf16* x);  // only of `steps_of_one`
void conv_weights(const ConvShape& s, const Bf16* x, const Bf16* y, Bf16* w);

#endif

}  // namespace fw::windows
