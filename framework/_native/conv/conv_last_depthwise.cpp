// Depthwise convolutions of images whose channels lie side by side: vectors are of channels, some neighbouring pixels at a
// time, so that what neighbouring windows share is read once.
#include "conv/conv_edges.h"
#include "conv/conv_last.h"

namespace fw::windows {
namespace {

constexpr int together = 6;  // pixels

// Images that are read, how far windows begin before them, and how many of them there are.
struct Strip {
    int64_t high, wide, before_high, before_wide, out_high, out_wide;
};

// Kernels tap by tap, in whole vectors of channels; turned by half a turn, if asked for.
std::vector<float> by_taps(const ConvShape& s, const TapKernels& w, bool turned) {
    const int64_t taps = s.taps(), step = s.channels + n_lanes;
    std::vector<float> all(size_t(taps * step));
    for (int64_t t = 0; t < taps; ++t)
        for (int64_t c = 0; c < s.channels; ++c) all[size_t(t * step + c)] = w.data[c * w.row + (turned ? taps - 1 - t : t) * w.tap];
    return all;
}

// P pixels from (line, column) on, for a vector of channels.
template <int K, int Step, int P, bool Inner>
FW_INLINE void some_pixels(const Strip& s, const float* from, int64_t channels, const float* w, int64_t w_step, int64_t line,
                           int64_t column, int64_t n, V (&sum)[P]) {
    const int64_t top = Step * line - s.before_high, left = Step * column - s.before_wide;
    for (int64_t i = std::max<int64_t>(0, -top); i < std::min<int64_t>(K, s.high - top); ++i) {
        V kernel[K];
#pragma GCC unroll 7
        for (int k = 0; k < K; ++k) kernel[k] = load(w + (i * K + k) * w_step);
        const float* x = from + ((top + i) * s.wide + left) * channels;
#pragma GCC unroll 24
        for (int j = 0; j < Step * (P - 1) + K; ++j) {
            if (!Inner && uint64_t(left + j) >= uint64_t(s.wide)) continue;
            const V v = load_first(x + j * channels, n);
#pragma GCC unroll 6
            for (int p = 0; p < P; ++p)
                if (j >= Step * p && j < Step * p + K) sum[p] = fma<float>(kernel[j - Step * p], v, sum[p]);
        }
    }
}

template <int K, int Step, int P>
void pixels_of(const Strip& s, const float* from, int64_t channels, const float* w, const Epilogue<float>& end, int64_t line,
               int64_t column, float* to) {
    const int64_t left = Step * column - s.before_wide;
    const bool inner = left >= 0 && left + Step * (P - 1) + K <= s.wide;
    for (int64_t c = 0; c < channels; c += n_lanes) {
        const int64_t n = std::min<int64_t>(n_lanes, channels - c);
        V sum[P];
        const V start = end.bias ? load_first(end.bias + c, n) : V{};
        for (V& v : sum) v = start;
        if (inner) some_pixels<K, Step, P, true>(s, from + c, channels, w + c, channels + n_lanes, line, column, n, sum);
        else some_pixels<K, Step, P, false>(s, from + c, channels, w + c, channels + n_lanes, line, column, n, sum);
        for (int p = 0; p < P; ++p) {
            if (end.scale) sum[p] = fma<float>(sum[p], load_first(end.scale + c, n), load_first(end.shift + c, n));
            store_first(to + p * channels + c, end.clips() ? end.clip(sum[p]) : sum[p], n);
        }
    }
}

// body(kernel size, step) with both as constants
template <class F> void by_size(const ConvShape& s, F&& body) {
    auto with = [&](auto step) {
        switch (s.axis[1].kernel) {
            case 3: return body(std::integral_constant<int, 3>{}, step);
            case 5: return body(std::integral_constant<int, 5>{}, step);
            default: return body(std::integral_constant<int, 7>{}, step);
        }
    };
    s.axis[1].stride == 1 ? with(std::integral_constant<int, 1>{}) : with(std::integral_constant<int, 2>{});
}

template <int K, int Step>
void images(const Strip& s, int64_t n, int64_t channels, const float* x, const std::vector<float>& w, const Epilogue<float>& end,
            float* y) {
    const int64_t work = s.out_wide * channels * K * K / n_lanes;
    parallel(n * s.out_high, 1 + (1 << 14) / (1 + work), [&](int64_t begin, int64_t stop) {
        for (int64_t i = begin; i < stop; ++i) {
            const float* from = x + i / s.out_high * s.high * s.wide * channels;
            const int64_t line = i % s.out_high;
            float* to = y + i * s.out_wide * channels;
            int64_t column = 0;
            for (; column + together <= s.out_wide; column += together)
                pixels_of<K, Step, together>(s, from, channels, w.data(), end, line, column, to + column * channels);
            for (; column + 2 <= s.out_wide; column += 2)
                pixels_of<K, Step, 2>(s, from, channels, w.data(), end, line, column, to + column * channels);
            if (column < s.out_wide) pixels_of<K, Step, 1>(s, from, channels, w.data(), end, line, column, to + column * channels);
        }
    });
}

// The inputs of windows two apart: each is read by the windows that its place is even or odd for.
void spread_images(const ConvShape& s, const float* y, const std::vector<float>& w, float* x) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    const int64_t channels = s.channels, w_step = channels + n_lanes, work = v.in * channels * s.taps() / (4 * n_lanes);
    parallel(s.n * h.in, 1 + (1 << 14) / (1 + work), [&](int64_t begin, int64_t stop) {
        struct Read { const float *y, *w; };
        Read reads[16];  // of 7 x 7 taps every fourth
        for (int64_t i = begin; i < stop; ++i) {
            const int64_t line = i % h.in;
            const float* from = y + i / h.in * s.pixels() * channels;
            for (int64_t column = 0; column < v.in; ++column) {
                int count = 0;
                for (int64_t a = (line + h.padding) % 2; a < h.kernel && line + h.padding >= a; a += 2)
                    for (int64_t b = (column + v.padding) % 2; b < v.kernel && column + v.padding >= b; b += 2) {
                        const int64_t row = (line + h.padding - a) / 2, at = (column + v.padding - b) / 2;
                        if (row < h.out && at < v.out)
                            reads[count++] = {from + (row * v.out + at) * channels, w.data() + (a * v.kernel + b) * w_step};
                    }
                float* to = x + (i * v.in + column) * channels;
                for (int64_t c = 0; c < channels; c += n_lanes) {
                    const int64_t n = std::min<int64_t>(n_lanes, channels - c);
                    V sum{};
                    for (int r = 0; r < count; ++r) sum = fma<float>(load(reads[r].w + c), load_first(reads[r].y + c, n), sum);
                    store_first(to + c, sum, n);
                }
            }
        }
    });
}

// -- gradient of the kernels ----------------------------------------------------------------------

// sums[tap * step] += the products of a line of y with the lines of x that it reads, for a vector of channels
template <int K, int Step>
FW_INLINE void add_line(const Strip& s, const float* from, const float* y, int64_t channels, int64_t line, int64_t n,
                        float* sums, int64_t step) {
    const int64_t top = Step * line - s.before_high;
    // pixels [low, high) read no column outside
    const int64_t low = std::min((s.before_wide + Step - 1) / Step, s.out_wide);
    const int64_t high = std::clamp<int64_t>((s.wide - K + s.before_wide) / Step + 1, low, s.out_wide);
    const bool fits = s.wide + s.before_wide >= K;
    for (int64_t i = std::max<int64_t>(0, -top); i < std::min<int64_t>(K, s.high - top); ++i) {
        V sum[K] = {};
        const float* x = from + ((top + i) * s.wide - s.before_wide) * channels;
        auto edge = [&](int64_t p) {
            const V g = load_first(y + p * channels, n);
            for (int k = 0; k < K; ++k)
                if (uint64_t(Step * p - s.before_wide + k) < uint64_t(s.wide))
                    sum[k] = fma<float>(g, load_first(x + (Step * p + k) * channels, n), sum[k]);
        };
        const int64_t first = fits ? low : s.out_wide, last = fits ? high : s.out_wide;
        for (int64_t p = 0; p < first; ++p) edge(p);
        for (int64_t p = first; p < last; ++p) {
            const V g = load_first(y + p * channels, n);
            const float* at = x + Step * p * channels;
#pragma GCC unroll 7
            for (int k = 0; k < K; ++k) sum[k] = fma<float>(g, load_first(at + k * channels, n), sum[k]);
        }
        for (int64_t p = last; p < s.out_wide; ++p) edge(p);
        for (int k = 0; k < K; ++k) {
            float* to = sums + (i * K + k) * step;
            store(to, load(to) + sum[k]);
        }
    }
}

Strip input_strip(const ConvShape& s) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    return {h.in, v.in, h.padding, v.padding, h.out, v.out};
}

}  // namespace

