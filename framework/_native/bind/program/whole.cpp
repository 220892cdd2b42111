// What the engine has no numbers for: quotients of whole numbers, rounded towards 0, conjugates, signs, numbers that follow.
#include <algorithm>

#include "base/bf16.h"
#include "bind/bf16_array.h"
#include "bind/move/copy.h"

namespace fw {
namespace {

// f(a, b) of the elements of two arrays of one shape, or of all with the one element of the second.
template <class T, class F> nb::object of_both(const Array& x, const Array& y, bool one, F&& f) {
    NewArray out = like(x);
    nb::object result = give(out);
    const InRows first(x), second(y);
    const T *a = first.data<T>(), *b = second.data<T>();
    T* to = out.data<T>();
    const int64_t n = x.size(), step = one ? 0 : 1;
    Release release(n * 8);
    for (int64_t i = 0; i < n; ++i) to[i] = f(a[i], b[i * step]);
    return result;
}

// By 0 there is none: 0, which nobody sees, since it is refused before. The least number by -1 is itself, as in NumPy.
template <class T> T towards_zero(T x, T y) {
    using U = std::make_unsigned_t<T>;
    if (y == -1) return T(U(0) - U(x));
    return y ? x / y : 0;
}

nb::object trunc_divide(Array x, nb::handle given, nb::handle out) {
    if (!out.is_none() || !x.usable() || (!x.is<int64_t>() && !x.is<int32_t>())) return not_implemented();
    const Array y = nb::cast<Array>(given);
    const bool one = y.usable() && y.size() == 1 && y.ndim() <= x.ndim();
    if (!y.usable() || y.type() != x.type() || (!one && !y.same_shape(x))) return not_implemented();
    return x.is<int64_t>() ? of_both<int64_t>(x, y, one, towards_zero<int64_t>) : of_both<int32_t>(x, y, one, towards_zero<int32_t>);
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

// Whether the highest bit is set, which is the sign of numbers with fractions and of whole ones.
template <class Bits> void signs_of(const Array& x, bool* to) {
    const InRows rows(x);
    const Bits* from = rows.data<Bits>();
    const int64_t n = x.size();
    Release release(n * int64_t(sizeof(Bits)));
    for (int64_t i = 0; i < n; ++i) to[i] = from[i] < 0;
}

nb::object signbit(Array x, nb::handle out_given) {
    if (!out_given.is_none() || !x.usable()) return not_implemented();
    const int type = x.type();
    const bool half = type == NPY_HALF || type == NPY_INT16 || is_bf16(x);
    if (!half && !x.is_float() && !x.is<int64_t>() && !x.is<int32_t>()) return not_implemented();
    NewArray out = new_array(x.ndim(), x.shape(), NPY_BOOL);
    nb::object result = give(out);
    if (half) signs_of<int16_t>(x, out.data<bool>());
    else if (PyArray_ITEMSIZE(x.p) == 4) signs_of<int32_t>(x, out.data<bool>());
    else signs_of<int64_t>(x, out.data<bool>());
    return result;
}

// The next number of bfloat16 after each, towards another one: numbers of one sign lie in the order of their bits.
Bf16 next_after(Bf16 x, Bf16 y) {  // without branches, which would be guessed wrong
    constexpr int INFINITE = 0x7f80, SIGN = 0x8000;
    const int size = x.bits & ~SIGN, other = y.bits & ~SIGN;
    const int from = x.bits & SIGN ? -size : size, to = y.bits & SIGN ? -other : other;
    const int next = from + (to > from) - (to < from), signed_0 = from < 0 ? SIGN : 0;
    const int away = next < 0 ? -next | SIGN : next ? next : signed_0;
    const int beyond = size > INFINITE ? x.bits : y.bits;
    return {uint16_t((size > INFINITE) | (other > INFINITE) ? beyond | 0x40 : from == to ? y.bits : away)};
}

nb::object nextafter_bfloat16(Array x, Array y) {
    if (!is_bf16(x) || !is_bf16(y) || !x.same_shape(y)) return not_implemented();
    return of_both<Bf16>(x, y, false, next_after);
}

}  // namespace

FW_BIND(m) {
    m.def("trunc_divide", &trunc_divide, nb::arg("x"), nb::arg("y"), nb::arg("out").none() = nb::none());
    m.def("conjugate", &conjugate, nb::arg("x"), nb::arg("out").none() = nb::none());
    m.def("nextafter_bfloat16", &nextafter_bfloat16, nb::arg("x"), nb::arg("y"));
    m.def("signbit", &signbit, nb::arg("x"), nb::arg("out").none() = nb::none());
}

}  // namespace fw
