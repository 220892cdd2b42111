#include "conv/conv_depthwise.h"

#include "base/pool.h"
#include "conv/conv_edges.h"
#include "gemm/gemm_kernel.h"

namespace fw::windows {
namespace {

constexpr int64_t most_block = 48 * 1024;  // numbers of a block: what the second cache holds beside others

// Where images lie: pixel p of channel c of image n at data[n * image + c * channel + p * pixel].
template <class T> struct Images {
    T* data;
    int64_t wide, image, channel, pixel;

    Images(const ConvShape& s, T* data, int64_t high, int64_t wide, bool last)
        : data(data), wide(wide), image(s.channels * high * wide), channel(last ? 1 : high * wide), pixel(last ? s.channels : 1) {}

    T* at(int64_t n, int64_t c, int64_t line) const { return data + n * image + c * channel + line * wide * pixel; }
};
Images<const float> inputs(const ConvShape& s, const float* x, bool last) { return {s, x, s.axis[1].in, s.axis[2].in, last}; }
Images<const float> outputs(const ConvShape& s, const float* y, bool last) { return {s, y, s.axis[1].out, s.axis[2].out, last}; }

// Lines of one image with a vector for each pixel, of `count` channels.
void bring(const Images<const float>& from, int64_t n, int64_t c, int64_t count, int64_t line, int64_t lines, float* to) {
    pack_panel(to, n_lanes, from.at(n, c, line), int(count), from.channel, from.pixel, lines * from.wide);
}

void give(const float* from, const Images<float>& to, int64_t n, int64_t c, int64_t count, int64_t line, int64_t lines) {
    float* out = to.at(n, c, line);
    const int64_t pixels = lines * to.wide;
    if (to.channel == 1) {
        for (int64_t p = 0; p < pixels; ++p) store_first(out + p * to.pixel, load(from + p * n_lanes), count);
        return;
    }
    for (int64_t p = 0; p < pixels; p += n_lanes) {
        const int64_t some = std::min<int64_t>(n_lanes, pixels - p);
        V v[n_lanes];
#pragma GCC unroll 16
        for (int i = 0; i < n_lanes; ++i) v[i] = load(from + (p + std::min<int64_t>(i, some - 1)) * n_lanes);
        transpose<float>(v);
#pragma GCC unroll 16
        for (int i = 0; i < n_lanes; ++i)
            if (i < count) store_first(out + i * to.channel + p, v[i], some);
    }
}

// Kernels of some channels, a vector for each tap; turned by half a turn, if asked for.
void bring_kernels(const ConvShape& s, const TapKernels& w, int64_t c, int64_t count, bool turned, float* to) {
    const int64_t taps = s.taps();
    pack_panel(to, n_lanes, w.data + c * w.row, int(count), w.row, w.tap, taps);
    for (int64_t t = 0; turned && t < taps / 2; ++t) {
        const V first = load(to + t * n_lanes);
        store(to + t * n_lanes, load(to + (taps - 1 - t) * n_lanes));
        store(to + (taps - 1 - t) * n_lanes, first);
    }
}

// What windows see: images of so many lines and columns, how far windows begin before them, and how many lines and columns they have.
struct Seen {
    int64_t high, wide, before_high, before_wide, kernel, columns;
};

// How many of the columns of windows that are left are taken together, 7, 5 or 3: no 1, 2 or 4 may be left then.
inline int64_t together(int64_t left) {
    auto fits = [&](int64_t k) { return left >= k && left != k + 1 && left != k + 2 && left != k + 4; };
    return fits(7) ? 7 : fits(5) ? 5 : 3;
}

// Lines of one image, those from `top` on: neighbouring pixels lie `pixel` numbers apart.
struct Lines {
    const float* data;
    int64_t top, pixel = n_lanes;

