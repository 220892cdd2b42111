// The mean of every window, and the way back: lines are summed first, then along the line.
#include "pooling/pool2d.h"
#include "base/scratch.h"

namespace fw::windows {
namespace {

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
Range inside(const PoolAxis& a, int64_t window) {
    return {std::max<int64_t>(a.start(window), 0), std::min(a.start(window) + a.kernel, a.in)};
}

template <class T> void add_to(T* to, const T* from, int64_t n) {
    int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) store(to + i, load(to + i) + load(from + i));
    for (; i < n; ++i) to[i] += from[i];
}

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

int64_t line_room(const PoolAxis& z) { return std::max(z.padding + z.in, z.reach()); }

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

// One window that is the whole plane.
bool global(const PoolShape& s) {
    for (const PoolAxis& a : s.axis)
        if (a.out != 1 || a.kernel != a.in || a.padding) return false;
    return true;
}

template <class T> void mean(const PoolShape& s, const Shares& shares, const T* x, T* y) {
    const bool whole = global(s);
    parallel(s.planes, s.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            const T* in = x + p * s.in_size();
            if (whole) y[p] = sum_of(in, s.in_size()) * shares.of<T>(shares.line(0, 0), 0);
            else mean_plane(s, shares, in, y + p * s.out_size());
        }
    });
}

template <class T> void spread_mean(const PoolShape& s, const Shares& shares, const T* y, T* x) {
    const bool whole = global(s);
    parallel(s.planes, s.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            T* to = x + p * s.in_size();
            if (whole) std::fill(to, to + s.in_size(), y[p] * shares.of<T>(shares.line(0, 0), 0));
            else spread_plane(s, shares, y + p * s.out_size(), to);
        }
    });
}

bool mean_shape(PoolShape& s, const Sizes& x, const Sizes& kernel, const Sizes& stride, const Sizes& padding,
                const Sizes& out) {
    return pool_shape(s, x, kernel, stride, padding, Sizes(kernel.size(), 1), out);
}

int64_t divisor_of(nb::handle divisor) { return divisor.is_none() ? 0 : nb::cast<int64_t>(divisor); }

nb::object avg_pool(Array x, const Sizes& kernel, const Sizes& stride, const Sizes& padding, const Sizes& out,
                    bool include, nb::handle divisor) {
    PoolShape s;
    if (!x.is_float() || !mean_shape(s, sizes(x), kernel, stride, padding, out)) return not_implemented();
    InRows rows(x);
    const Sizes shape = pooled(sizes(x), out);
    NewArray y = new_array(int(shape.size()), shape.data(), x.type());
    const Shares shares(s, include, divisor_of(divisor));
    {
        Release release(x.size() * 4);
        by_float(x, [&](auto t) {
            using T = decltype(t);
            mean(s, shares, rows.a.data<T>(), y.data<T>());
        });
    }
    return give_images(y, channels_last(x));
}

nb::object avg_spread(Array y, const Sizes& x_shape, const Sizes& kernel, const Sizes& stride,
                      const Sizes& padding, const Sizes& out, bool include, nb::handle divisor) {
    PoolShape s;
    if (!y.is_float() || !mean_shape(s, x_shape, kernel, stride, padding, out) ||
        !has_shape(y, pooled(x_shape, out)))
        return not_implemented();
    InRows rows(y);
    NewArray x = new_array(int(x_shape.size()), x_shape.data(), y.type());
    const Shares shares(s, include, divisor_of(divisor));
    {
        Release release(x.size() * 4);
        by_float(y, [&](auto t) {
            using T = decltype(t);
            spread_mean(s, shares, rows.a.data<T>(), x.data<T>());
        });
    }
    return give_images(x, channels_last(y));
}

FW_BIND(m) {
    m.def("avg_pool", &avg_pool, nb::arg("x"), nb::arg("kernel"), nb::arg("stride"), nb::arg("padding"),
          nb::arg("out"), nb::arg("include"), nb::arg("divisor").none());
    m.def("avg_spread", &avg_spread, nb::arg("y"), nb::arg("x_shape"), nb::arg("kernel"), nb::arg("stride"),
          nb::arg("padding"), nb::arg("out"), nb::arg("include"), nb::arg("divisor").none());
}

}  // namespace
}  // namespace fw::windows
