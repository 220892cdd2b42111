// Rows of numbers: their vectors with the rest at the end, and their sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/pool.h"
#include "base/simd.h"

namespace fw {

constexpr int64_t SUM_BLOCK = 2048;     // so many float32 numbers are added before the sum goes on in float64
constexpr int64_t PIECE = 1 << 14;      // numbers that are worth a thread's attention
constexpr int64_t STREAM = 16 << 20;    // results of so many bytes go past the caches

template <class T> constexpr T LEAST = -std::numeric_limits<T>::infinity();

struct Whole {};               // a whole vector
struct Part { int64_t n; };    // the first n < lanes numbers

template <class T> FW_INLINE Vec<T> take(const T* p, Whole, T = T(0)) { return load(p); }
template <class T> FW_INLINE void put(T* p, Vec<T> v, Whole) { store<T>(p, v); }

template <class T> FW_INLINE Vec<T> take(const T* p, Part k, T fill = T(0)) { return load_part(p, k.n, fill); }
template <class T> FW_INLINE void put(T* p, Vec<T> v, Part k) { store_part<T>(p, v, k.n); }

// Past the caches where `p` lies at a multiple of the vector's size; the caller ends with `settle`.
template <class T> FW_INLINE void put_past(T* p, Vec<T> v, Whole) {
#if defined(FW_AVX512)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(p), bits<__m512i>(v));
#elif defined(FW_AVX2)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), bits<__m256i>(v));
#elif defined(__x86_64__)
    _mm_stream_si128(reinterpret_cast<__m128i*>(p), bits<__m128i>(v));
#else
    store<T>(p, v);
#endif
}
template <class T> FW_INLINE void put_past(T* p, Vec<T> v, Part k) { put(p, v, k); }
inline void settle() {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}
template <bool Past, class T, class K> FW_INLINE void put_as(T* p, Vec<T> v, K part) {
    if constexpr (Past) put_past(p, v, part);
    else put(p, v, part);
}

// Whether a result in rows of n numbers is to go past the caches; body(std::bool_constant) is told.
template <class T, class F> void choosing_caches(const T* out, int64_t size, int64_t n, F&& body) {
    bool aligned = reinterpret_cast<uintptr_t>(out) % FW_BYTES == 0 && n % lanes<T> == 0;
    if (aligned && size * int64_t(sizeof(T)) >= STREAM) {
        body(std::true_type{});
        return;
    }
    body(std::false_type{});
}

// One number from the lanes of a vector, half by half: f of the lower and the upper half, and so on.
template <class T, class V, class F> FW_INLINE T fold(V v, F f);
template <class T, class V, class F, int... I> FW_INLINE T fold_halves(V v, F f, std::integer_sequence<int, I...>) {
    constexpr int half = sizeof...(I);
    return fold<T>(f(__builtin_shufflevector(v, v, I...), __builtin_shufflevector(v, v, (I + half)...)), f);
}
template <class T, class V, class F> FW_INLINE T fold(V v, F f) {
    constexpr int half = int(sizeof(V) / sizeof(T)) / 2;
    if constexpr (half == 1) return f(T(v[0]), T(v[1]));
    else return fold_halves<T>(v, f, std::make_integer_sequence<int, half>{});
}
template <class T> FW_INLINE T total(Vec<T> v) {
    return fold<T>(v, [](auto a, auto b) { return a + b; });
}
template <class T> FW_INLINE T top_of(Vec<T> v) {
    return fold<T>(v, [](auto a, auto b) { return a > b ? a : b; });
}

// body(i, part, which) for the vectors of [begin, end); `which` < 4 counts round, for sums in several chains.
template <class T, class F> FW_INLINE void vectors(int64_t begin, int64_t end, F&& body) {
    constexpr int L = lanes<T>;
    int64_t i = begin;
    for (; i + 4 * L <= end; i += 4 * L) {
        body(i, Whole{}, 0);
        body(i + L, Whole{}, 1);
        body(i + 2 * L, Whole{}, 2);
        body(i + 3 * L, Whole{}, 3);
    }
    for (; i + L <= end; i += L) body(i, Whole{}, 0);
    if (i < end) body(i, Part{end - i}, 1);
}

// For long bodies, which are compiled once for whole vectors.
template <class T, class F> FW_INLINE void long_vectors(int64_t begin, int64_t end, F&& body) {
    int64_t i = begin;
    for (; i + lanes<T> <= end; i += lanes<T>) body(i, Whole{}, 0);
    if (i < end) body(i, Part{end - i}, 0);
}

// M sums over n numbers; term(i, part, s) adds to the vectors s[0], ..., s[M - 1].
template <int M> struct Sums {
    double of[M] = {};
};

template <class T, int M, class F> FW_INLINE Sums<M> sums(int64_t n, F&& term) {
    Sums<M> all;
    for (int64_t at = 0; at < n; at += SUM_BLOCK) {
        Vec<T> s[4][M] = {};
        vectors<T>(at, std::min(n, at + SUM_BLOCK), [&](int64_t i, auto part, int w) { term(i, part, s[w]); });
#pragma GCC unroll 8  // else the vectors would not stay in registers
        for (int m = 0; m < M; ++m)
            all.of[m] += double(total<T>((s[0][m] + s[1][m]) + (s[2][m] + s[3][m])));
    }
    return all;
}

template <class T, class F> FW_INLINE double long_sum(int64_t n, F&& term) {
    double sum = 0;
    for (int64_t at = 0; at < n; at += SUM_BLOCK) {
        Vec<T> s = {};
        long_vectors<T>(at, std::min(n, at + SUM_BLOCK), [&](int64_t i, auto part, int) { s += term(i, part); });
        sum += double(total<T>(s));
    }
    return sum;
}

template <class T> FW_INLINE double total_of(const T* x, int64_t n) {
    return sums<T, 1>(n, [&](int64_t i, auto part, Vec<T>* s) { s[0] += take(x + i, part); }).of[0];
}

// The largest of n numbers; of a row with nan any of its numbers, or nan.
template <class T> FW_INLINE T largest(const T* x, int64_t n) {
    Vec<T> top[4] = {splat(LEAST<T>), splat(LEAST<T>), splat(LEAST<T>), splat(LEAST<T>)};
    vectors<T>(0, n, [&](int64_t i, auto part, int w) {
        Vec<T> v = take(x + i, part, LEAST<T>);
        top[w] = top[w] > v ? top[w] : v;
    });
    Vec<T> a = top[0] > top[1] ? top[0] : top[1], b = top[2] > top[3] ? top[2] : top[3];
    return top_of<T>(a > b ? a : b);
}

// An array's shape seen from one dimension, or from a stretch of them.
struct Around {
    int64_t outer = 1, n = 1, inner = 1;
    template <class X> Around(const X& x, int first, int last) {
        for (int d = 0; d < x.ndim(); ++d) (d < first ? outer : d <= last ? n : inner) *= x.shape(d);
    }
};

inline int64_t grain_of(int64_t numbers) { return std::max<int64_t>(1, worth(PIECE) / std::max<int64_t>(numbers, 1)); }

}  // namespace fw