void depthwise_last(const ConvShape& s, const float* x, const TapKernels& w, const Epilogue<float>& end, float* y) {
    const std::vector<float> kernels = by_taps(s, w, false);
    by_size(s, [&](auto kernel, auto step) {
        images<kernel.value, step.value>(input_strip(s), s.n, s.channels, x, kernels, end, y);
    });
}

void depthwise_last_input(const ConvShape& s, const float* y, const TapKernels& w, float* x) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    if (h.stride == 2) return spread_images(s, y, by_taps(s, w, false), x);
    const Strip strip{h.out, v.out, h.kernel - 1 - h.padding, v.kernel - 1 - v.padding, h.in, v.in};
    const std::vector<float> kernels = by_taps(s, w, true);
    by_size(s, [&](auto kernel, auto step) {
        if constexpr (step.value == 1) images<kernel.value, 1>(strip, s.n, s.channels, y, kernels, {}, x);
    });
}

// The lines of all images in parts that depend on the shape alone, whose sums are put together in order.
void depthwise_last_weights(const ConvShape& s, const float* x, const float* y, float* w) {
    constexpr int64_t most_parts = 16;
    const Strip strip = input_strip(s);
    const int64_t lines = s.n * strip.out_high, parts = std::min(most_parts, lines), step = s.channels + n_lanes;
    const int64_t size = s.taps() * step, work = 1 + s.n * s.pixels() * s.channels * s.taps() / (n_lanes * parts);
    std::vector<float> sums(size_t(parts * size));
    by_size(s, [&](auto kernel, auto two) {
        parallel(parts, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end) {
            for (int64_t part = begin; part < end; ++part)
                for (int64_t i = part * lines / parts; i < (part + 1) * lines / parts; ++i)
                    for (int64_t c = 0; c < s.channels; c += n_lanes)
                        add_line<kernel.value, two.value>(strip, x + i / strip.out_high * s.in_pixels() * s.channels + c,
                                                          y + i * strip.out_wide * s.channels + c, s.channels,
                                                          i % strip.out_high, std::min<int64_t>(n_lanes, s.channels - c),
                                                          sums.data() + part * size + c, step);
        });
    });
    for (int64_t c = 0; c < s.channels; ++c)
        for (int64_t t = 0; t < s.taps(); ++t) {
            float sum = 0;
            for (int64_t part = 0; part < parts; ++part) sum += sums[size_t(part * size + t * step + c)];
            *w++ = sum;
        }
}

}  // namespace fw::windows
