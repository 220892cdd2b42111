// The gradient of a convolution with respect to its weights. No Python.
#pragma once

#include "conv/conv_shape.h"

namespace fw::windows {

// x: the images, y: the gradient of the results, w: as the kernels lie. Runs on the pool; called without Python's lock.
template <class T> void conv_weights(const ConvShape& s, const T* x, const T* y, T* w);

}  // namespace fw::windows
