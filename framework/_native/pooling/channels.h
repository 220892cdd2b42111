// What pooling of images whose channels lie side by side shares: vectors of channels, and the work of one thread.
#pragma once

#include <algorithm>

#include "pooling/pool2d.h"

namespace fw::windows {

template <class T> FW_INLINE Vec<T> some(const T* p, int64_t n) { return n == lanes<T> ? load(p) : load_part(p, n); }
template <class T> FW_INLINE void keep(T* p, Vec<T> v, int64_t n) { n == lanes<T> ? store(p, v) : store_part<T>(p, v, n); }

// Channels of an image that one thread goes over at a time: whole lines of the cache.
constexpr int64_t SHARE = 64;

// f(image, first channel, channels) for all channels of all images.
template <class F> void each_share(const PoolShape& s, int64_t channels, F&& f) {
    const int64_t shares = (channels + SHARE - 1) / SHARE, images = s.planes / channels;
    const int64_t grain = 1 + (s.grain() - 1) / std::min(channels, SHARE);
    parallel(images * shares, grain, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
            const int64_t first = k % shares * SHARE;
            f(k / shares, first, std::min(SHARE, channels - first));
        }
    });
}

// A window that reaches a place along an axis, and which of its elements that is.
struct Reach {
    int64_t window, element;
};

// For every place along an axis the windows that reach it, in order.
class Reached {
  public:
    explicit Reached(const PoolAxis& a) {
        for (int64_t i = 0; i < a.in; ++i) {
            start.push_back(all.size());
            const int64_t at = i + a.padding, least = at - a.dilation * (a.kernel - 1);
            for (int64_t w = least > 0 ? (least + a.stride - 1) / a.stride : 0; w < a.out && w * a.stride <= at; ++w)
                if ((at - w * a.stride) % a.dilation == 0) all.push_back({w, (at - w * a.stride) / a.dilation});
        }
        start.push_back(all.size());
    }
    struct Some {
        const Reach *first, *last;
        const Reach* begin() const { return first; }
        const Reach* end() const { return last; }
    };
    Some at(int64_t place) const { return {all.data() + start[size_t(place)], all.data() + start[size_t(place) + 1]}; }

  private:
    std::vector<size_t> start;
    std::vector<Reach> all;
};

// f(image, pixel, place along each axis) for the pixels of all images; `work` is what one costs, in numbers.
template <class F> void each_pixel(const PoolShape& s, int64_t channels, int64_t work, F&& f) {
    const PoolAxis &y = s.axis[1], &z = s.axis[2];
    const int64_t lines = s.axis[0].in * y.in, images = s.planes / channels;
    parallel(images * lines, 1 + (1 << 14) / (1 + z.in * work), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t line = i % lines;
            for (int64_t l = 0; l < z.in; ++l) f(i / lines, line * z.in + l, line / y.in, line % y.in, l);
        }
    });
}

// Whether no pixel is in two windows.
inline bool are_apart(const PoolShape& s) {
    bool apart = true;
    for (const PoolAxis& a : s.axis) apart = apart && (a.out == 1 || a.stride >= a.kernel) && (a.kernel == 1 || a.dilation == 1);
    return apart;
}

// Along an axis of windows apart, place by place: the window that a place is in, if any, and as which of its elements.
struct Along {
    const int64_t out, kernel, step;
    int64_t window, element;

    Along(const PoolAxis& a, int64_t place)
        : out(a.out), kernel(a.kernel), step(a.out == 1 ? a.in + 2 * a.padding : a.stride),
          window((place + a.padding) / step), element((place + a.padding) % step) {}
    bool inside() const { return window < out && element < kernel; }
    void next() {
        if (++element == step) element = 0, ++window;
    }
};

// f(image, pixel, window, element) for the pixels of all images where windows are apart; window is -1 where none has it.
template <class F> void each_pixel_apart(const PoolShape& s, int64_t channels, F&& f) {
    const PoolAxis &x = s.axis[0], &y = s.axis[1], &z = s.axis[2];
    const int64_t lines = x.in * y.in, images = s.planes / channels;
    parallel(images * lines, 1 + (1 << 14) / (1 + z.in * channels), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t image = i / lines, line = i % lines;
            const Along a(x, line / y.in), b(y, line % y.in);
            const bool there = a.inside() && b.inside();
            const int64_t windows = (a.window * y.out + b.window) * z.out, elements = (a.element * y.kernel + b.element) * z.kernel;
            Along c(z, 0);
            for (int64_t l = 0; l < z.in; ++l, c.next())
                f(image, line * z.in + l, there && c.inside() ? windows + c.window : -1, elements + c.element);
        }
    });
}

}  // namespace fw::windows
