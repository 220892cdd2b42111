// The largest element of every window, and where it lies.
//
// Planes whose windows reach over the edge are copied with the lowest number around them. A window's element
// is the first of the largest, or the first nan.
#include <cstring>
#include <optional>
#include <vector>

#include "base/scratch.h"
#include "pooling/largest.h"
#include "reduce/totals.h"

namespace fw::windows {
namespace {

// A plane as it is read: its lines, and how many numbers may be read from its beginning.
template <class T> struct ReadPlane {
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
        room += 3 * lanes<T>;
    }
};

template <class T> ReadPlane<T> padded(const PoolShape& s, const T* x) {
    const Padded<T> p(s);
    T *to = scratch<T>(2, p.room), *end = to;  // how far it is filled
    for (int64_t i = 0; i < s.axis[0].in; ++i) {
        for (int64_t j = 0; j < s.axis[1].in; ++j, x += s.axis[2].in) {
            T* line = to + ((i + s.axis[0].padding) * p.size[1] + j + s.axis[1].padding) * p.size[2] + s.axis[2].padding;
            std::fill(end, line, lowest<T>);
            end = std::copy_n(x, s.axis[2].in, line);
        }
    }
    std::fill(end, to + p.room, lowest<T>);
    return {to, p.size[2], p.size[1] * p.size[2], p.room};
}

// Every third number, of three vectors.
template <class T> struct EveryThird {
    static constexpr int of_two(int i) { return 3 * i < 2 * lanes<T> ? 3 * i : 0; }
    struct First {
        static constexpr int at(int i) { return of_two(i); }
    };
    struct Rest {
        static constexpr int at(int i) { return 3 * i < 2 * lanes<T> ? i : 3 * i - lanes<T>; }
    };
    static FW_INLINE Vec<T> of(const T* p) {
        const Vec<T> first = permute<T, First>(load(p), load(p + lanes<T>));
        return permute<T, Rest>(first, load(p + 2 * lanes<T>));
    }
};

// lanes numbers, `stride` apart, of which the first `n` are wanted
template <class T> FW_INLINE Vec<T> spaced(const T* p, int64_t stride, int64_t n, bool whole) {
    if (whole && stride == 1) return load(p);
    if (whole && stride == 2) return every_second<T>(p);
    if (whole && stride == 3) return EveryThird<T>::of(p);
    T v[lanes<T>];
    for (int64_t i = 0; i < lanes<T>; ++i) v[i] = i < n ? p[i * stride] : T(0);
    return load(v);
}

constexpr int64_t MOST_LINES = 16;  // on which windows that are taken side by side lie

// The largest number of windows side by side, one number further on each, of `kernel` numbers that are `apart` on each line; K: the
// kernel, or 0. As many of the windows as full vectors hold, up to the first vector of which a number may be nan: gives how many.
template <class T, int K>
int64_t largest_side_by_side(const T* const* lines, int64_t count, int64_t wanted, int64_t given, int64_t apart, T* largest) {
    const int64_t kernel = K ? K : given, way = (kernel - 1) * apart;
    int64_t p = 0;
    for (; p + lanes<T> <= wanted; p += lanes<T>) {
        Vec<T> best = load(lines[0] + p), sum{};
        for (int64_t i = 0; i < count; ++i) {
            const T* line = lines[i] + p;
            const Vec<T> begin = load(line), end = load(line + way);  // between them they have all numbers of these windows
            best = math::greater(begin, best);  // the first of equal ones
#pragma GCC unroll 4
            for (int64_t l = 1; l < kernel - 1; ++l) best = math::greater(load(line + l * apart), best);
            best = math::greater(end, best);
            sum += begin + end;  // nan where one of them is, or inf meets -inf
        }
        if (__builtin_expect(math::any(sum != sum), 0)) break;
        store(largest + p, best);
    }
    return p;
}

// One line of windows; `at` is its first window's first element. K: the kernel's positions on a line, or 0.
template <class T, int K, bool Places>
FW_INLINE void max_line(const PoolShape& s, const ReadPlane<T>& from, int64_t at, T* largest, WindowPlaces where) {
    const PoolAxis &x = s.axis[0], &y = s.axis[1], &z = s.axis[2];
    const int64_t kernel = K ? K : z.kernel;
    const int64_t last = (x.kernel - 1) * x.dilation * from.slice + (y.kernel - 1) * y.dilation * from.line +
                         (kernel - 1) * z.dilation + 3 * lanes<T>;
    int64_t next = 0;
    if (!Places && z.stride == 1 && (kernel - 1) * z.dilation <= lanes<T> && x.kernel * y.kernel <= MOST_LINES) {
        const T* lines[MOST_LINES];
        int64_t count = 0;
        for (int64_t i = 0; i < x.kernel; ++i)
            for (int64_t j = 0; j < y.kernel; ++j)
                lines[count++] = from.data + at + i * x.dilation * from.slice + j * y.dilation * from.line;
        next = largest_side_by_side<T, K>(lines, count, std::min(z.out, from.readable - last - at), kernel, z.dilation, largest);
    }
    for (; next < z.out; next += lanes<T>) {
        const int64_t p = std::min(next, std::max<int64_t>(z.out - lanes<T>, 0));  // the last may overlap the one before
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
        best.give(largest ? largest + p : nullptr, where + p, n);
    }
}

template <class T, int K, bool Places>
void max_plane(const PoolShape& s, const ReadPlane<T>& from, T* largest, WindowPlaces where) {
    const PoolAxis &x = s.axis[0], &y = s.axis[1], &z = s.axis[2];
    int64_t out = 0;
    for (int64_t i = 0; i < x.out; ++i)
        for (int64_t j = 0; j < y.out; ++j, out += z.out)
            max_line<T, K, Places>(s, from, i * x.stride * from.slice + j * y.stride * from.line,
                                      largest ? largest + out : nullptr, where + out);
}

// Every second number of a and b, those of each 16 bytes together: processors do that in one step.
template <int First, class T, size_t... I> FW_INLINE Vec<T> alternate(Vec<T> a, Vec<T> b, std::index_sequence<I...>) {
    constexpr int q = 16 / sizeof(T);
    return __builtin_shufflevector(a, b, (I / q * q + 2 * I % q + First + (I % q < q / 2 ? 0 : lanes<T>))...);
}
// Numbers that `alternate` picked, in their order.
template <class T, class V, size_t... I> FW_INLINE V in_order(V v, std::index_sequence<I...>) {
    constexpr int q = 16 / sizeof(T), half = lanes<T> / 2;
    return __builtin_shufflevector(v, v, (I % half / (q / 2) * q + I % (q / 2) + I / half * (q / 2))...);
}

// Windows of 2 x 2 side by side on lines.
template <class T, bool Places>
void max_squares(const PoolShape& s, const ReadPlane<T>& from, T* largest, WindowPlaces where) {
    constexpr int64_t wide = lanes<T>;
    constexpr auto each = std::make_index_sequence<lanes<T>>{};
    const PoolAxis &y = s.axis[1], &z = s.axis[2];
    const int64_t below = y.dilation * from.line, step = y.stride * from.line, length = z.out, end = y.out;
    const int64_t n = std::min(length, wide), readable = from.readable - below - 2 * wide;
    for (int64_t j = 0; j < end; ++j) {
        for (int64_t next = 0; next < length; next += wide) {
            const int64_t p = std::min(next, length - n), begin = j * step + 2 * p;  // the last may overlap the one before
            if (n < wide && begin > readable) {
                max_line<T, 2, Places>(s, from, begin, largest, where);
                continue;
            }
            const T *one = from.data + begin, *two = one + below;
            const Vec<T> a = load(one), b = load(one + wide), c = load(two), d = load(two + wide);
            const Vec<T> ahead = alternate<0, T>(a, b, each), behind = alternate<1, T>(a, b, each);
            const Vec<T> low_ahead = alternate<0, T>(c, d, each), low_behind = alternate<1, T>(c, d, each);
            Best<T, Places> best{ahead, {}};
            if constexpr (Places) {
                Best<T, Places> under{low_ahead, {}};
                best.look(behind, 1);
                under.look(low_behind, 1);
                best.join(under, 2);
                best.place = in_order<T>(best.place, each);
            } else {
                best.value = largest_of<T>(ahead, behind, low_ahead, low_behind);
            }
            best.value = in_order<T>(best.value, each);
            // numbers behind a short line are those of the next lines, which come after
            const int64_t kept = (end - 1 - j) * length >= wide - n ? wide : n;
            best.give(largest ? largest + p : nullptr, where + p, kept);
        }
        if (largest) largest += length;
        where = where + length;
    }
}

template <class T, bool Places> auto plane_of(const PoolShape& s) {
    const PoolAxis &x = s.axis[0], &y = s.axis[1], &z = s.axis[2];
    if (z.kernel == 2 && z.stride == 2 && z.dilation == 1 && y.kernel == 2 && x.kernel == 1 && x.out == 1)
        return max_squares<T, Places>;
    return z.kernel == 2 ? max_plane<T, 2, Places> : z.kernel == 3 ? max_plane<T, 3, Places> : max_plane<T, 0, Places>;
}

// Around the image numbers are as low as in a window of -inf, whose element is the first in the image all the same.
struct Edge {
    struct Window {
        int64_t at, first;
    };
    std::vector<Window> windows;  // those that begin outside

