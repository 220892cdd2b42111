// The way back of means: every element gets its shares of the windows that it is in.
#include "pooling/mean.h"

namespace fw::windows {
namespace {

template <class T> void spread_plane(const PoolShape& s, int64_t channels, const Shares& shares, const T* y, T* x) {
    const PoolAxis& z = s.axis[2];
    const int64_t room = line_room(z) * channels, wide = z.in * channels;
    T* line = scratch<T>(2, room);
    std::fill(x, x + s.in_size() * channels, T(0));
    for (int64_t i = 0; i < s.axis[0].out; ++i) {
        const Range xs = inside(s.axis[0], i);
        for (int64_t j = 0; j < s.axis[1].out; ++j) {
            const Range ys = inside(s.axis[1], j);
            const double share = shares.line(i, j);
            std::fill(line, line + room, T(0));
            for (int64_t l = 0; l < z.out; ++l) {
                const T by = shares.of<T>(share, l);
                T* to = line + l * z.stride * channels;
                for (int64_t c = 0; c < channels; ++c, ++to, ++y) {
                    const T v = *y * by;
                    for (int64_t k = 0; k < z.kernel; ++k) to[k * channels] += v;
                }
            }
            for (int64_t a = xs.begin; a < xs.end; ++a)
                for (int64_t b = ys.begin; b < ys.end; ++b)
                    add_to(x + (a * s.axis[1].in + b) * wide, line + z.padding * channels, wide);
        }
    }
}

// Of lines too short for vectors, window by window.
template <class T> void spread_short(const PoolShape& s, const ShortLines<T>& w, const T* y, T* x) {
    std::fill_n(x, s.in_size() * w.channels, T(0));
    w.each([&](T share, Range as, Range bs, Range zs) {
        for (int64_t c = 0; c < w.channels; ++c) {
            const T v = *y++ * share;
            for (int64_t a = as.begin; a < as.end; ++a)
                for (int64_t b = bs.begin; b < bs.end; ++b)
                    for (int64_t k = zs.begin; k < zs.end; ++k) x[w.at(a, b, k) + c] += v;
        }
    });
}

}  // namespace

template <class T> void spread_mean(const PoolShape& given, int64_t channels, bool include, int64_t divisor, const T* y, T* x) {
    const MeanWay<T> way(given, channels, include, divisor);
    const PoolShape& s = way.s;
    const Shares& shares = way.shares;
    parallel(s.planes, s.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            const T* from = y + p * s.out_size() * channels;
            T* to = x + p * s.in_size() * channels;
            if (way.whole) std::fill(to, to + s.in_size(), *from * shares.of<T>(shares.line(0, 0), 0));
            else if (way.brief) spread_short(s, way.lines, from, to);
            else spread_plane(s, channels, shares, from, to);
        }
    });
}

template void spread_mean(const PoolShape&, int64_t, bool, int64_t, const float*, float*);
template void spread_mean(const PoolShape&, int64_t, bool, int64_t, const double*, double*);

}  // namespace fw::windows
