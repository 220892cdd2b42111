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

// One window that is the whole plane.
inline bool global(const PoolShape& s) {
    for (const PoolAxis& a : s.axis)
        if (a.out != 1 || a.kernel != a.in || a.padding) return false;
    return true;
}

}  // namespace fw::windows
