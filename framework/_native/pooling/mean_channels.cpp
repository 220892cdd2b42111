// The mean of every window of images whose channels lie side by side, and the way back: lines of windows are summed first,
// then along the line, as for rows.
#include "pooling/channels.h"
#include "pooling/mean.h"

namespace fw::windows {
namespace {

template <class T> FW_INLINE void add_channels(T* to, const T* from, int64_t count) {
    for (int64_t c = 0; c < count; c += lanes<T>) {
        const int64_t n = std::min<int64_t>(lanes<T>, count - c);
        keep(to + c, some(to + c, n) + some(from + c, n), n);
    }
}

template <class T> FW_INLINE void scale_channels(T* to, const T* from, T by, int64_t count) {
    for (int64_t c = 0; c < count; ++c) to[c] = from[c] * by;
}

// f(line of windows, place of its first result, the lines of the image that it reads)
template <class F> void each_line(const PoolShape& s, F&& f) {
    for (int64_t i = 0, out = 0; i < s.axis[0].out; ++i)
        for (int64_t j = 0; j < s.axis[1].out; ++j, out += s.axis[2].out)
            f(i, j, out, inside(s.axis[0], i), inside(s.axis[1], j));
}

// Windows and elements that are few enough to be gone over for each of the others.
constexpr int64_t few_elements = 9, some_elements = 64;

bool each_alone(const PoolShape& s) {
    return s.window() <= (are_apart(s) ? some_elements : few_elements);
}

// Of windows that share little: each for itself, in registers.
template <class T> void mean_alone(const PoolShape& s, int64_t channels, const Shares& shares, const T* x, T* y) {
    const PoolAxis &v = s.axis[1], &z = s.axis[2];
    const int64_t lines = s.axis[0].out * v.out, images = s.planes / channels;
    parallel(images * lines, 1 + (1 << 14) / (1 + z.out * channels * s.window()), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t line = i % lines;
            const Range as = inside(s.axis[0], line / v.out), bs = inside(v, line % v.out);
            const double share = shares.line(line / v.out, line % v.out);
            const T* from = x + i / lines * s.in_size() * channels;
            T* to = y + i * z.out * channels;
            for (int64_t l = 0; l < z.out; ++l, to += channels) {
                const Range zs = inside(z, l);
                const Vec<T> by = splat(shares.of<T>(share, l));
                for (int64_t c = 0; c < channels; c += lanes<T>) {
                    const int64_t n = std::min<int64_t>(lanes<T>, channels - c);
                    Vec<T> sum{};
                    for (int64_t k = zs.begin; k < zs.end; ++k) {
                        Vec<T> column{};
                        for (int64_t a = as.begin; a < as.end; ++a)
                            for (int64_t b = bs.begin; b < bs.end; ++b)
                                column += some(from + ((a * v.in + b) * z.in + k) * channels + c, n);
                        sum += column;
                    }
                    keep(to + c, sum * by, n);
                }
            }
        }
    });
}

// The way back: every pixel takes its share of the windows that reach it.
template <class T> void spread_alone(const PoolShape& s, int64_t channels, const Shares& shares, const T* y, T* x) {
    struct Read {
        const T* y;
        T share;
    };
    const Reached xs(s.axis[0]), ys(s.axis[1]), zs(s.axis[2]);
    const PoolAxis &v = s.axis[1], &w = s.axis[2];
    std::vector<T> share(size_t(s.out_size()));
    for (int64_t line = 0; line < s.axis[0].out * v.out; ++line)
        for (int64_t l = 0; l < w.out; ++l)
            share[size_t(line * w.out + l)] = shares.of<T>(shares.line(line / v.out, line % v.out), l);
    if (are_apart(s))
        return each_pixel_apart(s, channels, [&](int64_t image, int64_t pixel, int64_t window, int64_t) {
            T* to = x + (image * s.in_size() + pixel) * channels;
            if (window < 0) return void(std::fill_n(to, channels, T(0)));
            const T* from = y + (image * s.out_size() + window) * channels;
            const Vec<T> by = splat(share[size_t(window)]);
            for (int64_t c = 0; c < channels; c += lanes<T>) {
                const int64_t n = std::min<int64_t>(lanes<T>, channels - c);
                keep(to + c, some(from + c, n) * by, n);
            }
        });
    each_pixel(s, channels, channels, [&](int64_t image, int64_t pixel, int64_t i, int64_t j, int64_t l) {
        const T* from = y + image * s.out_size() * channels;
        T* to = x + (image * s.in_size() + pixel) * channels;
        Read reads[some_elements];
        Read* end = reads;
        for (const Reach& p : xs.at(i))
            for (const Reach& q : ys.at(j))
                for (const Reach& r : zs.at(l)) {
                    const int64_t out = (p.window * v.out + q.window) * w.out + r.window;
                    *end++ = {from + out * channels, share[size_t(out)]};
                }
        for (int64_t c = 0; c < channels; c += lanes<T>) {
            const int64_t n = std::min<int64_t>(lanes<T>, channels - c);
            Vec<T> sum{};
            for (const Read* r = reads; r != end; ++r) sum += some(r->y + c, n) * splat(r->share);
            keep(to + c, sum, n);
        }
    });
}

}  // namespace

