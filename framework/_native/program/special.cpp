// Special functions, in double precision one number at a time: the logarithm of gamma and its derivatives, the
// inverses of erf and of the normal distribution, modified Bessel functions of order 0 and 1. The formulas without
// the extension are in framework/ops/special/numbers.py.
#include "bind/array.h"
#include "program/bessel_tables.h"
#include "program/special.h"
#include "random/normal.h"
#include "base/pool.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace fw::special {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity(), NAN_ = std::numeric_limits<double>::quiet_NaN();
constexpr double PI = 3.14159265358979323846;

template <size_t N> double polynomial(double x, const double (&c)[N]) {
    double y = c[N - 1];
    for (size_t k = N - 1; k-- > 0;) y = y * x + c[k];
    return y;
}

// -- gamma ----------------------------------------------------------------------------------------

constexpr double BERNOULLI[] = {1.0 / 6,  -1.0 / 30,       1.0 / 42, -1.0 / 30,        5.0 / 66,
                                -691.0 / 2730, 7.0 / 6, -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};

double lgamma(double x, int) {
    int sign;
    return ::lgamma_r(x, &sign);
}

double digamma_right(double z) {
    if (std::isinf(z)) return z;
    double total = 0;
    for (; z < 12; ++z) total -= 1 / z;
    double square = 1 / (z * z), power = square, tail = 0;
    for (int j = 0; j < 10; ++j, power *= square) tail += BERNOULLI[j] / (2 * j + 2) * power;
    return total + (std::log(z) - 0.5 / z - tail);
}

// (-1)^(n+1) n! zeta(n + 1, z) for z > 0: terms of the sum, then the Euler-Maclaurin formula
double zeta_right(double z, int n) {
    double s = n + 1, total = 0, factor = s, factorial = 2, n_factorial = 1;
    auto inverse = [n](double y) {  // y^-s
        double p = 1 / y;
        for (int k = 0; k < n; ++k) p /= y;
        return p;
    };
    for (int k = 0; k < 12 + n; ++k, ++z) total += inverse(z);
    if (std::isinf(z)) return n % 2 ? 0.0 : -0.0;
    const double last = inverse(z);
    total += last * z / (s - 1) + 0.5 * last;
    double power = last / z, square = 1 / (z * z);
    for (int j = 1; j <= 10; ++j, power *= square) {
        total += BERNOULLI[j - 1] / factorial * factor * power;
        factor *= (s + 2 * j - 1) * (s + 2 * j);
        factorial *= (2 * j + 1) * (2 * j + 2);
    }
    for (int k = 2; k <= n; ++k) n_factorial *= k;
    return (n % 2 ? 1 : -1) * n_factorial * total;
}

constexpr int MOST = 24;  // derivatives, whose reflection is a polynomial in the cotangent

// pi^(n+1) times the n-th derivative of cot, at pi x
double cotangent_slope(double x, int n) {
    double p[MOST + 2] = {0, 1}, turn = x - std::rint(x), cot = 1 / std::tan(PI * turn);  // powers from the lowest
    for (int d = 0, top = 1; d < n; ++d, ++top) {
        double next[MOST + 2] = {};
        for (int k = 1; k <= top; ++k) {  // (cot^k)' = -k (cot^(k-1) + cot^(k+1))
            next[k - 1] -= k * p[k];
            next[k + 1] -= k * p[k];
        }
        std::memcpy(p, next, sizeof(p));
    }
    double y = 0;
    for (int k = n + 1; k >= 0; --k) y = y * cot + p[k];
    return y * std::pow(PI, n + 1);
}

double polygamma(double x, int n) {
    if (x > 0 || std::isnan(x)) return n ? zeta_right(x, n) : digamma_right(x);
    if (x == std::rint(x)) {
        if (n) return n % 2 ? INF : -INF;
        return x == 0 ? -std::copysign(INF, x) : NAN_;
    }
    double right = n ? zeta_right(1 - x, n) : digamma_right(1 - x);
    return (n % 2 ? -right : right) - cotangent_slope(x, n);
}

// -- inverses of distributions: AS 241 ------------------------------------------------------------

using Table = normal::Numbers<double>;

double tail(double p) {  // the distance from 0 that is exceeded with probability p, 0 < p < 1/2
    double r = std::sqrt(-std::log(p));
    return r <= 5 ? polynomial(r - 1.6, Table::C) / polynomial(r - 1.6, Table::D)
                  : polynomial(r - 5, Table::E) / polynomial(r - 5, Table::F);
}

