// Special functions of float32 (special.h): the formulas of special.cpp with several numbers in a vector.
#include "program/special.h"

#include <limits>

#include "base/vecmath.h"
#include "random/normal.h"

namespace fw::special {
namespace {

using V = Vec<double>;
typedef float Floats __attribute__((vector_size(sizeof(float) * lanes<double>)));

constexpr double PI = 3.14159265358979323846;

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

void lgamma_of_floats(const float* x, int64_t n, float* to) {
    each(x, n, to, [](V v) { return lgamma(v); });
}
void digamma_of_floats(const float* x, int64_t n, float* to) {
    each(x, n, to, [](V v) { return digamma(v); });
}
void erfinv_of_floats(const float* x, int64_t n, float* to) {
    each(x, n, to, [](V v) { return quantile(0.5 * v, 0.5 * (1.0 - math::abs<V>(v))) * 0.70710678118654752440; });
}
void ndtri_of_floats(const float* x, int64_t n, float* to) {
    each(x, n, to, [](V p) { return quantile(p - 0.5, p < 0.5 ? p : 1.0 - p); });
}

}  // namespace fw::special
