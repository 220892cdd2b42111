// Trigonometric functions and their inverses, hypot, rsqrt, fmod, remainder.
//
// sin and cos subtract the nearest even (odd) multiple n of pi / 2, which leaves |r| <= pi / 2 and the same
// odd polynomial for both; n pi / 2 is subtracted in parts so that the first differences are exact (Cody
// and Waite 1980).  Beyond `Trig::limit` the parts run out of bits: those lanes go through the C library.
#pragma once

#include "base/vecmath_core.h"

namespace fw {
namespace math {

template <class T> struct Trig;
template <> struct Trig<float> {
    static constexpr float limit = 1e5f;
    // (sin r - r) / r^3 in r^2, r <= pi / 2: 2^-27
    static constexpr float sin[] = {-1.666666e-01f, 8.3330665e-03f, -1.9809374e-04f, 2.6048135e-06f};
    // (cos r - 1 + r^2 / 2) / r^4, r <= pi / 4: 2^-33
    static constexpr float cos[] = {4.1666646e-02f, -1.3887301e-03f, 2.4430661e-05f};
    // (asin t - t) / t^3, t <= 1/2: 2^-27
    static constexpr float asin[] = {1.6666754e-01f, 7.495249e-02f, 4.547666e-02f, 2.4148196e-02f,
        4.221941e-02f};
    // (atan t - t) / t^3, t <= 1: 2^-28
    static constexpr float atan[] = {-3.3333302e-01f, 1.9998638e-01f, -1.4265245e-01f, 1.0957573e-01f,
        -8.41945e-02f, 5.82344e-02f, -3.1455554e-02f, 1.1064363e-02f, -1.8271954e-03f};
};
template <> struct Trig<double> {
    static constexpr double limit = 1e8;
    static constexpr double sin[] = {-0.16666666666666666, 0.008333333333333212, -0.00019841269841215151,
        2.7557319212104934e-06, -2.5052106957328087e-08, 1.6058943767809849e-10, -7.643092739568193e-13,
        2.7221979379858633e-15};  // 2^-59
    static constexpr double cos[] = {0.0416666666666666, -0.0013888888888874068, 2.4801587289445474e-05,
        -2.755731434111067e-07, 2.0875721673121862e-09, -1.1359561441351173e-11};  // 2^-59
    static constexpr double asin[] = {0.16666666666665375, 0.07500000000344814, 0.04464285682196397,
        0.030381959395933137, 0.022371751928323847, 0.017359795766377365, 0.013884349329411554,
        0.012174949554880837, 0.006503488294764117, 0.019594431101929637, -0.016326837311849807,
        0.03198179031830357};  // 2^-55
    static constexpr double atan[] = {-0.33333333333331994, 0.19999999999774895, -0.1428571427235819,
        0.11111110705616913, -0.09090901658971688, 0.0769221732846296, -0.0666589223939356,
        0.05877475429809515, -0.05239889923894632, 0.04675900559299512, -0.0409707514505367,
        0.03414539810335498, -0.025930898201729037, 0.017084230556549524, -0.009265417923797706,
        0.003900462716311046, -0.0011807741800101425, 0.000226850294314496,
        -2.0662467145448975e-05};  // 2^-54
};

// x - n pi / 2 for an integer |n| < 2^17 (double: 2^27)
template <class V> FW_INLINE V minus_quarters(V x, V n) {
    using T = Elem<V>;
    constexpr bool single = is_float<T>;
    if constexpr (has_fma) {
        constexpr T p1 = half_pi<T>, p2 = T(single ? -0x1.777a5cp-25 : 0x1.1a62633145c07p-54);
        constexpr T p3 = T(single ? -0x1.ee59dap-50 : -0x1.f1976b7ed8fbcp-110);
        return fma(n, -p3, fma(n, -p2, fma(n, -p1, x)));
    } else if constexpr (single) {  // no exact products in float: in double, lane by lane
        return by_lane([](float a, float k) {
            return float((double(a) - double(k) * 0x1.921fb544p0) - double(k) * 0x1.0b4611a626331p-34);
        }, x, n);
    } else {  // 26 bits each, so that n times them is exact
        V r = ((x - n * 0x1.921fb5p0) - n * 0x1.110b46p-26) - n * 0x1.1a6263p-54;
        return r - n * 0x1.8a2e03707344ap-81;
    }
}

template <class V> FW_INLINE V sin_poly(V r) {
    V z = r * r;
    return fma<V>(z * r, poly(z, Trig<Elem<V>>::sin), r);
}

// The sign bit where the integer k is odd.
template <class V> FW_INLINE Ints<V> odd_sign(V k) {
    using T = Elem<V>;
    return to_bits<V>(k + Format<T>::rounder) << (8 * int(sizeof(T)) - 1);
}

// y, and f by the C library in the lanes with |x| beyond the limit
template <class V, class F> FW_INLINE V within_limit(V x, V y, F f) {
    constexpr Elem<V> limit = Trig<Elem<V>>::limit;
    if (__builtin_expect(any_beyond<V>(abs(x), limit), 0)) return pick<V>(~(abs(x) <= limit), by_lane(f, x), y);
    return y;
}

template <class V> FW_INLINE V sin(V x) {
    using T = Elem<V>;
    V m = round_small<V>(x * T(0.31830988618379067154));
    V y = flip_sign<V>(sin_poly<V>(minus_quarters<V>(x, m + m)), odd_sign(m));
    return within_limit<V>(x, pick<V>(x == T(0), x, y), [](T v) { return std::sin(v); });
}

template <class V> FW_INLINE V cos(V x) {
    using T = Elem<V>;
    V m = round_small<V>(fma(x, T(0.31830988618379067154), T(-0.5)));
    V y = sin_poly<V>(minus_quarters<V>(x, m + m + T(1)));
    V signed_y = flip_sign<V>(y, odd_sign<V>(m + T(1)));
    return within_limit<V>(x, signed_y, [](T v) { return std::cos(v); });
}

template <class V> FW_INLINE V tan(V x) {
    using T = Elem<V>;
    V n = round_small<V>(x * T(0.63661977236758134308));
    V r = minus_quarters(x, n), z = r * r;
    V s = sin_poly(r), c = fma<V>(z * z, poly(z, Trig<T>::cos), T(1) - z * T(0.5));
    auto odd = odd_sign(n);
    V y = pick<V>(odd != 0, c, s) / pick<V>(odd != 0, s, c);
    return within_limit<V>(x, pick<V>(x == T(0), x, flip_sign(y, odd)), [](T v) { return std::tan(v); });
}

// asin of |x| <= 1/2 and, for the larger, of sqrt((1 - |x|) / 2), of which acos x is the double
template <class V> struct ArcSine { V angle; Ints<V> large; };
template <class V> FW_INLINE ArcSine<V> arc_sine(V x) {
    using T = Elem<V>;
    V a = abs(x);
    auto large = a > T(0.5);
    V z = pick<V>(large, (T(1) - a) * T(0.5), x * x);
    V t = pick<V>(large, sqrt(z), a);
    return {fma<V>(t * z, poly(z, Trig<T>::asin), t), large};
}

template <class V> FW_INLINE V asin(V x) {
    using T = Elem<V>;
    auto [p, large] = arc_sine(x);
    V far = half_pi<T> - (p + p - half_pi_rest<T>);
    return copysign<V>(pick<V>(large, far, p), pick<V>(x != x, V{}, x));
}

template <class V> FW_INLINE V acos(V x) {
    using T = Elem<V>;
    auto [p, large] = arc_sine(x);
    V near = half_pi<T> - (copysign(p, x) - half_pi_rest<T>);
    V far = pick<V>(x < T(0), T(2) * half_pi<T> - (p + p - T(2) * half_pi_rest<T>), p + p);
    return pick<V>(large, far, near);
}

// The angle of the point (x, y), x and y >= 0; 0 at the origin, pi / 4 where both are infinite.
template <class V> FW_INLINE V first_quadrant(V y, V x) {
    using T = Elem<V>;
    auto steep = y > x;
    V t = pick<V>(steep, x, y) / pick<V>(steep, y, x);
    t = pick<V>(y == x, pick<V>(x == T(0), T(0), T(1)), t);
    V z = t * t;
    V p = fma<V>(t * z, poly(z, Trig<T>::atan), t);
    return pick<V>(steep, half_pi<T> - (p - half_pi_rest<T>), p);
}

template <class V> FW_INLINE V atan(V x) { return copysign(first_quadrant(abs(x), all<V>(1)), x); }

template <class V> FW_INLINE V atan2(V y, V x) {
    using T = Elem<V>;
    V p = first_quadrant(abs(y), abs(x));
    V left = T(2) * half_pi<T> - (p - T(2) * half_pi_rest<T>);
    return copysign(pick<V>(sign_bit(x) != 0, left, p), y);
}

// sqrt(x^2 + y^2), both scaled by a power of two where a square would leave the range
template <class V> FW_INLINE V hypot(V x, V y) {
    using T = Elem<V>;
    constexpr bool single = is_float<T>;
    constexpr T high = single ? 0x1p62 : 0x1p500, low = single ? 0x1p-40 : 0x1p-400;
    constexpr T down = single ? 0x1p-80 : 0x1p-600, up = single ? 0x1p90 : 0x1p600;
    V a = abs(x), b = abs(y);
    V m = a > b ? a : b;
    V s = pick<V>(m > high, down, pick<V>(m < low, up, T(1)));
    V back = pick<V>(m > high, 1 / down, pick<V>(m < low, 1 / up, T(1)));
    a = a * s, b = b * s;
    V h = sqrt(fma<V>(a, a, b * b)) * back;
    return pick<V>(isinf(x) | isinf(y), inf<T>, h);
}

// 1 / x, rounded as IEEE 754 wants it. With AVX-512 floats go by Newton's steps from a reciprocal of 14 bits, the last of which
// is right but for digits that are all ones (P. Markstein, IA-64 and Elementary Functions, 2000). Vectors with such a number, or
// with one whose steps would leave the range, are divided.
template <class V> FW_INLINE V reciprocal(V x) {
#if defined(FW_AVX512)
    if constexpr (is_float<Elem<V>>) {
        constexpr int less = 17, greater = 30;  // _CMP_LT_OQ, _CMP_GT_OQ
        const __m512 size = (__m512)abs(x);
        V y = (V)_mm512_maskz_rcp14_ps(0xffff, (__m512)x);
        y = fma(y, fma<V>(-x, y, all<V>(1)), y);
        y = fma(y, fma<V>(-x, y, all<V>(1)), y);
        __mmask16 right = _mm512_cmp_ps_mask(size, (__m512)all<V>(0x1p-120f), greater);
        right = _mm512_mask_cmp_ps_mask(right, size, (__m512)all<V>(0x1p+120f), less);
        const __m512i ones = _mm512_set1_epi32(-1), others = _mm512_or_si512((__m512i)x, _mm512_set1_epi32(~0x7fffff));
        right = _mm512_mask_cmpneq_epi32_mask(right, others, ones);
        if (__builtin_expect(right == 0xffff, 1)) return y;
    }
#endif
    return all<V>(1) / x;
}

// Square roots, rounded as IEEE 754 wants them. With AVX-512 the instruction takes longer than Newton's steps from a root of 14
// bits (of doubles three times as long). Of doubles the remainder, which is exact, shows whether no other number is nearer; of
// floats none is: all of them were tried.
template <class V> FW_INLINE V root(V x) {
#if defined(FW_AVX512)
    constexpr bool single = is_float<Elem<V>>;
    constexpr int steps = single ? 1 : 2, less = 17, greater = 30;  // _CMP_LT_OQ, _CMP_GT_OQ
    V h;
    if constexpr (single) h = (V)_mm512_maskz_rsqrt14_ps(0xffff, (__m512)x);
    else h = (V)_mm512_maskz_rsqrt14_pd(0xff, (__m512d)x);
    V g = x * h;
    h = h * Elem<V>(0.5);
    for (int i = 0; i < steps; ++i) {
        const V wrong = fma<V>(-h, g, all<V>(0.5));
        g = fma(g, wrong, g);
        h = fma(h, wrong, h);
    }
    g = fma<V>(h, fma<V>(-g, g, x), g);
    if constexpr (single) {
        __mmask16 right = _mm512_cmp_ps_mask((__m512)x, (__m512)all<V>(0x1p-100f), greater);
        right = _mm512_mask_cmp_ps_mask(right, (__m512)x, (__m512)all<V>(0x1p+100f), less);
        if (__builtin_expect(right == 0xffff, 1)) return g;
    } else {
        const V rest = fma<V>(-g, g, x);
        constexpr int64_t exponent = 0x7ff0000000000000;
        const V step = from_bits<V>((to_bits(g) - 1) & exponent);  // 2^52 times the way to the number below
        __mmask8 right = _mm512_cmp_pd_mask((__m512d)abs(rest), (__m512d)(g * (step * 0x1p-52)), less);
        right = _mm512_mask_cmp_pd_mask(right, (__m512d)x, (__m512d)all<V>(0x1p-900), greater);
        right = _mm512_mask_cmp_pd_mask(right, (__m512d)x, (__m512d)all<V>(0x1p+900), less);
        if (__builtin_expect(right == 0xff, 1)) return g;
    }
#endif
    return sqrt(x);
}

template <class V> FW_INLINE V rsqrt(V x) { return Elem<V>(1) / sqrt(x); }

// C's fmod, exact: by one division while the quotient is short (given fused multiply-add), else by lane.
template <class V> FW_INLINE V fmod(V x, V y) {
    using T = Elem<V>;
    auto lane = [](T a, T b) { return std::fmod(a, b); };
    if constexpr (has_fma) {
        V a = abs(x), b = abs(y), q = floor<V>(a / b);
        auto quick = (q < T(int64_t(1) << (Format<T>::digits - 1))) & (b < inf<T>);
        V r = fma<V>(-q, b, a);
        r = pick<V>(r < T(0), r + b, r);
        r = copysign<V>(pick<V>(r >= b, r - b, r), x);
        if (__builtin_expect(any(~quick), 0)) return pick<V>(quick, r, by_lane(lane, x, y));
        return r;
    } else {
        return by_lane(lane, x, y);
    }
}

// Python's %: the sign of y, zeros included.
template <class V> FW_INLINE V remainder(V x, V y) {
    using T = Elem<V>;
    V r = fmod(x, y);
    r = pick<V>(r == T(0), copysign(r, y), r);
    return pick<V>((r == r) & ((sign_bit(r) ^ sign_bit(y)) != 0), r + y, r);
}

}  // namespace math
}  // namespace fw
