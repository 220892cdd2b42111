// Further special functions over arrays: Bessel functions of the first and second kind, scaled normal tails, incomplete
// gamma, Hurwitz' zeta, sinc and its derivatives, orthogonal polynomials.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/pool.h"
#include "base/vecmath.h"
#include "bind/array.h"
#include "program/special.h"
#include "program/special_numbers.h"

namespace fw::special {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr int ORDER = 8;  // of Bessel functions and derivatives of sinc

// -- orthogonal polynomials ------------------------------------------------------------------------

// P_(k+1) = (a x + b) P_k - c P_(k-1) from P_0 = 1, P_1 = p x + q; see framework/ops/special/polynomials.py.
enum class Family { fixed, hermite, hermite_e, laguerre, legendre };
struct Polynomial {
    Family family = Family::fixed;
    double p, q, a, b;  // of `fixed`, where c is 1

    void step(double k, double& a_k, double& b_k, double& c_k) const {
        a_k = a, b_k = b, c_k = 1;
        if (family == Family::hermite) a_k = 2, b_k = 0, c_k = 2 * k;
        if (family == Family::hermite_e) a_k = 1, b_k = 0, c_k = k;
        if (family == Family::laguerre) a_k = -1 / (k + 1), b_k = (2 * k + 1) / (k + 1), c_k = k / (k + 1);
        if (family == Family::legendre) a_k = (2 * k + 1) / (k + 1), b_k = 0, c_k = k / (k + 1);
    }
    // Of some numbers and degrees, none above `most`.
    Vec<double> at(Vec<double> x, Vec<double> n, double most) const {
        using V = Vec<double>;
        const V degree = math::trunc<V>(n);
        V before = V{} + 1.0, now = p * x + q, result = degree == 0.0 ? before : now;
        const V factor = a * x + b;
        for (double k = 1; k < most; ++k) {
            double a_k = 0, b_k = 0, c_k = 1;
            if (family != Family::fixed) step(k, a_k, b_k, c_k);
            const V after = (family == Family::fixed ? factor : a_k * x + b_k) * now - c_k * before;
            before = now;
            now = after;
            result = degree > k ? now : result;
        }
        return n != n ? n : degree < 0.0 ? V{} : result;
    }
};

bool polynomial_of(const std::string& name, Polynomial& made) {
    const bool shifted = name.rfind("shifted_", 0) == 0;
    const char kind = name.back();
    if (name.find("chebyshev_polynomial_") != std::string::npos) {
        const double p = kind == 't' ? 1 : 2, q = kind == 'v' ? -1 : kind == 'w' ? 1 : 0;
        made = shifted ? Polynomial{Family::fixed, 2 * p, q - p, 4, -2} : Polynomial{Family::fixed, p, q, 2, 0};
    } else if (name == "hermite_polynomial_h") {
        made = {Family::hermite, 2, 0, 0, 0};
    } else if (name == "hermite_polynomial_he") {
        made = {Family::hermite_e, 1, 0, 0, 0};
    } else if (name == "laguerre_polynomial_l") {
        made = {Family::laguerre, -1, 1, 0, 0};
    } else if (name == "legendre_polynomial_p") {
        made = {Family::legendre, 1, 0, 0, 0};
    } else {
        return false;
    }
    return true;
}

// -- over arrays -----------------------------------------------------------------------------------

template <class T, class F> nb::object each(const Array& x, F f) {
    NewArray out = new_array(x.ndim(), x.shape(), type_number<T>);
    const T* from = x.data<T>();
    T* to = out.data<T>();
    {
        Release release(x.size() * 64);
        parallel(x.size(), 512, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) to[i] = T(f(double(from[i])));
        });
    }
    return give(out);
}

template <class F> nb::object over(const Array& x, F f) {
    if (!x.is_float()) return not_implemented();
    const InRows rows(x);
    return x.is<double>() ? each<double>(rows.a, f) : each<float>(rows.a, f);
}

