// Special functions (special.h): the formulas of special_numbers.h with several numbers in a vector.
#include "program/special.h"
#include "program/special_tables.h"
#include "program/special_vectors.h"
#include "random/normal.h"

namespace fw::special {
namespace {

// -- sin(pi t) and cos(pi t) for |t| <= 1/2: polynomials in t^2, 2^-61 and 2^-51 ----------------------

constexpr double SINE[] = {3.141592653589793, -5.167712780049969, 2.5501640398773007, -0.5992645293189447,
    0.0821458865731029, -0.007370430505916944, 0.0004662998161898394, -2.1903497074626018e-05, 7.697826768224191e-07};
constexpr double COSINE[] = {1.0, -4.934802200544676, 4.058712126416498, -1.335262768843456, 0.23533063012967062,
    -0.02580688873817758, 0.001929556278037417, -0.00010456656706174584, 4.149578027057121e-06};

V sine_of_turn(V t) { return t * math::poly<V>(t * t, SINE); }
V cosine_of_turn(V t) { return math::poly<V>(t * t, COSINE); }

// -- gamma: by recurrence to where Stirling's series has converged ----------------------------------------------

// z (log gamma(z) - (z - 1/2) log z + z - log(2 pi) / 2) in 1 / z^2, z >= 3.5: 2^-59
constexpr double STIRLING[] = {0.08333333333333331, -0.002777777777738235, 0.0007936507770995531, -0.000595235380443146,
    0.0008415212319288714, -0.0019061002308561502, 0.006049649480253398, -0.02195956085228026, 0.06735558830496968,
    -0.11232786183772552};
// lgamma(2 + e) / e, |e| <= 1/2: 2^-55
constexpr double AT_TWO[] = {0.42278433509846713, 0.32246703342411215, -0.0673523010531956, 0.020580808427992214,
    -0.007385551028937974, 0.002890510319171675, -0.0011927539009204018, 0.0005096698136708768, -0.00022315497868931946,
    9.94536967684417e-05, -4.492371708374659e-05, 2.053566973891129e-05, -9.456338120610123e-06, 4.2551334320752134e-06,
    -1.9741884532905586e-06, 1.2162149498623653e-06, -5.812501250599261e-07};
// Those of -1 / z^2, -1 / z^4, ... of digamma: B_2k / 2k
constexpr double DIGAMMA[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12,
                              -3617.0 / 8160, 43867.0 / 14364, -174611.0 / 6600};
// By Stirling's series from 3.5 on, else from the series at 2, one or no factor away; there is one logarithm for either.
V lgamma(V x) {
    const auto reflected = x < 0.5;
    const V z = reflected ? 1.0 - x : x;
    const auto below = z < 1.5, above = z >= 2.5, far = z >= 3.5;
    const V e = z - (below ? V{} + 1.0 : above ? V{} + 3.0 : V{} + 2.0), inverse = 1.0 / z;
    const V log = math::log_positive<V>(above & ~far ? z - 1.0 : z);
    const V near = e * math::poly<V>(e, AT_TWO) + (above ? log : below ? -log : V{}) + 0.0;  // no -0
    V y = (z - 0.5) * log - z + 0.91893853320467274178 + inverse * math::poly<V>(inverse * inverse, STIRLING);
    y = far ? y : near;
    if (math::any(reflected)) {
        const V turn = x - math::rint<V>(x), sine = math::abs<V>(sine_of_turn(turn));
        y = reflected ? math::log_positive<V>(PI / sine) - y : y;
        y = reflected & (turn == 0.0) ? V{} + INF : y;
    }
    y = math::isinf<V>(x) ? V{} + INF : y;
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
        const V pole = math::copysign<V>(V{} + INF, -x);
        y = reflected & (turn == 0.0) ? (x == 0.0 ? pole : V{} + NOT) : y;
        y = x == -INF ? V{} + NOT : y;
    }
    y = x == INF ? x : y;
    return x != x ? x : y;
}

// (-1)^(n+1) n! zeta(n + 1, x) for x > 0: terms of the sum, then the Euler-Maclaurin formula, as in special_numbers.h
template <class T> V polygamma(V z, int n) {
    constexpr int terms = short_digits<T> ? 8 : 12, turns = short_digits<T> ? 5 : 10;
    const double s = n + 1;
    const auto power_of = [n](V one) {  // one^s
        V p = one;
        for (int k = 0; k < n; ++k) p *= one;
        return p;
    };
    V total = {};
    int k = 0;
    for (; k + 1 < terms + n; k += 2, z += 2.0) {  // one division for two terms
        const V next = z + 1.0, both = 1.0 / (z * next);
        total += power_of(next * both) + power_of(z * both);
    }
    if (k < terms + n) total += power_of(1.0 / z), z += 1.0;
    const V last = power_of(1.0 / z), square = 1.0 / (z * z);
    V tail = last * z / (s - 1) + 0.5 * last, power = last / z;
    double factor = s, factorial = 2, n_factorial = n % 2 ? 1 : -1;
    for (int j = 1; j <= turns; ++j, power *= square) {
        tail += BERNOULLI[j - 1] / factorial * factor * power;
        factor *= (s + 2 * j - 1) * (s + 2 * j);
        factorial *= (2 * j + 1) * (2 * j + 2);
    }
    for (int k = 2; k <= n; ++k) n_factorial *= k;
    return n_factorial * (total + tail);
}

// -- sin(pi x) / (pi x) and its slope ----------------------------------------------------------------------------

V sinc(V x, int n) {
    const V whole = math::rint<V>(x), turn = x - whole, t = PI * x;
    const V sign = whole == 2.0 * math::rint<V>(0.5 * whole) ? V{} + 1.0 : V{} - 1.0, value = sign * sine_of_turn(turn) / t;
    if (!n) return x == 0.0 ? V{} + 1.0 : value;
    // the series (-1)^k 2k / (2k + 1)! t^(2k - 1) up to |t| = 1, where the two terms of the formula nearly cancel: 2^-61
    constexpr double NEAR[] = {-1.0 / 3, 1.0 / 30, -1.0 / 840, 1.0 / 45360, -1.0 / 3991680, 1.0 / 518918400,
                               -1.0 / 93405312000, 1.0 / 22230464256000, -1.0 / 6758061133824000};
    const V near = t * math::poly<V>(t * t, NEAR);
    return PI * (math::abs<V>(t) < 1.0 ? near + 0.0 : (sign * cosine_of_turn(turn) - value) / t);
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
    if (math::any_above<V>(r, 5.0)) y = r > 5.0 ? math::poly<V>(far, Table::E) / math::poly<V>(far, Table::F) : y;
    return y;
}

// From the distance to the median, and that to the nearer end.
V quantile(V q, V end) {
    const auto inside = end > 0.0;
    V y{};
    if (math::any(inside)) y = middle(q);
    const auto outer = math::abs<V>(q) > 0.425;
    if (math::any(outer & inside)) y = outer ? math::copysign<V>(tail(end), q) : y;
    y = end == 0.0 ? math::copysign<V>(V{} + INF, q) : y;
    return end >= 0.0 ? y : V{} + NOT;
}

// -- the inverse of erf: x times a polynomial in w = -log(1 - x^2), 2^-34 and 2^-58; beyond 5 in the root of w -------

constexpr double INVERSE_NEAR[] = {1.5014093511307296, 0.6166006919867009, -0.026108237741432467, -0.019573564270649057,
    0.008525432590256501, -0.0004878764749554979, -0.0008343272659614886, 0.00029213577974979843, 2.10274531521873e-05,
    -4.140043618074984e-05, 7.820672733815211e-06, 2.931137042117709e-06, -1.2236984334405913e-06};
constexpr double INVERSE_FAR[] = {3.013130114283491, 0.9477109809153821, 0.005558307837617605, -0.0038163893935569556,
    0.0025051896690756036, -0.0015912670921715902, 0.0007966875088851966, -0.00023631481052444284, -1.8783278726641393e-05,
    6.316405696568047e-05, -3.184172888259799e-05, 2.948740425349144e-06, 4.5252474406567695e-06, -1.6837655078738585e-06};

// log(1 + f) / f for a mantissa 1 + f: 2^-33
constexpr double LOG_PART[] = {1.0000000000337093, -0.5000000033168733, 0.33333331575467634, -0.2499993331852753,
    0.2000010840788648, -0.1667048317981796, 0.14285649477647316, -0.12410622112909875, 0.1101935062910602,
    -0.10879439957071714, 0.10741801735008594, -0.05996999363706579};

constexpr double INVERSE[] = {1.501409351110792, 0.6166006918604175, -0.02610823577739765, -0.019573561059547377,
    0.008525400950939892, -0.0004878983983252155, -0.0008341356436926482, 0.0002921906851342163, 2.0472417839420812e-05,
    -4.1432071450377935e-05, 8.652721877484876e-06, 2.851652817060834e-06, -1.853870554105327e-06,
    1.3583392473566449e-07, 1.9953933232996815e-07, -7.08985061397636e-08, -6.70810932648382e-09,
    1.1040417909061025e-08, -1.9880707100189075e-09, -9.760204713196851e-10, 4.4650677608736676e-10,
    3.867417238765463e-11, -3.9169363297916484e-11};

V short_erfinv(V x) {
    const V size = math::abs<V>(x);
    const auto [k, m] = math::split<V>((1.0 - size) * (1.0 + size));
    const V f = 1.0 - m, w = f * math::poly<V>(-f, LOG_PART) - k * 0.69314718055994530942;
    V y = math::poly<V>(w * 0.4 - 1.0, INVERSE_NEAR);
    if (math::any_above<V>(w, 5.0)) {
        constexpr double least = 2.23606797749978969641, most = 4.12310562561766054982;  // the roots of 5 and 17
        y = w > 5.0 ? math::poly<V>((sqrt(w) - 0.5 * (least + most)) * (2 / (most - least)), INVERSE_FAR) : y;
    }
    y = size == 1.0 ? V{} + INF : y;
    return size <= 1.0 ? x * y : V{} + NOT;
}

template <class T> V erfinv(V x) {
    if constexpr (short_digits<T>) return short_erfinv(x);
    const V size = math::abs<V>(x), w = -math::log_positive<V>((1.0 - size) * (1.0 + size));
    V y = x * math::poly<V>(w * 0.4 - 1.0, INVERSE);
    if (math::any_above<V>(w, 5.0)) y = w > 5.0 ? math::copysign<V>(0.70710678118654752440 * tail(0.5 * (1.0 - size)), x) : y;
    y = size == 1.0 ? math::copysign<V>(V{} + INF, x) : y;
    return size <= 1.0 ? y : V{} + NOT;
}

// -- normal tails: exp(a^2) erfc(a) (a + 3) in (a - 3) / (a + 3), 2^-34 ---------------------------------------------

constexpr double TAIL[] = {1.074006907095583, -0.8833944527814879, 0.5902283561681002, -0.3104672766619819,
    0.11952778118498066, -0.026827071304895925, -0.0012125784260956789, 0.0030332571157849564, -0.0005476593806946941,
    -0.00027470452039214384, 0.00010612604536456836, 2.7432789493835322e-05, -1.5676277782942797e-05, -2.392885825645366e-06,
    1.5353711747406371e-06};

// of a > 25, where erfc is next to 0, by its series in 1 / a^2
V far_tail(V a) {
    const V s = 0.5 / (a * a);
    V sum = 1.0 - 13.0 * s;
    for (double k = 11; k > 0; k -= 2) sum = 1.0 - k * s * sum;
    return 0.56418958354775628695 / a * sum;
}

template <class T> V scaled_tail(V a) {  // exp(a^2) erfc(a) for a >= 0
    if constexpr (!short_digits<T>) {
        if (math::any_above<V>(a, 25.0)) return a > 25.0 ? far_tail(a) : scaled_tail<T>(a > 25.0 ? V{} : a);
        if constexpr (math::has_long_lookup)
            if (!math::any_above<V>(a, math::Erf<double>::scaled_to)) return math::scaled_by_table(a);
        const auto g = math::erfc_scaled(a);
        return g.hi + g.lo;
    }
    a = math::lesser(math::all<V>(1e300), a);
    const V inverse = 1.0 / (a + 3.0);
    return inverse * math::poly<V>((a - 3.0) * inverse, TAIL);
}

template <class T> V erfcx(V x) {
    const V y = scaled_tail<T>(math::abs<V>(x));
    const auto left = x < 0.0;
    if (!math::any(left)) return y;
    const auto [square, rest] = math::two_product<V>(x, x);
    const V e = math::exp<V>(square), more = 2.0 * e;
    return left ? (more < INF ? more + (more * rest - y) : more) : y;
}

template <class T> V log_ndtr(V x) {
    const V scaled = 0.5 * scaled_tail<T>(math::abs<V>(x) * 0.70710678118654752440), square = 0.5 * x * x;
    const auto left = x < 0.0;
    V tail = scaled;
    if (math::any(~left)) tail = left ? scaled : scaled * math::exp<V>(-square);
    if constexpr (!short_digits<T>) return left ? math::log<V>(tail) - square : math::log1p<V>(-tail);
    const V log = math::log<V>(left ? tail : 1.0 - tail);
    return left ? log - square : (tail < 1e-6 ? -tail - 0.5 * tail * tail : log);
}

}  // namespace

