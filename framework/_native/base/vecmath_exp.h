// The exponential family: exp, exp2, expm1, tanh, sigmoid, sinh, cosh.
//
// e^x = 2^k e^r with k the integer nearest x / ln 2 and |r| <= ln 2 / 2, ln 2 in two parts of which the
// first has so few bits that k times it is exact (Cody and Waite 1980).  e^r = 1 + r + r^2 C(r).
#pragma once

#include "base/vecmath_core.h"

namespace fw {
namespace math {

template <class T> struct Exp;
template <> struct Exp<float> {
    static constexpr float ln2_hi = 0x1.62e4p-1f, ln2_lo = 0x1.7f7d1cp-20f;
    static constexpr float zero_below = -104, inf_above = 89, two_digits = 18;
    // |r| <= 0.347, relative to r: 2^-26
    static constexpr float c[] = {5.e-01f, 1.6666539e-01f, 4.1666605e-02f, 8.367037e-03f, 1.3920728e-03f};
    // (sinh r - r) / r^3 in r^2, r <= 1: 2^-25
    static constexpr float sinh[] = {1.6666718e-01f, 8.330223e-03f, 2.0376692e-04f};
};
template <> struct Exp<double> {
    static constexpr double ln2_hi = 0x1.62e42fefa38p-1, ln2_lo = 0x1.ef35793c7673p-45;
    static constexpr double zero_below = -746, inf_above = 710, two_digits = 40;
    static constexpr double c[] = {0.5000000000000006, 0.16666666666666688, 0.04166666666657219,
        0.00833333333331369, 0.0013888888932901211, 0.00019841269904928303, 2.4801503776538496e-05,
        2.755722628127782e-06, 2.762660524871737e-07, 2.511500000092734e-08};  // 2^-55
    static constexpr double sinh[] = {0.16666666666666669, 0.008333333333333139, 0.00019841269841437426,
        2.7557319155405243e-06, 2.5052123389534777e-08, 1.605724091316992e-10,
        7.759298316351268e-13};  // 2^-56
};

// those of (exp(2 r) - 1 - 2 r) / (2 r^2) in r
template <class T, size_t N> struct Doubled { T c[N]; };
template <class T, size_t N> constexpr Doubled<T, N> doubled(const T (&c)[N]) {
    Doubled<T, N> made = {};
    T power = 2;
    for (size_t i = 0; i < N; ++i, power *= 2) made.c[i] = power * c[i];
    return made;
}
template <class T> constexpr auto TANH = doubled(Exp<T>::c);

// x = k ln 2 + r
template <class V> struct Reduced { V k, r; };
template <class V> FW_INLINE Reduced<V> reduce_exp(V x) {
    using E = Exp<Elem<V>>;
    V k = round_small<V>(x * Elem<V>(0x1.71547652b82fep+0));
    V r = fma(k, -E::ln2_hi, x);
    return {k, fma(k, -E::ln2_lo, r)};
}

// e^r - 1
template <class V> FW_INLINE V expm1_small(V r) { return fma<V>(r * r, poly(r, Exp<Elem<V>>::c), r); }

// 2^Shift e^x, x within the clamp: at most 1 ulp, denormal results too.
template <int Shift, class V> FW_INLINE V exp_shifted(V x) {
    auto [k, r] = reduce_exp(x);
    if constexpr (Shift != 0) k = k + Elem<V>(Shift);
    return scale<V>(expm1_small(r) + Elem<V>(1), k);
}

// e^x for x not above the clamp; 0 from `zero_below` on.
template <class V> FW_INLINE V exp_or_zero(V x) {
    auto [k, r] = reduce_exp(x);
    return scale_above<V>(expm1_small(r) + Elem<V>(1), k, x, Exp<Elem<V>>::zero_below);
}

// The same for x <= 0.
template <class V> FW_INLINE V exp_down(V x) {
#if defined(FW_AVX512)
    return exp_or_zero(x);
#else
    auto [k, r] = reduce_exp(x);
    const auto low = x <= Exp<Elem<V>>::zero_below;
    k = from_bits<V>(to_bits(k) & ~low);
    return from_bits<V>(to_bits(scale_down<V>(expm1_small(r) + Elem<V>(1), k)) & ~low);
#endif
}

template <class V> FW_INLINE V exp(V x) {
    using E = Exp<Elem<V>>;
    return exp_or_zero(lesser(all<V>(E::inf_above), x));
}

// 2^(hi + lo), |hi| < 1100 (float: 160), |lo| < 1/2
template <class V> FW_INLINE V exp2_sum(V hi, V lo) {
    V k = round_small(hi);
    V r = ((hi - k) + lo) * ln2<Elem<V>>;
    constexpr Elem<V> least = is_float<Elem<V>> ? -151 : -1076;  // and below nothing is left of it
    return scale_above<V>(expm1_small(r) + Elem<V>(1), k, k, least);
}

template <class V> FW_INLINE V exp2(V x) {
    constexpr bool single = is_float<Elem<V>>;
    return exp2_sum(clamp(x, Elem<V>(single ? -151 : -1076), Elem<V>(single ? 129 : 1025)), V{});
}

// 2^k (e^r - 1) + (2^k - 1), halved on the way so that 2^128 (2^1024) does not overflow too early
template <class V> FW_INLINE V expm1(V x) {
    using T = Elem<V>;
    auto [k, r] = reduce_exp(clamp(x, -Exp<T>::two_digits, Exp<T>::inf_above));
    V q = expm1_small(r);
    V half = power_of_two<V>(k - T(1));
    V y = fma<V>(half, q, half - T(0.5)) * T(2);
    return pick<V>(abs(x) < std::numeric_limits<T>::epsilon() / 4, x, y);
}

// e / (e + 2), e = exp(2 |x|) - 1 = 2^k (2 h + 1) - 1, |x| = k ln 2 / 2 + r and h = (exp(2 r) - 1) / 2; k is left in the low
// bits of a large number, which saves a rounding
template <class V> FW_INLINE V tanh(V x) {
    using T = Elem<V>;
    using F = Format<T>;
    using U = typename VectorOf<std::make_unsigned_t<Int<T>>>::type;  // which wraps around: of nan it is anything
    V a = lesser(all<V>(T(0.5) * Exp<T>::two_digits + T(1)), abs(x));
    V shifted = fma(a, T(0x1.71547652b82fep+1), F::rounder), k = shifted - F::rounder;
    V r = fma<V>(k, T(-0.5) * Exp<T>::ln2_lo, fma(k, T(-0.5) * Exp<T>::ln2_hi, a));
    V h = fma<V>(r * r, poly(r, TANH<T>.c), r);
    V twice = bits<V>((bits<U>(shifted) << F::digits) + std::make_unsigned_t<Int<T>>(F::one + (Int<T>(1) << F::digits)));
    V e = fma<V>(twice, h, fma(twice, T(0.5), T(-1)));
    return copysign<V>(e / (e + T(2)), x);
}

// 1 / (1 + exp(-x)); for x < 0 as e / (1 + e), e = exp(x), which keeps the digits of small results
template <class V> FW_INLINE V sigmoid(V x) {
    using T = Elem<V>;
    V a = abs(x);
    V e = exp_down(-a);
    return pick<V>(x < T(0), e, T(1)) / (e + T(1));
}

// The derivative of x sigmoid(x), s(x) (1 + x s(-x)), and its limits at +-inf.
template <class V> FW_INLINE V silu_slope(V x) {
    using T = Elem<V>;
    V a = lesser(all<V>(-Exp<T>::zero_below), abs(x)), e = exp_down(-a);
    V larger = T(1) / (e + T(1)), smaller = e * larger;  // the two values of s
    V up = pick<V>(x < T(0), smaller, larger), down = pick<V>(x < T(0), larger, smaller);
    return up * fma<V>(copysign<V>(a, x), down, all<V>(T(1)));
}

// (e - 1 / e) / 2 from e / 2, which is finite as long as the result is; a polynomial below 1
template <class V> FW_INLINE V sinh(V x) {
    using T = Elem<V>;
    V a = abs(x), z = x * x;
    V h = exp_shifted<-1>(lesser(all<V>(Exp<T>::inf_above + T(2)), a));
    V small = fma<V>(z * x, poly(z, Exp<T>::sinh), x);
    return pick<V>(a < T(1), small, copysign<V>(h - T(0.25) / h, x));
}

template <class V> FW_INLINE V cosh(V x) {
    using T = Elem<V>;
    V h = exp_shifted<-1>(lesser(all<V>(Exp<T>::inf_above + T(2)), abs(x)));
    return h + T(0.25) / h;
}

}  // namespace math
}  // namespace fw
