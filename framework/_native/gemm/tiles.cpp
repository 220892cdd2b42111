// Tiles and packing of matrix products: all sizes of tiles take seconds to compile.
#include "gemm/gemm_kernel.h"

namespace fw {

// The sums of a tile, `rows` lines of `width` numbers, to a C that lies turned.
template <class T> void give_turned(const Tile<T>& t, const T* sums, int rows, int width) {
    constexpr int n = lanes<T>;
    for (int j = 0; j < t.cols; j += n)
        for (int i = 0; i < rows; i += n) {
            const int high = std::min(rows - i, n), cols = std::min(t.cols - j, n);
            Vec<T> v[n];
#pragma GCC unroll 16
            for (int r = 0; r < n; ++r) v[r] = r < high ? load(sums + (i + r) * width + j) : Vec<T>{};
            transpose<T>(v);
            T* c = t.c + j * t.c_row + i;
#pragma GCC unroll 16
            for (int p = 0; p < n; ++p, c += t.c_row) {
                if (p >= cols) break;
                store_first(c, t.add ? load_first(c, high) + v[p] : v[p], high);
            }
        }
}

template <class T, int R, int V> FW_INLINE void store_tile(const Tile<T>& t, Vec<T> (&sum)[R][V]) {
    constexpr int n = lanes<T>, rest = (V - 1) * n;  // the last vector may be a part
    if (t.turned) {
        alignas(64) T sums[R * V * n];
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
            for (int j = 0; j < V; ++j) store(sums + (i * V + j) * n, sum[i][j]);
        return give_turned(t, sums, R, V * n);
    }
    const int last = t.cols - rest;
    if (t.add) {
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i) {
            const T* c = t.c + i * t.c_row;
#pragma GCC unroll 8
            for (int j = 0; j < V - 1; ++j) sum[i][j] += load(c + j * n);
            sum[i][V - 1] += last == n ? load(c + rest) : load_first(c + rest, last);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
        T* c = t.c + i * t.c_row;
#pragma GCC unroll 8
        for (int j = 0; j < V - 1; ++j) store(c + j * n, sum[i][j]);
        if (last == n) store(c + rest, sum[i][V - 1]);
        else store_first(c + rest, sum[i][V - 1], last);
    }
}

// Where C is not in the near caches it comes while the sums are formed.
constexpr int64_t LONG = 64;
template <class T, int R, int V> FW_INLINE void fetch_tile(const Tile<T>& t) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) __builtin_prefetch(t.c + i * t.c_row + j * lanes<T>, 1);
}

// R rows by V vectors.
template <class T, int R, int V> void tile(const Tile<T>& t) {
    Vec<T> sum[R][V];
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) sum[i][j] = Vec<T>{};
    int64_t row = t.a_row, step = t.a_step, b_step = t.b_step;
    const T *b = t.b, *a[(R + 2) / 3];  // one pointer for three rows: base, base + row, base + 2 * row
    for (int i = 0; i < (R + 2) / 3; ++i) a[i] = t.a + 3 * i * row;
    if (t.k >= LONG && !t.turned) fetch_tile<T, R, V>(t);
    for (int64_t p = t.k; p > 0; --p) {
        Vec<T> vb[V];
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) {
            vb[j] = load(b + j * lanes<T>);
            if (j * lanes<T> * sizeof(T) % 64 == 0) __builtin_prefetch(b + AHEAD * b_step + j * lanes<T>);
        }
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i) {
            Vec<T> va = splat(a[i / 3][i % 3 * row]);
#pragma GCC unroll 8
            for (int j = 0; j < V; ++j) sum[i][j] = fma<T>(va, vb[j], sum[i][j]);
        }
        b += b_step;
#pragma GCC unroll 8
        for (int i = 0; i < (R + 2) / 3; ++i) a[i] += step;
    }
    store_tile<T, R, V>(t, sum);
}