template <class T> void many_lgamma(const T* x, int64_t n, T* to, int, double (*)(double, int)) {
    each(x, n, to, [](V v) { return lgamma(v); });
}
template <class T> void many_polygamma(const T* x, int64_t n, T* to, int order, double (*exact)(double, int)) {
    if (!order) return each(x, n, to, [](V v) { return digamma(v); });
    each(x, n, to, [order](V v) { return polygamma<T>(v, order); });
    for (int64_t i = 0; i < n; ++i)
        if (!(x[i] > 0 && x[i] <= std::numeric_limits<T>::max())) to[i] = T(exact(x[i], order));
}
template <class T> void many_erfinv(const T* x, int64_t n, T* to, int, double (*)(double, int)) {
    each(x, n, to, [](V v) { return erfinv<T>(v); });
}
template <class T> void many_erfcx(const T* x, int64_t n, T* to, int, double (*)(double, int)) {
    each(x, n, to, [](V v) { return erfcx<T>(v); });
}
template <class T> void many_log_ndtr(const T* x, int64_t n, T* to, int, double (*)(double, int)) {
    each(x, n, to, [](V v) { return log_ndtr<T>(v); });
}
template <class T> void many_ndtri(const T* x, int64_t n, T* to, int, double (*)(double, int)) {
    each(x, n, to, [](V p) { return quantile(p - 0.5, p < 0.5 ? p : 1.0 - p); });
}
template <class T> void many_sinc(const T* x, int64_t n, T* to, int order, double (*)(double, int)) {
    each(x, n, to, [order](V v) { return sinc(v, order); });
}

#define FW_MANY(name)                                                                                        \
    template void many_##name<float>(const float*, int64_t, float*, int, double (*)(double, int)); \
    template void many_##name<double>(const double*, int64_t, double*, int, double (*)(double, int));
FW_MANY(lgamma) FW_MANY(polygamma) FW_MANY(erfinv) FW_MANY(erfcx) FW_MANY(log_ndtr) FW_MANY(ndtri) FW_MANY(sinc)
#undef FW_MANY

}  // namespace fw::special
