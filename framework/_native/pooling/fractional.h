// Maxima over windows whose places are drawn.
#pragma once

#include "pooling/pool2d.h"

namespace fw::windows {

struct DrawnAxis {
    int64_t in = 1, out = 1, kernel = 1;
};

// The first of the largest elements of each window, or its first nan, and its place in its plane. Windows of a dimension
// begin where u, a number of `samples` (planes, dims) in [0, 1), says: with the step a = (in - kernel) / (out - 1), window i at
// floor((i + u) a) - floor(u a), the last one at the end. The samples are of the last `dims` dimensions, in order or
// the last one first. False where one of them leads out of the image.
template <class T>
bool fractional_max(const DrawnAxis (&axis)[conv_dims], int64_t planes, int dims, bool last_first, const T* x, const T* samples,
                    T* largest, int64_t* places);

}  // namespace fw::windows
