// Convolutions of channels side by side as products of matrices: each window is a line of numbers, tap by tap, as kernels that lie
// so have them. Pixels are such lines as they are; others are unfolded where they are few.
#include "conv/conv_last.h"
#include "conv/conv_windows.h"
#include "gemm/gemm.h"

namespace fw::windows {
namespace {

// to[position][tap][channel]
void unfold_last(const ConvShape& s, const float* x, float* to) {
    const int64_t channels = s.channels, k = s.k();
    parallel(positions(s), 1 + (1 << 14) / k, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            const UnfoldedWindow window(s, p);
            const float* image = x + window.image * s.in_pixels() * channels;
            float* line = to + p * k;
            if (!window.whole(s)) std::fill(line, line + k, 0.0f);
            window.each_line(s, [&](int64_t at, int64_t tap, int64_t n, int64_t step) {
                const int64_t run = step == 1 ? n : 1;  // pixels side by side
                for (int64_t l = 0; l < n; l += run)
                    std::copy(image + (at + l * step) * channels, image + (at + l * step + run) * channels, line + (tap + l) * channels);
            });
        }
    });
}

// Of one dimension: the windows that hold a place, and by which tap.
struct Holding {
    int64_t tap, window;
};
std::vector<std::vector<Holding>> holding(const ConvAxis& a) {
    std::vector<std::vector<Holding>> all(static_cast<size_t>(a.in));
    for (int64_t w = 0; w < a.out; ++w) {
        const TapReach reach(a, w);
        for (int64_t t = reach.low; t < reach.high; ++t) all[size_t(reach.start + t * a.dilation)].push_back({t, w});
    }
    return all;
}

// The way back: a pixel is the sum of its places in windows.
void fold_last(const ConvShape& s, const float* windows, float* x) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    const auto high = holding(h), wide = holding(v);
    const int64_t channels = s.channels, k = s.k();
    parallel(s.n * s.in_pixels(), 1 + (1 << 13) / channels, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t image = i / s.in_pixels();
            float* pixel = x + i * channels;
            std::fill(pixel, pixel + channels, 0.0f);
            for (const Holding& a : high[size_t(i / v.in % h.in)])
                for (const Holding& b : wide[size_t(i % v.in)]) {
                    const int64_t position = (image * h.out + a.window) * v.out + b.window;
                    const float* from = windows + position * k + (a.tap * v.kernel + b.tap) * channels;
                    for (int64_t c = 0; c < channels; ++c) pixel[c] += from[c];
                }
        }
    });
}

void finish_last(const ConvShape& s, const Epilogue<float>& given, float* y) {
    if (!given.bias && !given.more()) return;
    const PaddedEnd padded(given, s.rows);
    const Epilogue<float>& end = padded.end;
    parallel(positions(s), 1 + (1 << 14) / s.rows, [&](int64_t begin, int64_t last) {
        for (int64_t i = begin; i < last; ++i)
            for (int64_t r = 0; r < s.rows; r += lanes<float>) {
                const int64_t n = std::min<int64_t>(lanes<float>, s.rows - r);
                float* at = y + i * s.rows + r;
                Vec<float> v = load_first(at, n);
                if (end.bias) v += load(end.bias + r);
                store_first(at, end.clip(end.scaled(v, r)), n);
            }
    });
}

// Windows as a matrix: the pixels, or whole images, or what is unfolded of them.
struct LastWindows {
    Buffer<float> room;
    const float* data;
    LastWindows(const ConvShape& s, const float* x)
        : room(of_pixels(s) || whole_images(s) ? 0 : positions(s) * s.k()), data(x) {
        if (of_pixels(s) || whole_images(s)) return;
        unfold_last(s, x, room.data);
        data = room.data;
    }
};

}  // namespace

bool last_unfolds(const ConvShape& s, const TapKernels& w, bool wide, double share) {
    if (s.groups != 1 || w.channel != 1) return false;
    return of_pixels(s) ? wide : whole_images(s) || few_windows(s, share);
}

void unfolded_last_forward(const ConvShape& s, const float* x, const float* w, const Epilogue<float>& end, float* y) {
    const LastWindows windows(s, x);
    gemm(Gemm<float>{positions(s), s.rows, s.k(), windows.data, s.k(), 1, w, 1, s.k(), y, s.rows});
    finish_last(s, end, y);
}

void unfolded_last_input(const ConvShape& s, const float* y, const float* w, float* x) {
    const bool direct = of_pixels(s) || whole_images(s);
    Buffer<float> room(direct ? 0 : positions(s) * s.k());
    gemm(Gemm<float>{positions(s), s.k(), s.rows, y, s.rows, 1, w, s.k(), 1, direct ? x : room.data, s.k()});
    if (!direct) fold_last(s, room.data, x);
}

void unfolded_last_weights(const ConvShape& s, const float* x, const float* y, float* w) {
    const LastWindows windows(s, x);
    gemm(Gemm<float>{s.rows, s.k(), positions(s), y, 1, s.rows, windows.data, s.k(), 1, w, s.k()});
}

}  // namespace fw::windows
