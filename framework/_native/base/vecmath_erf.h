// erf, erfc, and of the normal distribution what gelu needs.
//
// For a = |x|, erfc(a) = exp(-a^2) g(q) / (a + K), q = (a - K) / (a + K): the scaled function is smooth in q
// from 0 to infinity (Shepherd and Laframboise 1981), a^2 enters as an exact pair, and a power of two comes
// last, so the tail keeps its digits into the denormals.  Float has a table of the scaled function instead.
#pragma once

#include "base/vecmath_exp.h"

namespace fw {
namespace math {

template <class T> struct Erf;
template <> struct Erf<float> {
    // erf(x) / x - 1 in x^2, x <= 1: 2^-28
    static constexpr float small[] = {1.2837917e-01f, -3.761263e-01f, 1.1283626e-01f, -2.685536e-02f,
        5.190882e-03f, -8.029786e-04f, 7.911793e-05f};
    // Coefficient i of erf((j + t) / steps) at [i][j], |t| <= 1/2, j < 16: 2^-25.  No constant at j = 0, so
    // that small results keep their digits.
    static constexpr float steps = 3.90625f, one_above = 15.49f;
    static constexpr float table[6][16] = {
        {0.f, 2.8267688e-01f, 5.309817e-01f, 7.225723e-01f, 8.5242623e-01f, 9.297342e-01f, 9.7016186e-01f,
         9.8873186e-01f, 9.962242e-01f, 9.988794e-01f, 9.9970585e-01f, 9.999318e-01f, 9.9998605e-01f,
         9.999975e-01f, 9.999996e-01f, 9.9999994e-01f},
        {2.8886506e-01f, 2.7054104e-01f, 2.2225286e-01f, 1.6015399e-01f, 1.0122884e-01f, 5.6123782e-02f,
         2.7293911e-02f, 1.1642888e-02f, 4.3564416e-03f, 1.429813e-03f, 4.1162604e-04f, 1.0394482e-04f,
         2.3023926e-05f, 4.473347e-06f, 7.623648e-07f, 1.1396471e-07f},
        {1.6507965e-08f, -1.7729776e-02f, -2.9130638e-02f, -3.148731e-02f, -2.6536603e-02f,
         -1.8390859e-02f, -1.0732582e-02f, -5.341271e-03f, -2.2840253e-03f, -8.4330764e-04f,
         -2.6973788e-04f, -7.4919655e-05f, -1.8101098e-05f, -3.8092842e-06f, -6.9896595e-07f,
         -1.11916556e-07f},
        {-6.3105966e-03f, -5.1357914e-03f, -2.309937e-03f, 6.2835874e-04f, 2.4261507e-03f, 2.7914564e-03f,
         2.2172246e-03f, 1.3792128e-03f, 7.031729e-04f, 3.0038078e-04f, 1.0886582e-04f, 3.373888e-05f,
         8.98846e-06f, 2.0662444e-06f, 4.109775e-07f, 7.087682e-08f},
        {1.190971e-06f, 5.512941e-04f, 7.825312e-04f, 6.2348146e-04f, 2.6242866e-04f, -5.3294083e-05f,
         -1.9955859e-04f, -1.9890457e-04f, -1.3449005e-04f, -7.04866e-05f, -3.0050473e-05f,
         -1.0670588e-05f, -3.199039e-06f, -8.1677274e-07f, -1.7864747e-07f, -3.3616033e-08f},
        {1.2204659e-04f, 8.7304295e-05f, 5.078456e-06f, -6.072622e-05f, -7.465944e-05f, -4.7557594e-05f,
         -1.2113819e-05f, 9.313487e-06f, 1.4269251e-05f, 1.063754e-05f, 5.689378e-06f, 2.3929263e-06f,
         8.222885e-07f, 2.3556055e-07f, 5.6944952e-08f, 1.1710473e-08f},
    };
    // Coefficient i of P(Z > a) exp(a^2 / 2), Z standard normal, in a - centre[j], at [i][j]: 2^-23.4.  Four
    // pieces in each octave of 1 + a; the centres are chosen where the function itself is a float, nearly.
    static constexpr float normal_zero_above = 14.7f;
    static constexpr float centre[16] = {1.2423f, 1.747235f, 2.25675f, 2.76573f, 3.52583f, 4.52286f,
        5.4802f, 6.54966f, 8.02208f, 10.027f, 12.0516f, 13.7929f, 0.12554f, 0.37605f, 0.6284625f, 0.8724275f};
    static constexpr float normal[6][16] = {
        {0.23161386f, 0.18543866f, 0.15329343f, 0.13010694f, 0.10565885f, 0.08440907f, 0.070582226f,
         0.059579786f, 0.048991255f, 0.039402332f, 0.032879483f, 0.028774043f, 0.45360848f, 0.37933516f,
         0.3226758f, 0.28016758f},
        {-0.11120834f, -0.074937366f, -0.052997317f, -0.039101627f, -0.026407177f, -0.017171862f,
         -0.012137577f, -0.008714929f, -0.0059305215f, -0.0038550799f, -0.0026918892f, -0.0020647726f,
         -0.34199628f, -0.2562933f, -0.19615264f, -0.15451637f},
        {0.04672883f, 0.027252344f, 0.016845709f, 0.01098114f, 0.006275368f, 0.0033714843f, 0.0020329002f,
         0.0012499755f, 0.00070800405f, 0.00037371315f, 0.0002189545f, 0.00014741976f, 0.20533632f,
         0.1414776f, 0.09970035f, 0.07268147f},
        {-0.01772097f, -0.009107042f, -0.0049931733f, -0.0029098943f, -0.001425972f, -0.00064074155f,
         -0.00033227308f, -0.00017594366f, -8.340634e-05f, -3.5901674e-05f, -1.7693319e-05f,
         -1.0473204e-05f, -0.10540327f, -0.06769586f, -0.044498578f, -0.030369867f},
        {0.0062323697f, 0.0028554217f, 0.0014023825f, 0.00073655334f, 0.00031659772f, 0.000119532975f,
         5.3494092e-05f, 2.4482126e-05f, 9.896408e-06f, 3.4627012e-06f, 1.4337653e-06f, 7.4324254e-07f,
         0.048192773f, 0.02909518f, 0.017984908f, 0.0115760695f},
        {-0.0019831937f, -0.00083054363f, -0.0003754881f, -0.00018182161f, -6.84961e-05f, -2.1963648e-05f,
         -8.173809e-06f, -3.4815416e-06f, -1.1500364e-06f, -3.319126e-07f, -1.1754664e-07f, -5.2818923e-08f,
         -0.020053264f, -0.011431961f, -0.006654556f, -0.0040180786f},
    };
    static constexpr float zero_above = 10.5, middle = 3;
    static constexpr float tail = 1.0740069e+00f, tail_slope[] = {-8.8339454e-01f, 5.902277e-01f,
        -3.104647e-01f, 1.1953639e-01f, -2.6845789e-02f, -1.2581839e-03f, 3.0791133e-03f,
        -4.3764577e-04f, -2.988462e-04f};  // g: 2^-26
};
template <> struct Erf<double> {
    static constexpr double small[] = {0.12837916709551256, -0.3761263890318355, 0.11283791670945253,
        -0.026866170643276222, 0.005223977607423471, -0.0008548325989696775, 0.00012055295320494306,
        -1.4924744663335497e-05, 1.6447517677871877e-06, -1.6209175911748698e-07, 1.3722976265924504e-08,
        -7.801188874097752e-10};  // 2^-57
    static constexpr double zero_above = 28, normal_zero_above = 39, middle = 4;
    static constexpr double tail = 1.095995661000491, tail_slope[] = {-0.9765487290808821, 0.7732087022652436,
        -0.5408538313132244, 0.3308515878777886, -0.17401093724033687, 0.07638151491287608,
        -0.026370053333320802, 0.00611205562409029, -0.00028095893247903923, -0.0004550525162542435,
        0.00017681320295350047, -3.6357181656277017e-06, -1.8862267129215954e-05, 4.695491079390316e-06,
        1.427313012765541e-06, -8.473764346306373e-07, -7.982676174393822e-08, 1.2466339934069065e-07,
        4.1532337157103106e-09, -1.5305701743098447e-08, -9.289806775394315e-10,
        8.276729997458851e-10};  // 2^-54
};

// erf(x) for |x| <= 1
template <class V> FW_INLINE V erf_small(V x) { return fma<V>(x, poly<V>(x * x, Erf<Elem<V>>::small), x); }

// Twos in a product of numbers below 22 (float: 8.5) of which nothing is left.
template <class T> constexpr T nothing_left = is_float<T> ? -155 : -1081;

// g exp(-s), |g| < 6 (double: 15.6), at most 1 ulp more than g is off
template <class V> FW_INLINE V times_exp(Pair<V> g, Pair<V> s) {
    auto [k, r] = reduce_exp<V>(-s.hi);
    return scale_above<V>(g.hi + fma(expm1_small<V>(r - s.lo), g.hi, g.lo), k, k, nothing_left<Elem<V>>);
}
template <class V> FW_INLINE V times_exp(V g, Pair<V> s) {
    auto [k, r] = reduce_exp<V>(-s.hi);
    return scale_above<V>(fma(expm1_small<V>(r - s.lo), g, g), k, k, nothing_left<Elem<V>>);
}

// erfc(a) exp(a^2) for a >= 0
template <class V> FW_INLINE Pair<V> erfc_scaled(V a) {
    using T = Elem<V>;
    using E = Erf<T>;
    V d = a + E::middle, inverse = T(1) / d, d_rest = a - (d - E::middle);
    V q = (a - E::middle) * inverse;
    q = fma(inverse, fma(q, -a, fma<V>(q + T(1), -E::middle, a)), q);  // a Newton step against its roundings
    auto one = two_product(inverse, d);
    V wrong = (T(1) - one.hi) - fma(inverse, d_rest, one.lo);  // of the inverse, relative to it
    V p = poly(q, E::tail_slope), first = all<V>(E::tail);
    auto t = two_product(p, q), sum = fast_two_sum(first, t.hi);
    auto g = two_product(sum.hi, inverse);
    g.lo = fma(wrong, g.hi, fma<V>(sum.lo + t.lo, inverse, g.lo));
    return g;
}

// erfc(a) for a >= 0
template <class V> FW_INLINE V erfc_positive(V a) {
    using E = Erf<Elem<V>>;
    a = lesser(all<V>(E::zero_above), a);
    return times_exp(erfc_scaled(a), two_product(a, a));
}

// P(Z > a) exp(a^2 / 2) for a standard normal Z, 0 <= a <= 15
template <class V> FW_INLINE V normal_by_table(V a) {
    using E = Erf<float>;
    auto j = to_bits<V>(a + 1.0f) >> 21;
    V t = a - lookup(E::centre, j), p = lookup(E::normal[5], j);
    for (int i = 4; i >= 0; --i) p = fma(p, t, lookup(E::normal[i], j));
    return p;
}

// float, by table: at most 2 ulp
template <class V> FW_INLINE V erf_by_table(V x) {
    using E = Erf<float>;
    V a = lesser(all<V>(E::one_above / E::steps), abs(x));
    V shifted = fma(a, E::steps, Format<float>::rounder);  // j in its low bits
    V t = fma<V>(a, E::steps, all<V>(Format<float>::rounder) - shifted);
    auto j = to_bits(shifted);
    V p = lookup(E::table[5], j);
    for (int i = 4; i >= 0; --i) p = fma(p, t, lookup(E::table[i], j));
    return copysign(p, x);
}

template <class V> FW_INLINE V erf(V x) {
    using T = Elem<V>;
    if constexpr (has_lookup && is_float<T>) return erf_by_table(x);
    V a = abs(x);
    return pick<V>(a < T(1), erf_small(x), copysign<V>(T(1) - erfc_positive(a), x));
}

// 1 - erf(x) where that is no small difference, 2 - erfc(-x) below
template <class V> FW_INLINE V erfc(V x) {
    using T = Elem<V>;
    V a = abs(x);
    if constexpr (has_lookup && is_float<T>) {
        a = lesser(all<V>(Erf<T>::zero_above), a);
        V half = normal_by_table<V>(a * T(1.41421356237309504880));
        V e = times_exp<V>(half + half, two_product(a, a));
        return pick<V>(x < T(0), T(2) - e, e);
    } else {
        V e = erfc_positive(a);
        return pick<V>(a < T(0.5), T(1) - erf_small(x), pick<V>(x < T(0), T(2) - e, e));
    }
}

// P(Z > a) - slope a density(a) for a = |x|
template <bool Slope, class V> FW_INLINE V normal_tail(V x) {
    using T = Elem<V>;
    constexpr T density = T(-0.39894228040143267794);
    V a = lesser(all<V>(Erf<T>::normal_zero_above), abs(x));
    auto s = two_product<V>(a, a * T(0.5));
    if constexpr (has_lookup && is_float<T>) {
        V g = normal_by_table(a);
        if constexpr (Slope) g = fma(a, density, g);
        return times_exp(g, s);
    } else {
        auto g = erfc_scaled<V>(a * T(0.70710678118654752440));
        g.hi = g.hi * T(0.5), g.lo = g.lo * T(0.5);
        if constexpr (Slope) g.hi = fma(a, density, g.hi);
        return times_exp(g, s);
    }
}

// The normal distribution function
template <class V> FW_INLINE V ndtr(V x) {
    V p = normal_tail<false>(x);
    return pick<V>(x < Elem<V>(0), p, Elem<V>(1) - p);
}

// The derivative of x ndtr(x): ndtr(x) + x density(x), and its limits at +-inf.  Around its zero at -0.75 it is
// right to an ulp of ndtr(x).
template <class V> FW_INLINE V gelu_slope(V x) {
    V p = normal_tail<true>(x);
    return pick<V>(x < Elem<V>(0), p, Elem<V>(1) - p);
}

}  // namespace math
}  // namespace fw
