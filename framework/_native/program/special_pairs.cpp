// Special functions of two arguments: incomplete gamma, Hurwitz' zeta, orthogonal polynomials.
#include "program/special_pairs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/pool.h"
#include "base/vecmath.h"
#include "program/special_numbers.h"

namespace fw::special {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity();

// F of each pair.
template <class T, class F> void each_pair(const Pairs<T>& p, F f) {
    parallel(p.n, 256, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) p.to[i] = T(f(double(p.a[i * p.a_step]), double(p.b[i * p.b_step])));
    });
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

// What becomes of P_k in P_(k+1), where that depends on k.
void step(Family family, double k, double& a_k, double& b_k, double& c_k) {
    if (family == Family::hermite) a_k = 2, b_k = 0, c_k = 2 * k;
    if (family == Family::hermite_e) a_k = 1, b_k = 0, c_k = k;
    if (family == Family::laguerre) a_k = -1 / (k + 1), b_k = (2 * k + 1) / (k + 1), c_k = k / (k + 1);
    if (family == Family::legendre) a_k = (2 * k + 1) / (k + 1), b_k = 0, c_k = k / (k + 1);
}

// Of some numbers and degrees, none above `most`.
Vec<double> value_of(const Polynomial& of, Vec<double> x, Vec<double> n, double most) {
    using V = Vec<double>;
    const V degree = math::trunc<V>(n);
    V before = V{} + 1.0, now = of.p * x + of.q, result = degree == 0.0 ? before : now;
    const V factor = of.a * x + of.b;
    for (double k = 1; k < most; ++k) {
        double a_k = 0, b_k = 0, c_k = 1;
        if (of.family != Family::fixed) step(of.family, k, a_k, b_k, c_k);
        const V after = (of.family == Family::fixed ? factor : a_k * x + b_k) * now - c_k * before;
        before = now;
        now = after;
        result = degree > k ? now : result;
    }
    return n != n ? n : degree < 0.0 ? V{} : result;
}

}  // namespace

template <class T> void incomplete_gamma(const Pairs<T>& p, bool upper) {
    const int part = upper;
    if constexpr (std::is_same<T, double>::value)
        return each_pair(p, [=](double shape, double at) { return incomplete(shape, at, part); });
    parallel(p.n, 256, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += lanes<double>) {
            const int64_t some = std::min<int64_t>(lanes<double>, end - i);
            const auto u = some_of(p.a + i * p.a_step, p.a_step, some), v = some_of(p.b + i * p.b_step, p.b_step, some);
            const auto result = incomplete_of_floats(u, v, part);
            for (int64_t k = 0; k < some; ++k) {
                const bool inside = u[k] > 0 && v[k] > 0 && std::isfinite(u[k]) && std::isfinite(v[k]);
                p.to[i + k] = T(inside ? result[k] : incomplete(u[k], v[k], part));
            }
        }
    });
}

template <class T> void hurwitz_zeta(const Pairs<T>& p) {
    each_pair(p, [](double x, double q) { return zeta(x, q); });
}

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

template <class T> void polynomials(const Pairs<T>& p, const Polynomial& of, double most) {
    parallel(p.n, 256, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += lanes<double>) {
            const int64_t some = std::min<int64_t>(lanes<double>, end - i);
            const Vec<double> x = some_of(p.a + i * p.a_step, p.a_step, some), n = some_of(p.b + i * p.b_step, p.b_step, some);
            const Vec<double> result = value_of(of, x, n, most);
            for (int64_t k = 0; k < some; ++k) p.to[i + k] = T(result[k]);
        }
    });
}

#define FW_OF(T)                                                  \
    template void incomplete_gamma(const Pairs<T>&, bool);        \
    template void hurwitz_zeta(const Pairs<T>&);                  \
    template double largest(const T*, int64_t);                   \
    template void polynomials(const Pairs<T>&, const Polynomial&, double);
FW_OF(float)
FW_OF(double)
#undef FW_OF

}  // namespace fw::special