template <double (*F)(double)> double alone(double x, int) { return F(x); }

template <double (*F)(double, int), int least, int most> nb::object one(Array x, int n) {
    if (n < least || n > most) return not_implemented();
    return over(x, [n](double v) { return F(v, n); });
}

// The same, with Quick for numbers of 32 bits where n is at most `most_quick`.
template <double (*F)(double, int), Floats Quick, int least, int most, int most_quick> nb::object fast(Array x, int n) {
    if (!x.is<float>() || n < 0 || n > most_quick) return one<F, least, most>(x, n);
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

template <class T, class F> nb::object each_pair(const Array& x, const Array& y, F f) {
    const Array& larger = x.size() < y.size() || x.ndim() < y.ndim() ? y : x;
    const int64_t xs = x.size() == 1 ? 0 : 1, ys = y.size() == 1 ? 0 : 1, n = larger.size();
    NewArray out = new_array(larger.ndim(), larger.shape(), type_number<T>);
    const T *a = x.data<T>(), *b = y.data<T>();
    T* to = out.data<T>();
    {
        Release release(n * 64);
        parallel(n, 256, [&](int64_t begin, int64_t end) {
            if constexpr (std::is_invocable_v<F, double, double>) {
                for (int64_t i = begin; i < end; ++i) to[i] = T(f(double(a[i * xs]), double(b[i * ys])));
            } else {
                f(a + begin * xs, xs, b + begin * ys, ys, to + begin, end - begin);
            }
        });
    }
    return give(out);
}

// Of arrays of one shape, or one of them a single number. F: of two numbers, or of a piece of the arrays and their steps.
template <class F> nb::object over_pair(const Array& x, const Array& y, F f) {
    if (!x.is_float() || !y.is_float() || y.type() != x.type()) return not_implemented();
    if (!x.size() || !y.size()) return not_implemented();  // a single number beside none
    const bool single = (x.size() == 1 && x.ndim() <= y.ndim()) || (y.size() == 1 && y.ndim() <= x.ndim());
    if (!single && !x.same_shape(y)) return not_implemented();
    const InRows a(x), b(y);
    return x.is<float>() ? each_pair<float>(a.a, b.a, f) : each_pair<double>(a.a, b.a, f);
}

// As doubles; step: 1, or 0 of a single number.
template <class T> Vec<double> some_of(const T* p, int64_t step, int64_t count) {
    typedef T Some __attribute__((vector_size(sizeof(T) * lanes<double>)));
    Some some = {};
    if (step == 0) some += *p;
    else if (count == lanes<double>) std::memcpy(&some, p, sizeof some);
    else for (int64_t k = 0; k < count; ++k) some[k] = p[k];
    return __builtin_convertvector(some, Vec<double>);
}

// `incomplete` as far as float32 has digits, where a and x are positive and finite.
Vec<double> incomplete_of_floats(Vec<double> a, Vec<double> x, int part) {
    using V = Vec<double>;
    constexpr double PRECISE = 1e-12;
    constexpr int MOST = 10000;
    const auto inside = (a > 0.0) & (x > 0.0) & (a < INF) & (x < INF), series = inside & (x < a + 1.0), rest = inside & ~series;
    V lead = a * math::log_positive<V>(x) - x;
    for (int k = 0; k < lanes<double>; ++k) lead[k] = inside[k] ? lead[k] - log_gamma(a[k]) : 0;
    lead = math::exp<V>(lead);
    V lower = {};
    if (math::any(series)) {
        V term = 1.0 / a, total = term;
        for (double k = 1; k < MOST && math::any(series & (term > PRECISE * total)); ++k) total += term *= x / (a + k);
        lower = lead * total;
        lower = part ? 1.0 - lower : lower;
    }
    if (math::any(rest)) {
        V b = x + 1.0 - a, c = V{} + 1e300, d = 1.0 / b, fraction = d, step = V{} + 2.0;
        for (double k = 1; k < MOST && math::any(rest & (math::abs<V>(step - 1.0) > PRECISE)); ++k) {
            const V factor = k * (a - k);
            b += 2.0;
            d = 1.0 / (factor * d + b);
            c = b + factor / c;
            step = c * d;
            fraction *= step;
        }
        fraction *= lead;
        lower = rest ? (part ? fraction : 1.0 - fraction) : lower;
    }
    return lower;
}

template <double (*F)(double, double)> nb::object two(Array x, Array y) { return over_pair(x, y, F); }

template <int part> nb::object gammas(Array a, Array x) {
    if (!a.is<float>()) return over_pair(a, x, [](double shape, double at) { return incomplete(shape, at, part); });
    return over_pair(a, x, [](auto* shape, int64_t as, auto* at, int64_t xs, auto* to, int64_t count) {
        for (int64_t i = 0; i < count; i += lanes<double>) {
            const int64_t some = std::min<int64_t>(lanes<double>, count - i);
            const auto u = some_of(shape + i * as, as, some), v = some_of(at + i * xs, xs, some);
            const auto result = incomplete_of_floats(u, v, part);
            for (int64_t k = 0; k < some; ++k) {
                const bool inside = u[k] > 0 && v[k] > 0 && std::isfinite(u[k]) && std::isfinite(v[k]);
                to[i + k] = inside ? result[k] : incomplete(u[k], v[k], part);
            }
        }
    });
}

template <class T> double largest(const T* p, int64_t n) {  // but at least 0
    Vec<T> most = {};
    int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) {
        const Vec<T> some = load(p + i);
        most = some > most ? some : most;
    }
    double found = 0;
    for (int k = 0; k < lanes<T>; ++k) found = std::max(found, double(most[k]));
    for (; i < n; ++i) found = p[i] > found ? double(p[i]) : found;
    return found;
}

