// The logarithms and what is made of them: log, log2, log10, log1p, softplus_rest, asinh, acosh, atanh, pow.
//
// x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1; log x = k ln 2 + log(1 + f).
#pragma once

#include "base/vecmath_exp.h"

namespace fw {
namespace math {

template <class T> struct Log;
template <> struct Log<float> {
    // (log(1 + f) - f + f^2 / 2) / f^3, relative to f: 2^-27
    static constexpr float c[] = {3.3333316e-01f, -2.500081e-01f, 2.0002311e-01f, -1.6624562e-01f,
        1.4180571e-01f, -1.3129207e-01f, 1.2884805e-01f, -7.8565344e-02f};
    // (atanh(s) / s - 1) / s^2 in s^2, s <= 1/3, times s^2: 2^-31
    static constexpr float third[] = {0.33333334f, 0.19999853f, 0.14296179f, 0.108532876f, 0.11612165f};
    // (log2((1 + s) / (1 - s)) / s - 2 / ln 2) / s^2 in s^2, s <= 0.172, times s^2: 2^-35
    static constexpr float pow[] = {9.617967e-01f, 5.770789e-01f, 4.1192144e-01f, 3.3662674e-01f};
};
template <> struct Log<double> {
    // (log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2, s = f / (2 + f): 2^-58
    static constexpr double c[] = {0.6666666666666735, 0.3999999999941203, 0.28571428743065297,
        0.22222198494367626, 0.18183568899515942, 0.15313921734396535, 0.14797351518773094};
    // as for float: 2^-62
    static constexpr double third[] = {0.3333333333333333, 0.19999999999999762, 0.1428571428580005,
        0.11111111099118386, 0.09090909948981357, 0.07692271982430275, 0.06667589315724629, 0.05867139530651599,
        0.05422589197440007, 0.03746071897775383, 0.07815288900461426};
    // as for float, without its constant term, which needs two numbers: 2^-64
    static constexpr double pow[] = {0.5770780163555851, 0.412198583111372, 0.32059889790746965,
        0.262308199219005, 0.2219522366121661, 0.19240248797410744, 0.16842996319757997,
        0.1729826247402507};
};

template <class V> struct Split { V k, m; };  // 2^k m

// For x > 0, finite, denormals too.  AVX-512 has it as instructions, which also give the k and m whose
// logarithm is the right limit or nan for all other x.
#if defined(FW_AVX512)
constexpr bool split_has_limits = true;
FW_INLINE Split<Vec<float>> exponent_and_mantissa(Vec<float> x) {
    constexpr auto positive = _MM_MANTISSA_SIGN_ENUM(3);  // -0 as 0, nan below
    return {(Vec<float>)_mm512_maskz_getexp_ps(0xffff, (__m512)x),
            (Vec<float>)_mm512_maskz_getmant_ps(0xffff, (__m512)x, _MM_MANT_NORM_1_2, positive)};
}
FW_INLINE Split<Vec<double>> exponent_and_mantissa(Vec<double> x) {
    constexpr auto positive = _MM_MANTISSA_SIGN_ENUM(3);
    return {(Vec<double>)_mm512_maskz_getexp_pd(0xff, (__m512d)x),
            (Vec<double>)_mm512_maskz_getmant_pd(0xff, (__m512d)x, _MM_MANT_NORM_1_2, positive)};
}
template <class V> FW_INLINE Split<V> split(V x) {
    using T = Elem<V>;
    auto [k, m] = exponent_and_mantissa(x);
    auto high = m > T(1.41421356237309504880);
    return {pick<V>(high, k + T(1), k), pick<V>(high, m * T(0.5), m)};
}
#else
constexpr bool split_has_limits = false;
template <class V> FW_INLINE Split<V> split(V x) {
    using T = Elem<V>;
    using F = Format<T>;
    constexpr T up = T(int64_t(1) << (F::digits + 1));
    auto small = x < std::numeric_limits<T>::min();
    using U = typename VectorOf<std::make_unsigned_t<Int<T>>>::type;  // the bits of a nan may wrap around
    auto i = (Ints<V>)((U)to_bits<V>(pick<V>(small, x * up, x)) + std::make_unsigned_t<Int<T>>(F::one - F::sqrt_half));
    auto e = (Ints<V>)((U)i >> F::digits);
    constexpr T two_digits = F::rounder * T(2) / 3;  // 2^digits: e in its low bits is 2^digits + e
    V k = from_bits<V>(e | to_bits(all<V>(two_digits))) - (two_digits + T(F::one >> F::digits));
    V m = from_bits<V>((i & ((Int<T>(1) << F::digits) - 1)) + F::sqrt_half);
    return {k - pick<V>(small, T(F::digits + 1), T(0)), m};
}
#endif

// k ln 2 + log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1]; at most 1 ulp.
// Double: the series of atanh in s = f / (2 + f), with f kept apart (as in Sun's fdlibm).
template <class V> FW_INLINE V log_sum(V k, V f) {
    using T = Elem<V>;
    V half = f * f * T(0.5);
    if constexpr (is_float<T>) {
        V rest = fma<V>(k, Exp<T>::ln2_lo, f * (f * f) * poly(f, Log<T>::c));
        return fma(k, Exp<T>::ln2_hi, f + (rest - half));
    } else {
        V s = f / (f + T(2)), z = s * s;
        V r = z * poly(z, Log<T>::c);
        V rest = fma<V>(k, Exp<T>::ln2_lo, s * (half + r));
        return fma(k, Exp<T>::ln2_hi, f - (half - rest));
    }
}

// y = log(x) where x is a positive number; the limits and nan elsewhere.
template <class V> FW_INLINE V log_domain(V x, V y) {
    using T = Elem<V>;
    if constexpr (split_has_limits) return y;
    y = pick<V>(x < inf<T>, y, x);
    return pick<V>(x > T(0), y, pick<V>(x == T(0), -inf<T>, pick<V>(x != x, x, nan<T>)));
}

template <class V> FW_INLINE V log_positive(V x) {
    auto [k, m] = split(x);
    return log_sum<V>(k, m - Elem<V>(1));
}

template <class V> FW_INLINE V log(V x) { return log_domain(x, log_positive(x)); }

// k + log(m) / log 2: at most 2 ulp
template <class V> FW_INLINE V log2(V x) {
    using T = Elem<V>;
    constexpr T c = T(0x1.71547652b82fep+0);
    constexpr T c_rest = T(is_float<T> ? 0x1.4ae0cp-26 : 0x1.777d0ffda0d24p-56);
    auto [k, m] = split(x);
    V y = log_sum<V>(V{}, m - T(1));
    return log_domain(x, fma(y, c, fma(y, c_rest, k)));
}

// k log10 2 + log(m) / log 10: at most 2 ulp
template <class V> FW_INLINE V log10(V x) {
    using T = Elem<V>;
    constexpr bool single = is_float<T>;
    constexpr T u = T(single ? 0x1.344p-2 : 0x1.34413509f78p-2);
    constexpr T u_rest = T(single ? 0x1.3509f8p-18 : 0x1.fef311f12b358p-46);
    constexpr T c = T(0x1.bcb7b1526e50ep-2), c_rest = T(single ? -0x1.5b235ep-27 : 0x1.95355baaafad3p-57);
    auto [k, m] = split(x);
    V y = log_sum<V>(V{}, m - T(1));
    return log_domain(x, fma(k, u, fma(y, c, fma<V>(y, c_rest, k * u_rest))));
}

// log(u) with u = 1 + x rounded, whose error is added to f at f's scale: at most 2 ulp
template <class V> FW_INLINE V log1p_positive(V x) {
    using T = Elem<V>;
    auto [u, lost] = two_sum<V>(all<V>(1), x);
    auto [k, m] = split(u);
    V down = power_of_two<V>(-pick<V>(k > T(100), T(100), k));  // beyond 2^100 nothing is lost
    return log_sum<V>(k, fma(lost, down, m - T(1)));
}

template <class V> FW_INLINE V log1p(V x) {
    using T = Elem<V>;
    V y = pick<V>(abs(x) < std::numeric_limits<T>::epsilon() / 4, x, log1p_positive(x));
    y = pick<V>(x == inf<T>, x, y);
    if constexpr (split_has_limits) return y;
    return pick<V>(x > T(-1), y, pick<V>(x == T(-1), -inf<T>, pick<V>(x != x, x, nan<T>)));
}

// log(1 + e), e = exp(-|x|), which is softplus(x) - max(x, 0); as 2 atanh(e / (e + 2)), at most 3 ulp
template <class V> FW_INLINE V softplus_rest(V x) {
    using T = Elem<V>;
    V e = exp_down<V>(-abs(x)), s = e / (e + T(2));
    V seen = pick<V>(e < std::numeric_limits<T>::epsilon() / 16, T(0), s), z = seen * seen;  // no underflow before e's
    s = s + s;
    return fma<V>(s * z, poly(z, Log<T>::third), s);
}

// log1p(a + a^2 / (1 + sqrt(1 + a^2))), a = |x|; log(a) + ln 2 when a swamps the 1
template <class V> FW_INLINE V asinh(V x) {
    using T = Elem<V>;
    constexpr T large = T(int64_t(1) << (Format<T>::digits + 2));
    V a = abs(x), z = a * a;
    auto far = a > large;
    V y = log1p<V>(pick<V>(far, a, a + z / (sqrt<V>(z + T(1)) + T(1))));
    return copysign<V>(y + pick<V>(far, ln2<T>, T(0)), x);
}

// log1p(t + sqrt(2 t + t^2)), t = x - 1
template <class V> FW_INLINE V acosh(V x) {
    using T = Elem<V>;
    constexpr T large = T(int64_t(1) << (Format<T>::digits + 2));
    V t = x - T(1);
    auto far = x > large;
    V y = log1p<V>(pick<V>(far, x, t + sqrt<V>(fma<V>(t, t, t + t))));
    return pick<V>(x < T(1), nan<T>, y + pick<V>(far, ln2<T>, T(0)));
}

// log1p(2 a / (1 - a)) / 2, a = |x|
template <class V> FW_INLINE V atanh(V x) {
    using T = Elem<V>;
    V a = abs(x);
    V y = log1p<V>((a + a) / (T(1) - a)) * T(0.5);
    y = pick<V>(a < std::numeric_limits<T>::epsilon(), a, y);
    return pick<V>(a > T(1), nan<T>, copysign(y, x));
}

// log2(m) + k as hi + lo, wrong by at most 2^-31 (double: 2^-63) of itself or of 1, whichever is less far.
// s = (m - 1) / (m + 1) is carried as a pair; so are, in double, s^2 and the constant term of the series.
template <class V> FW_INLINE Pair<V> log2_pair(V k, V m) {
    using T = Elem<V>;
    constexpr T c_hi = T(0x1.71547652b82fep+1);
    constexpr T c_lo = T(is_float<T> ? 0x1.4ae0cp-25 : 0x1.777d0ffda0d24p-55);
    V f = m - T(1), d = m + T(1);
    V inverse = T(1) / d, sh = f * inverse, dl = m - (d - T(1));
    auto [p, pl] = two_product(sh, d);
    V sl = ((f - p) - pl - sh * dl) * inverse;
    Pair<V> r;
    if constexpr (is_float<T>) {
        V z = sh * sh, w = z * poly(z, Log<T>::pow);
        auto a = two_product(sh, all<V>(c_hi));
        V lo = fma(sh, w, fma(sh, c_lo, fma<V>(sl, fma(w, T(3), c_hi), a.lo)));
        r = fast_two_sum(a.hi, lo);
    } else {
        constexpr T c3_hi = 0x1.ec709dc3a03fdp-1, c3_lo = 0x1.d27f05548af0cp-55;
        auto z = two_product(sh, sh);
        z.lo = fma<V>(sh + sh, sl, z.lo);
        auto w = fast_two_sum<V>(all<V>(c3_hi), z.hi * poly(z.hi, Log<T>::pow));
        w.lo = w.lo + c3_lo;
        auto u = two_product(z.hi, w.hi);
        u.lo = fma(z.hi, w.lo, fma(z.lo, w.hi, u.lo));
        auto v = fast_two_sum(all<V>(c_hi), u.hi);
        v.lo = v.lo + (u.lo + c_lo);
        r = two_product(sh, v.hi);
        r.lo = fma(sh, v.lo, fma(sl, v.hi, r.lo));
    }
    auto sum = fast_two_sum(k, r.hi);
    return fast_two_sum<V>(sum.hi, sum.lo + r.lo);
}

// |x|^y of a positive finite number and any y
template <class V> FW_INLINE V pow_positive(V x, V y) {
    using T = Elem<V>;
    constexpr bool single = is_float<T>;
    constexpr T far = single ? 0x1p40 : 0x1p70;  // even, and beyond it every power is 0, 1 or inf
    constexpr T top = single ? 160 : 1100;
    auto [k, m] = split(x);
    auto l = log2_pair(k, m);
    y = clamp(y, -far, far);
    auto p = two_product(y, l.hi);
    V lo = fma(y, l.lo, p.lo);
    return exp2_sum(clamp(p.hi, -top, top), pick<V>(abs(p.hi) < top, lo, T(0)));
}

// C's pow, at most 2 ulp.
template <class V> FW_INLINE V pow(V x, V y) {
    using T = Elem<V>;
    V a = abs(x), h = y * T(0.5);
    V r = pow_positive(a, y);
    if (!any(~((x > T(0)) & (x < inf<T>) & (y == y)))) return r;
    auto whole = rint(y) == y;
    auto odd = whole & (rint(h) != h);
    auto zero = a == T(0), edge = zero | (a == inf<T>);
    r = pick<V>(edge, pick<V>(zero ^ (y > T(0)), inf<T>, T(0)), r);
    r = pick<V>((x < T(0)) & ~edge & ~whole, nan<T>, r);
    r = flip_sign<V>(r, sign_bit(x) & odd);
    r = pick<V>((x != x) | (y != y), x + y, r);
    return pick<V>((x == T(1)) | (y == T(0)), T(1), r);
}

}  // namespace math
}  // namespace fw
