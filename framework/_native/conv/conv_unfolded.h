// Convolutions as products of matrices: each window of an image is unfolded to a line of numbers in the order of a kernel's.
//
// The weights are read once and as they lie, and never packed: for few windows, of images that are small beside the
// weights, and for windows that do not overlap, whose gradient needs no sums.
#pragma once

#include "conv/conv_shape.h"

namespace fw::windows {

// Whether it takes less time than other ways; filtered: minimal filtering is among them.
bool unfolded_suits(const ConvShape& s, bool filtered);
bool unfolded_input_suits(const ConvShape& s, bool filtered);
bool unfolded_weights_suit(const ConvShape& s, bool filtered);

// x: the images, w: the kernels, y: the results; each a gradient where it is written by the others. All in rows. They run on
// the pool and are called without Python's lock.
template <class T> void unfolded_forward(const ConvShape& s, const T* x, const T* w, const Epilogue<T>& end, T* y);
template <class T> void unfolded_input(const ConvShape& s, const T* y, const T* w, T* x);
template <class T> void unfolded_weights(const ConvShape& s, const T* x, const T* y, T* w);

}  // namespace fw::windows
