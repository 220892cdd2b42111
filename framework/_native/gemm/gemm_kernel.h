// The inner parts of a matrix product: tiles of C that stay in registers, and packing into panels.
//
// A tile is up to tile_rows rows by up to tile_vectors vectors. Its A lies as a panel (for each step p the
// numbers of all its rows side by side) or in place, at any strides; its B as a panel (for each step p
// tile_cols numbers) or in place, with columns side by side. Whoever packs panels in another order of
// reading, as a convolution does from images, calls `run_tile` on them directly.
#pragma once

#include <algorithm>
#include <utility>

#include "base/simd.h"

namespace fw {

// As many accumulators as leave room for one row of B and one number of A in the registers.
#if defined(FW_AVX512)
constexpr int tile_rows = 14, tile_vectors = 2;
#elif defined(FW_AVX2)
constexpr int tile_rows = 6, tile_vectors = 2;
#elif defined(__aarch64__)
constexpr int tile_rows = 8, tile_vectors = 3;
#else
constexpr int tile_rows = 4, tile_vectors = 2;
#endif
template <class T> constexpr int tile_cols = tile_vectors * lanes<T>;

// -- the first n numbers of a vector, n <= lanes --------------------------------------------------

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

constexpr int AHEAD = 8;  // steps by which B is fetched into the cache beforehand

// -- tiles ----------------------------------------------------------------------------------------

// c[i, j] = sum over p < k of a[i, p] * b[p, j], added to what c holds if `add`.
template <class T> struct Tile {
    const T* a;
    int64_t a_row, a_step;  // a[i, p] lies at a + i * a_row + p * a_step
    const T* b;
    int64_t b_step;         // b[p, j] lies at b + p * b_step + j; whole vectors are read
    T* c;
    int64_t c_row;
    int64_t k;
    int cols;
    bool add;
};

// Any tile of 1 to tile_rows rows and 1 to tile_cols columns. All of them take seconds to compile: once, in tiles.cpp.
template <class T> void run_tile(int rows, const Tile<T>& t);

// The same of 3 or 4 tiles of one row and whole vectors, with one A: alone each would wait for its own sums.
template <class T> void run_rows(int count, const Tile<T>* t);

// -- packing --------------------------------------------------------------------------------------

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

// to[p * width + i] = src[i * row + p * step] for i < rows and p < k, and 0 for rows <= i < width.
// Writes whole vectors: up to one vector of rubbish after the panel, if width is no multiple of lanes.
template <class T>
void pack_panel(T* to, int width, const T* src, int rows, int64_t row, int64_t step, int64_t k);

}  // namespace fw
