// Vectors of one instruction set: the widest registers that the compiler's flags allow.
//
// Written with the vector extensions of GCC and Clang, so the same source makes SSE2, AVX2, AVX-512 or
// NEON code; intrinsics only where the extensions have no word (fused multiply-add, masked tails).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/intrinsics.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define FW_BYTES 64
#define FW_AVX512 1
#elif defined(__AVX2__) && defined(__FMA__)
#define FW_BYTES 32
#define FW_AVX2 1
#else
#define FW_BYTES 16
#if defined(__aarch64__)
#define FW_NEON 1
#endif
#endif

#define FW_INLINE inline __attribute__((always_inline))

namespace fw {

template <class T> struct VectorOf { typedef T type __attribute__((vector_size(FW_BYTES))); };
template <class T> using Vec = typename VectorOf<T>::type;  // lanes<T> numbers
template <class T> constexpr int lanes = FW_BYTES / int(sizeof(T));

// the signed integer as wide as T: what comparing two vectors gives, lane by lane 0 or -1
template <int Bytes> struct IntOf;
template <> struct IntOf<1> { using type = int8_t; };
template <> struct IntOf<2> { using type = int16_t; };
template <> struct IntOf<4> { using type = int32_t; };
template <> struct IntOf<8> { using type = int64_t; };
template <class T> using Int = typename IntOf<sizeof(T)>::type;
template <class T> using Mask = Vec<Int<T>>;

template <class To, class From> FW_INLINE To bits(From v) {
    static_assert(sizeof(To) == sizeof(From), "the same bytes");
    To r;
    std::memcpy(&r, &v, sizeof r);
    return r;
}

template <class T> FW_INLINE Vec<T> load(const T* p) {
    Vec<T> v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

// The same for numbers that come from memory, one after another: of 64 bytes in two halves the prefetcher of the
// first cache (AMD Zen 4) makes more, up to 1.3 times as much a second. The empty statement keeps them two.
template <class T> FW_INLINE Vec<T> load_stream(const T* p) {
#if defined(FW_AVX512)
    __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    __asm__("" : "+x"(low));
    __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p) + 1);
    return bits<Vec<T>>(_mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(low), high, 1));
#else
    return load(p);
#endif
}

template <class T> FW_INLINE void store(T* p, Vec<T> v) { std::memcpy(p, &v, sizeof v); }

template <class T> FW_INLINE Vec<T> splat(T x) { return x - Vec<T>{}; }  // x - 0 keeps -0 and nan

#if defined(FW_AVX2)
alignas(64) inline constexpr int32_t FIRST_LANES[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

// The first n numbers of `bytes` bytes, as the masked loads and stores want it.
template <int bytes> FW_INLINE __m256i first_numbers(int64_t n) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(FIRST_LANES + 8 - n * (bytes / 4)));
}
#endif

// The first n < lanes numbers; the other lanes are `fill`.
template <class T> FW_INLINE Vec<T> load_part(const T* p, int64_t n, T fill = T(0)) {
    Vec<T> v = splat(fill);
#if defined(FW_AVX512)
    if constexpr (sizeof(T) == 4)
        return bits<Vec<T>>(_mm512_mask_loadu_epi32(bits<__m512i>(v), __mmask16((1u << n) - 1), p));
    if constexpr (sizeof(T) == 8)
        return bits<Vec<T>>(_mm512_mask_loadu_epi64(bits<__m512i>(v), __mmask8((1u << n) - 1), p));
#elif defined(FW_AVX2)
    if constexpr (sizeof(T) >= 4) {
        const __m256i first = first_numbers<sizeof(T)>(n);
        const __m256i some = sizeof(T) == 4 ? _mm256_maskload_epi32(reinterpret_cast<const int*>(p), first)
                                            : _mm256_maskload_epi64(reinterpret_cast<const long long*>(p), first);
        return bits<Vec<T>>(_mm256_blendv_epi8(bits<__m256i>(v), some, first));
    }
#endif
    std::memcpy(&v, p, size_t(n) * sizeof(T));
    return v;
}

template <class T> FW_INLINE void store_part(T* p, Vec<T> v, int64_t n) {
#if defined(FW_AVX512)
    if constexpr (sizeof(T) == 4)
        return _mm512_mask_storeu_epi32(p, __mmask16((1u << n) - 1), bits<__m512i>(v));
    if constexpr (sizeof(T) == 8)
        return _mm512_mask_storeu_epi64(p, __mmask8((1u << n) - 1), bits<__m512i>(v));
#elif defined(FW_AVX2)
    const __m256i first = first_numbers<sizeof(T)>(n);
    if constexpr (sizeof(T) == 4) return _mm256_maskstore_epi32(reinterpret_cast<int*>(p), first, bits<__m256i>(v));
    if constexpr (sizeof(T) == 8)
        return _mm256_maskstore_epi64(reinterpret_cast<long long*>(p), first, bits<__m256i>(v));
#endif
    std::memcpy(p, &v, size_t(n) * sizeof(T));
}

