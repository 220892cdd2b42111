// The largest element of every window, and where it lies.
//
// Planes whose windows reach over the edge are copied with the lowest number around them. A window's element
// is the first of the largest, or the first nan.
#include <cstring>

#include "base/scratch.h"
#include "pooling/largest.h"

namespace fw::windows {
namespace {

// A plane as it is read: its lines, and how many numbers may be read from its beginning.
template <class T> struct Source {
    const T* data;
    int64_t line, slice, readable;
};

// The sizes of a padded copy; room for whole vectors behind it.
template <class T> struct Padded {
    int64_t size[conv_dims], room;
    explicit Padded(const PoolShape& s) {
        room = 1;
        for (int d = 0; d < conv_dims; ++d) {
            size[d] = std::max(s.axis[d].padding + s.axis[d].in, s.axis[d].reach());
            room *= size[d];
        }
        room += 2 * lanes<T>;
    }
};

template <class T> Source<T> padded(const PoolShape& s, const T* x) {
    const Padded<T> p(s);
    T* to = scratch<T>(2, p.room);
    std::fill(to, to + p.room, lowest<T>);
    for (int64_t i = 0; i < s.axis[0].in; ++i) {
        for (int64_t j = 0; j < s.axis[1].in; ++j, x += s.axis[2].in) {
            T* line = to + ((i + s.axis[0].padding) * p.size[1] + j + s.axis[1].padding) * p.size[2];
            std::memcpy(line + s.axis[2].padding, x, size_t(s.axis[2].in) * sizeof(T));
        }
    }
    return {to, p.size[2], p.size[1] * p.size[2], p.room};
}

// lanes numbers, `stride` apart, of which the first `n` are wanted
template <class T> FW_INLINE Vec<T> spaced(const T* p, int64_t stride, int64_t n, bool whole) {
    if (whole && stride == 1) return load(p);
    if (whole && stride == 2) return every_second<T>(p);
    T v[lanes<T>];
    for (int64_t i = 0; i < lanes<T>; ++i) v[i] = i < n ? p[i * stride] : T(0);
    return load(v);
}

// One line of windows; `at` is its first window's first element. K: the kernel's positions on a line, or 0.
template <class T, class P, int K, bool Places>
void max_line(const PoolShape& s, const Source<T>& from, int64_t at, T* largest, P* where) {
    const PoolAxis &x = s.axis[0], &y = s.axis[1], &z = s.axis[2];
    const int64_t kernel = K ? K : z.kernel;
    const int64_t last = (x.kernel - 1) * x.dilation * from.slice + (y.kernel - 1) * y.dilation * from.line +
                         (kernel - 1) * z.dilation + 2 * lanes<T>;
    for (int64_t p = 0; p < z.out; p += lanes<T>) {
        const int64_t n = std::min<int64_t>(lanes<T>, z.out - p), begin = at + p * z.stride;
        const bool whole = begin + last <= from.readable;
        Best<T, Places> best{spaced(from.data + begin, z.stride, n, whole), Mask<T>{}};
        Int<T> k = 0;
        for (int64_t i = 0; i < x.kernel; ++i) {
            for (int64_t j = 0; j < y.kernel; ++j) {
                const T* line = from.data + begin + i * x.dilation * from.slice + j * y.dilation * from.line;
#pragma GCC unroll 3
                for (int64_t l = 0; l < kernel; ++l)
                    best.look(spaced(line + l * z.dilation, z.stride, n, whole), k++);
            }
        }
        if (n == lanes<T>) {
            if (largest) store(largest + p, best.value);
            if (Places) store_places<T>(where + p, best.place, lanes<T>);
        } else {
            if (largest) store_first(largest + p, best.value, n);
            if (Places) store_places<T>(where + p, best.place, n);
        }
    }
}

template <class T, class P, bool Places> auto line_of(int64_t kernel) {
    return kernel == 2 ? max_line<T, P, 2, Places> : kernel == 3 ? max_line<T, P, 3, Places> : max_line<T, P, 0, Places>;
}

}  // namespace

template <class T, class P> void max_windows(const PoolShape& s, const T* x, T* largest, P* where) {
    const bool copies = s.overhangs();
    const PoolAxis& z = s.axis[2];
    auto line = where ? line_of<T, P, true>(z.kernel) : line_of<T, P, false>(z.kernel);
    parallel(s.planes, s.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
            const T* in = x + plane * s.in_size();
            Source<T> from{in, z.in, z.in * s.axis[1].in, (s.planes - plane) * s.in_size()};
            if (copies) from = padded(s, in);
            int64_t out = plane * s.out_size();
            for (int64_t i = 0; i < s.axis[0].out; ++i)
                for (int64_t j = 0; j < s.axis[1].out; ++j, out += z.out)
                    line(s, from, i * s.axis[0].stride * from.slice + j * s.axis[1].stride * from.line,
                         largest ? largest + out : nullptr, where ? where + out : nullptr);
        }
    });
}

template void max_windows(const PoolShape&, const float*, float*, uint8_t*);
template void max_windows(const PoolShape&, const float*, float*, int32_t*);
template void max_windows(const PoolShape&, const double*, double*, uint8_t*);
template void max_windows(const PoolShape&, const double*, double*, int32_t*);

}  // namespace fw::windows
