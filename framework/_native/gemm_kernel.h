// The inner parts of a matrix product: tiles of C that stay in registers, and packing into panels.
//
// A tile is up to tile_rows rows by up to tile_vectors vectors. Its A lies as a panel (for each step p the
// numbers of all its rows side by side) or in place, at any strides; its B as a panel (for each step p
// tile_cols numbers) or in place, with columns side by side. Whoever packs panels in another order of
// reading, as a convolution does from images, calls `run_tile` on them directly.
#pragma once

#include <algorithm>
#include <utility>

#include "simd.h"

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

template <class T, int R, int V> FW_INLINE void store_tile(const Tile<T>& t, Vec<T> (&sum)[R][V]) {
    bool whole = t.cols == V * lanes<T>;
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
        T* c = t.c + i * t.c_row;
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j, c += lanes<T>) {
            if (whole || j < V - 1) {
                store(c, t.add ? sum[i][j] + load(c) : sum[i][j]);
            } else {
                int n = t.cols - j * lanes<T>;
                store_first(c, t.add ? sum[i][j] + load_first(c, n) : sum[i][j], n);
            }
        }
    }
}

// R rows by V vectors; Side: the rows of A lie side by side (a_row is 1).
template <class T, int R, int V, bool Side> void tile(const Tile<T>& t) {
    Vec<T> sum[R][V];
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) sum[i][j] = Vec<T>{};
    int64_t row = t.a_row, step = t.a_step, b_step = t.b_step;
    const T *b = t.b, *a[(R + 2) / 3];  // one pointer for three rows: base, base + row, base + 2 * row
    for (int i = 0; i < (R + 2) / 3; ++i) a[i] = t.a + 3 * i * row;
    const T* panel = t.a;
    for (int64_t p = t.k; p > 0; --p) {
        Vec<T> vb[V];
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) {
            vb[j] = load(b + j * lanes<T>);
            __builtin_prefetch(b + AHEAD * b_step + j * lanes<T>);
        }
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i) {
            Vec<T> va = splat(Side ? panel[i] : a[i / 3][i % 3 * row]);
#pragma GCC unroll 8
            for (int j = 0; j < V; ++j) sum[i][j] = fma<T>(va, vb[j], sum[i][j]);
        }
        b += b_step;
        if (Side) {
            panel += step;
        } else {
#pragma GCC unroll 8
            for (int i = 0; i < (R + 2) / 3; ++i) a[i] += step;
        }
    }
    store_tile<T, R, V>(t, sum);
}

template <class T> using TileFunction = void (*)(const Tile<T>&);

template <class T> struct Tiles {
    TileFunction<T> at[2][tile_rows][tile_vectors];

    template <int... I> constexpr explicit Tiles(std::integer_sequence<int, I...>) : at{} {
        (set<I / tile_vectors, I % tile_vectors>(), ...);
    }

    template <int Row, int Vector> constexpr void set() {
        at[0][Row][Vector] = tile<T, Row + 1, Vector + 1, false>;
        at[1][Row][Vector] = tile<T, Row + 1, Vector + 1, true>;
    }
};

template <class T> constexpr Tiles<T> tiles{std::make_integer_sequence<int, tile_rows * tile_vectors>{}};

// Any tile of 1 to tile_rows rows and 1 to tile_cols columns.
template <class T> FW_INLINE void run_tile(int rows, const Tile<T>& t) {
    tiles<T>.at[t.a_row == 1][rows - 1][(t.cols - 1) / lanes<T>](t);
}

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

// lanes rows of `src` (those from `rows` on count as 0), `steps` numbers of each, transposed to `to`.
template <class T>
FW_INLINE void pack_square(T* to, int width, const T* src, int rows, int64_t row, int64_t steps) {
    constexpr int n = lanes<T>;
    Vec<T> v[n];
    if (rows >= n && steps >= n) {
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i) v[i] = load(src + i * row);
    } else {
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i)
            v[i] = i < rows ? load_first(src + i * row, std::min<int64_t>(steps, n)) : Vec<T>{};
    }
    transpose<T>(v);
    if (steps >= n) {
#pragma GCC unroll 16
        for (int p = 0; p < n; ++p) store(to + p * width, v[p]);
    } else {
#pragma GCC unroll 16
        for (int p = 0; p < n; ++p)
            if (p < steps) store(to + p * width, v[p]);
    }
}

// to[p * width + i] = src[i * row + p * step] for i < rows and p < k, and 0 for rows <= i < width.
// Writes whole vectors: up to one vector of rubbish after the panel, if width is no multiple of lanes.
template <class T>
void pack_panel(T* to, int width, const T* src, int rows, int64_t row, int64_t step, int64_t k) {
    constexpr int n = lanes<T>;
    if (row == 1) {
        for (int64_t p = 0; p < k; ++p, to += width, src += step)
            for (int i = 0; i < width; i += n)
                store(to + i, rows - i >= n ? load(src + i) : load_first(src + i, std::max(rows - i, 0)));
    } else if (step == 1) {
        int last = (width - 1) / n * n;  // from the last rows to the first: they overwrite the rubbish
        for (int64_t p = 0; p < k; p += n)
            for (int i = last; i >= 0; i -= n)
                pack_square(to + p * width + i, width, src + i * row + p, rows - i, row, k - p);
    } else {
        for (int64_t p = 0; p < k; ++p, to += width, src += step)
            for (int i = 0; i < width; ++i) to[i] = i < rows ? src[i * row] : T(0);
    }
}

}  // namespace fw
