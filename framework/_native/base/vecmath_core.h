// What the elementary functions share: polynomials, exact sums and products, powers of two, rounding.
//
// The functions take a whole Vec<float> or Vec<double> and are branch-free over the lanes: every case is
// computed and the right one selected, except where a case is rare and dear (then `any` asks first).
// Coefficients are minimax fits (Remez exchange in 160 bits), rounded to the type one after the other.
// With fused multiply-add a step rounds once; without it the same steps stay within the stated bounds.
#pragma once

#include <cmath>
#include <type_traits>
#include <utility>

#include "base/simd.h"

namespace fw {
namespace math {

template <class V> using Elem = std::remove_reference_t<decltype(std::declval<V&>()[0])>;
template <class V> using Ints = Mask<Elem<V>>;

#if defined(FW_AVX512) || defined(FW_AVX2) || defined(FW_NEON)
constexpr bool has_fma = true;
#else
constexpr bool has_fma = false;
#endif

template <class T> struct Format;
template <> struct Format<float> {
    static constexpr int digits = 23;           // stored bits of the mantissa
    static constexpr int32_t one = 0x3f800000;  // 1.0 as an integer
    static constexpr int32_t sqrt_half = 0x3f3504f3;
    static constexpr float rounder = 0x1.8p23f;  // adding it leaves an integer in the low bits
};
template <> struct Format<double> {
    static constexpr int digits = 52;
    static constexpr int64_t one = 0x3ff0000000000000;
    static constexpr int64_t sqrt_half = 0x3fe6a09e667f3bcd;
    static constexpr double rounder = 0x1.8p52;
};

template <class T> constexpr bool is_float = std::is_same_v<T, float>;

template <class T> constexpr T inf = std::numeric_limits<T>::infinity();
template <class T> constexpr T nan = std::numeric_limits<T>::quiet_NaN();
template <class T> constexpr T ln2 = T(0x1.62e42fefa39efp-1);
template <class T> constexpr T half_pi = T(0x1.921fb54442d18p0);
template <class T>
constexpr T half_pi_rest = T(is_float<T> ? -0x1.777a5cp-25 : 0x1.1a62633145c07p-54);

template <class V> FW_INLINE V all(Elem<V> x) { return splat<Elem<V>>(x); }
template <class V> FW_INLINE V fma(V a, V b, V c) { return fw::fma<Elem<V>>(a, b, c); }
template <class V> FW_INLINE V fma(V a, V b, Elem<V> c) { return fma(a, b, all<V>(c)); }
template <class V> FW_INLINE V fma(V a, Elem<V> b, V c) { return fma(a, all<V>(b), c); }
template <class V> FW_INLINE V fma(V a, Elem<V> b, Elem<V> c) { return fma(a, all<V>(b), all<V>(c)); }
template <class V> FW_INLINE V abs(V x) { return fw::abs<Elem<V>>(x); }
template <class V> FW_INLINE V sqrt(V x) { return fw::sqrt(x); }
template <class V> FW_INLINE V pick(Ints<V> m, V yes, V no) { return m ? yes : no; }
template <class V> FW_INLINE V pick(Ints<V> m, Elem<V> yes, V no) { return m ? all<V>(yes) : no; }
template <class V> FW_INLINE V pick(Ints<V> m, V yes, Elem<V> no) { return m ? yes : all<V>(no); }
template <class V> FW_INLINE V pick(Ints<V> m, Elem<V> yes, Elem<V> no) {
    return m ? all<V>(yes) : all<V>(no);
}

template <class V> FW_INLINE Ints<V> to_bits(V x) { return bits<Ints<V>>(x); }
template <class V> FW_INLINE V from_bits(Ints<V> i) { return bits<V>(i); }
template <class V> FW_INLINE Ints<V> sign_bit(V x) {
    return to_bits(x) & all<Ints<V>>(std::numeric_limits<Int<Elem<V>>>::min());
}
template <class V> FW_INLINE V flip_sign(V x, Ints<V> sign) { return from_bits<V>(to_bits(x) ^ sign); }
template <class V> FW_INLINE V copysign(V size, V sign) {
    return from_bits<V>(to_bits(abs(size)) | sign_bit(sign));
}

template <class M> FW_INLINE bool any(M mask) {
#if defined(FW_AVX512)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(FW_AVX2)
    return _mm256_movemask_epi8((__m256i)mask) != 0;
#elif defined(__x86_64__)
    return _mm_movemask_epi8((__m128i)mask) != 0;
#else
    uint64_t words[sizeof mask / 8];
    std::memcpy(words, &mask, sizeof mask);
    return (words[0] | words[1]) != 0;
#endif
}

// Whether x and `most` compare so in some lane. By the processor's mask: where nothing else needs it as a vector, a compiler may make
// one by a masked load of a constant, and where no lane is chosen such a load brings no page, so that each is looked after in
// microcode while the page is away (sin, cos and tan took five times as long, now and then).
#if defined(FW_AVX512)
template <int how, class V> FW_INLINE bool any_compares(V x, Elem<V> most) {
    if constexpr (is_float<Elem<V>>) return _mm512_cmp_ps_mask((__m512)x, (__m512)all<V>(most), how) != 0;
    else return _mm512_cmp_pd_mask((__m512d)x, (__m512d)all<V>(most), how) != 0;
}
template <class V> FW_INLINE bool any_above(V x, Elem<V> most) { return any_compares<_CMP_GT_OQ>(x, most); }
template <class V> FW_INLINE bool any_beyond(V x, Elem<V> most) { return any_compares<_CMP_NLE_UQ>(x, most); }  // nan, too
#else
template <class V> FW_INLINE bool any_above(V x, Elem<V> most) { return any(x > most); }
template <class V> FW_INLINE bool any_beyond(V x, Elem<V> most) { return any(~(x <= most)); }
#endif

// The smaller of a and b, the larger: b where either is nan (one instruction, which compilers do not find).
#if defined(FW_AVX512)
FW_INLINE Vec<float> lesser(Vec<float> a, Vec<float> b) {
    return (Vec<float>)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
}
FW_INLINE Vec<double> lesser(Vec<double> a, Vec<double> b) {
    return (Vec<double>)_mm512_maskz_min_pd(0xff, (__m512d)a, (__m512d)b);
}
FW_INLINE Vec<float> greater(Vec<float> a, Vec<float> b) {
    return (Vec<float>)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
}
FW_INLINE Vec<double> greater(Vec<double> a, Vec<double> b) {
    return (Vec<double>)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b);
}
#elif defined(FW_AVX2)
FW_INLINE Vec<float> lesser(Vec<float> a, Vec<float> b) {
    return (Vec<float>)_mm256_min_ps((__m256)a, (__m256)b);
}
FW_INLINE Vec<double> lesser(Vec<double> a, Vec<double> b) {
    return (Vec<double>)_mm256_min_pd((__m256d)a, (__m256d)b);
}
FW_INLINE Vec<float> greater(Vec<float> a, Vec<float> b) {
    return (Vec<float>)_mm256_max_ps((__m256)a, (__m256)b);
}
FW_INLINE Vec<double> greater(Vec<double> a, Vec<double> b) {
    return (Vec<double>)_mm256_max_pd((__m256d)a, (__m256d)b);
}
#else
template <class V> FW_INLINE V lesser(V a, V b) { return a < b ? a : b; }
template <class V> FW_INLINE V greater(V a, V b) { return a > b ? a : b; }
#endif

// Nan stays nan.
template <class V> FW_INLINE V clamp(V x, Elem<V> low, Elem<V> high) {
    return greater(all<V>(low), lesser(all<V>(high), x));
}

// table[i & 15], with shuffles in place of memory.
#if defined(FW_AVX512)
constexpr bool has_lookup = true;
FW_INLINE Vec<float> lookup(const float (&table)[16], Mask<float> i) {
    return (Vec<float>)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)i, _mm512_loadu_ps(table));
}
#elif defined(FW_AVX2)
constexpr bool has_lookup = true;
FW_INLINE Vec<float> lookup(const float (&table)[16], Mask<float> i) {
    __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)i);
    __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), (__m256i)i);
    return (Vec<float>)_mm256_blendv_ps(low, high, (__m256)(i << 28));  // bit 3 becomes the sign
}
#else
constexpr bool has_lookup = false;
#endif
#if defined(FW_AVX512)
constexpr bool has_long_lookup = true;  // of doubles
FW_INLINE Vec<double> lookup(const double (&table)[16], Mask<double> i) {
    return (Vec<double>)_mm512_permutex2var_pd(_mm512_loadu_pd(table), (__m512i)i, _mm512_loadu_pd(table + 8));
}
#else
constexpr bool has_long_lookup = false;
#endif
template <class T> constexpr bool looks_up = is_float<T> ? has_lookup : has_long_lookup;

