// Windows of NumPy arrays of images as columns, and back.
#include "bind/array.h"
#include "pooling/fold.h"

namespace fw::windows {
namespace {

nb::object unfold(Array x, const Sizes& kernel, const Sizes& stride, const Sizes& padding, const Sizes& dilation) {
    FoldAxis a[2];
    if (!x.is_float() || x.ndim() != 4 || !x.size() || !fold_axes(a, x.shape(2), x.shape(3), kernel, stride, padding, dilation))
        return not_implemented();
    const int64_t factors[] = {x.shape(1), kernel[0], kernel[1], a[0].out, a[1].out, x.shape(0)};
    if (!countable(factors, 6)) return not_implemented();
    const npy_intp shape[] = {x.shape(0), x.shape(1) * kernel[0] * kernel[1], a[0].out * a[1].out};
    InRows rows(x);
    NewArray y = new_array(3, shape, x.type());
    {
        Release release(y.size() * 8);
        const int64_t planes = x.shape(0) * x.shape(1);
        if (x.is<float>()) unfold_planes(a, planes, rows.data<float>(), y.data<float>());
        else unfold_planes(a, planes, rows.data<double>(), y.data<double>());
    }
    return give(y);
}

nb::object fold(Array y, const Sizes& x_shape, const Sizes& kernel, const Sizes& stride, const Sizes& padding,
                const Sizes& dilation) {
    FoldAxis a[2];
    if (!y.is_float() || y.ndim() != 3 || !y.size() || x_shape.size() != 4 || !countable(x_shape.data(), 4) ||
        x_shape[0] < 1 || x_shape[1] < 1 || !fold_axes(a, x_shape[2], x_shape[3], kernel, stride, padding, dilation))
        return not_implemented();
    const int64_t factors[] = {x_shape[0], x_shape[1], kernel[0], kernel[1], a[0].out, a[1].out};
    if (!countable(factors, 6) || y.shape(0) != x_shape[0] || y.shape(1) != x_shape[1] * kernel[0] * kernel[1] ||
        y.shape(2) != a[0].out * a[1].out)
        return not_implemented();
    const npy_intp shape[] = {x_shape[0], x_shape[1], x_shape[2], x_shape[3]};
    InRows rows(y);
    NewArray x = new_array(4, shape, y.type());
    {
        Release release(y.size() * 8);
        const int64_t planes = x_shape[0] * x_shape[1];
        if (y.is<float>()) fold_planes(a, planes, rows.data<float>(), x.data<float>());
        else fold_planes(a, planes, rows.data<double>(), x.data<double>());
    }
    return give(x);
}

FW_BIND(m) {
    m.def("unfold", &unfold, nb::arg("x"), nb::arg("kernel"), nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"));
    m.def("fold", &fold, nb::arg("y"), nb::arg("x_shape"), nb::arg("kernel"), nb::arg("stride"), nb::arg("padding"),
          nb::arg("dilation"));
}

}  // namespace
}  // namespace fw::windows