    const float* at(int64_t line, int64_t column, int64_t wide) const { return data + ((line - top) * wide + column) * pixel; }
};

// body(constant) for the longest runs of pixels that a line of `wide` is made of; the last two may overlap.
template <class F> FW_INLINE void each_run(int64_t wide, F&& body) {
    auto all = [&](auto size) {
        constexpr int64_t P = size.value;
        for (int64_t column = 0; column < wide; column += P) body(std::min(column, wide - P), size);
    };
    if (wide >= 7 && (wide + 6) / 7 * 7 <= (wide + 7) / 8 * 8) return all(std::integral_constant<int, 7>{});
    if (wide >= 8) return all(std::integral_constant<int, 8>{});
    if (wide >= 4) return all(std::integral_constant<int, 4>{});
    all(std::integral_constant<int, 1>{});
}

// -- forward, and the gradient of inputs whose windows are one apart ------------------------------

// What follows the sums of some channels.
struct End {
    V start{}, scale{}, shift{};
    bool scales;
    const Epilogue<float>& given;

    End(const Epilogue<float>& given, int64_t c, int64_t count) : scales(given.scale), given(given) {
        if (given.bias) start = load_first(given.bias + c, count);
        if (scales) scale = load_first(given.scale + c, count), shift = load_first(given.shift + c, count);
    }
    V operator()(V sum) const {
        if (scales) sum = fma<float>(sum, scale, shift);
        return given.clips() ? given.clip(sum) : sum;
    }
};

// What windows of one line make, P of them from `column` on, for a vector of channels.
template <int Step, int P>
[[gnu::noinline]] void make_run(const Seen& s, const Lines& x, const float* w, const End& end, int64_t line, int64_t column, float* to,
                                int64_t to_pixel) {
    const int64_t top = Step * line - s.before_high, first = Step * column - s.before_wide;
    V sum[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) sum[p] = end.start;
    for (int64_t i = std::max<int64_t>(0, -top); i < std::min(s.kernel, s.high - top); ++i) {
        auto add = [&](int64_t at, auto size) __attribute__((always_inline)) {
            constexpr int K = size.value;
            const int64_t left = first + at;
            const float *from = x.at(top + i, left, s.wide), *taps = w + (i * s.columns + at) * n_lanes;
            V kernel[K];
#pragma GCC unroll 7
            for (int k = 0; k < K; ++k) kernel[k] = load(taps + k * n_lanes);
            auto add_column = [&](int j) __attribute__((always_inline)) {
                const V v = load(from + j * x.pixel);
#pragma GCC unroll 8
                for (int p = 0; p < P; ++p)
                    if (j >= Step * p && j < Step * p + K) sum[p] = fma<float>(kernel[j - Step * p], v, sum[p]);
            };
            if (left >= 0 && left + Step * (P - 1) + K <= s.wide) {
#pragma GCC unroll 24
                for (int j = 0; j < Step * (P - 1) + K; ++j) add_column(j);
            } else {
#pragma GCC unroll 24
                for (int j = 0; j < Step * (P - 1) + K; ++j)
                    if (uint64_t(left + j) < uint64_t(s.wide)) add_column(j);
            }
        };
        for (int64_t at = 0, k; at < s.columns; at += k) {
            k = together(s.columns - at);
            if (k == 3) add(at, std::integral_constant<int, 3>{});
            else if (k == 5) add(at, std::integral_constant<int, 5>{});
            else add(at, std::integral_constant<int, 7>{});
        }
    }
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) store(to + p * to_pixel, end(sum[p]));
}

template <int Step>
void some_lines(const Seen& s, const Lines& x, const float* w, const End& end, int64_t first, int64_t lines, int64_t wide, float* to) {
    for (int64_t line = first; line < first + lines; ++line, to += wide * n_lanes)
        each_run(wide, [&](int64_t column, auto size) {
            make_run<Step, size.value>(s, x, w, end, line, column, to + column * n_lanes, n_lanes);
        });
}

// The same of all channels, which are read where they lie and at least fill a vector.
template <int Step>
void line_in_place(const Seen& s, int64_t channels, const float* x, const float* w, const Epilogue<float>& given, int64_t line,
                   int64_t wide, float* to) {
    each_run(wide, [&](int64_t column, auto size) {
        const float* kernels = w;
        for (int64_t block = 0; block < channels; block += n_lanes, kernels += s.kernel * s.columns * n_lanes) {
            const int64_t c = std::min(block, channels - n_lanes);
            make_run<Step, size.value>(s, {x + c, 0, channels}, kernels, End(given, c, n_lanes), line, column,
                                       to + column * channels + c, channels);
        }
    });
}

// Inputs of one line whose windows are two apart: each is read by the windows that its place is even or odd for.
struct Spread {
    int64_t padding_high, padding_wide, wide, kernel, seen_high;