// One lane after the other through a scalar function: for the rare and the inherently serial.
template <class V, class F> FW_INLINE V by_lane(F f, V x) {
    Elem<V> a[sizeof(V) / sizeof(Elem<V>)];
    std::memcpy(a, &x, sizeof x);
    for (auto& e : a) e = f(e);
    std::memcpy(&x, a, sizeof x);
    return x;
}

template <class V, class F> FW_INLINE V by_lane(F f, V x, V y) {
    constexpr int n = sizeof(V) / sizeof(Elem<V>);
    Elem<V> a[n], b[n];
    std::memcpy(a, &x, sizeof x);
    std::memcpy(b, &y, sizeof y);
    for (int i = 0; i < n; ++i) a[i] = f(a[i], b[i]);
    std::memcpy(&x, a, sizeof x);
    return x;
}

// c[0] + c[1] x + ...: Horner's rule; the high terms of a long sum in two interleaved chains, even and odd,
// for half the latency (the low terms decide the rounding errors, so they stay one chain).
template <class V, size_t N> FW_INLINE V poly(V x, const Elem<V> (&c)[N]) {
    size_t i = N - 1;
    V p = all<V>(c[i]);
    if constexpr (N >= 8) {
        V x2 = x * x, q = all<V>(c[--i]);
        for (; i >= 4; i -= 2) {
            p = fma(p, x2, c[i - 1]);
            q = fma(q, x2, c[i - 2]);
        }
        p = fma(p, x, q);
    }
    while (i-- > 0) p = fma(p, x, c[i]);
    return p;
}

