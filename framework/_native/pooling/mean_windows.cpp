// The mean of every window: lines are summed first, then along the line. A few channels may lie side by side.
#include "pooling/mean.h"
#include "reduce/totals.h"

namespace fw::windows {
namespace {

template <class T> T sum_of(const T* p, int64_t n) {
    Vec<T> a{}, b{};
    int64_t i = 0;
    for (; i + 2 * lanes<T> <= n; i += 2 * lanes<T>) {
        a += load(p + i);
        b += load(p + i + lanes<T>);
    }
    T sum = n >= 2 * lanes<T> ? sum_lanes<T>(a + b) : T(0);
    for (; i < n; ++i) sum += p[i];
    return sum;
}

// The sums of a line's windows; `line` holds the image's line with zeros around it.
template <class T> void sum_line(const PoolAxis& z, int64_t channels, const T* line, T* to) {
    if (z.kernel > 8 && channels == 1) {
        for (int64_t l = 0; l < z.out; ++l) to[l] = sum_of(line + l * z.stride, z.kernel);
        return;
    }
    for (int64_t l = 0; l < z.out; ++l, line += z.stride * channels)
        for (int64_t c = 0; c < channels; ++c) {
            T sum = line[c];
            for (int64_t k = 1; k < z.kernel; ++k) sum += line[k * channels + c];
            *to++ = sum;
        }
}

template <class T> void mean_plane(const PoolShape& s, int64_t channels, const Shares& shares, const T* x, T* y) {
    const PoolAxis& z = s.axis[2];
    const int64_t room = line_room(z) * channels, wide = z.in * channels;
    T* line = scratch<T>(2, room);
    std::fill(line, line + room, T(0));
    for (int64_t i = 0; i < s.axis[0].out; ++i) {
        const Range xs = inside(s.axis[0], i);
        for (int64_t j = 0; j < s.axis[1].out; ++j) {
            const Range ys = inside(s.axis[1], j);
            T* middle = line + z.padding * channels;
            std::fill(middle, middle + wide, T(0));
            for (int64_t a = xs.begin; a < xs.end; ++a)
                for (int64_t b = ys.begin; b < ys.end; ++b)
                    add_to(middle, x + (a * s.axis[1].in + b) * wide, wide);
            sum_line(z, channels, line, y);
            const double share = shares.line(i, j);
            for (int64_t l = 0; l < z.out; ++l) {
                const T by = shares.of<T>(share, l);
                for (int64_t c = 0; c < channels; ++c) *y++ *= by;
            }
        }
    }
}

// Of lines too short for vectors, each window for itself.
template <class T> void mean_short(const ShortLines<T>& w, const T* x, T* y) {
    w.each([&](T share, Range as, Range bs, Range zs) {
        for (int64_t c = 0; c < w.channels; ++c) {
            T sum = 0;
            for (int64_t k = zs.begin; k < zs.end; ++k) {
                T column = 0;
                for (int64_t a = as.begin; a < as.end; ++a)
                    for (int64_t b = bs.begin; b < bs.end; ++b) column += x[w.at(a, b, k) + c];
                sum += column;
            }
            *y++ = sum * share;
        }
    });
}

// Of one window each, which is the whole plane.
template <class T> void mean_planes(const PoolShape& s, T share, const T* x, T* y) {
    const int64_t shape[] = {s.planes, s.in_size()}, strides[] = {s.in_size() * int64_t(sizeof(T)), int64_t(sizeof(T))};
    reduce::Plan plan;
    plan.make(2, shape, strides, sizeof(T), 1u << 1);
    reduce::total(plan, reinterpret_cast<const char*>(x), y, false);
    for (int64_t p = 0; p < s.planes; ++p) y[p] *= share;
}

}  // namespace

template <class T> void mean_windows(const PoolShape& given, int64_t channels, bool include, int64_t divisor, const T* x, T* y) {
    const MeanWay<T> way(given, channels, include, divisor);
    const PoolShape& s = way.s;
    const Shares& shares = way.shares;
    if (way.whole) return mean_planes(s, shares.of<T>(shares.line(0, 0), 0), x, y);
    parallel(s.planes, s.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            const T* in = x + p * s.in_size() * channels;
            T* out = y + p * s.out_size() * channels;
            if (way.brief) mean_short(way.lines, in, out);
            else mean_plane(s, channels, shares, in, out);
        }
    });
}

template void mean_windows(const PoolShape&, int64_t, bool, int64_t, const float*, float*);
template void mean_windows(const PoolShape&, int64_t, bool, int64_t, const double*, double*);

}  // namespace fw::windows
