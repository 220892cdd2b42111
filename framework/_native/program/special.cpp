// Special functions over arrays: the logarithm of gamma and its derivatives, the inverses of erf and of the normal
// distribution, modified Bessel functions of the first kind.
#include "bind/array.h"
#include "program/special.h"
#include "program/special_numbers.h"
#include "base/pool.h"

namespace fw::special {
namespace {

// -- over arrays ----------------------------------------------------------------------------------

template <double (*F)(double, int), class T> nb::object each(const Array& x, int n) {
    NewArray out = new_array(x.ndim(), x.shape(), type_number<T>);
    const T* from = x.data<T>();
    T* to = out.data<T>();
    {
        Release release(x.size() * 64);
        parallel(x.size(), 512, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) to[i] = T(F(double(from[i]), n));
        });
    }
    return give(out);
}

template <double (*F)(double)> double alone(double x, int) { return F(x); }

// F of every number of x in rows; n from `least` to `most`: the order of a derivative or function, if there is one
template <double (*F)(double, int), int most, int least = 0> nb::object over(Array x, int n) {
    if (!x.is_float() || n < least || n > most) return not_implemented();
    const InRows rows(x);
    return x.is<double>() ? each<F, double>(rows.a, n) : each<F, float>(rows.a, n);
}

// The same, with Quick for numbers of 32 bits where n is at most `most_quick`.
template <double (*F)(double, int), Floats Quick, int most, int least = 0, int most_quick = 0> nb::object fast(Array x, int n) {
    if (!x.is<float>() || n < 0 || n > most_quick) return over<F, most, least>(x, n);
    const InRows rows(x);
    NewArray out = new_array(x.ndim(), x.shape(), NPY_FLOAT);
    {
        Release release(x.size() * 16);
        parallel(x.size(), 2048, [&](int64_t begin, int64_t end) {
            Quick(rows.data<float>() + begin, end - begin, out.data<float>() + begin, n, F);
        });
    }
    return give(out);
}

}  // namespace

FW_BIND(m) {
    auto define = [&](const char* name, nb::object (*f)(Array, int)) {
        m.def(name, f, nb::arg("x"), nb::arg("n") = 0);
    };
    define("special_lgamma", &fast<alone<log_gamma>, lgamma_of_floats, 0>);
    define("special_polygamma", &fast<polygamma, polygamma_of_floats, MOST, 0, 8>);
    define("special_erfinv", &fast<alone<erfinv>, erfinv_of_floats, 0>);
    define("special_ndtri", &fast<alone<ndtri>, ndtri_of_floats, 0>);
    define("special_bessel_ie", &fast<bessel_ie, bessel_ie_of_floats, 3, -3, 1>);
    define("special_bessel_i", &fast<bessel_i, bessel_i_of_floats, 3, -3, 1>);
}

}  // namespace fw::special