    // The lines of results that lines [first, first + lines) of inputs are read by.
    std::pair<int64_t, int64_t> reads(int64_t first, int64_t lines) const {
        const int64_t low = std::clamp<int64_t>((first + padding_high - kernel + 1) / 2, 0, seen_high);
        return {low, std::clamp<int64_t>((first + lines - 1 + padding_high) / 2 + 1, low, seen_high)};
    }
};

// P of every second one, from number 2 * column + r on.
template <int P>
[[gnu::noinline]] void spread_run(const Seen& s, const Spread& to, const Lines& y, const float* w, int64_t line, int64_t column, int r,
                                  float* x, int64_t x_pixel) {
    const int64_t above = line + to.padding_high;
    V sum[P] = {};
    for (int64_t i = above % 2; i < s.kernel && i <= above; i += 2) {
        const int64_t row = (above - i) / 2;
        if (row >= s.high) continue;
        for (int64_t k = (r + to.padding_wide) % 2; k < s.columns; k += 2) {
            const V kernel = load(w + (i * s.columns + k) * n_lanes);
            const int64_t left = column + (r + to.padding_wide - k) / 2;
            const float* from = y.at(row, left, s.wide);
#pragma GCC unroll 8
            for (int p = 0; p < P; ++p)
                if (uint64_t(left + p) < uint64_t(s.wide)) sum[p] = fma<float>(kernel, load(from + p * y.pixel), sum[p]);
        }
    }
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) store(x + (2 * (column + p) + r) * x_pixel, sum[p]);
}

// body(column, which of two, size) for the runs of a line of inputs
template <class F> void each_spread(const Spread& to, F&& body) {
    for (int r = 0; r < 2 && r < to.wide; ++r)
        each_run((to.wide - r + 1) / 2, [&](int64_t column, auto size) { body(column, r, size); });
}

// -- gradient of the kernels ----------------------------------------------------------------------

// sum += the products of P numbers of y, from (line, column) on, with what R lines of their windows have, from line `i` on.
template <int K, int Step, int R, int P>
FW_INLINE void add_products(const Seen& s, const Lines& x, const float* y, int64_t y_pixel, int64_t line, int64_t column, int64_t i,
                            V (&sum)[R * K]) {
    const int64_t top = Step * line - s.before_high + i, left = Step * column - s.before_wide;
    V g[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) g[p] = load(y + (column + p) * y_pixel);
#pragma GCC unroll 3
    for (int r = 0; r < R; ++r) {
        if (uint64_t(top + r) >= uint64_t(s.high)) continue;
        const float* from = x.at(top + r, left, s.wide);
#pragma GCC unroll 13
        for (int j = 0; j < Step * (P - 1) + K; ++j) {
            if (uint64_t(left + j) >= uint64_t(s.wide)) continue;
            const V v = load(from + j * x.pixel);
#pragma GCC unroll 4
            for (int p = 0; p < P; ++p)
                if (j >= Step * p && j < Step * p + K) sum[r * K + j - Step * p] = fma<float>(g[p], v, sum[r * K + j - Step * p]);
        }
    }
}

