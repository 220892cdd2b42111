// Convolutions of images with 3x3 kernels and stride 1 by Winograd's minimal filtering, F(2x2, 3x3):
// 16 multiplications give 2x2 pixels, where the definition takes 36 (Lavin and Gray, 2015, arXiv:1509.09308).
//
//     y = A' [ (G w G') * (B' x B) ] A    for every 4x4 tile of x, its 2x2 tile of y and every 3x3 kernel
//
// The product in the middle is one of matrices for each of the 16 places, channels by tiles. The matrices hold
// 0, 1, -1 and 1/2 alone, so that rounding errors are about those of the plain sums. An inf or nan of x reaches
// the four pixels of its tiles as a nan, also where the kernel does not touch it.
//
// Images of bfloat16 (AVX-512 only) are widened as they are read and rounded as they are written: F(4x4, 3x3), 36
// multiplications for 4x4 pixels. Its larger numbers cost a digit of float32, of which bfloat16 shows nothing; the
// nan of an inf reaches sixteen pixels.
#pragma once

#include "conv/conv_shape.h"

namespace fw::windows {

// Where a kernel's numbers lie: tap t of row i and channel c at data[i * row + c * channel + t].
struct Kernels {
    const float* data;
    int64_t row, channel;
    bool turned;  // by half a turn: tap t is 8 - t
};

// Whether the shape is one for it, and large enough that it is quicker; turning the kernels into tiles must pay.
bool winograd_suits(const ConvShape& s, int64_t least_tiles);
// The same of few channels, for the convolution alone (not its gradients), and packed kernels.
bool winograd_of_few(const ConvShape& s, int64_t least_tiles);
// The shape and kernels of the convolution that gives the gradient of the input.
ConvShape gradient_shape(const ConvShape& s);
inline Kernels kernels_of(const ConvShape& s, const float* w) { return {w, 9 * s.channels, 9, false}; }
inline Kernels gradient_kernels(const ConvShape& s, const float* w) { return {w, 9, 9 * s.channels, true}; }

bool use_winograd(bool on);  // for tests; what was said before

// Both run on the pool; they are called without Python's lock.
template <class T>
void winograd(const ConvShape& s, const T* x, const Kernels& w, const Epilogue<float>& end, T* y);
// In two steps: the kernels as tiles, for many images (of float).
// squares: y is the largest of 2 x 2 neighbours each, only where `winograd_pools`.
bool winograd_pools(const ConvShape& s);
int64_t winograd_packed(const ConvShape& s);  // how many numbers
int64_t winograd_rows(const ConvShape& s, bool squares);  // what their order depends on
void winograd_pack(const ConvShape& s, const Kernels& w, float* to, bool squares = false);
void winograd(const ConvShape& s, const float* x, const float* packed, const Epilogue<float>& end, float* y,
              bool squares = false);
void winograd_weights(const ConvShape& s, const float* x, const float* y, float* w);

}  // namespace fw::windows
