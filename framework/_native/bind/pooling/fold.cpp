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

nb::object fold_windows(Array x, const Sizes& shape, int64_t dim, int64_t step) {
    const int ndim = int(shape.size());
    if (!x.is_float() || !x.size() || !ndim || x.ndim() != ndim + 1 || dim < 0 || dim >= ndim || step < 1 || !countable(shape.data(), ndim))
        return not_implemented();
    Windows w{1, x.shape(int(dim)), 1, x.shape(ndim), step, shape[size_t(dim)]};
    for (int d = 0; d < ndim; ++d) {
        if (d != dim && shape[size_t(d)] != x.shape(d)) return not_implemented();
        if (d != dim) (d < dim ? w.outer : w.inner) *= x.shape(d);
    }
    if (w.size > w.length || (w.count - 1) > (w.length - w.size) / step || step >= w.size) return not_implemented();  // no sum: a copy
    const InRows rows(x);
    NewArray y = new_array(ndim, reinterpret_cast<const npy_intp*>(shape.data()), x.type());
    {
        Release release(x.size() * 8);
        if (x.is<float>()) fold_windows(w, rows.data<float>(), y.data<float>());
        else fold_windows(w, rows.data<double>(), y.data<double>());
    }
    return give(y);
}

FW_BIND(m) {
    m.def("fold_windows", &fold_windows, nb::arg("x"), nb::arg("shape"), nb::arg("dim"), nb::arg("step"));
    m.def("unfold", &unfold, nb::arg("x"), nb::arg("kernel"), nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"));
    m.def("fold", &fold, nb::arg("y"), nb::arg("x_shape"), nb::arg("kernel"), nb::arg("stride"), nb::arg("padding"),
          nb::arg("dilation"));
}

}  // namespace
}  // namespace fw::windows
