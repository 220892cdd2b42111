// The windows of convolutions as lines of a matrix: where each begins, which of its taps are in the image, how many there are.
#pragma once

#include "conv/conv_shape.h"

namespace fw::windows {

inline int64_t positions(const ConvShape& s) { return s.n * s.pixels(); }

// Of one axis: where a window starts, and which of its taps are in the image.
struct TapReach {
    int64_t start, low, high;

    TapReach(const ConvAxis& a, int64_t window) : start(window * a.stride - a.padding) {
        low = std::clamp<int64_t>(ceil_div(-start, a.dilation), 0, a.kernel);
        high = std::clamp<int64_t>(ceil_div(a.in - start, a.dilation), low, a.kernel);
    }
    bool whole(const ConvAxis& a) const { return low == 0 && high == a.kernel; }
};

// A window of the images: body(place in a channel's plane, place among the taps, how many numbers, how far apart in the plane)
// for every line of it that is in the image.
struct UnfoldedWindow {
    TapReach x, y, z;
    int64_t image;

    UnfoldedWindow(const ConvShape& s, int64_t position)
        : x(s.axis[0], position / (s.axis[1].out * s.axis[2].out) % s.axis[0].out),
          y(s.axis[1], position / s.axis[2].out % s.axis[1].out), z(s.axis[2], position % s.axis[2].out),
          image(position / s.pixels()) {}

    bool whole(const ConvShape& s) const { return x.whole(s.axis[0]) && y.whole(s.axis[1]) && z.whole(s.axis[2]); }

    template <class F> FW_INLINE void each_line(const ConvShape& s, F&& body) const {
        const ConvAxis &a = s.axis[0], &b = s.axis[1], &c = s.axis[2];
        for (int64_t i = x.low; i < x.high; ++i)
            for (int64_t j = y.low; j < y.high; ++j)
                body(((x.start + i * a.dilation) * b.in + y.start + j * b.dilation) * c.in + z.start + z.low * c.dilation,
                     (i * b.kernel + j) * c.kernel + z.low, z.high - z.low, c.dilation);
    }
};

// Whether a window is an image: nothing is unfolded then.
inline bool whole_images(const ConvShape& s) {
    for (const ConvAxis& a : s.axis)
        if (a.out != 1 || a.padding != 0 || a.kernel != a.in) return false;
    return s.groups == 1;
}

// Whether windows are the images' pixels, which are read as they lie.
inline bool of_pixels(const ConvShape& s) {
    for (const ConvAxis& a : s.axis)
        if (a.kernel != 1 || a.stride != 1 || a.padding) return false;
    return true;
}

// Whether windows do not overlap.
inline bool apart(const ConvShape& s) {
    for (const ConvAxis& a : s.axis)
        if (a.stride <= a.dilation * (a.kernel - 1)) return false;
    return true;
}

// Whether there are so few windows for a channel of the results.
inline bool few_windows(const ConvShape& s, double share) { return double(positions(s)) <= share * double(s.rows); }

}  // namespace fw::windows