template <class T>
void mean_channels(const PoolShape& s, int64_t channels, bool include, int64_t divisor, const T* x, T* y) {
    const Shares shares(s, include, divisor);
    if (each_alone(s)) return mean_alone(s, channels, shares, x, y);
    const PoolAxis& z = s.axis[2];
    each_share(s, channels, [&](int64_t image, int64_t first, int64_t count) {
        const T* from = x + image * s.in_size() * channels + first;
        T* to = y + image * s.out_size() * channels + first;
        T* line = scratch<T>(2, (z.in + 1) * count);  // its sums, and one window's behind them
        T* sum = line + z.in * count;
        each_line(s, [&](int64_t i, int64_t j, int64_t out, Range xs, Range ys) {
            std::fill_n(line, z.in * count, T(0));
            for (int64_t a = xs.begin; a < xs.end; ++a)
                for (int64_t b = ys.begin; b < ys.end; ++b)
                    for (int64_t k = 0; k < z.in; ++k)
                        add_channels(line + k * count, from + ((a * s.axis[1].in + b) * z.in + k) * channels, count);
            const double share = shares.line(i, j);
            for (int64_t l = 0; l < z.out; ++l) {
                const Range zs = inside(z, l);
                std::fill_n(sum, count, T(0));
                for (int64_t k = zs.begin; k < zs.end; ++k) add_channels(sum, line + k * count, count);
                scale_channels(to + (out + l) * channels, sum, shares.of<T>(share, l), count);
            }
        });
    });
}

template <class T>
void spread_mean_channels(const PoolShape& s, int64_t channels, bool include, int64_t divisor, const T* y, T* x) {
    const Shares shares(s, include, divisor);
    if (each_alone(s)) return spread_alone(s, channels, shares, y, x);
    const PoolAxis& z = s.axis[2];
    each_share(s, channels, [&](int64_t image, int64_t first, int64_t count) {
        const T* from = y + image * s.out_size() * channels + first;
        T* to = x + image * s.in_size() * channels + first;
        T* line = scratch<T>(2, (z.in + 1) * count);
        T* one = line + z.in * count;
        for (int64_t p = 0; p < s.in_size(); ++p) std::fill_n(to + p * channels, count, T(0));
        each_line(s, [&](int64_t i, int64_t j, int64_t out, Range xs, Range ys) {
            const double share = shares.line(i, j);
            std::fill_n(line, z.in * count, T(0));
            for (int64_t l = 0; l < z.out; ++l) {
                const Range zs = inside(z, l);
                scale_channels(one, from + (out + l) * channels, shares.of<T>(share, l), count);
                for (int64_t k = zs.begin; k < zs.end; ++k) add_channels(line + k * count, one, count);
            }
            for (int64_t a = xs.begin; a < xs.end; ++a)
                for (int64_t b = ys.begin; b < ys.end; ++b)
                    for (int64_t k = 0; k < z.in; ++k)
                        add_channels(to + ((a * s.axis[1].in + b) * z.in + k) * channels, line + k * count, count);
        });
    });
}

template void mean_channels(const PoolShape&, int64_t, bool, int64_t, const float*, float*);
template void mean_channels(const PoolShape&, int64_t, bool, int64_t, const double*, double*);
template void spread_mean_channels(const PoolShape&, int64_t, bool, int64_t, const float*, float*);
template void spread_mean_channels(const PoolShape&, int64_t, bool, int64_t, const double*, double*);

}  // namespace fw::windows