    explicit Edge(const PoolShape& s) {
        int64_t at = 0;
        for (int64_t i = 0; i < s.axis[0].out; ++i)
            for (int64_t j = 0; j < s.axis[1].out; ++j)
                for (int64_t l = 0; l < s.axis[2].out; ++l, ++at)
                    if (const int64_t first = s.first(i, j, l)) windows.push_back({at, first});
    }

    template <class P> void put_inside(P* where) const {
        for (const Window& w : windows) where[w.at] = std::max(where[w.at], P(w.first));
    }
    void put_inside(WindowPlaces where) const {
        where.bytes == 1 ? put_inside(static_cast<uint8_t*>(where.to)) : put_inside(static_cast<int32_t*>(where.to));
    }
};

// Of one axis: the first element of a window that is in the image, which one of the window it is, and how many of these there are.
struct Extent {
    int64_t first, number, count;

    Extent(const PoolAxis& axis, int64_t out) {
        const int64_t start = axis.start(out), d = axis.dilation, end = std::min(start + (axis.kernel - 1) * d + 1, axis.in);
        number = axis.first(out);
        const int64_t from = start + number * d;
        count = from >= 0 && from < end ? (end - from + d - 1) / d : 0;
        first = std::clamp<int64_t>(from, 0, axis.in - 1);
    }
};

struct Window {
    int64_t first, number, counts[3];
};

// Window by window: largest elements, if they are wanted, and which place in the image or number in its window each is, if that is.
template <class T, class P, bool NUMBERS> void one_by_one(const PoolShape& s, const T* x, T* largest, P* where) {
    const PoolAxis &a = s.axis[0], &b = s.axis[1], &c = s.axis[2];
    std::vector<Window> windows;  // the same in all planes
    windows.reserve(size_t(s.out_size()));
    for (int64_t i = 0; i < a.out; ++i)
        for (int64_t j = 0; j < b.out; ++j)
            for (int64_t l = 0; l < c.out; ++l) {
                const Extent p(a, i), q(b, j), r(c, l);
                windows.push_back({(p.first * b.in + q.first) * c.in + r.first, (p.number * b.kernel + q.number) * c.kernel + r.number,
                                   {p.count, q.count, r.count}});
            }
    const int64_t steps[3] = {a.dilation * b.in * c.in, b.dilation * c.in, c.dilation};
    const int64_t numbers[3] = {b.kernel * c.kernel, c.kernel, 1};
    parallel(s.planes, s.grain(), [&](int64_t begin, int64_t end) {
        int64_t to = begin * s.out_size();
        for (int64_t plane = begin; plane < end; ++plane) {
            const T* image = x + plane * s.in_size();
            for (const Window& w : windows) {
                T value = lowest<T>;
                int64_t best = NUMBERS ? w.number : w.first, p = w.first;
                for (int64_t i = 0; i < w.counts[0]; ++i, p += steps[0])
                    for (int64_t j = 0, q = p; j < w.counts[1]; ++j, q += steps[1])
                        for (int64_t k = 0, at = q; k < w.counts[2]; ++k, at += steps[2]) {
                            const T now = image[at];
                            const bool better = !(now <= value) & (value == value);  // no branch, which nobody foresees
                            value = better ? now : value;
                            const int64_t found = NUMBERS ? w.number + i * numbers[0] + j * numbers[1] + k : at;
                            best = better ? found : best;
                        }
                if (largest) largest[to] = value;
                if (where) where[to] = P(best);
                ++to;
            }
        }
    });
}

// Whether lines have so few windows, in planes of not too many, that vectors are no help.
template <class T> bool has_few_windows(const PoolShape& s) {
    constexpr int64_t MOST = 1 << 14;
    return 4 * s.axis[2].out <= lanes<T> && s.out_size() <= MOST && s.window() <= 64;
}

// Whether windows are groups of numbers of a line, one after another, which are all of it. (Of three there are instructions.)
bool are_groups(const PoolShape& s) {
    const auto is_single = [](const PoolAxis& a) { return a.kernel == 1 && a.stride == 1 && !a.padding && a.out == a.in; };
    const PoolAxis& line = s.axis[2];
    return is_single(s.axis[0]) && is_single(s.axis[1]) && line.kernel == line.stride && line.dilation == 1 && !line.padding &&
           line.kernel != 3 && line.out * line.kernel == line.in;
}

template <class T> bool max_groups(const PoolShape& s, const T* x, T* largest) {
    const PoolAxis& line = s.axis[2];
    constexpr int64_t B = sizeof(T);
    const int64_t shape[] = {s.planes * s.axis[0].in * s.axis[1].in, line.out, line.kernel};
    const int64_t strides[] = {line.in * B, line.kernel * B, B};
    reduce::Plan plan;
    if (!plan.make(3, shape, strides, B, 1u << 2)) return false;
    reduce::extreme(plan, reinterpret_cast<const char*>(x), largest, true);
    return true;
}

}  // namespace

