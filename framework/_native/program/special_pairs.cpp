// Special functions of two arguments: incomplete gamma, Hurwitz' zeta, orthogonal polynomials.
#include "program/special_pairs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/pool.h"
#include "base/vecmath.h"
#include "program/special.h"
#include "program/special_numbers.h"

namespace fw::special {
namespace {

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

template <class T> void put_some(Vec<double> v, int64_t count, T* to) {
    typedef T Some __attribute__((vector_size(sizeof(T) * lanes<double>)));
    const Some some = __builtin_convertvector(v, Some);
    if (count == lanes<double>) std::memcpy(to, &some, sizeof some);
    else for (int64_t k = 0; k < count; ++k) to[k] = some[k];
}

constexpr double FAR = 1e50;  // beyond, numbers of the recurrences would not hold

// `incomplete` where a and x are positive and less than FAR, to so many digits: sum and fraction as numerator and denominator,
// since a division takes as long as all else of a turn.
Vec<double> incomplete_of(Vec<double> a, Vec<double> x, int part, double precise) {
    using V = Vec<double>;
    constexpr int MOST = 10000;
    constexpr double LARGE = 1e70;
    const auto inside = (a > 0.0) & (x > 0.0) & (a < FAR) & (x < FAR), series = inside & (x < a + 1.0), rest = inside & ~series;
    double shapes[lanes<double>], gammas[lanes<double>];
    store<double>(shapes, inside ? a : V{} + 1.0);
    many_lgamma<double>(shapes, lanes<double>, gammas, 0, nullptr);
    const V lead = math::exp<V>(inside ? a * math::log_positive<V>(inside ? x : V{} + 1.0) - x - load(gammas) : V{});
    V lower = {};
    if (math::any(series)) {
        V power = V{} + 1.0, sum = power, product = a;
        for (double k = 1; k < MOST && math::any(series & (power > precise * sum)); ++k) {
            const V factor = a + k;
            power *= x, product *= factor, sum = sum * factor + power;
            const auto large = (sum > LARGE) | (product > LARGE);
            if (math::any(series & large)) {
                const V by = large ? V{} + 1 / LARGE : V{} + 1.0;
                power *= by, product *= by, sum *= by;
            }
        }
        lower = lead * (sum / product);
        lower = part ? 1.0 - lower : lower;
    }
    if (math::any(rest)) {
        V b = x + 1.0 - a, above = V{} + 1.0, below = b, above_before = {}, below_before = above, wrong = above, whole = {};
        for (double k = 1; k < MOST && math::any(rest & (math::abs<V>(wrong) > precise * math::abs<V>(whole))); ++k) {
            const V factor = k * (a - k);
            b += 2.0;
            const V next = b * above + factor * above_before, next_below = b * below + factor * below_before;
            whole = next * below, wrong = whole - above * next_below;
            above_before = above, below_before = below, above = next, below = next_below;
            const auto large = math::abs<V>(below) > LARGE;
            if (math::any(rest & large)) {
                const V by = large ? V{} + 1 / LARGE : V{} + 1.0;
                above *= by, below *= by, above_before *= by, below_before *= by;
            }
        }
        const V fraction = lead * (above / below);
        lower = rest ? (part ? fraction : 1.0 - fraction) : lower;
    }
    return lower;
}

// What becomes of P_k in P_(k+1), where all of that depends on k.
void step(Family family, double k, double& a_k, double& b_k, double& c_k) {
    if (family == Family::laguerre) a_k = -1 / (k + 1), b_k = (2 * k + 1) / (k + 1), c_k = k / (k + 1);
    if (family == Family::legendre) a_k = (2 * k + 1) / (k + 1), b_k = 0, c_k = k / (k + 1);
}

// Of some numbers and degrees, none above `most`.
Vec<double> value_of(const Polynomial& of, Vec<double> x, Vec<double> n, double most) {
    using V = Vec<double>;
    const V degree = math::trunc<V>(n);
    V before = V{} + 1.0, now = of.p * x + of.q, result = degree == 0.0 ? before : now;
    const bool changes = of.family == Family::laguerre || of.family == Family::legendre;
    const double more = of.family == Family::hermite ? 2 : of.family == Family::hermite_e ? 1 : 0;
    double a_k = 0, b_k = 0, c_k = more ? more : 1;
    V factor = (more ? more : of.a) * x + (more ? 0.0 : of.b);
    for (double k = 1; k < most; ++k, c_k += more) {
        if (changes) {
            step(of.family, k, a_k, b_k, c_k);
            factor = a_k * x + b_k;
        }
        const V after = factor * now - c_k * before;
        before = now;
        now = after;
        result = degree > k ? now : result;
    }
    return n != n ? n : degree < 0.0 ? V{} : result;
}

}  // namespace

template <class T> void incomplete_gamma(const Pairs<T>& p, bool upper) {
    const int part = upper;
    constexpr double precise = std::is_same<T, float>::value ? 1e-12 : 4e-16;
    parallel(p.n, 256, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += lanes<double>) {
            const int64_t some = std::min<int64_t>(lanes<double>, end - i);
            const auto u = some_of(p.a + i * p.a_step, p.a_step, some), v = some_of(p.b + i * p.b_step, p.b_step, some);
            const auto result = incomplete_of(u, v, part, precise);
            for (int64_t k = 0; k < some; ++k) {
                const bool inside = u[k] > 0 && v[k] > 0 && u[k] < FAR && v[k] < FAR;
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
            put_some(value_of(of, x, n, most), some, p.to + i);
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
