// Lanes of a vector in another order, known when compiling.
#pragma once

#include <utility>

#include "base/simd.h"

namespace fw {

// Lane i of the result is lane P::at(i) of a, or P::at(i) - lanes of b.
template <class T, class P, size_t... I>
FW_INLINE Vec<T> permute(Vec<T> a, Vec<T> b, std::index_sequence<I...>) {
#if defined(__clang__)
    return __builtin_shufflevector(a, b, P::at(int(I))...);
#else
    return __builtin_shuffle(a, b, Mask<T>{Int<T>(P::at(int(I)))...});
#endif
}
template <class T, class P> FW_INLINE Vec<T> permute(Vec<T> a, Vec<T> b) {
    return permute<T, P>(a, b, std::make_index_sequence<lanes<T>>());
}

template <int W> struct Swapped {
    static constexpr int at(int i) { return i ^ W; }
};

// All lanes joined into one, in an order that depends on their number only.
template <class T, class Join, int W = lanes<T> / 2> FW_INLINE T join_lanes(Vec<T> v, Join join) {
    if constexpr (W == 0) {
        return v[0];
    } else {
        return join_lanes<T, Join, W / 2>(join(v, permute<T, Swapped<W>>(v, v)), join);
    }
}

template <class T> FW_INLINE Mask<T> lane_numbers() {
    Int<T> a[lanes<T>];
    for (int i = 0; i < lanes<T>; ++i) a[i] = Int<T>(i);
    return load(a);
}

// The first lane where a mask is set; there is one.
template <class T> FW_INLINE int first_set(Mask<T> m) {
#if defined(FW_AVX512)
    if constexpr (sizeof(T) == 4) return __builtin_ctz(unsigned(_mm512_movepi32_mask((__m512i)m)));
    if constexpr (sizeof(T) == 8) return __builtin_ctz(unsigned(_mm512_movepi64_mask((__m512i)m)));
#elif defined(FW_AVX2)
    return __builtin_ctz(unsigned(_mm256_movemask_epi8((__m256i)m))) / int(sizeof(T));
#elif defined(__x86_64__)
    return __builtin_ctz(unsigned(_mm_movemask_epi8((__m128i)m))) / int(sizeof(T));
#endif
    int i = 0;
    while (!m[i]) ++i;
    return i;
}

// The lanes from n on are `fill`.
template <class T> FW_INLINE Vec<T> first_lanes(Vec<T> v, int64_t n, T fill) {
    return select<T>(lane_numbers<T>() < splat<Int<T>>(Int<T>(n)), v, splat<T>(fill));
}

}  // namespace fw