// sums[tap] += the products of some lines of y with the windows that they read: with K of their columns, from `at` on, and R of their
// lines at a time.
template <int K, int Step, int R>
void add_columns(Seen s, const Lines& x, const Lines& y, int64_t at, int64_t first, int64_t lines, int64_t wide, float* sums) {
    constexpr int P = 4;
    s.before_wide -= at;
    for (int64_t i = 0; i < s.kernel; i += R) {
        float* own = sums + (i * s.columns + at) * n_lanes;
        V sum[R * K];
        for (int t = 0; t < R * K; ++t) sum[t] = load(own + t * n_lanes);
        for (int64_t line = first; line < first + lines; ++line) {
            const float* from = y.at(line, 0, wide);
            int64_t column = 0;
            for (; column + P <= wide; column += P) add_products<K, Step, R, P>(s, x, from, y.pixel, line, column, i, sum);
            for (; column < wide; ++column) add_products<K, Step, R, 1>(s, x, from, y.pixel, line, column, i, sum);
        }
        for (int t = 0; t < R * K; ++t) store(own + t * n_lanes, sum[t]);
    }
}

template <int Step>
void add_lines(const Seen& s, const Lines& x, const Lines& y, int64_t first, int64_t lines, int64_t wide, float* sums) {
    if (s.columns == 3 && s.kernel % 3 == 0)  // as many sums as there are registers for
        return add_columns<3, Step, 3>(s, x, y, 0, first, lines, wide, sums);
    for (int64_t at = 0, k; at < s.columns; at += k) {
        k = together(s.columns - at);
        const auto run = k == 3 ? add_columns<3, Step, 1> : k == 5 ? add_columns<5, Step, 1> : add_columns<7, Step, 1>;
        run(s, x, y, at, first, lines, wide, sums);
    }
}

// -- blocks ---------------------------------------------------------------------------------------

// body(step) with a constant
template <class F> void by_step(const ConvShape& s, F&& body) {
    s.axis[1].stride == 1 ? body(std::integral_constant<int, 1>{}) : body(std::integral_constant<int, 2>{});
}

// How lines are made from lines: by windows `step` lines apart.
struct Made {
    Seen seen;
    int64_t step, high, wide;

    // The lines that are seen by the windows of lines [first, first + lines).
    std::pair<int64_t, int64_t> reads(int64_t first, int64_t lines) const {
        const int64_t top = step * first - seen.before_high, low = std::clamp<int64_t>(top, 0, seen.high);
        return {low, std::clamp<int64_t>(top + step * (lines - 1) + seen.kernel, low, seen.high)};
    }
    // So many at once that a block stays in the cache.
    int64_t at_once() const {
        const int64_t line = n_lanes * (step * seen.wide + wide), more = n_lanes * seen.kernel * seen.wide;
        return std::clamp<int64_t>((most_block - more) / line, 1, high);
    }
};

Made forward_of(const ConvShape& s) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    return {{h.in, v.in, h.padding, v.padding, h.kernel, v.kernel}, h.stride, h.out, v.out};
}

// body(image, first channel, how many, first line, how many) for all blocks; those of the same channels come one after the other
template <class F> void each_block(const ConvShape& s, const Made& made, F&& body) {
    const int64_t blocks = (s.channels + n_lanes - 1) / n_lanes, lines = made.at_once();
    const int64_t wanted = std::min(16 / (s.n * blocks), made.high / 8);  // parts for threads, if there are few images
    const int64_t count = std::max((made.high + lines - 1) / lines, wanted), work = 1 + made.high * made.wide * (s.taps() + 8) / count;
    parallel(blocks * s.n * count, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            const int64_t part = t % count, c = t / count / s.n * n_lanes;
            const int64_t first = part * made.high / count, last = (part + 1) * made.high / count;
            body(t / count % s.n, c, std::min<int64_t>(n_lanes, s.channels - c), first, last - first);
        }
    });
}

// The numbers of a thread for a block: what is read, what is made, and the kernels.
struct Room {
    float *x, *y, *w;

    Room(int64_t read, int64_t made, int64_t taps)
        : x(scratch<float>(0, read * n_lanes)), y(scratch<float>(1, made * n_lanes)), w(scratch<float>(2, taps * n_lanes)) {}
};

