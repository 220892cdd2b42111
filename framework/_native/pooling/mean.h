// What the mean of windows and the way back share.
#pragma once

#include "base/scratch.h"
#include "pooling/pool2d.h"

namespace fw::windows {

// What the sums of windows are multiplied with: for each dimension how many elements count.
struct Shares {
    std::vector<double> count[conv_dims];
    double fixed = 0;  // 1 / divisor, if one is given

    Shares(const PoolShape& s, bool include, int64_t divisor) {
        if (divisor) fixed = 1.0 / double(divisor);
        for (int d = 0; d < conv_dims; ++d) {
            const PoolAxis& a = s.axis[d];
            for (int64_t w = 0; w < a.out; ++w) {
                const int64_t start = a.start(w), stop = std::min(start + a.kernel, a.in + a.padding);
                count[d].push_back(
                    double(include ? stop - start : std::min(stop, a.in) - std::max<int64_t>(start, 0)));
            }
        }
    }
    double line(int64_t i, int64_t j) const { return count[0][size_t(i)] * count[1][size_t(j)]; }
    template <class T> T of(double line, int64_t l) const {
        return T(fixed != 0 ? fixed : 1.0 / (line * count[2][size_t(l)]));
    }
};

struct Range {
    int64_t begin, end;
};
inline Range inside(const PoolAxis& a, int64_t window) {
    return {std::max<int64_t>(a.start(window), 0), std::min(a.start(window) + a.kernel, a.in)};
}

template <class T> void add_to(T* to, const T* from, int64_t n) {
    int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) store(to + i, load(to + i) + load(from + i));
    for (; i < n; ++i) to[i] += from[i];
}

inline int64_t line_room(const PoolAxis& z) { return std::max(z.padding + z.in, z.reach()); }

// Whether lines are shorter than a vector, and windows share little of them.
template <class T> bool has_short_lines(const PoolShape& s, int64_t channels) {
    const PoolAxis& z = s.axis[2];
    return z.in * channels < lanes<T> && (z.kernel <= 4 || z.out * z.kernel <= 2 * z.in);
}

// The windows of an image with such lines, one after the other.
template <class T> struct ShortLines {
    const int64_t channels, lines, wide;
    std::vector<Range> ranges[conv_dims];
    std::vector<T> share;

    ShortLines(const PoolShape& s, int64_t channels, const Shares& shares, bool wanted)
        : channels(channels), lines(s.axis[1].in), wide(s.axis[2].in * channels) {
        if (!wanted) return;
        for (int d = 0; d < conv_dims; ++d)
            for (int64_t w = 0; w < s.axis[d].out; ++w) ranges[d].push_back(inside(s.axis[d], w));
        for (int64_t i = 0; i < s.axis[0].out; ++i)
            for (int64_t j = 0; j < s.axis[1].out; ++j)
                for (int64_t l = 0; l < s.axis[2].out; ++l) share.push_back(shares.of<T>(shares.line(i, j), l));
    }
    FW_INLINE int64_t at(int64_t a, int64_t b, int64_t k) const { return (a * lines + b) * wide + k * channels; }
    template <class F> FW_INLINE void each(F&& f) const {
        const T* by = share.data();
        for (const Range& a : ranges[0])
            for (const Range& b : ranges[1])
                for (const Range& z : ranges[2]) f(*by++, a, b, z);
    }
};

// One window that is the whole plane.
inline bool global(const PoolShape& s) {
    for (const PoolAxis& a : s.axis)
        if (a.out != 1 || a.kernel != a.in || a.padding) return false;
    return true;
}

}  // namespace fw::windows
