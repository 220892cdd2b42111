// Windows of images as columns, and their sum back into images: framework/ops/image/fold.py.
#pragma once

#include <cstdint>
#include <vector>

#include "base/few.h"

namespace fw::windows {

struct FoldAxis {
    int64_t in, out, kernel, stride, padding, dilation;

    // the windows [begin, end) whose tap k lies inside the image, and where it is in the first of them
    struct InsideWindows {
        int64_t begin, end, at;
    };
    InsideWindows inside(int64_t k) const;
};

// False where the settings do not fit an image of h x w.
bool fold_axes(FoldAxis (&a)[2], int64_t h, int64_t w, const Sizes& kernel, const Sizes& stride,
               const Sizes& padding, const Sizes& dilation);

// x: planes of an image's size; y: for each of them, for each element of a window, that of all windows.
template <class T> void unfold_planes(const FoldAxis (&a)[2], int64_t planes, const T* x, T* y);
template <class T> void fold_planes(const FoldAxis (&a)[2], int64_t planes, const T* y, T* x);

// Windows of one dimension, `step` apart, and what lies before and behind that dimension.
struct Windows {
    int64_t outer, count, inner, size, step, length;
};
// The sum of windows x (outer, count, inner, size): y (outer, length, inner).
template <class T> void fold_windows(const Windows& w, const T* x, T* y);

}  // namespace fw::windows
