// Further special functions, in double precision one number at a time: Bessel functions of the first and second kind,
// scaled normal tails, incomplete gamma, Hurwitz' zeta, sinc and its derivatives, orthogonal polynomials. The formulas
// without the extension are in framework/ops/special.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/pool.h"
#include "base/vecmath.h"
#include "bind/array.h"
#include "program/bessel_tables.h"
#include "program/special.h"

namespace fw::special {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity(), NAN_ = std::numeric_limits<double>::quiet_NaN();
constexpr double PI = 3.14159265358979323846, EULER = 0.57721566490153286061;
constexpr int ORDER = 8;  // of Bessel functions and derivatives of sinc

int sign_of(int n) { return n < 0 && n % 2 ? -1 : 1; }  // J, Y of order -n are those of n times (-1)^n

double bessel_j(double x, int n) { return std::isinf(x) ? 0 : sign_of(n) * ::jn(std::abs(n), x); }

double bessel_y(double x, int n) {
    if (!(x >= 0)) return NAN_;
    return std::isinf(x) ? 0 : sign_of(n) * (x == 0 ? -INF : ::yn(std::abs(n), x));
}

template <size_t N> double series(double t, const double (&c)[N]) {  // Clenshaw's recurrence
    double b = 0, before = 0;
    for (size_t k = N - 1; k > 0; --k) {
        const double next = 2 * t * b - before + c[k];
        before = b;
        b = next;
    }
    return t * b - before + c[0];
}

// exp(x) K0 and exp(x) K1: the series at 0 (NIST DLMF 10.31) up to 2
void bessel_ke_first(double x, double& k0, double& k1) {
    if (x > 2) {
        const double root = std::sqrt(x);
        k0 = series(4 / x - 1, K0_FAR) / root;
        k1 = series(4 / x - 1, K1_FAR) / root;
        return;
    }
    const double square = 0.25 * x * x, log = std::log(0.5 * x);
    double term = 1, harmonic = 0, i0 = 0, i1 = 0, s0 = 0, s1 = 0;  // term: square^k / k!^2
    for (int k = 0; k < 16; ++k) {
        i0 += term;
        i1 += term / (k + 1);
        s0 += term * harmonic;
        s1 += term / (k + 1) * (2 * (harmonic - EULER) + 1.0 / (k + 1));
        harmonic += 1.0 / (k + 1);
        term *= square / ((k + 1.0) * (k + 1));
    }
    const double scale = std::exp(x);
    k0 = scale * (s0 - (log + EULER) * i0);
    k1 = scale * (1 / x + 0.5 * x * (log * i1 - 0.5 * s1));
}

double bessel_ke(double x, int n) {
    if (!(x >= 0)) return NAN_;
    if (x == 0) return INF;
    if (std::isinf(x)) return 0;
    double before, now;
    bessel_ke_first(x, before, now);
    n = std::abs(n);
    if (n == 0) return before;
    for (int k = 1; k < n; ++k) {
        const double after = before + 2 * k / x * now;
        before = now;
        now = after;
    }
    return now;
}

double bessel_k(double x, int n) { return x > 2000 ? 0 : std::exp(-x) * bessel_ke(x, n); }

// exp(x * x) erfc(x), the square in two parts; far out its asymptotic series
double erfcx(double x, int) {
    if (x >= 25) {
        const double t = 0.5 / (x * x);
        return (1 - t * (1 - 3 * t * (1 - 5 * t * (1 - 7 * t * (1 - 9 * t * (1 - 11 * t)))))) / (x * 1.77245385090551602730);
    }
    const double square = x * x, rest = std::fma(x, x, -square), e = std::exp(square);
    return std::isinf(e) ? e : (e + e * rest) * std::erfc(x);
}

double log_ndtr(double x, int) {
    if (x < -1) return std::log(0.5 * erfcx(x * -0.70710678118654752440, 0)) - 0.5 * x * x;
    return std::log1p(-0.5 * std::erfc(x * 0.70710678118654752440));
}

// The n-th derivative of sin(pi x) / (pi x): a series near 0, the recurrence farther out.
double sinc(double x, int n) {
    const double t = PI * x, scale = std::pow(PI, n);
    if (std::fabs(t) <= (n ? 1.5 + 0.5 * n : 0.1)) {
        const int first = (n + 1) / 2;
        double factorial = 1, power = n % 2 ? t : 1, total = 0;  // (2k - n)! and t^(2k - n)
        for (int k = first; k < 16 + 2 * n; ++k) {
            const int m = 2 * k - n;
            if (k > first) factorial *= m * (m - 1.0), power *= t * t;
            total += (k % 2 ? -power : power) / (factorial * (2 * k + 1));
        }
        return total * scale;
    }
    const double turn = PI * (x - 2 * std::rint(0.5 * x)), sine = std::sin(turn), cosine = n ? std::cos(turn) : 0;
    const double waves[4] = {sine, cosine, -sine, -cosine};
    double slope = sine / t;
    for (int k = 1; k <= n; ++k) slope = (waves[k % 4] - k * slope) / t;
    return slope * scale;
}

// -- of two numbers --------------------------------------------------------------------------------

double log_gamma(double x) {
    int sign;
    return ::lgamma_r(x, &sign);
}

// The lower (part 0) or upper (1) regularized incomplete gamma function: the series where it converges fast, else the
// continued fraction (W. Gautschi, 1979).
double incomplete(double a, double x, int part) {
    constexpr int MOST = 10000;
    const bool finite = std::isfinite(a) && std::isfinite(x);
    if (!(a > 0 && x > 0 && finite)) {
        if ((a > 0 && x == 0) || (std::isinf(a) && x >= 0 && std::isfinite(x))) return part;
        if ((a == 0 && x > 0) || (std::isinf(x) && x > 0 && a >= 0 && std::isfinite(a))) return 1 - part;
        return NAN_;
    }
    const double lead = std::exp(a * std::log(x) - x - log_gamma(a));
    if (x < a + 1) {
        double term = 1 / a, total = term;
        for (int k = 1; k < MOST && term > 1e-17 * total; ++k) total += term *= x / (a + k);
        return part ? 1 - lead * total : lead * total;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, fraction = d, step = 2;
    for (int k = 1; k < MOST && std::fabs(step - 1) > 1e-16; ++k) {
        const double factor = k * (a - k);
        b += 2;
        d = 1 / (factor * d + b);
        c = b + factor / c;
        step = c * d;
        fraction *= step;
    }
    return part ? lead * fraction : 1 - lead * fraction;
}

constexpr double BERNOULLI[] = {1.0 / 6,  -1.0 / 30,       1.0 / 42, -1.0 / 30,        5.0 / 66,
                                -691.0 / 2730, 7.0 / 6, -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};

// Hurwitz' zeta by the Euler-Maclaurin formula.
double zeta(double s, double q) {
    constexpr double MOST = 1e5;  // terms left of 0
    const bool whole = q == std::rint(q);
    if (s == 1 || (s > 1 && q <= 0 && whole)) return INF;
    if (!(s > 1 && (q > 0 || s == std::rint(s))) || std::isnan(q) || q < -MOST) return NAN_;
    double total = 0;
    for (int k = 0; k < 9 || q < 9; ++k, ++q) {
        const double term = std::pow(q, -s);
        total += term;
        if (q > 0 && term <= 1e-18 * total) return total;
    }
    const double first = std::pow(q, -s), square = 1 / (q * q);
    total += first * q / (s - 1) + 0.5 * first;
    double factor = s, power = first / q, factorial = 2;
    for (int j = 1; j <= 10; ++j, power *= square) {
        total += BERNOULLI[j - 1] / factorial * factor * power;
        factor *= (s + 2 * j - 1) * (s + 2 * j);
        factorial *= (2 * j + 1) * (2 * j + 2);
    }
    return total;
}

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
    if (!x.usable() || !x.contiguous()) return not_implemented();
    if (x.is<double>()) return each<double>(x, f);
    return x.is<float>() ? each<float>(x, f) : not_implemented();
}

template <double (*F)(double, int), int least, int most> nb::object one(Array x, int n) {
    if (n < least || n > most) return not_implemented();
    return over(x, [n](double v) { return F(v, n); });
}

// The same, with Quick for numbers of 32 bits where n is at most `most_quick`.
template <double (*F)(double, int), Floats Quick, int least, int most, int most_quick> nb::object fast(Array x, int n) {
    if (!x.is<float>() || !x.contiguous() || n < 0 || n > most_quick) return one<F, least, most>(x, n);
    NewArray out = new_array(x.ndim(), x.shape(), NPY_FLOAT);
    {
        Release release(x.size() * 16);
        parallel(x.size(), 2048, [&](int64_t begin, int64_t end) {
            Quick(x.data<float>() + begin, end - begin, out.data<float>() + begin, n, F);
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
    if (!x.is_float() || !y.usable() || y.type() != x.type() || !x.contiguous() || !y.contiguous())
        return not_implemented();
    if (!x.size() || !y.size()) return not_implemented();  // a single number beside none
    const bool single = (x.size() == 1 && x.ndim() <= y.ndim()) || (y.size() == 1 && y.ndim() <= x.ndim());
    if (!single && !x.same_shape(y)) return not_implemented();
    return x.is<float>() ? each_pair<float>(x, y, f) : each_pair<double>(x, y, f);
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

nb::object polynomial(Array x, Array n, const std::string& family, int order) {
    Polynomial made;
    constexpr double MOST = 10000;
    if (order || !polynomial_of(family, made) || !n.is_float() || !n.contiguous()) return not_implemented();
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
    define("special_erfcx", &one<erfcx, 0, 0>);
    define("special_log_ndtr", &one<log_ndtr, 0, 0>);
    define("special_sinc", &fast<sinc, sinc_of_floats, 0, ORDER, 1>);
    m.def("special_gammainc", &gammas<0>);
    m.def("special_gammaincc", &gammas<1>);
    m.def("special_zeta", &two<zeta>);
    m.def("polynomial", &polynomial, nb::arg("x"), nb::arg("n"), nb::arg("family"), nb::arg("order"));
}

}  // namespace fw::special
