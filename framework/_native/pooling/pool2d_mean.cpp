// The mean of every window, and the way back, of NumPy arrays.
#include "bind/images.h"
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
    const Sizes shape = pooled(sizes(x), out);
    const int64_t divided_by = divisor_of(divisor);
    if (has_channels_last(x, kernel)) {
        NewArray y = new_channels_last(x.ndim(), shape.data(), x.type());
        {
            Release release(x.size() * 4);
            by_float(x, [&](auto t) {
                using T = decltype(t);
                mean_channels(s, x.shape(1), include, divided_by, x.data<T>(), y.data<T>());
            });
        }
        return give(y);
    }
    InRows rows(x);
    NewArray y = new_array(int(shape.size()), shape.data(), x.type());
    {
        Release release(x.size() * 4);
        by_float(x, [&](auto t) {
            using T = decltype(t);
            mean_windows(s, include, divided_by, rows.a.data<T>(), y.data<T>());
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
    const int64_t divided_by = divisor_of(divisor);
    if (has_channels_last(y, kernel)) {
        NewArray x = new_channels_last(y.ndim(), x_shape.data(), y.type());
        {
            Release release(x.size() * 4);
            by_float(y, [&](auto t) {
                using T = decltype(t);
                spread_mean_channels(s, y.shape(1), include, divided_by, y.data<T>(), x.data<T>());
            });
        }
        return give(x);
    }
    InRows rows(y);
    NewArray x = new_array(int(x_shape.size()), x_shape.data(), y.type());
    const Shares shares(s, include, divided_by);
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
