// What the pooling kernels share: the windows of images of up to three dimensions.
#pragma once

#include "conv/conv_shape.h"

namespace fw::windows {

struct PoolAxis {
    int64_t in = 1, out = 1, kernel = 1, stride = 1, padding = 0, dilation = 1;

    int64_t start(int64_t window) const { return window * stride - padding; }
    int64_t reach() const { return (out - 1) * stride + dilation * (kernel - 1) + 1; }  // from -padding
    bool overhangs() const { return padding > 0 || reach() > in; }
    // The number of a window's first element that is in the image.
    int64_t first(int64_t window) const {
        const int64_t ahead = -start(window);
        return ahead <= 0 ? 0 : std::min((ahead - 1) / dilation + 1, kernel - 1);
    }
};

struct PoolShape {
    int64_t planes = 1;
    PoolAxis axis[conv_dims];

    int64_t in_size() const { return axis[0].in * axis[1].in * axis[2].in; }
    int64_t out_size() const { return axis[0].out * axis[1].out * axis[2].out; }
    int64_t window() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
    bool overhangs() const { return axis[0].overhangs() || axis[1].overhangs() || axis[2].overhangs(); }
    bool pads() const { return axis[0].padding || axis[1].padding || axis[2].padding; }
    int64_t first(int64_t i, int64_t j, int64_t l) const {
        return (axis[0].first(i) * axis[1].kernel + axis[1].first(j)) * axis[2].kernel + axis[2].first(l);
    }
    int64_t grain() const { return 1 + (1 << 14) / (in_size() + out_size()); }  // planes worth a thread
};

// Small planes above each other as one: where windows fill their outermost dimension, those of the next plane go on there.
inline PoolShape stacked(PoolShape s) {
    constexpr int64_t FEW = 1 << 14, SOME = 1 << 12;  // elements of all planes, and of those that become one
    int a = 0;
    while (a < 2 && s.axis[a].in == 1 && s.axis[a].out == 1 && s.axis[a].kernel == 1 && !s.axis[a].padding) ++a;
    PoolAxis& axis = s.axis[a];
    const int64_t size = s.in_size();
    if (axis.padding || axis.in != axis.out * axis.stride || axis.dilation * (axis.kernel - 1) >= axis.stride || size > SOME / 2) return s;
    int64_t together = std::min(s.planes, s.planes * size <= FEW ? s.planes : SOME / size);
    for (int tries = 0; s.planes % together; --together)
        if (++tries > 256) return s;
    s.planes /= together, axis.in *= together, axis.out *= together;
    return s;
}

// False where sizes do not fit or something is empty.
inline bool pool_shape(PoolShape& s, const Sizes& x, const Sizes& kernel, const Sizes& stride,
                       const Sizes& padding, const Sizes& dilation, const Sizes& out) {
    const size_t d = kernel.size();
    if (d < 1 || d > size_t(conv_dims) || x.size() < d || stride.size() != d || padding.size() != d ||
        dilation.size() != d || out.size() != d)
        return false;
    if (x.size() > 64 || !countable(x.data(), int(x.size())) || !countable(out.data(), int(d))) return false;
    for (size_t i = 0; i + d < x.size(); ++i) s.planes *= x[i];
    for (size_t i = 0; i < d; ++i) {
        PoolAxis& a = s.axis[conv_dims - d + i];
        a = {x[x.size() - d + i], out[i], kernel[i], stride[i], padding[i], dilation[i]};
        if (a.in < 1 || a.out < 1 || a.kernel < 1 || a.stride < 1 || a.dilation < 1 || a.padding < 0)
            return false;
        // windows that fit, or leave the image by less than a stride (ceil_mode); the last may begin behind the
        // end; and no more padding than is sensible
        int64_t reach, last;
        if (a.padding > a.in + 64 || __builtin_mul_overflow(a.kernel - 1, a.dilation, &reach) ||
            reach >= a.in + 2 * a.padding + std::min(a.stride, a.in + 2 * a.padding + 64) - 1 || __builtin_mul_overflow(a.out - 1, a.stride, &last) ||
            last >= a.in + 2 * a.padding)
            return false;
        a.stride = std::min(a.stride, a.in + 2 * a.padding);
    }
    return s.planes > 0 && countable(Sizes{s.planes, s.axis[0].out, s.axis[1].out, s.axis[2].out}.data(), 4);
}

// The shape of the pooled images: leading sizes of x, then `out`.
inline Sizes pooled(const Sizes& x, const Sizes& out) {
    Sizes shape(x.begin(), x.end() - std::ptrdiff_t(out.size()));
    shape.append(out.begin(), out.end());
    return shape;
}

// Where numbers of elements in their windows go: bytes for windows of fewer than 256 elements, or int32_t.
struct WindowPlaces {
    void* to = nullptr;
    int bytes = 1;

    WindowPlaces() = default;
    WindowPlaces(uint8_t* to) : to(to) {}
    WindowPlaces(int32_t* to) : to(to), bytes(4) {}
    explicit operator bool() const { return to; }
    WindowPlaces operator+(int64_t n) const {
        WindowPlaces behind = *this;
        if (to) behind.to = static_cast<char*>(to) + n * bytes;
        return behind;
    }
};

// The largest element of every window, and its number in the window, of the first such or a nan; padding has none.
// `largest` or `where` may be missing. T: float or double.
template <class T> void max_windows(const PoolShape& s, const T* x, T* largest, WindowPlaces where);

// The largest and its place in the flattened image, one window after the other: for lines shorter than a vector.
template <class T> void max_each_window(const PoolShape& s, const T* x, T* largest, int64_t* place);

// The way back, by those numbers: x gets y at its place in each window, y what x has there (or 0 where that is padding).
// False where a number is in no window. P: uint8_t or int32_t.
template <class T, class P> bool spread(const PoolShape& s, const T* y, const P* where, T* x);
template <class T, class P> bool collect(const PoolShape& s, const T* x, const P* where, T* y);
// The element's place in the flattened image; `channels` of them lie side by side. False where a number is in no window.
template <class P> bool flat_places(const PoolShape& s, int64_t channels, const P* where, int64_t* to);

// The same of images whose channels, `channels` of them, lie side by side (n, sizes, c). Windows of fewer than 256 elements.
template <class T> void max_channels(const PoolShape& s, int64_t channels, const T* x, T* largest, uint8_t* where);
template <class T> void spread_channels(const PoolShape& s, int64_t channels, const T* y, const uint8_t* where, T* x);
template <class T> void collect_channels(const PoolShape& s, int64_t channels, const T* x, const uint8_t* where, T* y);

// The mean of every window, whose sum is divided by `divisor`, or if that is 0 by how many of its elements are in the image
// (`include`: in the image or its padding). So many channels, one or a few, lie side by side.
template <class T> void mean_windows(const PoolShape& s, int64_t channels, bool include, int64_t divisor, const T* x, T* y);
template <class T> void spread_mean(const PoolShape& s, int64_t channels, bool include, int64_t divisor, const T* y, T* x);  // the way back

// The same of channels that fill vectors.
template <class T>
void mean_channels(const PoolShape& s, int64_t channels, bool include, int64_t divisor, const T* x, T* y);
template <class T>
void spread_mean_channels(const PoolShape& s, int64_t channels, bool include, int64_t divisor, const T* y, T* x);

}  // namespace fw::windows