#if defined(FW_AVX512)
// R rows of half a vector, which rounds as a whole one does.
template <int R> void half_tile(const Tile<float>& t) {
    const __mmask8 in = __mmask8(_bzhi_u32(0xff, unsigned(t.cols)));
    __m256 sum[R];
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) sum[i] = _mm256_setzero_ps();
    const int64_t row = t.a_row;
    const float *b = t.b, *a[(R + 2) / 3];
    for (int i = 0; i < (R + 2) / 3; ++i) a[i] = t.a + 3 * i * row;
    for (int64_t p = t.k; p > 0; --p, b += t.b_step) {
        const __m256 vb = _mm256_loadu_ps(b);
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i) sum[i] = _mm256_fmadd_ps(_mm256_set1_ps(a[i / 3][i % 3 * row]), vb, sum[i]);
#pragma GCC unroll 8
        for (int i = 0; i < (R + 2) / 3; ++i) a[i] += t.a_step;
    }
    float* c = t.c;
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i, c += t.c_row) {
        if (t.add) sum[i] = _mm256_add_ps(sum[i], _mm256_maskz_loadu_ps(in, c));
        _mm256_mask_storeu_ps(c, in, sum[i]);
    }
}
#endif

template <class T> using TileFunction = void (*)(const Tile<T>&);

template <class T> struct Tiles {
    TileFunction<T> at[tile_rows][tile_vectors];

    template <int... I> constexpr explicit Tiles(std::integer_sequence<int, I...>) : at{} {
        ((at[I / tile_vectors][I % tile_vectors] = tile<T, I / tile_vectors + 1, I % tile_vectors + 1>), ...);
    }
};

#if defined(FW_AVX512)
struct HalfTiles {
    TileFunction<float> at[tile_rows];

    template <int... I> constexpr explicit HalfTiles(std::integer_sequence<int, I...>) : at{half_tile<I + 1>...} {}
};

constexpr HalfTiles halves{std::make_integer_sequence<int, tile_rows>{}};
#endif

template <class T> constexpr Tiles<T> tiles{std::make_integer_sequence<int, tile_rows * tile_vectors>{}};

template <class T> void run_tile(int rows, const Tile<T>& t) {
#if defined(FW_AVX512)
    if constexpr (half_tiles<T>)
        if (t.cols <= lanes<T> / 2 && !t.turned) return halves.at[rows - 1](t);
#endif
    tiles<T>.at[rows - 1][(t.cols - 1) / lanes<T>](t);
}

template <class T, int N> void row_of_each(const Tile<T>* t) {
    constexpr int V = tile_vectors;
    Vec<T> sum[N][1][V];
    const T* b[N];
#pragma GCC unroll 4
    for (int g = 0; g < N; ++g) {
        b[g] = t[g].b;
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) sum[g][0][j] = Vec<T>{};
    }
    const T* a = t->a;
    for (int64_t p = t->k; p > 0; --p, a += t->a_step) {
        const Vec<T> va = splat(*a);
#pragma GCC unroll 4
        for (int g = 0; g < N; ++g) {
#pragma GCC unroll 8
            for (int j = 0; j < V; ++j) sum[g][0][j] = fma<T>(va, load(b[g] + j * lanes<T>), sum[g][0][j]);
            b[g] += t[g].b_step;
        }
    }
    for (int g = 0; g < N; ++g) store_tile<T, 1, V>(t[g], sum[g]);
}

template <class T> void run_rows(int count, const Tile<T>* t) {
    count == 3 ? row_of_each<T, 3>(t) : row_of_each<T, 4>(t);
}

// -- packing --------------------------------------------------------------------------------------

// lanes rows of `src` (those from `rows` on count as 0), `steps` numbers of each, transposed to `to`.
template <class T>
FW_INLINE void pack_square(T* to, int width, const T* src, int rows, int64_t row, int64_t steps) {
    constexpr int n = lanes<T>;
    Vec<T> v[n];
    if (rows >= n && steps >= n) {
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i) v[i] = load(src + i * row);
    } else if (steps >= n) {
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i) v[i] = i < rows ? load(src + i * row) : Vec<T>{};
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

template void run_tile(int, const Tile<float>&);
template void run_tile(int, const Tile<double>&);
template void run_rows(int, const Tile<float>*);
template void run_rows(int, const Tile<double>*);
template void pack_panel(float*, int, const float*, int, int64_t, int64_t, int64_t);
template void pack_panel(double*, int, const double*, int, int64_t, int64_t, int64_t);

}  // namespace fw
