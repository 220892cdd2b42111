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
    return bits<Vec<float>>(__builtin_convertvector(h, Vec<uint32_t>) << 16);
}

FW_INLINE Halves narrow(Vec<float> v) {
    const Vec<uint32_t> u = bits<Vec<uint32_t>>(v);
    const Vec<uint32_t> rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16, quiet = (u >> 16) | 0x40;
    return __builtin_convertvector(v == v ? rounded : quiet, Halves);
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

inline void narrow(Bf16* to, const float* from, int64_t n) {
    int64_t i = 0;
    for (; i + lanes<float> <= n; i += lanes<float>) store_narrow(to + i, load(from + i));
    for (; i < n; ++i) to[i] = narrow(from[i]);
}

}  // namespace fw
