// bfloat16: the upper half of a float32. Numbers are computed as float32 and rounded once, to the nearest, ties
// to even; nan stays nan.
#pragma once

#include "base/simd.h"

namespace fw {

struct Bf16 {
    uint16_t bits;
};

using Halves = uint16_t __attribute__((vector_size(FW_BYTES / 2)));  // as many as there are lanes of float

FW_INLINE Vec<float> widen(Halves h) {
#if defined(FW_AVX512)  // the compiler takes parts one by one
    return Vec<float>(_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits<__m256i>(h)), 16)));
#elif defined(FW_AVX2)
    return Vec<float>(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits<__m128i>(h)), 16)));
#else
    return bits<Vec<float>>(__builtin_convertvector(h, Vec<uint32_t>) << 16);
#endif
}

FW_INLINE Halves narrow(Vec<float> v) {
    const Vec<uint32_t> u = bits<Vec<uint32_t>>(v);
    const Vec<uint32_t> rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16, quiet = (u >> 16) | 0x40;
    const Vec<uint32_t> chosen = v == v ? rounded : quiet;
#if defined(FW_AVX512)
    return bits<Halves>(_mm512_cvtepi32_epi16(bits<__m512i>(chosen)));
#elif defined(FW_AVX2)
    const __m256i all = bits<__m256i>(chosen);
    return bits<Halves>(_mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
#else
    return __builtin_convertvector(chosen, Halves);
#endif
}

FW_INLINE Vec<float> load_wide(const Bf16* p) {
    Halves h;
    std::memcpy(&h, p, sizeof h);
    return widen(h);
}

FW_INLINE void store_narrow(Bf16* p, Vec<float> v) {
    const Halves h = narrow(v);
    std::memcpy(p, &h, sizeof h);
}

FW_INLINE float widen(Bf16 x) {
    const uint32_t u = uint32_t(x.bits) << 16;
    return bits<float>(u);
}

FW_INLINE Bf16 narrow(float x) {
    const uint32_t u = bits<uint32_t>(x);
    return {uint16_t(x == x ? (u + 0x7fff + ((u >> 16) & 1)) >> 16 : (u >> 16) | 0x40)};
}

inline void widen(float* to, const Bf16* from, int64_t n) {
    int64_t i = 0;
    for (; i + lanes<float> <= n; i += lanes<float>) store(to + i, load_wide(from + i));
    for (; i < n; ++i) to[i] = widen(from[i]);
}

#if defined(FW_AVX512)
// Rounded to 16 bits, which are the upper ones of each number.
FW_INLINE __m512i rounded_above(const float* p) {
    const __m512 v = _mm512_loadu_ps(p);
    const __m512i u = _mm512_castps_si512(v), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), u, _mm512_set1_epi32(0x400000));
}
#endif

inline void narrow(Bf16* to, const float* from, int64_t n) {
    int64_t i = 0;
#if defined(FW_AVX512)  // the upper halves of two vectors in one step
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i upper = _mm512_add_epi32(_mm512_set1_epi32(0x00030001), _mm512_mullo_epi32(lane, _mm512_set1_epi32(0x00040004)));
    for (; i + 32 <= n; i += 32)
        _mm512_storeu_si512(to + i, _mm512_permutex2var_epi16(rounded_above(from + i), upper, rounded_above(from + i + 16)));
#endif
    for (; i + lanes<float> <= n; i += lanes<float>) store_narrow(to + i, load(from + i));
    for (; i < n; ++i) to[i] = narrow(from[i]);
}

}  // namespace fw
