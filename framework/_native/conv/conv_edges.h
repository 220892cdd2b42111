// Lines of images whose ends count as 0: loads under masks, and every second number of two vectors. Numbers are
// float, with AVX-512 also bfloat16, which is widened on the way in and rounded on the way out.
#pragma once

#include <utility>

#include "base/bf16.h"
#include "gemm/gemm_kernel.h"

namespace fw::windows {

using V = Vec<float>;
constexpr int n_lanes = lanes<float>;

// Which lanes of a vector are read; the others are 0.
struct Inside {
#if defined(FW_AVX512)
    __mmask16 lane = 0;
    void set(int64_t low, int64_t high) {  // from low up to, not with, high
        lane = __mmask16(_bzhi_u32(0xffff, unsigned(high)) & ~_bzhi_u32(0xffff, unsigned(low)));
    }
    V of(const float* p) const { return (V)_mm512_maskz_loadu_ps(lane, p); }
    V of(const Bf16* p) const { return widen(bits<Halves>(_mm256_maskz_loadu_epi16(lane, p))); }
#elif defined(FW_AVX2)
    Mask<float> lane = {};
    void set(int64_t low, int64_t high) {
        const Mask<float> at = {0, 1, 2, 3, 4, 5, 6, 7};
        lane = (at >= int(low)) & (at < int(high));
    }
    V of(const float* p) const { return (V)_mm256_maskload_ps(p, (__m256i)lane); }
#else
    int first = 0, end = 0;
    void set(int64_t low, int64_t high) { first = int(low), end = int(high); }
    V of(const float* p) const {
        if (end - first == n_lanes) return load(p);
        V v{};
        for (int i = first; i < end; ++i) v[i] = p[i];
        return v;
    }
#endif
};

#if defined(FW_AVX512)
FW_INLINE void store_first(Bf16* p, V v, int64_t n) {
    _mm256_mask_storeu_epi16(p, __mmask16(_bzhi_u32(0xffff, unsigned(n))), bits<__m256i>(narrow(v)));
}
#endif
using fw::store_first;

// a[First], a[First + 2], ..., then so of b
template <int First, size_t... I> FW_INLINE V every_other(V a, V b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, (2 * I + First)...);
}
FW_INLINE V evens(V a, V b) { return every_other<0>(a, b, std::make_index_sequence<n_lanes>{}); }
FW_INLINE V odds(V a, V b) { return every_other<1>(a, b, std::make_index_sequence<n_lanes>{}); }

}  // namespace fw::windows
