// Complex numbers, their parts side by side: what NumPy takes long for.
#include <cmath>

#include "base/shuffles.h"
#include "base/vecmath.h"
#include "bind/array.h"
#include "bind/move/alike.h"
#include "bind/move/copy.h"

namespace fw {
namespace {

// one(lane, where its parts go) for each number of a vector that is not among the ordinary ones, which are done.
template <class T, class One> FW_INLINE void mend(Mask<T> ordinary, Vec<T>& result, One&& one) {
    if (!math::any(~ordinary)) return;
    for (int l = 0; l < lanes<T>; l += 2) {
        if (ordinary[l]) continue;
        T found[2];
        one(l, found);
        result[l] = found[0], result[l + 1] = found[1];
    }
}

template <class T> struct Conjugate {
    static constexpr bool long_enough = false;  // to put what has gaps in rows first, where NumPy would go over it as it lies
    Vec<T> imaginary{};  // the sign bit of every other number
    Conjugate() {
        for (int l = 1; l < lanes<T>; l += 2) imaginary[l] = T(-0.0);
    }
    FW_INLINE Vec<T> operator()(Vec<T> z) const { return bits<Vec<T>>(bits<Mask<T>>(z) ^ bits<Mask<T>>(imaginary)); }
    void one(const T* z, T* to) const { to[0] = z[0], to[1] = -z[1]; }
};

template <class T> struct Negative {
    static constexpr bool long_enough = true;
    FW_INLINE Vec<T> operator()(Vec<T> z) const { return -z; }
    void one(const T* z, T* to) const { to[0] = -z[0], to[1] = -z[1]; }
};

// z / |z|, 0 of 0. Of two parts of which one is infinite that one's sign, of two nan.
template <class T> struct Sign {
    static constexpr bool long_enough = true;
    FW_INLINE Vec<T> operator()(Vec<T> z) const {
        const Vec<T> a = abs<T>(z), b = permute<T, Swapped<1>>(a, a);
        const Vec<T> size = math::hypot<Vec<T>>(maximum<T>(a, b), minimum<T>(a, b));
        const Mask<T> ordinary = (size > Vec<T>{}) & (size < splat<T>(math::inf<T>));
        Vec<T> result = z / size;
        mend<T>(ordinary, result, [&](int l, T* found) {
            const T given[] = {z[l], z[l + 1]};
            one(given, found);
        });
        return result;
    }
    void one(const T* z, T* to) const {
        T x = z[0], y = z[1];
        if (std::isinf(x) != std::isinf(y) && x == x && y == y) {
            to[0] = std::isinf(x) ? std::copysign(T(1), x) : 0, to[1] = std::isinf(y) ? std::copysign(T(1), y) : 0;
            return;
        }
        if (std::isinf(std::hypot(x, y))) x /= 2, y /= 2;
        const T size = std::hypot(x, y);
        const bool none = size == 0, known = !std::isinf(size) && size == size;
        to[0] = none ? 0 : known ? x / size : T(NAN), to[1] = none ? 0 : known ? y / size : T(NAN);
    }
};

template <class T, template <class> class F> void of_each(const Array& x, NewArray& out) {
    const T* from = x.data<T>();
    T* to = out.data<T>();
    const F<T> f;
    Release release(2 * x.size() * int64_t(sizeof(T)));
    parallel(x.size(), moving::grain_of(2 * sizeof(T)), [&](int64_t begin, int64_t end) {
        int64_t i = 2 * begin;
#pragma GCC unroll 4
        for (; i + lanes<T> <= 2 * end; i += lanes<T>) store<T>(to + i, f(load_stream(from + i)));
        for (; i < 2 * end; i += 2) f.one(from + i, to + i);
    });
}

// Of complex numbers that lie side by side, in whichever order of dimensions, which the result has, too.
template <template <class> class F> nb::object of_complex(Array x, nb::handle out) {
    if (!out.is_none() || !x.usable() || (x.type() != NPY_CFLOAT && x.type() != NPY_CDOUBLE)) return not_implemented();
    NewArray made = moving::as_laid(x);
    nb::object result = give(made);
    const bool dense = std::equal(PyArray_STRIDES(x.p), PyArray_STRIDES(x.p) + x.ndim(), PyArray_STRIDES(made.p));
    if (!dense && !F<float>::long_enough) return not_implemented();
    const InRows rows(x, !dense);
    if (!dense) made = like(rows.a), result = give(made);
    if (x.type() == NPY_CFLOAT) of_each<float, F>(rows.a, made);
    else of_each<double, F>(rows.a, made);
    return result;
}

// -- quotients ------------------------------------------------------------------------------------

// x / y: the product with the conjugate by the square of the size, where both sizes are ordinary, else by the larger part of y
// (Smith 1962), as NumPy does.
template <class T> struct Quotient {
    static constexpr T LEAST_SQUARE = sizeof(T) == 4 ? T(1e-30) : T(1e-290), MOST_SQUARE = 1 / LEAST_SQUARE;
    const Conjugate<T> conjugate;

    static Vec<T> square(Vec<T> z) {
        const Vec<T> squares = z * z;
        return squares + permute<T, Swapped<1>>(squares, squares);
    }
    static Mask<T> ordinary(Vec<T> square) { return (square > splat<T>(LEAST_SQUARE)) & (square < splat<T>(MOST_SQUARE)); }

    FW_INLINE Vec<T> operator()(Vec<T> x, Vec<T> y) const {
        const Vec<T> size = square(y), own = square(x);
        const Vec<T> real = permute<T, Repeated<0>>(x, x), imaginary = permute<T, Repeated<1>>(x, x);
        // of (a + bi)(c - di): ac and -ad, then bd and bc
        Vec<T> result = (real * conjugate(y) + imaginary * permute<T, Swapped<1>>(y, y)) / size;
        mend<T>(ordinary(size) & (ordinary(own) | ((x == Vec<T>{}) & (permute<T, Swapped<1>>(x, x) == Vec<T>{}))), result, [&](int l, T* found) {
            const T a[] = {x[l], x[l + 1]}, b[] = {y[l], y[l + 1]};
            one(a, b, found);
        });
        return result;
    }
    static void one(const T* a, const T* b, T* to) {
        const T x = a[0], y = a[1], c = b[0], d = b[1];
        if (std::abs(c) >= std::abs(d)) {
            if (c == 0 && d == 0) {
                to[0] = x / std::abs(c), to[1] = y / std::abs(c);
                return;
            }
            const T share = d / c, by = 1 / (c + d * share);
            to[0] = (x + y * share) * by, to[1] = (y - x * share) * by;
        } else {
            const T share = c / d, by = 1 / (d + c * share);
            to[0] = (x * share + y) * by, to[1] = (y * share - x) * by;
        }
    }
    template <int Which> struct Repeated {
        static constexpr int at(int i) { return i / 2 * 2 + Which; }
    };
};

template <class T> void quotients(const T* x, bool repeats, const T* y, int64_t n, T* to) {
    const Quotient<T> f;
    Vec<T> number;
    for (int l = 0; l < lanes<T>; ++l) number[l] = repeats ? x[l % 2] : T();
    parallel(n, moving::grain_of(3 * 2 * sizeof(T)), [&](int64_t begin, int64_t end) {
        int64_t i = 2 * begin;
        for (; i + lanes<T> <= 2 * end; i += lanes<T>) store<T>(to + i, f(repeats ? number : load(x + i), load(y + i)));
        for (; i < 2 * end; i += 2) f.one(repeats ? x : x + i, y + i, to + i);
    });
}

template <class T> nb::object quotient_of(const Array& x, const Py_complex* number, const Array& y) {
    const InRows first(number ? y : x, !number), second(y);
    NewArray made = like(second.a);
    nb::object result = give(made);
    const T given[] = {number ? T(number->real) : T(), number ? T(number->imag) : T()};
    const T* from = number ? given : first.a.template data<T>();
    Release release(3 * y.size() * int64_t(2 * sizeof(T)));
    quotients<T>(from, number, second.a.template data<T>(), y.size(), made.data<T>());
    return result;
}

// Of a number or an array by an array of the same dtype and shape.
nb::object quotient(nb::handle dividend, Array y, nb::handle out) {
    if (!out.is_none() || !y.usable() || (y.type() != NPY_CFLOAT && y.type() != NPY_CDOUBLE)) return not_implemented();
    const Array x = nb::cast<Array>(dividend);
    const bool is_number = PyLong_CheckExact(dividend.ptr()) || PyFloat_CheckExact(dividend.ptr()) || PyComplex_CheckExact(dividend.ptr());
    if (!is_number && !(x.usable() && x.type() == y.type() && x.same_shape(y))) return not_implemented();
    Py_complex number{};
    if (is_number && (number = PyComplex_AsCComplex(dividend.ptr()), PyErr_Occurred())) throw nb::python_error();
    const Py_complex* given = is_number ? &number : nullptr;
    return y.type() == NPY_CFLOAT ? quotient_of<float>(x, given, y) : quotient_of<double>(x, given, y);
}

nb::object reciprocal(Array x, nb::handle out) { return quotient(nb::int_(1), x, out); }

}  // namespace

FW_BIND(m) {
    const auto of_one = [&](const char* name, auto f) { m.def(name, f, nb::arg("x"), nb::arg("out").none() = nb::none()); };
    of_one("conjugate", &of_complex<Conjugate>);
    of_one("complex_sign", &of_complex<Sign>);
    of_one("complex_negative", &of_complex<Negative>);
    of_one("complex_reciprocal", &reciprocal);
    m.def("complex_quotient", &quotient, nb::arg("x"), nb::arg("y"), nb::arg("out").none() = nb::none());
}

}  // namespace fw
