#include "conv/conv_unfolded.h"

#include "conv/conv_windows.h"
#include "gemm/gemm.h"

namespace fw::windows {
namespace {

constexpr int64_t many_pixels = 128;  // of an image, whose product is worth a call

// to[position][k]: the windows of all images
template <class T> void unfold(const ConvShape& s, const T* x, T* to) {
    const int64_t taps = s.taps(), plane = s.in_pixels();
    parallel(positions(s) * s.channels, 1 + (1 << 14) / taps, [&](int64_t begin, int64_t end) {
        while (begin < end) {
            const int64_t position = begin / s.channels, first = begin % s.channels;
            const int64_t stop = std::min(end - begin + first, s.channels);
            const UnfoldedWindow window(s, position);
            const bool whole = window.whole(s);
            for (int64_t c = first; c < stop; ++c) {
                const T* from = x + (window.image * s.channels + c) * plane;
                T* line = to + (position * s.channels + c) * taps;
                if (!whole) std::fill(line, line + taps, T(0));
                window.each_line(s, [&](int64_t at, int64_t tap, int64_t n, int64_t step) {
                    for (int64_t l = 0; l < n; ++l) line[tap + l] = from[at + l * step];
                });
            }
            begin += stop - first;
        }
    });
}

// The way back: every number of the images is the sum of its places in windows, in their order.
template <class T> void fold(const ConvShape& s, const T* windows, T* x) {
    const int64_t taps = s.taps(), plane = s.in_pixels(), pixels = s.pixels();
    parallel(s.n * s.channels, 1 + (1 << 14) / (plane + pixels * taps), [&](int64_t begin, int64_t end) {
        const int64_t first = begin / s.channels, last = (end - 1) / s.channels;
        for (int64_t image = first; image <= last; ++image) {
            const int64_t from = image == first ? begin % s.channels : 0, to = image == last ? (end - 1) % s.channels + 1 : s.channels;
            T* planes = x + image * s.channels * plane;
            std::fill(planes + from * plane, planes + to * plane, T(0));
            for (int64_t p = 0; p < pixels; ++p) {
                const UnfoldedWindow window(s, image * pixels + p);
                const T* lines = windows + (image * pixels + p) * s.channels * taps;
                for (int64_t c = from; c < to; ++c)
                    window.each_line(s, [&](int64_t at, int64_t tap, int64_t n, int64_t step) {
                        for (int64_t l = 0; l < n; ++l) planes[c * plane + at + l * step] += lines[c * taps + tap + l];
                    });
            }
        }
    });
}

// Results in lines of a channel, those of all images one behind the other; with one image as they are.
template <class T> struct ChannelLines {
    const ConvShape& s;
    int64_t length, images;
    Buffer<T> room;

    explicit ChannelLines(const ConvShape& s) : s(s), length(positions(s)), images(s.n), room(images > 1 ? s.rows * length : 0) {}

    const T* of(const T* y) {
        if (images == 1) return y;
        each_part([&](int64_t at, int64_t line, int64_t n) { std::copy(y + at, y + at + n, room.data + line); });
        return room.data;
    }
    T* for_results(T* y) { return images == 1 ? y : room.data; }
    void give(T* y) {
        if (images > 1) each_part([&](int64_t at, int64_t line, int64_t n) { std::copy(room.data + line, room.data + line + n, y + at); });
    }

  private:
    template <class F> void each_part(F&& body) {
        const int64_t pixels = s.pixels();
        parallel(images * s.rows, 1 + (1 << 14) / pixels, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) body(i * pixels, i % s.rows * length + i / s.rows * pixels, pixels);
        });
    }
};

template <class T> void finish(const ConvShape& s, const Epilogue<T>& end, T* y) {
    if (!end.bias && !end.more()) return;
    const int64_t pixels = s.pixels();
    parallel(s.n * s.rows, 1 + (1 << 14) / pixels, [&](int64_t begin, int64_t last) {
        for (int64_t i = begin; i < last; ++i) {
            const int64_t row = i % s.rows;
            T* line = y + i * pixels;
            const Vec<T> bias = splat(end.start(row));
            for (int64_t p = 0; p < pixels; p += lanes<T>) {
                const int64_t n = std::min<int64_t>(lanes<T>, pixels - p);
                store_first(line + p, end(load_first(line + p, n) + bias, row), n);
            }
        }
    });
}

