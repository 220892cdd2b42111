// What the engine has no numbers for: quotients of whole numbers, rounded towards 0, and conjugates.
#include <algorithm>

#include "bind/move/copy.h"

namespace fw {
namespace {

// By 0 there is none: 0, which nobody sees, since it is refused before. The least number by -1 is itself, as in NumPy.
template <class T> T towards_zero(T x, T y) {
    if (y == 0) return 0;
    return y == -1 ? T(0) - x : x / y;
}

template <class T> nb::object quotients(const Array& x, const Array& y, bool one) {
    using U = std::make_unsigned_t<T>;
    NewArray out = like(x);
    nb::object result = give(out);
    const InRows first(x), second(y);
    const T *a = first.data<T>(), *b = second.data<T>();
    T* to = out.data<T>();
    const int64_t n = x.size();
    Release release(n * int64_t(sizeof(T)));
    const int64_t step = one ? 0 : 1;
    for (int64_t i = 0; i < n; ++i) {
        const T d = b[i * step];
        to[i] = d == -1 ? T(U(0) - U(a[i])) : towards_zero<T>(a[i], d);
    }
    return result;
}

nb::object trunc_divide(Array x, nb::handle given, nb::handle out) {
    if (!out.is_none() || !x.usable() || (!x.is<int64_t>() && !x.is<int32_t>())) return not_implemented();
    const Array y = nb::cast<Array>(given);
    const bool one = y.usable() && y.size() == 1 && y.ndim() <= x.ndim();
    if (!y.usable() || y.type() != x.type() || (!one && !y.same_shape(x))) return not_implemented();
    return x.is<int64_t>() ? quotients<int64_t>(x, y, one) : quotients<int32_t>(x, y, one);
}

template <class T> void conjugates(const Array& x, NewArray& out) {
    const T* from = x.data<T>();
    T* to = out.data<T>();
    const int64_t n = x.size();
    Release release(2 * n * int64_t(sizeof(T)));
    for (int64_t i = 0; i < n; ++i) to[2 * i] = from[2 * i], to[2 * i + 1] = -from[2 * i + 1];
}

// Of complex numbers that lie side by side, in whichever order of dimensions, which the result has, too.
nb::object conjugate(Array x, nb::handle out) {
    if (!out.is_none() || !x.usable() || (x.type() != NPY_CFLOAT && x.type() != NPY_CDOUBLE)) return not_implemented();
    NewArray made = moving::as_laid(x);
    nb::object result = give(made);
    if (!std::equal(PyArray_STRIDES(x.p), PyArray_STRIDES(x.p) + x.ndim(), PyArray_STRIDES(made.p))) return not_implemented();
    if (x.type() == NPY_CFLOAT) conjugates<float>(x, made);
    else conjugates<double>(x, made);
    return result;
}

}  // namespace

FW_BIND(m) {
    m.def("trunc_divide", &trunc_divide, nb::arg("x"), nb::arg("y"), nb::arg("out").none() = nb::none());
    m.def("conjugate", &conjugate, nb::arg("x"), nb::arg("out").none() = nb::none());
}

}  // namespace fw
