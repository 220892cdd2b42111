// The mean of every window: lines are summed first, then along the line.
#include "pooling/mean.h"

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
template <class T> void sum_line(const PoolAxis& z, const T* line, T* to) {
    if (z.kernel > 8) {
        for (int64_t l = 0; l < z.out; ++l) to[l] = sum_of(line + l * z.stride, z.kernel);
        return;
    }
    for (int64_t l = 0; l < z.out; ++l) {
        T sum = line[l * z.stride];
        for (int64_t k = 1; k < z.kernel; ++k) sum += line[l * z.stride + k];
        to[l] = sum;
    }
}

template <class T> void mean_plane(const PoolShape& s, const Shares& shares, const T* x, T* y) {
    const PoolAxis& z = s.axis[2];
    const int64_t room = line_room(z);
    T* line = scratch<T>(2, room);
    std::fill(line, line + room, T(0));
    for (int64_t i = 0; i < s.axis[0].out; ++i) {
        const Range xs = inside(s.axis[0], i);
        for (int64_t j = 0; j < s.axis[1].out; ++j, y += z.out) {
            const Range ys = inside(s.axis[1], j);
            T* middle = line + z.padding;
            std::fill(middle, middle + z.in, T(0));
            for (int64_t a = xs.begin; a < xs.end; ++a)
                for (int64_t b = ys.begin; b < ys.end; ++b)
                    add_to(middle, x + (a * s.axis[1].in + b) * z.in, z.in);
            sum_line(z, line, y);
            const double share = shares.line(i, j);
            for (int64_t l = 0; l < z.out; ++l) y[l] *= shares.of<T>(share, l);
        }
    }
}

}  // namespace

template <class T> void mean_windows(const PoolShape& given, bool include, int64_t divisor, const T* x, T* y) {
    const PoolShape s = global(given) ? given : stacked(given);
    const Shares shares(s, include, divisor);
    const bool whole = global(s);
    parallel(s.planes, s.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            const T* in = x + p * s.in_size();
            if (whole) y[p] = sum_of(in, s.in_size()) * shares.of<T>(shares.line(0, 0), 0);
            else mean_plane(s, shares, in, y + p * s.out_size());
        }
    });
}

template void mean_windows(const PoolShape&, bool, int64_t, const float*, float*);
template void mean_windows(const PoolShape&, bool, int64_t, const double*, double*);

}  // namespace fw::windows
