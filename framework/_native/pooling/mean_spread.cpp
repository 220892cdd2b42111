// The way back of means: every element gets its shares of the windows that it is in.
#include "pooling/mean.h"

namespace fw::windows {
namespace {

template <class T> void spread_plane(const PoolShape& s, const Shares& shares, const T* y, T* x) {
    const PoolAxis& z = s.axis[2];
    const int64_t room = line_room(z);
    T* line = scratch<T>(2, room);
    std::fill(x, x + s.in_size(), T(0));
    for (int64_t i = 0; i < s.axis[0].out; ++i) {
        const Range xs = inside(s.axis[0], i);
        for (int64_t j = 0; j < s.axis[1].out; ++j, y += z.out) {
            const Range ys = inside(s.axis[1], j);
            const double share = shares.line(i, j);
            std::fill(line, line + room, T(0));
            for (int64_t l = 0; l < z.out; ++l) {
                const T v = y[l] * shares.of<T>(share, l);
                for (int64_t k = 0; k < z.kernel; ++k) line[l * z.stride + k] += v;
            }
            for (int64_t a = xs.begin; a < xs.end; ++a)
                for (int64_t b = ys.begin; b < ys.end; ++b)
                    add_to(x + (a * s.axis[1].in + b) * z.in, line + z.padding, z.in);
        }
    }
}

}  // namespace

template <class T> void spread_mean(const PoolShape& given, bool include, int64_t divisor, const T* y, T* x) {
    const PoolShape s = global(given) ? given : stacked(given);
    const Shares shares(s, include, divisor);
    const bool whole = global(s);
    parallel(s.planes, s.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            T* to = x + p * s.in_size();
            if (whole) std::fill(to, to + s.in_size(), y[p] * shares.of<T>(shares.line(0, 0), 0));
            else spread_plane(s, shares, y + p * s.out_size(), to);
        }
    });
}

template void spread_mean(const PoolShape&, bool, int64_t, const float*, float*);
template void spread_mean(const PoolShape&, bool, int64_t, const double*, double*);

}  // namespace fw::windows