double middle(double q) {  // of the probability 1/2 + q
    double x = 0.180625 - q * q;
    return q * (polynomial(x, Table::A) / polynomial(x, Table::B));
}

double erfinv(double x, int) {
    double size = std::fabs(x);
    if (!(size <= 1)) return NAN_;
    if (size == 1) return std::copysign(INF, x);
    double z = size <= 0.85 ? middle(0.5 * x) : std::copysign(tail(0.5 * (1 - size)), x);
    return z * 0.70710678118654752440;
}

double ndtri(double p, int) {
    if (!(p >= 0 && p <= 1)) return NAN_;
    if (p == 0 || p == 1) return p ? INF : -INF;
    double q = p - 0.5;
    return std::fabs(q) <= 0.425 ? middle(q) : std::copysign(tail(q < 0 ? p : 1 - p), q);
}

// -- modified Bessel functions --------------------------------------------------------------------
template <size_t N> double series(double t, const double (&c)[N]) {  // Clenshaw's recurrence
    double b = 0, before = 0;
    for (size_t k = N - 1; k > 0; --k) {
        double next = 2 * t * b - before + c[k];
        before = b;
        b = next;
    }
    return t * b - before + c[0];
}

double bessel_ie(double x, int n) {
    n = std::abs(n);
    double y = std::fabs(x);
    if (std::isnan(x)) return x;
    if (std::isinf(x)) return n % 2 ? std::copysign(0.0, x) : 0.0;
    if (y <= 1 && n < 2) {  // the power series, which is exact at 0
        double term = n ? 0.5 * x : 1.0, total = term;
        for (int k = 1; k <= 10; ++k) total += term *= 0.25 * x * x / (k * (n + k));
        return std::exp(-y) * total;
    }
    if (n > 1 && y <= 8) {
        double term = std::pow(0.5 * x, n) / (n == 2 ? 2 : 6), total = term;
        for (int k = 1; k <= 40 && term != 0; ++k) total += term *= 0.25 * x * x / (k * (n + k));
        return std::exp(-y) * total;
    }
    if (n > 1) return bessel_ie(x, n - 2) - 2 * (n - 1) / x * bessel_ie(x, n - 1);
    if (n == 0) return y <= 8 ? series(y / 4 - 1, I0_NEAR) : series(16 / y - 1, I0_FAR) / std::sqrt(y);
    return y <= 8 ? x * series(y / 4 - 1, I1_NEAR) : std::copysign(series(16 / y - 1, I1_FAR) / std::sqrt(y), x);
}

double bessel_i(double x, int n) {
    if (std::isinf(x)) return n % 2 ? x : INF;
    double half = std::exp(0.5 * std::fabs(x));  // in two steps, against overflow
    return half * bessel_ie(x, n) * half;
}

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

// F of every number of x in rows; n from `least` to `most`: the order of a derivative or function, if there is one
template <double (*F)(double, int), int most, int least = 0> nb::object over(Array x, int n) {
    if (!x.usable() || !x.contiguous() || n < least || n > most) return not_implemented();
    if (x.is<double>()) return each<F, double>(x, n);
    return x.is<float>() ? each<F, float>(x, n) : not_implemented();
}

// The same, with Quick for numbers of 32 bits where n is at most `most_quick`.
template <double (*F)(double, int), Floats Quick, int most, int least = 0, int most_quick = 0> nb::object fast(Array x, int n) {
    if (!x.is<float>() || !x.contiguous() || n < 0 || n > most_quick) return over<F, most, least>(x, n);
    NewArray out = new_array(x.ndim(), x.shape(), NPY_FLOAT);
    {
        Release release(x.size() * 16);
        parallel(x.size(), 2048, [&](int64_t begin, int64_t end) {
            Quick(x.data<float>() + begin, end - begin, out.data<float>() + begin, n, F);
        });
    }
    return give(out);
}

}  // namespace

FW_BIND(m) {
    auto define = [&](const char* name, nb::object (*f)(Array, int)) {
        m.def(name, f, nb::arg("x"), nb::arg("n") = 0);
    };
    define("special_lgamma", &fast<lgamma, lgamma_of_floats, 0>);
    define("special_polygamma", &fast<polygamma, polygamma_of_floats, MOST, 0, 8>);
    define("special_erfinv", &fast<erfinv, erfinv_of_floats, 0>);
    define("special_ndtri", &fast<ndtri, ndtri_of_floats, 0>);
    define("special_bessel_ie", &fast<bessel_ie, bessel_ie_of_floats, 3, -3, 1>);
    define("special_bessel_i", &fast<bessel_i, bessel_i_of_floats, 3, -3, 1>);
}

}  // namespace fw::special