// body(image, line, kernels) for all lines of images that are read where they lie; of kernels a vector of channels after the other,
// of which the last two may overlap
template <class F> void each_line_in_place(const ConvShape& s, const Made& made, const TapKernels& w, bool turned, F&& body) {
    const int64_t blocks = (s.channels + n_lanes - 1) / n_lanes, size = s.taps() * n_lanes, work = made.wide * blocks * s.taps();
    Buffer<float> kernels(blocks * size);
    for (int64_t b = 0; b < blocks; ++b)
        bring_kernels(s, w, std::min(b * n_lanes, s.channels - n_lanes), n_lanes, turned, kernels.data + b * size);
    parallel(s.n * made.high, 1 + (1 << 14) / (1 + work), [&](int64_t begin, int64_t stop) {
        for (int64_t i = begin; i < stop; ++i) body(i / made.high, i % made.high, kernels.data);
    });
}

template <int Step>
void made_in_place(const ConvShape& s, const Made& made, const float* x, const TapKernels& w, bool turned, const Epilogue<float>& end,
                   float* y) {
    each_line_in_place(s, made, w, turned, [&](int64_t n, int64_t line, const float* kernels) {
        line_in_place<Step>(made.seen, s.channels, x + n * made.seen.high * made.seen.wide * s.channels, kernels, end, line,
                               made.wide, y + (n * made.high + line) * made.wide * s.channels);
    });
}

inline void spread_in_place(const ConvShape& s, const Made& made, const Spread& to, const float* y, const TapKernels& w, float* x) {
    each_line_in_place(s, made, w, false, [&](int64_t n, int64_t line, const float* kernels) {
        const float* from = y + n * s.pixels() * s.channels;
        float* out = x + (n * made.high + line) * made.wide * s.channels;
        each_spread(to, [&](int64_t column, int r, auto size) {
            const float* w = kernels;
            for (int64_t block = 0; block < s.channels; block += n_lanes, w += s.taps() * n_lanes) {
                const int64_t c = std::min(block, s.channels - n_lanes);
                spread_run<size.value>(made.seen, to, {from + c, 0, s.channels}, w, line, column, r, out + c, s.channels);
            }
        });
    });
}

// run(lines that are read, kernels, end, first line, how many, where they go); reading: says which lines are read
template <class Reading, class F>
void each_made(const ConvShape& s, const Made& made, const Reading& reading, const Images<const float>& from, const TapKernels& w,
               bool turned, const Epilogue<float>& end, const Images<float>& to, F&& run) {
    each_block(s, made, [&](int64_t n, int64_t c, int64_t count, int64_t first, int64_t lines) {
        const auto [low, high] = reading.reads(first, lines);
        const Room room((high - low) * made.seen.wide, lines * made.wide, s.taps());
        bring_kernels(s, w, c, count, turned, room.w);
        bring(from, n, c, count, low, high - low, room.x);
        run(Lines{room.x, low}, room.w, End(end, c, count), first, lines, room.y);
        give(room.y, to, n, c, count, first, lines);
    });
}

}  // namespace

bool depthwise_suits(const ConvShape& s) {
    const ConvAxis &depth = s.axis[0], &y = s.axis[1], &x = s.axis[2];
    if (s.groups != s.channels || s.rows != s.channels || depth.in != 1 || depth.kernel != 1 ||
        depth.padding != 0)
        return false;
    constexpr int64_t long_line = 64;  // pixels: vectors along it are as good, where a window has no other line
    if (y.kernel == 1 && x.out >= long_line) return false;
    return y.stride == x.stride && y.dilation == 1 && x.dilation == 1 && x.kernel > 2 && x.kernel != 4 && y.stride <= 2 && y.padding < y.kernel && x.padding < x.kernel;
}

void depthwise(const ConvShape& s, const float* x, const TapKernels& w, const Epilogue<float>& end, float* y, bool last) {
    const Made made = forward_of(s);
    const Images<float> to(s, y, made.high, made.wide, last);
    const bool in_place = last && s.channels >= n_lanes;
    by_step(s, [&](auto step) {
        if (in_place) return made_in_place<step.value>(s, made, x, w, false, end, y);
        each_made(s, made, made, inputs(s, x, last), w, false, end, to, [&](const Lines& read, const float* w, const End& end,
                                                                            int64_t first, int64_t lines, float* y) {
            some_lines<step.value>(made.seen, read, w, end, first, lines, made.wide, y);
        });
    });
}

