// The sizes of a convolution, as the bindings read them from arrays and settings.
#pragma once

#include <vector>

#include "base/scratch.h"
#include "base/few.h"
#include "base/view.h"
#include "conv/conv_planes.h"

namespace fw::windows {

struct ConvAxis {
    int64_t in = 1, out = 1, kernel = 1, stride = 1, padding = 0, dilation = 1;
};

struct ConvShape {
    int64_t n = 0, channels = 0, rows = 0, groups = 1;  // rows: channels of the output
    ConvAxis axis[conv_dims];

    int64_t taps() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
    int64_t in_pixels() const { return axis[0].in * axis[1].in * axis[2].in; }
    int64_t pixels() const { return axis[0].out * axis[1].out * axis[2].out; }
    int64_t group_channels() const { return channels / groups; }
    int64_t group_rows() const { return rows / groups; }
    int64_t k() const { return group_channels() * taps(); }
    int64_t flops() const { return 2 * n * rows * pixels() * k(); }

    // Position of tap t along each dimension, in the padded image.
    void tap(int64_t t, int64_t (&at)[conv_dims]) const {
        for (int d = conv_dims - 1; d >= 0; --d) {
            at[d] = t % axis[d].kernel * axis[d].dilation;
            t /= axis[d].kernel;
        }
    }
};

using fw::Sizes;

// False where shapes do not fit or something is empty.
inline bool conv_shape(ConvShape& s, const Sizes& x, const Sizes& w, const Sizes& stride,
                       const Sizes& padding, const Sizes& dilation, int64_t groups) {
    const size_t d = stride.size();
    if (d < 1 || d > size_t(conv_dims) || x.size() != d + 2 || w.size() != d + 2 || padding.size() != d ||
        dilation.size() != d || groups < 1)
        return false;
    s.n = x[0];
    s.channels = x[1];
    s.rows = w[0];
    s.groups = groups;
    if (!countable(x.data(), int(x.size())) || !countable(w.data(), int(w.size()))) return false;
    if (s.n < 1 || s.channels < 1 || s.rows < 1 || groups > s.channels || s.channels != w[1] * groups ||
        s.rows % groups)
        return false;
    for (size_t i = 0; i < d; ++i) {
        ConvAxis& a = s.axis[conv_dims - d + i];
        a = {x[i + 2], 0, w[i + 2], stride[i], padding[i], dilation[i]};
        if (a.in < 1 || a.kernel < 1 || a.stride < 1 || a.dilation < 1 || a.padding < 0) return false;
        int64_t padded, reach;
        if (__builtin_mul_overflow(a.padding, 2, &padded) || __builtin_add_overflow(padded, a.in, &padded) ||
            __builtin_mul_overflow(a.dilation, a.kernel - 1, &reach) || reach >= padded)
            return false;
        const int64_t room = padded - reach - 1;
        a.out = room / a.stride + 1;
        a.stride = std::min(a.stride, room + 1);  // with one window it moves nowhere, and with one tap neither does
        if (a.kernel == 1) a.dilation = 1;        // the next one
    }
    // the padded images and the results can be counted, products of them and the taps as well
    double work = double(s.n) * double(s.rows) * double(w[1]);
    Sizes padded = {s.n, std::max(s.channels, s.rows)};
    for (const ConvAxis& a : s.axis) {
        work *= double(a.out) * double(a.kernel);
        padded.push_back(a.in + 2 * a.padding);
    }
    return work < 9e18 && countable(padded.data(), int(padded.size()));
}

template <class T> struct Buffer {  // numbers for a kernel's own use
    Borrowed memory;
    T* data;
    explicit Buffer(int64_t count) : memory(count, sizeof(T)), data(static_cast<T*>(memory.start)) {}
};

}  // namespace fw::windows
