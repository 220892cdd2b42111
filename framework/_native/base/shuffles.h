// Lanes of vectors in another order, known when compiling.
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

template <class T, size_t... I> FW_INLINE Mask<T> lane_numbers(std::index_sequence<I...>) { return Mask<T>{Int<T>(I)...}; }
template <class T> FW_INLINE Mask<T> lane_numbers() { return lane_numbers<T>(std::make_index_sequence<lanes<T>>()); }

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

// -- every second lane ----------------------------------------------------------------------------

// a[First], a[First + 2], ..., then so of b
template <int First, class T, size_t... I> FW_INLINE Vec<T> every_other(Vec<T> a, Vec<T> b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, (2 * I + First)...);
}
template <class T> FW_INLINE Vec<T> evens(Vec<T> a, Vec<T> b) {
    return every_other<0, T>(a, b, std::make_index_sequence<lanes<T>>{});
}
template <class T> FW_INLINE Vec<T> odds(Vec<T> a, Vec<T> b) {
    return every_other<1, T>(a, b, std::make_index_sequence<lanes<T>>{});
}

// The same numbers as `evens` where b begins with the last lane of a.
template <class T, size_t... I> FW_INLINE Vec<T> evens_of_overlapping(Vec<T> a, Vec<T> b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, (2 * I + (I >= lanes<T> / 2))...);
}
template <class T> FW_INLINE Vec<T> evens_of_overlapping(Vec<T> a, Vec<T> b) {
    return evens_of_overlapping<T>(a, b, std::make_index_sequence<lanes<T>>{});
}

// -- lanes of several vectors joined ---------------------------------------------------------------

// Lane i is lane places[i].
template <class T> FW_INLINE Vec<T> picked(Vec<T> v, Mask<T> places) {
#if defined(__clang__)
    Vec<T> r{};
    for (int i = 0; i < lanes<T>; ++i) r[i] = v[places[i]];
    return r;
#else
    return __builtin_shuffle(v, places);
#endif
}

// Of groups of 2 W lanes the first or the last W, those of a before those of b.
template <class T, int W, bool LAST> struct GroupHalves {
    static constexpr int of_one(int i) { return i / W * 2 * W + i % W + (LAST ? W : 0); }
    static constexpr int at(int i) {
        constexpr int half = lanes<T> / 2;
        return i < half ? of_one(i) : lanes<T> + of_one(i - half);
    }
};

// Lane i is what the lanes of group i of the vectors are joined to, each of which has groups of 2 W: the two halves of a group,
// then their halves, and so on. For M that are fewer the lanes behind are the last group's.
template <class T, int M, int W, class Join> FW_INLINE Vec<T> joined_groups(Vec<T>* v, Join join) {
    if constexpr (W == 0) {
        return v[0];
    } else {
        constexpr int half = (M + 1) / 2;
#pragma GCC unroll 8
        for (int i = 0; i < half; ++i) {
            const Vec<T> a = v[2 * i], b = v[2 * i + 1 < M ? 2 * i + 1 : 2 * i];
            v[i] = join(permute<T, GroupHalves<T, W, false>>(a, b), permute<T, GroupHalves<T, W, true>>(a, b));
        }
        return joined_groups<T, half, W / 2>(v, join);
    }
}
template <class T, int M, int W = lanes<T> / 2> FW_INLINE Vec<T> group_sums(Vec<T>* v) {
    return joined_groups<T, M, W>(v, [](Vec<T> a, Vec<T> b) { return a + b; });
}

// -- halves and squares ---------------------------------------------------------------------------

template <class T> struct HalfOf { typedef T type __attribute__((vector_size(FW_BYTES / 2))); };
template <class T> using HalfVec = typename HalfOf<T>::type;

template <class T, size_t... I> FW_INLINE Vec<T> joined(HalfVec<T> a, HalfVec<T> b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, I...);
}
template <class T> FW_INLINE Vec<T> joined(HalfVec<T> a, HalfVec<T> b) {
    return joined<T>(a, b, std::make_index_sequence<lanes<T>>{});
}

template <class T, size_t... I>
FW_INLINE void zip(Vec<T> a, Vec<T> b, Vec<T>& low, Vec<T>& high, std::index_sequence<I...>) {
    constexpr int n = lanes<T>;
    low = __builtin_shufflevector(a, b, (I % 2 * n + I / 2)...);
    high = __builtin_shufflevector(a, b, (I % 2 * n + I / 2 + n / 2)...);
}

// A square of lanes x lanes numbers: rows become columns.
template <class T> FW_INLINE void transpose(Vec<T> (&v)[lanes<T>]) {
    constexpr int n = lanes<T>;
#pragma GCC unroll 4
    for (int stage = 1; stage < n; stage *= 2) {
        Vec<T> w[n];
#pragma GCC unroll 16
        for (int i = 0; i < n / 2; ++i)
            zip<T>(v[i], v[i + n / 2], w[2 * i], w[2 * i + 1], std::make_index_sequence<n>{});
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i) v[i] = w[i];
    }
}

#if defined(FW_AVX2) && !defined(FW_AVX512)
// In three steps of which each is one instruction: within halves of the vectors, then of the halves.
template <> FW_INLINE void transpose<float>(Vec<float> (&v)[8]) {
    Vec<float> w[8], u[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        w[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        w[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        const int from = i / 2 * 4 + i % 2, to = i / 2 * 4 + 2 * (i % 2);
        u[to] = __builtin_shufflevector(w[from], w[from + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        u[to + 1] = __builtin_shufflevector(w[from], w[from + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        v[i] = __builtin_shufflevector(u[i], u[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        v[i + 4] = __builtin_shufflevector(u[i], u[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
template <> FW_INLINE void transpose<double>(Vec<double> (&v)[4]) {
    Vec<double> w[4];
#pragma GCC unroll 2
    for (int i = 0; i < 4; i += 2) {
        w[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 4, 2, 6);
        w[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 1, 5, 3, 7);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
        v[i] = __builtin_shufflevector(w[i], w[i + 2], 0, 1, 4, 5);
        v[i + 2] = __builtin_shufflevector(w[i], w[i + 2], 2, 3, 6, 7);
    }
}
#endif

}  // namespace fw
