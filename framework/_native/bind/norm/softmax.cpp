// softmax, log_softmax and their backward of NumPy arrays.
#include "bind/array.h"
#include "norm/softmax.h"

namespace fw {
namespace {

template <class T> nb::object forward(const Array& given, int dim, bool log) {
    InRows x(given);
    NewArray out = new_array(given.ndim(), given.shape(), given.type());
    {
        Release release(given.size() * int64_t(sizeof(T)));
        softmax<T>(log, x.data<T>(), out.data<T>(), Around(given, dim, dim));
    }
    return give(out);
}

template <class T> nb::object backward(const Array& given_g, const Array& given_y, int dim, bool log) {
    InRows g(given_g), y(given_y);
    NewArray out = new_array(given_y.ndim(), given_y.shape(), given_y.type());
    {
        Release release(given_y.size() * int64_t(sizeof(T)));
        softmax_grad<T>(log, g.data<T>(), y.data<T>(), out.data<T>(), Around(given_y, dim, dim));
    }
    return give(out);
}

template <bool Log> nb::object softmax_of(const Array& x, int dim) {
    if (!x.is_float() || !x.size() || dim < 0 || dim >= x.ndim()) return not_implemented();
    return x.is<float>() ? forward<float>(x, dim, Log) : forward<double>(x, dim, Log);
}

template <bool Log> nb::object grad_of(const Array& g, const Array& y, int dim) {
    if (!y.is_float() || !y.size() || !g.usable() || g.type() != y.type() || !g.same_shape(y) || dim < 0 ||
        dim >= y.ndim())
        return not_implemented();
    return y.is<float>() ? backward<float>(g, y, dim, Log) : backward<double>(g, y, dim, Log);
}

}  // namespace

FW_BIND(m) {
    m.def("softmax", &softmax_of<false>, nb::arg("x"), nb::arg("dim"));
    m.def("log_softmax", &softmax_of<true>, nb::arg("x"), nb::arg("dim"));
    m.def("softmax_grad", &grad_of<false>, nb::arg("g"), nb::arg("y"), nb::arg("dim"));
    m.def("log_softmax_grad", &grad_of<true>, nb::arg("g"), nb::arg("y"), nb::arg("dim"));
}

}  // namespace fw
