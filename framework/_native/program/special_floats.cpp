// Special functions of float32 (special.h): the formulas of special_numbers.h with several numbers in a vector.
#include "program/special.h"
#include "program/special_tables.h"

#include <limits>

#include "base/vecmath.h"
#include "random/normal.h"

namespace fw::special {
namespace {

using V = Vec<double>;
typedef float Floats __attribute__((vector_size(sizeof(float) * lanes<double>)));

constexpr double PI = 3.14159265358979323846, EULER = 0.57721566490153286061, INF = std::numeric_limits<double>::infinity();

template <class F> void each(const float* x, int64_t n, float* to, F&& f) {
    int64_t i = 0;
    for (; i < n; i += lanes<double>) {
        const size_t bytes = size_t(std::min<int64_t>(lanes<double>, n - i)) * sizeof(float);
        Floats some = Floats{} + 1.0f;
        std::memcpy(&some, x + i, bytes);
        some = __builtin_convertvector(f(V(__builtin_convertvector(some, V))), Floats);
        std::memcpy(to + i, &some, bytes);
    }
}

// -- gamma: by recurrence to where Stirling's series has converged ----------------------------------------------

// The coefficients of 1 / z, 1 / z^3, ... of log gamma: B_2k / (2k (2k - 1))
constexpr double STIRLING[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156,
                               -3617.0 / 122400};
// Those of -1 / z^2, -1 / z^4, ... of digamma: B_2k / 2k
constexpr double DIGAMMA[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12,
                              -3617.0 / 8160, 43867.0 / 14364, -174611.0 / 6600};
// lgamma(1 + e) / e and lgamma(2 + e) / e: Euler's constant, then (-1)^k zeta(k) / k, less 1 in the second
constexpr double AT_ONE[] = {-0.57721566490153286061, 0.82246703342411321824, -0.40068563438653142847,
                             0.27058080842778454788, -0.20738555102867398527, 0.16955717699740818995,
                             -0.14404989676884611812};
constexpr double AT_TWO[] = {0.42278433509846713939, 0.32246703342411321824, -0.067352301053198095133,
                             0.020580808427784547879, -0.0073855510286739852663, 0.0028905103307415232858,
                             -0.0011927539117032609771};
constexpr double NEAR = 0x1p-7;  // within which these series are good to a millionth of the last digit

V lgamma(V x) {
    const auto reflected = x < 0.5;
    V z = reflected ? 1.0 - x : x;
    const V argument = z;
    V product = V{} + 1.0;
    for (int k = 0; k < 8; ++k) {
        const auto small = z < 8.0;
        product = small ? product * z : product;
        z = small ? z + 1.0 : z;
    }
    const V inverse = 1.0 / z;
    V y = (z - 0.5) * math::log_positive<V>(z) - z + 0.91893853320467274178 +
          inverse * math::poly<V>(inverse * inverse, STIRLING);
    // log(product), and of what is reflected log(pi / sin(pi x)), in one logarithm
    const V turn = x - math::rint<V>(x);
    if (math::any(reflected)) product = reflected ? PI * product / math::abs<V>(math::sin<V>(PI * turn)) : product;
    const V rest = math::log_positive<V>(product);
    y = reflected ? rest - y : y - rest;
    const V from_one = argument - 1.0, from_two = argument - 2.0;
    y = ~reflected & (math::abs<V>(from_one) < NEAR) ? from_one * math::poly<V>(from_one, AT_ONE) + 0.0 : y;  // no -0
    y = ~reflected & (math::abs<V>(from_two) < NEAR) ? from_two * math::poly<V>(from_two, AT_TWO) : y;
    const auto pole = reflected & (turn == 0.0);
    y = pole | math::isinf<V>(x) ? V{} + std::numeric_limits<double>::infinity() : y;
    return x != x ? x : y;
}

V digamma(V x) {
    const auto reflected = ~(x > 0.0);
    V z = reflected ? 1.0 - x : x;
    V total = {};
    for (int k = 0; k < 7; ++k) {
        const auto small = z < 7.0;
        total = small ? total - 1.0 / z : total;
        z = small ? z + 1.0 : z;
    }
    const V inverse = 1.0 / z, square = inverse * inverse;
    V y = total + math::log_positive<V>(z) - 0.5 * inverse - square * math::poly<V>(square, DIGAMMA);
    if (math::any(reflected)) {
        const V turn = x - math::rint<V>(x);
        y = reflected ? y - PI / math::tan<V>(PI * turn) : y;
        const V pole = math::copysign<V>(V{} + std::numeric_limits<double>::infinity(), -x);
        y = reflected & (turn == 0.0) ? (x == 0.0 ? pole : V{} + std::numeric_limits<double>::quiet_NaN()) : y;
        y = x == -std::numeric_limits<double>::infinity() ? V{} + std::numeric_limits<double>::quiet_NaN() : y;
    }
    y = x == std::numeric_limits<double>::infinity() ? x : y;
    return x != x ? x : y;
}

// (-1)^(n+1) n! zeta(n + 1, x) for x > 0: terms of the sum, then the Euler-Maclaurin formula, as in special_numbers.h
constexpr double TURNING[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66};

V polygamma(V z, int n) {
    const double s = n + 1;
    const auto inverse = [n](V y) {  // y^-s
        const V one = 1.0 / y;
        V p = one;
        for (int k = 0; k < n; ++k) p *= one;
        return p;
    };
    V total = {};
    for (int k = 0; k < 8 + n; ++k, z += 1.0) total += inverse(z);
    const V last = inverse(z), square = 1.0 / (z * z);
    V tail = last * z / (s - 1) + 0.5 * last, power = last / z;
    double factor = s, factorial = 2, n_factorial = n % 2 ? 1 : -1;
    for (int j = 1; j <= 5; ++j, power *= square) {
        tail += TURNING[j - 1] / factorial * factor * power;
        factor *= (s + 2 * j - 1) * (s + 2 * j);
        factorial *= (2 * j + 1) * (2 * j + 2);
    }
    for (int k = 2; k <= n; ++k) n_factorial *= k;
    return n_factorial * (total + tail);
}

// -- modified Bessel functions of order 0 and 1: as many terms as float32 has digits for --------------------------

template <int terms, size_t N> V series(V t, const double (&c)[N]) {  // Clenshaw's recurrence
    static_assert(terms <= int(N), "so many coefficients");
    V b = {}, before = {};
    for (int k = terms - 1; k > 0; --k) {
        const V next = 2.0 * t * b - before + c[k];
        before = b;
        b = next;
    }
    return t * b - before + c[0];
}

V bessel_ie(V x, int n) {
    const V y = math::abs<V>(x);
    V r = n ? x * series<19>(0.25 * y - 1.0, I1_NEAR) : series<20>(0.25 * y - 1.0, I0_NEAR);
    const auto beyond = y > 8.0;
    if (math::any(beyond)) {
        const V t = 16.0 / y - 1.0, far = (n ? series<8>(t, I1_FAR) : series<8>(t, I0_FAR)) / sqrt(y);
        r = beyond ? (n ? math::copysign<V>(far, x) : far) : r;
    }
    return r;
}

V bessel_i(V x, int n) {
    const V y = math::abs<V>(x), half = math::exp<V>(0.5 * y), r = half * bessel_ie(x, n) * half;
    return y == INF ? (n ? x : y) : r;
}

V bessel_ke(V x, int n) {
    V t = 4.0 / x - 1.0, r = (n ? series<13>(t, K1_FAR) : series<13>(t, K0_FAR)) / sqrt(x);
    const auto near = x <= 2.0;
    if (math::any(near)) {
        const V z = near ? x : V{} + 1.0, square = 0.25 * z * z, log = math::log_positive<V>(0.5 * z);
        V term = V{} + 1.0, i = {}, s = {};
        double harmonic = 0;
        for (int k = 0; k < 10; ++k) {  // the series at 0 (NIST DLMF 10.31)
            const double next = 1.0 / (k + 1);
            i += n ? term * next : term;
            s += term * (n ? next * (2 * (harmonic - EULER) + next) : harmonic);
            harmonic += next;
            term *= square * (next * next);
        }
        const V small = n ? 1.0 / z + 0.5 * z * (log * i - 0.5 * s) : s - (log + EULER) * i;
        r = near ? math::exp<V>(z) * small : r;
    }
    r = x == INF ? V{} : x == 0.0 ? V{} + INF : r;
    return x >= 0.0 ? r : V{} + std::numeric_limits<double>::quiet_NaN();
}

V bessel_k(V x, int n) { return x > 2000.0 ? V{} : math::exp<V>(-x) * bessel_ke(x, n); }

// -- sin(pi x) / (pi x) and its slope ----------------------------------------------------------------------------

V sinc(V x, int n) {
    const V t = PI * x, turn = PI * (x - 2.0 * math::rint<V>(0.5 * x)), value = math::sin<V>(turn) / t;
    if (!n) return x == 0.0 ? V{} + 1.0 : value;
    const V square = t * t, near = t * (-1.0 / 3 + square * (1.0 / 30 + square * (-1.0 / 840 + square / 45360)));
    return PI * (square < 0.01 ? near + 0.0 : (math::cos<V>(turn) - value) / t);
}

// -- the inverse of the normal distribution: AS 241 -------------------------------------------------------------

using Table = normal::Numbers<double>;

V middle(V q) {
    const V x = 0.180625 - q * q;
    return q * (math::poly<V>(x, Table::A) / math::poly<V>(x, Table::B));
}

// The distance from 0 that is exceeded with probability p.
V tail(V p) {
    const V r = sqrt(-math::log_positive<V>(p)), near = r - 1.6, far = r - 5.0;
    V y = math::poly<V>(near, Table::C) / math::poly<V>(near, Table::D);
    const auto beyond = r > 5.0;
    if (math::any(beyond)) y = beyond ? math::poly<V>(far, Table::E) / math::poly<V>(far, Table::F) : y;
    return y;
}

// From the distance to the median, and that to the nearer end.
V quantile(V q, V end) {
    V y = middle(q);
    const auto outer = math::abs<V>(q) > 0.425;
    if (math::any(outer)) y = outer ? math::copysign<V>(tail(end), q) : y;
    y = end == 0.0 ? math::copysign<V>(V{} + std::numeric_limits<double>::infinity(), q) : y;
    return end >= 0.0 ? y : V{} + std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

void lgamma_of_floats(const float* x, int64_t n, float* to, int, double (*)(double, int)) {
    each(x, n, to, [](V v) { return lgamma(v); });
}
void polygamma_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int)) {
    if (!order) return each(x, n, to, [](V v) { return digamma(v); });
    each(x, n, to, [order](V v) { return polygamma(v, order); });
    for (int64_t i = 0; i < n; ++i)
        if (!(x[i] > 0 && x[i] <= std::numeric_limits<float>::max())) to[i] = float(exact(x[i], order));
}
void erfinv_of_floats(const float* x, int64_t n, float* to, int, double (*)(double, int)) {
    each(x, n, to, [](V v) { return quantile(0.5 * v, 0.5 * (1.0 - math::abs<V>(v))) * 0.70710678118654752440; });
}
void ndtri_of_floats(const float* x, int64_t n, float* to, int, double (*)(double, int)) {
    each(x, n, to, [](V p) { return quantile(p - 0.5, p < 0.5 ? p : 1.0 - p); });
}
void bessel_i_of_floats(const float* x, int64_t n, float* to, int order, double (*)(double, int)) {
    each(x, n, to, [order](V v) { return bessel_i(v, order); });
}
void bessel_ie_of_floats(const float* x, int64_t n, float* to, int order, double (*)(double, int)) {
    each(x, n, to, [order](V v) { return bessel_ie(v, order); });
}
void bessel_k_of_floats(const float* x, int64_t n, float* to, int order, double (*)(double, int)) {
    each(x, n, to, [order](V v) { return bessel_k(v, order); });
}
void bessel_ke_of_floats(const float* x, int64_t n, float* to, int order, double (*)(double, int)) {
    each(x, n, to, [order](V v) { return bessel_ke(v, order); });
}
void sinc_of_floats(const float* x, int64_t n, float* to, int order, double (*)(double, int)) {
    each(x, n, to, [order](V v) { return sinc(v, order); });
}

}  // namespace fw::special
