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

// A result of this shape, over numbers `from`: by `channels(from, to, n)` where so many channels lie side by side and fill a share of
// a vector, else by `rows(from, to, n)`, of a few channels or one.
template <class Channels, class Rows>
nb::object made_of(Array from, const Sizes& shape, const Sizes& kernel, Channels&& channels, Rows&& rows) {
    const bool last = from.usable() && from.ndim() == int(kernel.size()) + 2 && channels_last(from);
    const bool wide = has_channels_last(from, kernel, 0.5);
    const InRows lines(from, !last);
    NewArray to = new_images(int(shape.size()), shape.data(), from.type(), last);
    nb::object result = give(to);
    Release release(std::max(from.size(), to.size()) * 4);
    by_float(from, [&](auto t) {
        using T = decltype(t);
        if (wide) channels(from.data<T>(), to.data<T>(), from.shape(1));
        else rows(lines.data<T>(), to.data<T>(), last ? from.shape(1) : 1);
    });
    return result;
}

nb::object avg_pool(Array x, const Sizes& kernel, const Sizes& stride, const Sizes& padding, const Sizes& out,
                    bool include, nb::handle divisor) {
    PoolShape s;
    if (!x.is_float() || !mean_shape(s, sizes(x), kernel, stride, padding, out)) return not_implemented();
    const int64_t divided_by = divisor_of(divisor);
    return made_of(x, pooled(sizes(x), out), kernel,
                   [&](auto* from, auto* to, int64_t channels) { mean_channels(s, channels, include, divided_by, from, to); },
                   [&](auto* from, auto* to, int64_t channels) { mean_windows(s, channels, include, divided_by, from, to); });
}

nb::object avg_spread(Array y, const Sizes& x_shape, const Sizes& kernel, const Sizes& stride,
                      const Sizes& padding, const Sizes& out, bool include, nb::handle divisor) {
    PoolShape s;
    if (!y.is_float() || !mean_shape(s, x_shape, kernel, stride, padding, out) ||
        !has_shape(y, pooled(x_shape, out)))
        return not_implemented();
    const int64_t divided_by = divisor_of(divisor);
    return made_of(y, x_shape, kernel,
                   [&](auto* from, auto* to, int64_t channels) { spread_mean_channels(s, channels, include, divided_by, from, to); },
                   [&](auto* from, auto* to, int64_t channels) { spread_mean(s, channels, include, divided_by, from, to); });
}

FW_BIND(m) {
    m.def("avg_pool", &avg_pool, nb::arg("x"), nb::arg("kernel"), nb::arg("stride"), nb::arg("padding"),
          nb::arg("out"), nb::arg("include"), nb::arg("divisor").none());
    m.def("avg_spread", &avg_spread, nb::arg("y"), nb::arg("x_shape"), nb::arg("kernel"), nb::arg("stride"),
          nb::arg("padding"), nb::arg("out"), nb::arg("include"), nb::arg("divisor").none());
}

}  // namespace
}  // namespace fw::windows
