// The mean of every window, and the way back, of NumPy arrays.
#include "bind/images.h"
#include "pooling/pool2d.h"

namespace fw::windows {
namespace {

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
    {
        Release release(x.size() * 4);
        by_float(y, [&](auto t) {
            using T = decltype(t);
            spread_mean(s, include, divided_by, rows.a.data<T>(), x.data<T>());
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