template <class T> void max_windows(const PoolShape& given, const T* x, T* largest, WindowPlaces where) {
    if (!where && are_groups(given) && max_groups(given, x, largest)) return;
    if (has_few_windows<T>(given)) {
        if (where.bytes == 4) return one_by_one<T, int32_t, true>(given, x, largest, static_cast<int32_t*>(where.to));
        return one_by_one<T, uint8_t, true>(given, x, largest, static_cast<uint8_t*>(where.to));
    }
    const PoolShape s = stacked(given);
    const bool copies = s.overhangs();
    const auto run = where ? plane_of<T, true>(s) : plane_of<T, false>(s);
    std::optional<Edge> edge;
    if (where && s.pads()) edge.emplace(s);
    parallel(s.planes, s.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
            const T* in = x + plane * s.in_size();
            ReadPlane<T> from{in, s.axis[2].in, s.axis[2].in * s.axis[1].in, (s.planes - plane) * s.in_size()};
            if (copies) from = padded(s, in);
            const int64_t out = plane * s.out_size();
            run(s, from, largest ? largest + out : nullptr, where + out);
            if (edge) edge->put_inside(where + out);
        }
    });
}

template <class T> void max_each_window(const PoolShape& s, const T* x, T* largest, int64_t* place) {
    one_by_one<T, int64_t, false>(s, x, largest, place);
}

template void max_each_window(const PoolShape&, const float*, float*, int64_t*);
template void max_each_window(const PoolShape&, const double*, double*, int64_t*);
template void max_windows(const PoolShape&, const float*, float*, WindowPlaces);
template void max_windows(const PoolShape&, const double*, double*, WindowPlaces);

}  // namespace fw::windows