// The unevaluated sum hi + lo (Dekker 1971).
template <class V> struct Pair { V hi, lo; };

template <class V> FW_INLINE Pair<V> fast_two_sum(V a, V b) {  // |a| >= |b| or a = 0
    V s = a + b;
    return {s, b - (s - a)};
}

template <class V> FW_INLINE Pair<V> two_sum(V a, V b) {  // Knuth
    V s = a + b, t = s - a;
    return {s, (a - (s - t)) + (b - t)};
}

template <class V> FW_INLINE Pair<V> two_product(V a, V b) {
    V p = a * b;
    if constexpr (has_fma) return {p, fma(a, b, -p)};
    constexpr Int<Elem<V>> upper = -(Int<Elem<V>>(1) << (Format<Elem<V>>::digits / 2 + 1));
    V ah = from_bits<V>(to_bits(a) & upper), bh = from_bits<V>(to_bits(b) & upper);
    V al = a - ah, bl = b - bh;
    return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

#if defined(FW_AVX512)
template <int how, class V> FW_INLINE V rounded(V x) {
    if constexpr (is_float<Elem<V>>) return (V)_mm512_maskz_roundscale_ps(0xffff, (__m512)x, how);
    else return (V)_mm512_maskz_roundscale_pd(0xff, (__m512d)x, how);
}
#elif defined(FW_AVX2)
template <int how, class V> FW_INLINE V rounded(V x) {
    if constexpr (is_float<Elem<V>>) return (V)_mm256_round_ps((__m256)x, how);
    else return (V)_mm256_round_pd((__m256d)x, how);
}
#endif
#if defined(FW_AVX512) || defined(FW_AVX2)
constexpr int NEAREST = 8, DOWN = 9, UP = 10;  // without the exception of what is no whole number
#endif

// Nearest integer, ties to even, for |x| < 2^22 (double: 2^51); may lose the sign of a zero.
template <class V> FW_INLINE V round_small(V x) {
#if defined(FW_AVX512) || defined(FW_AVX2)
    return rounded<NEAREST>(x);
#elif defined(FW_NEON)
    if constexpr (is_float<Elem<V>>) return (V)vrndnq_f32((float32x4_t)x);
    else return (V)vrndnq_f64((float64x2_t)x);
#else
    return (x + Format<Elem<V>>::rounder) - Format<Elem<V>>::rounder;
#endif
}

// 2^(k + Shift) for an integer k, in the normal range.
template <class V, int Shift = 0> FW_INLINE V power_of_two(V k) {
    using F = Format<Elem<V>>;
    using W = std::make_unsigned_t<Int<Elem<V>>>;  // which wraps around: of nan it is anything
    typedef W U __attribute__((vector_size(sizeof(V))));
    return bits<V>((bits<U>(k + (F::rounder + Shift)) << F::digits) + W(F::one));
}

// p 2^k, |k| < 2000 (float: 250), rounded once: two factors, the first exact.
template <class V> FW_INLINE V scale(V p, V k) {
#if defined(FW_AVX512)
    if constexpr (is_float<Elem<V>>) return (V)_mm512_maskz_scalef_ps(0xffff, (__m512)p, (__m512)k);
    else return (V)_mm512_maskz_scalef_pd(0xff, (__m512d)p, (__m512d)k);
#else
    V half = round_small<V>(k * Elem<V>(0.5));
    return p * power_of_two(half) * power_of_two<V>(k - half);
#endif
}

// p 2^k where x > least, or is nan, and 0 elsewhere, without the underflow that would cost some processors (Intel's) 150
// cycles a vector.
template <class V> FW_INLINE V scale_above(V p, V k, V x, Elem<V> least) {
#if defined(FW_AVX512)
    constexpr int not_less_or_equal = 6;  // _CMP_NLE_US
    if constexpr (is_float<Elem<V>>)
        return (V)_mm512_maskz_scalef_ps(_mm512_cmp_ps_mask((__m512)x, (__m512)all<V>(least), not_less_or_equal), (__m512)p,
                                         (__m512)k);
    else
        return (V)_mm512_maskz_scalef_pd(_mm512_cmp_pd_mask((__m512d)x, (__m512d)all<V>(least), not_less_or_equal), (__m512d)p,
                                         (__m512d)k);
#else
    const auto low = x <= least;
    return from_bits<V>(to_bits(scale<V>(p, from_bits<V>(to_bits(k) & ~low))) & ~low);
#endif
}

// The same for k <= 0, above -1080 (float: -180): what the second factor is is known, and half of the work is saved.
template <class V> FW_INLINE V scale_down(V p, V k) {
#if defined(FW_AVX512)
    return scale(p, k);
#else
    return p * power_of_two<V, 64>(k) * Elem<V>(0x1p-64);
#endif
}

// Rounding of every number: below 2^23 (2^52) through round_small, above it all are integers.
template <class V> FW_INLINE V rint(V x) {
#if defined(FW_AVX512) || defined(FW_AVX2) || defined(FW_NEON)
    return round_small(x);
#else
    constexpr Elem<V> top = Format<Elem<V>>::rounder * Elem<V>(2) / 3;
    V a = abs(x);
    return copysign(pick<V>(a < top, (a + top) - top, a), x);
#endif
}

template <class V> FW_INLINE V floor(V x) {
#if defined(FW_AVX512) || defined(FW_AVX2)
    return rounded<DOWN>(x);
#endif
    V t = rint(x);
    return copysign<V>(t - pick<V>(t > x, Elem<V>(1), Elem<V>(0)), x);
}

template <class V> FW_INLINE V ceil(V x) {
#if defined(FW_AVX512) || defined(FW_AVX2)
    return rounded<UP>(x);
#endif
    V t = rint(x);
    return copysign<V>(t + pick<V>(t < x, Elem<V>(1), Elem<V>(0)), x);
}

template <class V> FW_INLINE V trunc(V x) { return copysign(floor(abs(x)), x); }

template <class V> FW_INLINE Ints<V> isnan(V x) { return x != x; }
template <class V> FW_INLINE Ints<V> isinf(V x) { return abs(x) == inf<Elem<V>>; }
template <class V> FW_INLINE Ints<V> isfinite(V x) { return abs(x) < inf<Elem<V>>; }

// -1, 0 or 1; nan for nan.
template <class V> FW_INLINE V sign(V x) {
    using T = Elem<V>;
    return pick<V>(x > T(0), T(1), pick<V>(x < T(0), T(-1), x + T(0)));
}

}  // namespace math
}  // namespace fw