// a * b + c, rounded once where the chip can (AVX2 and up, NEON)
template <class T> FW_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) { return a * b + c; }
#if defined(FW_AVX512)
template <> FW_INLINE Vec<float> fma<float>(Vec<float> a, Vec<float> b, Vec<float> c) {
    return (Vec<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
template <> FW_INLINE Vec<double> fma<double>(Vec<double> a, Vec<double> b, Vec<double> c) {
    return (Vec<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#elif defined(FW_AVX2)
template <> FW_INLINE Vec<float> fma<float>(Vec<float> a, Vec<float> b, Vec<float> c) {
    return (Vec<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
template <> FW_INLINE Vec<double> fma<double>(Vec<double> a, Vec<double> b, Vec<double> c) {
    return (Vec<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#elif defined(FW_NEON)
template <> FW_INLINE Vec<float> fma<float>(Vec<float> a, Vec<float> b, Vec<float> c) {
    return (Vec<float>)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
template <> FW_INLINE Vec<double> fma<double>(Vec<double> a, Vec<double> b, Vec<double> c) {
    return (Vec<double>)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#endif

template <class T> FW_INLINE Vec<T> select(Mask<T> m, Vec<T> yes, Vec<T> no) { return m ? yes : no; }

// The larger number; nan if one is nan.
template <class T> FW_INLINE Vec<T> maximum(Vec<T> a, Vec<T> b) {
    Vec<T> m = a > b ? a : b;  // b where either is nan
    return a != a ? a : m;
}

template <class T> FW_INLINE Vec<T> minimum(Vec<T> a, Vec<T> b) {
    Vec<T> m = a < b ? a : b;
    return a != a ? a : m;
}

// Where y is not nan: one instruction of the processor. What is nan stays, and x of two zeros.
template <class T> FW_INLINE Vec<T> greater_of(Vec<T> x, Vec<T> y) { return y > x ? y : x; }
template <class T> FW_INLINE Vec<T> less_of(Vec<T> x, Vec<T> y) { return y < x ? y : x; }

template <class T> FW_INLINE Vec<T> abs(Vec<T> v) {
    Mask<T> sign = splat<Int<T>>(std::numeric_limits<Int<T>>::min());
    return bits<Vec<T>>(bits<Mask<T>>(v) & ~sign);
}

#if defined(FW_AVX512)
FW_INLINE Vec<float> sqrt(Vec<float> v) { return (Vec<float>)_mm512_maskz_sqrt_ps(0xffff, (__m512)v); }
FW_INLINE Vec<double> sqrt(Vec<double> v) { return (Vec<double>)_mm512_maskz_sqrt_pd(0xff, (__m512d)v); }
#elif defined(FW_AVX2)
FW_INLINE Vec<float> sqrt(Vec<float> v) { return (Vec<float>)_mm256_sqrt_ps((__m256)v); }
FW_INLINE Vec<double> sqrt(Vec<double> v) { return (Vec<double>)_mm256_sqrt_pd((__m256d)v); }
#elif defined(__x86_64__)
FW_INLINE Vec<float> sqrt(Vec<float> v) { return (Vec<float>)_mm_sqrt_ps((__m128)v); }
FW_INLINE Vec<double> sqrt(Vec<double> v) { return (Vec<double>)_mm_sqrt_pd((__m128d)v); }
#elif defined(FW_NEON)
FW_INLINE Vec<float> sqrt(Vec<float> v) { return (Vec<float>)vsqrtq_f32((float32x4_t)v); }
FW_INLINE Vec<double> sqrt(Vec<double> v) { return (Vec<double>)vsqrtq_f64((float64x2_t)v); }
#else
template <class V> FW_INLINE V sqrt_lanes(V v) {
    for (size_t i = 0; i < sizeof v / sizeof v[0]; ++i) v[i] = __builtin_sqrt(v[i]);
    return v;
}
FW_INLINE Vec<float> sqrt(Vec<float> v) { return sqrt_lanes(v); }
FW_INLINE Vec<double> sqrt(Vec<double> v) { return sqrt_lanes(v); }
#endif

// Horizontal: in a fixed tree order, so the same numbers give the same sum.
template <class T> FW_INLINE T sum_lanes(Vec<T> v) {
    T a[lanes<T>];
    std::memcpy(a, &v, sizeof v);
    for (int w = lanes<T> / 2; w; w /= 2)
        for (int i = 0; i < w; ++i) a[i] += a[i + w];
    return a[0];
}

template <class T> FW_INLINE T max_lanes(Vec<T> v) {
    T m = v[0];
    for (int i = 1; i < lanes<T>; ++i) m = (v[i] > m || v[i] != v[i]) ? T(v[i]) : m;
    return m;
}

}  // namespace fw
