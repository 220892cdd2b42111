// Depthwise convolutions of float images: every channel has a kernel of its own, of 3x3, 5x5 or 7x7 numbers.
//
// Planes are read in place, vectors along the lines; several lines of the result share what is loaded.
#pragma once

#include "conv/conv_shape.h"

namespace fw::windows {

bool depthwise_suits(const ConvShape& s);

// All run on the pool; they are called without Python's lock.
void depthwise(const ConvShape& s, const float* x, const float* w, const Epilogue<float>& end, float* y);
void depthwise_input(const ConvShape& s, const float* y, const float* w, float* x);
void depthwise_weights(const ConvShape& s, const float* x, const float* y, float* w);

}  // namespace fw::windows
