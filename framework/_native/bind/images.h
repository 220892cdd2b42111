// Images of NumPy arrays: their sizes, as kernels of windows read them.
#pragma once

#include "base/simd.h"
#include "bind/channels_last.h"
#include "conv/conv_shape.h"

namespace fw::windows {

inline Sizes sizes(const Array& a) { return a.usable() ? Sizes(a.shape(), a.shape() + a.ndim()) : Sizes(); }

// The sizes of y that belong to a shape of x and w.
inline bool is_output(const ConvShape& s, const Array& y, size_t d) {
    if (y.ndim() != int(d) + 2 || y.shape(0) != s.n || y.shape(1) != s.rows) return false;
    for (size_t i = 0; i < d; ++i)
        if (y.shape(int(i) + 2) != s.axis[conv_dims - d + i].out) return false;
    return true;
}

// body(a number of the array's type), which is float or double
template <class F> auto by_float(const Array& a, F&& body) { return a.is<float>() ? body(float{}) : body(double{}); }

// Images of as many sizes as `windows` has, whose channels lie side by side, a share of a vector or more of them: with
// fewer, kernels of rows are quicker, copies there and back included, but for a handful of numbers.
inline bool has_channels_last(const Array& a, const Sizes& windows, double share = 1) {
    constexpr int64_t handful = 256;
    const auto least = double(a.is<float>() ? lanes<float> : lanes<double>) * share;
    return a.usable() && a.ndim() == int(windows.size()) + 2 && (double(a.shape(1)) >= least || a.size() < handful) &&
           channels_last(a);
}

inline bool has_shape(const Array& a, const Sizes& shape) { return a.usable() && sizes(a) == shape; }

}  // namespace fw::windows