Batch each_image(const ConvShape& s, int64_t b, int64_t c) {
    Batch batch;
    batch.ndim = 1, batch.shape[0] = s.n, batch.a[0] = 0, batch.b[0] = b * s.pixels(), batch.c[0] = c * s.pixels();
    return batch;
}

// The windows of images, which lie so where a window is an image.
template <class T> struct Unfolded {
    Buffer<T> room;
    const T* data;
    Unfolded(const ConvShape& s, const T* x) : room(whole_images(s) ? 0 : positions(s) * s.k()), data(x) {
        if (whole_images(s)) return;
        unfold(s, x, room.data);
        data = room.data;
    }
};

// Whether images are read as they lie: one, or larger ones, each a product.
bool each_is_a_product(const ConvShape& s) { return s.n == 1 || s.pixels() >= many_pixels; }

bool suits(const ConvShape& s, double share) {
    return s.groups == 1 && (whole_images(s) || (of_pixels(s) ? each_is_a_product(s) : few_windows(s, share)));
}

}  // namespace

// What the others spend on weights (packing, or the filtering of 3 x 3) is by the weight, and unfolding by the window: so many
// windows for a channel of the results are few, as measured.
bool unfolded_suits(const ConvShape& s, bool filtered) { return suits(s, filtered ? 0.25 : apart(s) ? 1.25 : 0.5); }
bool unfolded_input_suits(const ConvShape& s, bool filtered) {
    constexpr int64_t narrow = 24, wide = 512;  // channels whose tiles are mostly empty; that the other way is quicker with
    const bool pixels = of_pixels(s) && !whole_images(s) && s.n > 1;
    if (pixels && (s.channels < narrow || s.channels > std::max(wide, s.rows))) return false;
    return suits(s, filtered ? 0.25 : apart(s) ? 4 : 0.8);
}
bool unfolded_weights_suit(const ConvShape& s, bool filtered) { return suits(s, filtered ? 0.25 : apart(s) ? 1.25 : 1); }

template <class T> void unfolded_forward(const ConvShape& s, const T* x, const T* w, const Epilogue<T>& end, T* y) {
    const int64_t p = positions(s), k = s.k();
    if (of_pixels(s) && !whole_images(s)) {
        gemm(Gemm<T>{s.rows, s.pixels(), k, w, k, 1, x, s.pixels(), 1, y, s.pixels()}, each_image(s, k, s.rows));
    } else {
        const Unfolded<T> windows(s, x);
        ChannelLines<T> lines(s);
        gemm(Gemm<T>{s.rows, p, k, w, k, 1, windows.data, 1, k, lines.for_results(y), p});
        lines.give(y);
    }
    finish(s, end, y);
}

template <class T> void unfolded_input(const ConvShape& s, const T* y, const T* w, T* x) {
    const int64_t p = positions(s), k = s.k();
    if (whole_images(s)) return gemm(Gemm<T>{p, k, s.rows, y, s.rows, 1, w, k, 1, x, k});
    if (of_pixels(s))
        return gemm(Gemm<T>{k, s.pixels(), s.rows, w, 1, k, y, s.pixels(), 1, x, s.pixels()}, each_image(s, s.rows, k));
    ChannelLines<T> lines(s);
    Buffer<T> windows(p * k);
    gemm(Gemm<T>{p, k, s.rows, lines.of(y), 1, p, w, k, 1, windows.data, k});
    fold(s, windows.data, x);
}

template <class T> void unfolded_weights(const ConvShape& s, const T* x, const T* y, T* w) {
    const int64_t p = positions(s), k = s.k();
    if (of_pixels(s) && each_is_a_product(s)) {
        Gemm<T> g{s.rows, k, s.pixels(), y, s.pixels(), 1, x, 1, s.pixels(), w, k};
        for (int64_t i = 0; i < s.n; ++i, g.a += s.rows * s.pixels(), g.b += k * s.pixels(), g.add = true) gemm(g);
        return;
    }
    const Unfolded<T> windows(s, x);
    ChannelLines<T> lines(s);
    gemm(Gemm<T>{s.rows, k, p, lines.of(y), p, 1, windows.data, k, 1, w, k});
}

#define FW_OF(T)                                                                                  \
    template void unfolded_forward(const ConvShape&, const T*, const T*, const Epilogue<T>&, T*); \
    template void unfolded_input(const ConvShape&, const T*, const T*, T*);                       \
    template void unfolded_weights(const ConvShape&, const T*, const T*, T*);
FW_OF(float)
FW_OF(double)
#undef FW_OF

}  // namespace fw::windows