nb::object polynomial(Array x, Array given, const std::string& family, int order) {
    Polynomial made;
    constexpr double MOST = 10000;
    if (order || !polynomial_of(family, made) || !given.is_float()) return not_implemented();
    const InRows degrees(given);
    const Array& n = degrees.a;
    const double most = n.is<float>() ? largest(n.data<float>(), n.size()) : largest(n.data<double>(), n.size());
    if (most > MOST) return not_implemented();  // they take as long as the degrees are large
    using V = Vec<double>;
    constexpr int64_t wide = lanes<double>;
    return over_pair(x, n, [&](auto* a, int64_t as, auto* b, int64_t bs, auto* to, int64_t count) {
        for (int64_t i = 0; i < count; i += wide) {
            const int64_t some = std::min(wide, count - i);
            const V result = made.at(some_of(a + i * as, as, some), some_of(b + i * bs, bs, some), most);
            for (int64_t k = 0; k < some; ++k) to[i + k] = result[k];
        }
    });
}

}  // namespace

FW_BIND(m) {
    auto define = [&](const char* name, nb::object (*f)(Array, int)) {
        m.def(name, f, nb::arg("x"), nb::arg("n") = 0);
    };
    define("special_bessel_j", &one<bessel_j, -ORDER, ORDER>);
    define("special_bessel_y", &one<bessel_y, -ORDER, ORDER>);
    define("special_bessel_k", &fast<bessel_k, bessel_k_of_floats, -ORDER, ORDER, 1>);
    define("special_bessel_ke", &fast<bessel_ke, bessel_ke_of_floats, -ORDER, ORDER, 1>);
    define("special_erfcx", &one<alone<erfcx>, 0, 0>);
    define("special_log_ndtr", &one<alone<log_ndtr>, 0, 0>);
    define("special_sinc", &fast<sinc, sinc_of_floats, 0, ORDER, 1>);
    m.def("special_gammainc", &gammas<0>);
    m.def("special_gammaincc", &gammas<1>);
    m.def("special_zeta", &two<zeta>);
    m.def("polynomial", &polynomial, nb::arg("x"), nb::arg("n"), nb::arg("family"), nb::arg("order"));
}

}  // namespace fw::special
