// The gradient of a convolution with respect to its input, which is the transposed convolution.
#pragma once

#include "conv/conv_shape.h"

namespace fw::windows {

// y: as the results of a convolution of that shape lie, x: as its images. Runs on the pool; called without Python's lock.
template <class T> void conv_transposed(const ConvShape& s, const T* y, const T* w, T* x);

}  // namespace fw::windows
