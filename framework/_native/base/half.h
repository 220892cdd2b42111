// float16 (IEEE 754 binary16). Numbers are computed as float32 and rounded once, to the nearest, ties to even.
#pragma once

#include <algorithm>

#include "base/simd.h"

namespace fw {

struct Half {
    uint16_t bits;
};

FW_INLINE float widen(Half h) {
    const uint32_t sign = uint32_t(h.bits & 0x8000) << 16, rest = h.bits & 0x7fff;
    if (rest >= 0x7c00) return bits<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13 | (rest > 0x7c00 ? 0x400000 : 0));
    if (rest >= 0x400) return bits<float>(sign | ((rest << 13) + (112u << 23)));
    const float small = float(rest) * 0x1p-24f;  // exact, zero included
    return sign ? -small : small;
}

FW_INLINE Half narrow_half(float x) {
    const uint32_t u = bits<uint32_t>(x), sign = u >> 16 & 0x8000, size = u & 0x7fffffff;
    if (size > 0x7f800000) return {uint16_t(sign | 0x7e00 | (size >> 13 & 0x3ff))};
    if (size >= 0x477ff000) return {uint16_t(sign | 0x7c00)};  // 65520 and above
    if (size < 0x38800000) {  // below the normal numbers: in steps of 2^-24
        if (size < 0x33000000) return {uint16_t(sign)};
        const uint32_t mantissa = (size & 0x7fffff) | 0x800000, shift = 126 - (size >> 23);
        const uint32_t whole = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
        return {uint16_t(sign | (whole + (rest > half || (rest == half && (whole & 1)))))};
    }
    return {uint16_t(sign | ((size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13))};
}

FW_INLINE Vec<float> load_wide(const Half* p) {
#if defined(FW_AVX512)
    return Vec<float>(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(FW_AVX2)
    return Vec<float>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif defined(FW_NEON)
    return Vec<float>(vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&p->bits))));
#else
    float wide[lanes<float>];
    for (int i = 0; i < lanes<float>; ++i) wide[i] = widen(p[i]);
    return load(wide);
#endif
}

inline void widen(float* to, const Half* from, int64_t n) {
    int64_t i = 0;
    for (; i + lanes<float> <= n; i += lanes<float>) store(to + i, load_wide(from + i));
    if (i == n) return;
    Half rest[lanes<float>] = {};
    float wide[lanes<float>];
    std::copy_n(from + i, n - i, rest);
    store(wide, load_wide(rest));
    std::copy_n(wide, n - i, to + i);
}

// A vector of them.
FW_INLINE void store_narrow(Half* to, const float* from) {
#if defined(FW_AVX512)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(_mm512_loadu_ps(from), 0));
#elif defined(FW_AVX2)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(_mm256_loadu_ps(from), 0));
#elif defined(FW_NEON)
    vst1_u16(&to->bits, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(from))));
#else
    for (int i = 0; i < lanes<float>; ++i) to[i] = narrow_half(from[i]);
#endif
}

inline void narrow(Half* to, const float* from, int64_t n) {
    int64_t i = 0;
    for (; i + lanes<float> <= n; i += lanes<float>) store_narrow(to + i, from + i);
    if (i == n) return;
    float rest[lanes<float>] = {};
    Half made[lanes<float>];
    std::copy_n(from + i, n - i, rest);
    store_narrow(made, rest);
    std::copy_n(made, n - i, to + i);
}

}  // namespace fw
