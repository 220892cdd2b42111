// What the mean of windows and the way back share.
#pragma once

#include "base/scratch.h"
#include "pooling/pool2d.h"

namespace fw::windows {

// What the sums of windows are multiplied with: for each dimension how many elements count.
struct Shares {
    PoolAxis axis[conv_dims];
    double fixed = 0;  // 1 / divisor, if one is given
    bool include;

    Shares(const PoolShape& s, bool include, int64_t divisor) : include(include) {
        if (divisor) fixed = 1.0 / double(divisor);
        std::copy(s.axis, s.axis + conv_dims, axis);
    }
    double count(int d, int64_t w) const {
        const PoolAxis& a = axis[d];
        const int64_t start = a.start(w), stop = std::min(start + a.kernel, a.in + a.padding);
        return double(include ? stop - start : std::min(stop, a.in) - std::max<int64_t>(start, 0));
    }
    double line(int64_t i, int64_t j) const { return count(0, i) * count(1, j); }
    template <class T> T of(double line, int64_t l) const { return T(fixed != 0 ? fixed : 1.0 / (line * count(2, l))); }
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
    int64_t ends[conv_dims] = {};
    std::vector<Range> ranges;  // of all dimensions
    std::vector<T> share;

    ShortLines(const PoolShape& s, int64_t channels, const Shares& shares, bool wanted)
        : channels(channels), lines(s.axis[1].in), wide(s.axis[2].in * channels) {
        if (!wanted) return;
        ranges.reserve(size_t(s.axis[0].out + s.axis[1].out + s.axis[2].out)), share.reserve(size_t(s.out_size()));
        for (int d = 0; d < conv_dims; ++d) {
            for (int64_t w = 0; w < s.axis[d].out; ++w) ranges.push_back(inside(s.axis[d], w));
            ends[d] = int64_t(ranges.size());
        }
        for (int64_t i = 0; i < s.axis[0].out; ++i)
            for (int64_t j = 0; j < s.axis[1].out; ++j)
                for (int64_t l = 0; l < s.axis[2].out; ++l) share.push_back(shares.of<T>(shares.line(i, j), l));
    }
    FW_INLINE int64_t at(int64_t a, int64_t b, int64_t k) const { return (a * lines + b) * wide + k * channels; }
    template <class F> FW_INLINE void each(F&& f) const {
        const Range *first = ranges.data(), *second = first + ends[0], *third = first + ends[1], *end = first + ends[2];
        const T* by = share.data();
        for (const Range* a = first; a != second; ++a)
            for (const Range* b = second; b != third; ++b)
                for (const Range* z = third; z != end; ++z) f(*by++, *a, *b, *z);
    }
};

// One window that is the whole plane.
inline bool global(const PoolShape& s) {
    for (const PoolAxis& a : s.axis)
        if (a.out != 1 || a.kernel != a.in || a.padding) return false;
    return true;
}

// How means of these windows are computed, and spread: one window for the whole plane, window by window, or by lines.
template <class T> struct MeanWay {
    PoolShape s;
    const bool whole, brief;
    const Shares shares;
    const ShortLines<T> lines;

    MeanWay(const PoolShape& given, int64_t channels, bool include, int64_t divisor)
        : s(of_images(given, channels)), whole(channels == 1 && global(s)), brief(!whole && has_short_lines<T>(s, channels)),
          shares(s = whole || brief ? s : stacked(s), include, divisor), lines(s, channels, shares, brief) {}

  private:
    static PoolShape of_images(PoolShape s, int64_t channels) {
        s.planes /= channels;
        return s;
    }
};

}  // namespace fw::windows
