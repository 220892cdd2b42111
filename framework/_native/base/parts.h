// Parts of vectors: their first numbers, those inside an image, their halves. load_part and store_part of simd.h are for
// the ends of rows; these take whole vectors, too.
#pragma once

#include "base/bf16.h"
#include "base/shuffles.h"

namespace fw {

// -- the first n numbers, n <= lanes --------------------------------------------------------------

#if defined(FW_AVX512)
FW_INLINE Vec<float> load_first(const float* p, int64_t n) {
    return (Vec<float>)_mm512_maskz_loadu_ps(__mmask16(_bzhi_u32(0xffff, unsigned(n))), p);
}
FW_INLINE Vec<double> load_first(const double* p, int64_t n) {
    return (Vec<double>)_mm512_maskz_loadu_pd(__mmask8(_bzhi_u32(0xff, unsigned(n))), p);
}
FW_INLINE void store_first(float* p, Vec<float> v, int64_t n) {
    _mm512_mask_storeu_ps(p, __mmask16(_bzhi_u32(0xffff, unsigned(n))), (__m512)v);
}
FW_INLINE void store_first(double* p, Vec<double> v, int64_t n) {
    _mm512_mask_storeu_pd(p, __mmask8(_bzhi_u32(0xff, unsigned(n))), (__m512d)v);
}
#else
template <class T> FW_INLINE Vec<T> load_first(const T* p, int64_t n) {
    Vec<T> v{};
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i)
        if (i < n) v[i] = p[i];
    return v;
}
template <class T> FW_INLINE void store_first(T* p, Vec<T> v, int64_t n) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i)
        if (i < n) p[i] = v[i];
}
#if defined(FW_AVX2)  // a store under a mask takes three times as long as several stores on some processors
FW_INLINE Vec<float> load_first(const float* p, int64_t n) { return load_part(p, n); }
FW_INLINE void store_first(float* p, Vec<float> v, int64_t n) {
    if (n == lanes<float>) return store(p, v);
    __m128 low = _mm256_castps256_ps128((__m256)v);
    if (n & 4) _mm_storeu_ps(p, low), low = _mm256_extractf128_ps((__m256)v, 1), p += 4;
    if (n & 2) _mm_storel_pi(reinterpret_cast<__m64*>(p), low), low = _mm_movehl_ps(low, low), p += 2;
    if (n & 1) _mm_store_ss(p, low);
}
#endif
#endif

#if defined(FW_AVX512)
FW_INLINE void store_first(Bf16* p, Vec<float> v, int64_t n) {
    _mm256_mask_storeu_epi16(p, __mmask16(_bzhi_u32(0xffff, unsigned(n))), bits<__m256i>(narrow(v)));
}
#endif

// -- from one number up to another ----------------------------------------------------------------

// Which lanes of a vector are read; the others are 0.
struct Inside {
#if defined(FW_AVX512)
    __mmask16 lane = 0;
    void set(int64_t low, int64_t high) {  // from low up to, not with, high
        lane = __mmask16(_bzhi_u32(0xffff, unsigned(high)) & ~_bzhi_u32(0xffff, unsigned(low)));
    }
    Vec<float> of(const float* p) const { return (Vec<float>)_mm512_maskz_loadu_ps(lane, p); }
    Vec<float> of(const Bf16* p) const { return widen(bits<Halves>(_mm256_maskz_loadu_epi16(lane, p))); }
#elif defined(FW_AVX2)
    Mask<float> lane = {};
    void set(int64_t low, int64_t high) {
        const Mask<float> at = {0, 1, 2, 3, 4, 5, 6, 7};
        lane = (at >= int(low)) & (at < int(high));
    }
    Vec<float> of(const float* p) const { return (Vec<float>)_mm256_maskload_ps(p, (__m256i)lane); }
#else
    int first = 0, end = 0;
    void set(int64_t low, int64_t high) { first = int(low), end = int(high); }
    Vec<float> of(const float* p) const {
        if (end - first == lanes<float>) return load(p);
        Vec<float> v{};
        for (int i = first; i < end; ++i) v[i] = p[i];
        return v;
    }
#endif
};

// -- halves ---------------------------------------------------------------------------------------

FW_INLINE Vec<float> load_halves(const float* low, const float* high) {
    HalfVec<float> a, b;
    std::memcpy(&a, low, sizeof a);
    std::memcpy(&b, high, sizeof b);
    return joined<float>(a, b);
}
FW_INLINE void store_halves(float* low, float* high, Vec<float> v) {
    std::memcpy(low, &v, sizeof v / 2);
    std::memcpy(high, reinterpret_cast<const char*>(&v) + sizeof v / 2, sizeof v / 2);
}

}  // namespace fw