void depthwise_input(const ConvShape& s, const float* y, const TapKernels& w, float* x, bool last) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    const Images<const float> from = outputs(s, y, last);
    const Images<float> to(s, x, h.in, v.in, last);
    const bool in_place = last && s.channels >= n_lanes;
    by_step(s, [&](auto step) {
        if constexpr (step.value == 1) {
            const Made made{{h.out, v.out, h.kernel - 1 - h.padding, v.kernel - 1 - v.padding, h.kernel, v.kernel}, 1, h.in, v.in};
            if (in_place) return made_in_place<1>(s, made, y, w, true, {}, x);
            each_made(s, made, made, from, w, true, {}, to, [&](const Lines& read, const float* w, const End& end, int64_t first,
                                                                int64_t lines, float* x) {
                some_lines<1>(made.seen, read, w, end, first, lines, made.wide, x);
            });
        } else {
            const Made made{{h.out, v.out, 0, 0, h.kernel, v.kernel}, 1, h.in, v.in};
            const Spread spread{h.padding, v.padding, v.in, h.kernel, h.out};
            if (in_place) return spread_in_place(s, made, spread, y, w, x);
            each_made(s, made, spread, from, w, false, {}, to, [&](const Lines& read, const float* w, const End&, int64_t first,
                                                                   int64_t lines, float* x) {
                for (int64_t i = 0; i < lines; ++i, x += v.in * n_lanes)
                    each_spread(spread, [&](int64_t column, int r, auto size) {
                        spread_run<size.value>(made.seen, spread, read, w, first + i, column, r, x, n_lanes);
                    });
            });
        }
    });
}

// The images in parts that depend on the shape alone, whose sums are put together in order.
void depthwise_weights(const ConvShape& s, const float* x, const float* y, float* w, bool last) {
    const Made made = forward_of(s);
    const Images<const float> from = inputs(s, x, last), result = outputs(s, y, last);
    const int64_t blocks = (s.channels + n_lanes - 1) / n_lanes, taps = s.taps(), at_once = made.at_once();
    const int64_t parts = std::min(s.n, 1 + 15 / blocks);
    Buffer<float> sums(blocks * parts * taps * n_lanes);
    const int64_t work = 1 + s.n * made.high * made.wide * (taps + 8) / parts;
    by_step(s, [&](auto step) {
        parallel(blocks * parts, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end) {
            for (int64_t t = begin; t < end; ++t) {
                const int64_t c = t / parts * n_lanes, count = std::min<int64_t>(n_lanes, s.channels - c), part = t % parts;
                const bool in_place = last && count == n_lanes;
                float* own = sums.data + t * taps * n_lanes;
                std::fill(own, own + taps * n_lanes, 0.0f);
                for (int64_t n = part * s.n / parts; n < (part + 1) * s.n / parts; ++n)
                    for (int64_t first = 0; first < made.high; first += at_once) {
                        const int64_t lines = std::min(at_once, made.high - first);
                        const auto [low, high] = made.reads(first, lines);
                        if (in_place) {
                            add_lines<step.value>(made.seen, {from.at(n, c, 0), 0, s.channels},
                                                                {result.at(n, c, 0), 0, s.channels}, first, lines, made.wide, own);
                            continue;
                        }
                        const Room room((high - low) * made.seen.wide, lines * made.wide, 0);
                        bring(from, n, c, count, low, high - low, room.x);
                        bring(result, n, c, count, first, lines, room.y);
                        add_lines<step.value>(made.seen, {room.x, low}, {room.y, first}, first, lines, made.wide, own);
                    }
            }
        });
    });
    for (int64_t c = 0; c < s.channels; ++c)
        for (int64_t t = 0; t < taps; ++t) {
            float sum = 0;
            for (int64_t part = 0; part < parts; ++part)
                sum += sums.data[((c / n_lanes * parts + part) * taps + t) * n_lanes + c % n_lanes];
            *w++ = sum;
        }
}

}  // namespace fw::windows
