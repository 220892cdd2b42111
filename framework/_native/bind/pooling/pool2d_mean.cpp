// The mean of every window, and the way back, of NumPy arrays.
#include <optional>

#include "bind/images.h"
#include "pooling/pool2d.h"

namespace fw::windows {
namespace {

bool mean_shape(PoolShape& s, const Sizes& x, const Sizes& kernel, const Sizes& stride, const Sizes& padding,
                const Sizes& out) {
    return pool_shape(s, x, kernel, stride, padding, Sizes(kernel.size(), 1), out);
}

int64_t divisor_of(nb::handle divisor) { return divisor.is_none() ? 0 : nb::cast<int64_t>(divisor); }

// A result of this shape, over numbers `from`: by `channels(from, to)` where those lie with channels last, else by
// `rows(from, to)`.
template <class Channels, class Rows>
nb::object made_of(Array from, const Sizes& shape, const Sizes& kernel, Channels&& channels, Rows&& rows) {
    const bool last = has_channels_last(from, kernel, 0.5);
    std::optional<InRows> lines;
    if (!last) lines.emplace(from);
    NewArray to = last ? new_channels_last(from.ndim(), shape.data(), from.type())
                       : new_array(int(shape.size()), shape.data(), from.type());
    {
        Release release(std::max(from.size(), to.size()) * 4);
        by_float(from, [&](auto t) {
            using T = decltype(t);
            if (last) channels(from.data<T>(), to.data<T>());
            else rows(lines->a.data<T>(), to.data<T>());
        });
    }
    return last ? give(to) : give_images(to, channels_last(from));
}

nb::object avg_pool(Array x, const Sizes& kernel, const Sizes& stride, const Sizes& padding, const Sizes& out,
                    bool include, nb::handle divisor) {
    PoolShape s;
    if (!x.is_float() || !mean_shape(s, sizes(x), kernel, stride, padding, out)) return not_implemented();
    const int64_t divided_by = divisor_of(divisor);
    return made_of(x, pooled(sizes(x), out), kernel,
                   [&](auto* from, auto* to) { mean_channels(s, x.shape(1), include, divided_by, from, to); },
                   [&](auto* from, auto* to) { mean_windows(s, include, divided_by, from, to); });
}

nb::object avg_spread(Array y, const Sizes& x_shape, const Sizes& kernel, const Sizes& stride,
                      const Sizes& padding, const Sizes& out, bool include, nb::handle divisor) {
    PoolShape s;
    if (!y.is_float() || !mean_shape(s, x_shape, kernel, stride, padding, out) ||
        !has_shape(y, pooled(x_shape, out)))
        return not_implemented();
    const int64_t divided_by = divisor_of(divisor);
    return made_of(y, x_shape, kernel,
                   [&](auto* from, auto* to) { spread_mean_channels(s, y.shape(1), include, divided_by, from, to); },
                   [&](auto* from, auto* to) { spread_mean(s, include, divided_by, from, to); });
}

FW_BIND(m) {
    m.def("avg_pool", &avg_pool, nb::arg("x"), nb::arg("kernel"), nb::arg("stride"), nb::arg("padding"),
          nb::arg("out"), nb::arg("include"), nb::arg("divisor").none());
    m.def("avg_spread", &avg_spread, nb::arg("y"), nb::arg("x_shape"), nb::arg("kernel"), nb::arg("stride"),
          nb::arg("padding"), nb::arg("out"), nb::arg("include"), nb::arg("divisor").none());
}

}  // namespace
}  // namespace fw::windows
