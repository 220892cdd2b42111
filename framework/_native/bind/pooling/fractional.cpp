// Maxima of NumPy arrays over windows whose places are drawn.
#include "bind/images.h"
#include "pooling/fractional.h"

namespace fw::windows {
namespace {

// x (n, c, sizes) and samples (n, c, d) of one dtype; the windows that fit into the sizes.
nb::object fractional_max_of(Array x, Array samples, const Sizes& kernel, const Sizes& out, bool last_first) {
    const int d = int(kernel.size());
    if (!x.is_float() || !samples.usable() || samples.type() != x.type() || d < 1 || d > conv_dims || int(out.size()) != d ||
        x.ndim() != d + 2 || !x.size() || samples.ndim() != 3 || samples.shape(0) != x.shape(0) ||
        samples.shape(1) != x.shape(1) || samples.shape(2) != d)
        return not_implemented();
    DrawnAxis axis[conv_dims];
    for (int i = 0; i < d; ++i) {
        const DrawnAxis a = {x.shape(2 + i), out[size_t(i)], kernel[size_t(i)]};
        if (a.out < 1 || a.kernel < 1 || a.kernel > a.in || a.out > a.in) return not_implemented();
        axis[conv_dims - d + i] = a;
    }
    const InRows rows(x), drawn(samples);
    const Sizes shape = pooled(sizes(x), out);
    NewArray y = new_array(x.ndim(), shape.data(), x.type()), places = new_array(x.ndim(), shape.data(), NPY_INT64);
    bool good = false;
    {
        Release release(x.size() * 8);
        by_float(x, [&](auto t) {
            using T = decltype(t);
            good = fractional_max(axis, x.shape(0) * x.shape(1), d, last_first, rows.data<T>(), drawn.data<T>(), y.data<T>(),
                                  places.data<int64_t>());
        });
    }
    return good ? nb::object(nb::make_tuple(give(y), give(places))) : not_implemented();
}

}  // namespace

FW_BIND(m) {
    m.def("fractional_max", &fractional_max_of, nb::arg("x"), nb::arg("samples"), nb::arg("kernel"), nb::arg("out"),
          nb::arg("last_first"));
}

}  // namespace fw::windows
