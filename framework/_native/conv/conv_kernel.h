// The inner parts of convolutions: tiles of a product that stay in registers, one of whose factors is read
// through a table of offsets, straight from the image. The tiles of gemm_kernel.h step evenly instead.
#pragma once

#include <limits>
#include <utility>

#include "gemm/gemm_kernel.h"

namespace fw::windows {

// -- what follows a convolution -------------------------------------------------------------------

// What is done to the sums of row i before they are stored: max((sum + bias[i]) * scale[i] + shift[i], least).
template <class T> struct Epilogue {
    const T* bias = nullptr;
    const T *scale = nullptr, *shift = nullptr;  // both or none
    T least = -std::numeric_limits<T>::infinity();

    bool more() const { return scale || clips(); }  // than the bias
    bool clips() const { return least == 0; }
    Epilogue unclipped() const {
        Epilogue before = *this;
        before.least = -std::numeric_limits<T>::infinity();
        return before;
    }
    FW_INLINE T start(int64_t row) const { return bias ? bias[row] : T(0); }
    // The rest, for sums of one row that began with the bias.
    FW_INLINE Vec<T> operator()(Vec<T> v, int64_t row) const {
        return clip(scale ? fma<T>(v, splat(scale[row]), splat(shift[row])) : v);
    }
    // The same in two steps, for sums of a row in each lane, from `row` on.
    FW_INLINE Vec<T> scaled(Vec<T> v, int64_t row) const { return scale ? fma<T>(v, load(scale + row), load(shift + row)) : v; }
    FW_INLINE Vec<T> clip(Vec<T> v) const {
        const Vec<T> low = splat(least);
        return low >= v ? low : v;  // nan stays
    }
};

// -- every second number --------------------------------------------------------------------------

// p[0], p[2], ...; the second vector begins one number early, so that nothing behind the last one is read.
template <class T> FW_INLINE Vec<T> every_second(const T* p) {
    return evens_of_overlapping<T>(load(p), load(p + lanes<T> - 1));
}

// The first n of them, n < lanes.
template <class T> FW_INLINE Vec<T> every_second_of(const T* p, int64_t n) {
    constexpr int64_t half = lanes<T> - 1;
    const int64_t count = 2 * n - 1;
    return evens_of_overlapping<T>(load_first(p, std::min<int64_t>(count, lanes<T>)),
                                   load_first(p + half, std::max<int64_t>(count - half, 0)));
}

// to[i * step] = from[i] for i < n
template <class T> void store_steps(T* to, const T* from, int64_t n, int64_t step) {
    int64_t i = 0;
#if defined(FW_AVX512)
    if (step == 2) {
        constexpr auto twice = std::make_index_sequence<lanes<T>>{};
        for (; i + lanes<T> <= n; i += lanes<T>) {
            Vec<T> v = load(from + i), low, high;
            zip<T>(v, v, low, high, twice);
            if constexpr (sizeof(T) == 4) {
                _mm512_mask_storeu_ps(to + 2 * i, 0x5555, (__m512)low);
                _mm512_mask_storeu_ps(to + 2 * i + lanes<T>, 0x5555, (__m512)high);
            } else {
                _mm512_mask_storeu_pd(to + 2 * i, 0x55, (__m512d)low);
                _mm512_mask_storeu_pd(to + 2 * i + lanes<T>, 0x55, (__m512d)high);
            }
        }
    }
#endif
    for (; i < n; ++i) to[i * step] = from[i];
}

// -- channels by pixels ---------------------------------------------------------------------------

#if defined(FW_AVX512) || defined(__aarch64__)
constexpr int channel_rows = 8, pixel_vectors = 3;
#elif defined(FW_AVX2)
constexpr int channel_rows = 4, pixel_vectors = 3;
#else
constexpr int channel_rows = 4, pixel_vectors = 2;
#endif
template <class T> constexpr int pixel_cols = pixel_vectors * lanes<T>;

// c[j][i * row[j] + lane] = start[i] + sum over p < k of a[p, i] * b[j][offset[p] + lane]; a[p, i] lies at
// a + p * a_step + i * a_row
template <class T> struct PixelTile {
    const T* a;
    int64_t a_step, a_row, k;
    const int64_t* offset;
    const T* b[pixel_vectors];
    const T* more[pixel_vectors];  // in a tile of pairs: where the lanes of mask `second` are instead
    int64_t first[pixel_vectors], second[pixel_vectors];
    T* c[pixel_vectors];
    int64_t row[pixel_vectors];
    const T* start;  // one number for each row, or null for 0
    bool add;        // to what c holds, instead of `start`
    const Epilogue<T>* end;  // of rows from `end_row` on; or null
    int64_t end_row;
};

#if defined(FW_AVX512)
constexpr bool has_pairs = true;
FW_INLINE Vec<float> load_pair(const float* a, int64_t first, const float* b, int64_t second) {
    return (Vec<float>)_mm512_mask_loadu_ps(_mm512_maskz_loadu_ps(__mmask16(first), a), __mmask16(second), b);
}
FW_INLINE Vec<double> load_pair(const double* a, int64_t first, const double* b, int64_t second) {
    return (Vec<double>)_mm512_mask_loadu_pd(_mm512_maskz_loadu_pd(__mmask8(first), a), __mmask8(second), b);
}
#else
constexpr bool has_pairs = false;  // nowhere else is a load under a mask quick
template <class T> Vec<T> load_pair(const T* a, int64_t, const T*, int64_t) { return load(a); }
#endif

template <class T, int R, int V, bool Pairs> void pixel_tile(const PixelTile<T>& t) {
    Vec<T> sum[R][V];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 3
        for (int j = 0; j < V; ++j) sum[i][j] = splat(t.start ? t.start[i] : T(0));
    if (t.add) {
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i)
#pragma GCC unroll 3
            for (int j = 0; j < V; ++j) sum[i][j] = load(t.c[j] + i * t.row[j]);
    }
    const T *b[V], *rows[(R + 2) / 3];  // one pointer for three rows
    for (int i = 0; i < (R + 2) / 3; ++i) rows[i] = t.a + 3 * i * t.a_row;
#pragma GCC unroll 3
    for (int j = 0; j < V; ++j) b[j] = t.b[j];
    const T* more[V];
    int64_t first[V], second[V];
    if constexpr (Pairs) {
        std::copy(t.more, t.more + V, more);
        std::copy(t.first, t.first + V, first);
        std::copy(t.second, t.second + V, second);
    }
    const int64_t step = t.a_step, a_row = t.a_row, *offset = t.offset, *end = offset + t.k;
    for (; offset != end; ++offset) {
        Vec<T> vb[V];
#pragma GCC unroll 3
        for (int j = 0; j < V; ++j) {
            if constexpr (Pairs) vb[j] = load_pair(b[j] + *offset, first[j], more[j] + *offset, second[j]);
            else vb[j] = load(b[j] + *offset);
        }
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
            Vec<T> va = splat(rows[i / 3][i % 3 * a_row]);
#pragma GCC unroll 3
            for (int j = 0; j < V; ++j) sum[i][j] = fma<T>(va, vb[j], sum[i][j]);
        }
#pragma GCC unroll 3
        for (int i = 0; i < (R + 2) / 3; ++i) rows[i] += step;
    }
    if (t.end) {
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
#pragma GCC unroll 3
            for (int j = 0; j < V; ++j) sum[i][j] = (*t.end)(sum[i][j], t.end_row + i);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 3
        for (int j = 0; j < V; ++j) store(t.c[j] + i * t.row[j], sum[i][j]);
    }
}

// -- pixels by channels ---------------------------------------------------------------------------

// Pixels one by one and channels in vectors: no pixel is computed twice, and windows may lie anywhere.
#if defined(FW_AVX512)
constexpr bool has_channel_tiles = true;
constexpr int channel_pixels = 12, channel_wide = 1;
#else
#if defined(FW_AVX2)
constexpr bool has_channel_tiles = true;
#else
constexpr bool has_channel_tiles = false;  // nowhere else was it measured
#endif
constexpr int channel_pixels = 6, channel_wide = 2;
#endif
template <class T> constexpr int channel_cols = channel_wide * lanes<T>;

// c[j * channel_cols + i] = start[i] + sum over p < k of a[p * channel_cols + i] * b[j][offset[p]]
template <class T> struct ChannelTile {
    const T* a;
    int64_t k;
    const int64_t* offset;
    const T* const* b;
    T* c;
    const T* start;          // one number for each channel, or null for 0
    const Epilogue<T>* end;  // of rows from `end_row` on; or null
    int64_t end_row;
};

template <class T, int P> void channel_tile(const ChannelTile<T>& t) {
    constexpr int n = lanes<T>, wide = channel_wide;
    Vec<T> sum[P][wide];
    const T* b[P];
#pragma GCC unroll 12
    for (int j = 0; j < P; ++j) {
        b[j] = t.b[j];
        for (int i = 0; i < wide; ++i) sum[j][i] = t.start ? load(t.start + i * n) : Vec<T>{};
    }
    const T* a = t.a;
    const int64_t *offset = t.offset, *end = offset + t.k;
    for (; offset != end; ++offset, a += wide * n) {
        Vec<T> va[wide];
        for (int i = 0; i < wide; ++i) va[i] = load(a + i * n);
        const int64_t at = *offset;
#pragma GCC unroll 12
        for (int j = 0; j < P; ++j) {
            const Vec<T> v = splat(b[j][at]);
            for (int i = 0; i < wide; ++i) sum[j][i] = fma<T>(va[i], v, sum[j][i]);
        }
    }
    if (t.end) {
        const Epilogue<T> then = *t.end;  // read once
        if (then.scale) {
#pragma GCC unroll 12
            for (int j = 0; j < P; ++j)
                for (int i = 0; i < wide; ++i) sum[j][i] = then.scaled(sum[j][i], t.end_row + i * n);
        }
        if (then.clips()) {
#pragma GCC unroll 12
            for (int j = 0; j < P; ++j)
                for (int i = 0; i < wide; ++i) sum[j][i] = then.clip(sum[j][i]);
        }
    }
    T* const c = t.c;
#pragma GCC unroll 12
    for (int j = 0; j < P; ++j)
        for (int i = 0; i < wide; ++i) store(c + j * channel_cols<T> + i * n, sum[j][i]);
}

// Sums of pixels, channel by channel, become lines of `count` numbers, one for each channel, `row` apart. Whole vectors of
// pixels are read.
template <class T> void give_lines(const T* sums, int64_t count, T* to, int64_t row) {
    constexpr int64_t n = lanes<T>, cols = channel_cols<T>;
    for (int64_t j = 0; j < count; j += n) {
        const int64_t wide = std::min(n, count - j);
        for (int64_t part = 0; part < cols; part += n) {
            Vec<T> v[lanes<T>];
#pragma GCC unroll 16
            for (int q = 0; q < n; ++q) v[q] = load(sums + (j + q) * cols + part);
            transpose<T>(v);
            T* target = to + part * row + j;
            if (wide == n) {
#pragma GCC unroll 16
                for (int q = 0; q < n; ++q) store(target + q * row, v[q]);
            } else {
                for (int q = 0; q < n; ++q) store_first(target + q * row, v[q], wide);
            }
        }
    }
}

// to[p * step] = end(sum over i < k of a[i] * from[offset[i] + p]) for p < length >= lanes
template <class T> struct LineProduct {
    const T* a;
    int64_t k;
    const int64_t* offset;
    const Epilogue<T>& end;
    int64_t row;
    int64_t length, step;
};

template <class T, int V> FW_INLINE void line_part(const LineProduct<T>& l, const T* from, T* to, int64_t p) {
    constexpr int n = lanes<T>;
    Vec<T> sum[V];
    int64_t at[V];
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) {
        at[j] = std::min(p + j * n, l.length - n);  // the last vector may overlap the one before
        sum[j] = splat(l.end.start(l.row));
    }
    for (int64_t i = 0; i < l.k; ++i) {
        Vec<T> va = splat(l.a[i]);
        const T* b = from + l.offset[i];
#pragma GCC unroll 4
        for (int j = 0; j < V; ++j) sum[j] = fma<T>(va, load(b + at[j]), sum[j]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) {
        sum[j] = l.end(sum[j], l.row);
        if (l.step == 1) {
            store(to + at[j], sum[j]);
        } else {
            T aside[n];
            store(aside, sum[j]);
            store_steps(to + at[j] * l.step, aside, n, l.step);
        }
    }
}

template <class T> FW_INLINE void line_product(const LineProduct<T>& l, const T* from, T* to) {
    constexpr int n = lanes<T>;
    int64_t p = 0;
    for (; l.length - p > 3 * n; p += 4 * n) line_part<T, 4>(l, from, to, p);
    if (l.length - p > 2 * n) line_part<T, 3>(l, from, to, p);
    else if (l.length - p > n) line_part<T, 2>(l, from, to, p);
    else if (l.length - p > 0) line_part<T, 1>(l, from, to, p);
}

// -- kernel positions by channels -----------------------------------------------------------------

#if defined(FW_AVX512) || defined(__aarch64__)
constexpr int tap_rows = 12, channel_vectors = 2;
#elif defined(FW_AVX2)
constexpr int tap_rows = 6, channel_vectors = 2;
#else
constexpr int tap_rows = 4, channel_vectors = 2;
#endif

// c[i * c_row + lane] += sum over lines and p < length of a[line[r] + p * step + offset[i]] * b[., lane]; b's
// rows follow each other through all lines
template <class T> struct TapTile {
    const T* a;
    const int64_t *offset, *line;
    int64_t lines, length, step;
    const T* b;
    int64_t b_row;
    T* c;
    int64_t c_row;
};

template <class T, int R, int V> void tap_tile(const TapTile<T>& t) {
    Vec<T> sum[R][V];
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
        for (int j = 0; j < V; ++j) sum[i][j] = load(t.c + i * t.c_row + j * lanes<T>);
    }
    const T* b = t.b;
    const int64_t step = t.step, b_row = t.b_row, length = t.length;
    const T* rows[R];
    for (int i = 0; i < R; ++i) rows[i] = t.a + t.offset[i];
    for (int64_t r = 0; r < t.lines; ++r) {
        int64_t at = t.line[r], end = at + length * step;
        for (; at != end; at += step, b += b_row) {
            Vec<T> vb[V];
#pragma GCC unroll 2
            for (int j = 0; j < V; ++j) vb[j] = load(b + j * lanes<T>);
#pragma GCC unroll 16
            for (int i = 0; i < R; ++i) {
                Vec<T> va = splat(rows[i][at]);
#pragma GCC unroll 2
                for (int j = 0; j < V; ++j) sum[i][j] = fma<T>(va, vb[j], sum[i][j]);
            }
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
        for (int j = 0; j < V; ++j) store(t.c + i * t.c_row + j * lanes<T>, sum[i][j]);
    }
}

// -- dot products along the pixels ----------------------------------------------------------------

constexpr int dot_taps = 9;

// c[i] += sum over lines and p < length of a[line[r] + offset[i] + p] * b[., p]; whole vectors of a are read;
// b's lines follow each other in an image
template <class T> struct DotTile {
    const T* a;
    const int64_t *offset, *line;
    int64_t images, lines, length;  // lines of each image
    const T* b;
    int64_t b_image;
    T* c;
};

template <class T, int R> void dot_tile(const DotTile<T>& t) {
    Vec<T> sum[R];
#pragma GCC unroll 9
    for (int i = 0; i < R; ++i) sum[i] = Vec<T>{};
    const T *b = t.b, *rows[R];
    for (int i = 0; i < R; ++i) rows[i] = t.a + t.offset[i];
    const int64_t whole = t.length / lanes<T> * lanes<T>, rest = t.length - whole;
    T ones[lanes<T>] = {};
    std::fill(ones, ones + rest, T(1));
    const Mask<T> inside = load(ones) > Vec<T>{};
    const int64_t* line = t.line;
    for (int64_t n = 0; n < t.images; ++n, b += t.b_image - t.lines * t.length) {
        for (int64_t r = 0; r < t.lines; ++r, b += t.length) {
            const int64_t at = *line++;
            for (int64_t p = 0; p < whole; p += lanes<T>) {
                Vec<T> vb = load(b + p);
#pragma GCC unroll 9
                for (int i = 0; i < R; ++i) sum[i] = fma<T>(load(rows[i] + at + p), vb, sum[i]);
            }
            if (rest) {
                Vec<T> vb = load_first(b + whole, rest);
#pragma GCC unroll 9
                for (int i = 0; i < R; ++i)
                    sum[i] = fma<T>(select<T>(inside, load(rows[i] + at + whole), Vec<T>{}), vb, sum[i]);
            }
        }
    }
#pragma GCC unroll 9
    for (int i = 0; i < R; ++i) t.c[i] += sum_lanes<T>(sum[i]);
}

// -- tables of all sizes of tiles -----------------------------------------------------------------

template <class T, int Rows, int Vectors, class Tile> struct TileTable {
    void (*at[Rows][Vectors])(const Tile&);
};

template <class T, bool Pairs, int... I>
constexpr auto pixel_tile_table(std::integer_sequence<int, I...>) {
    TileTable<T, channel_rows, pixel_vectors, PixelTile<T>> table{};
    ((table.at[I / pixel_vectors][I % pixel_vectors] =
          pixel_tile<T, I / pixel_vectors + 1, I % pixel_vectors + 1, Pairs>),
     ...);
    return table;
}
template <class T, bool Pairs>
constexpr auto pixel_tiles = pixel_tile_table<T, Pairs && has_pairs>(
    std::make_integer_sequence<int, channel_rows * pixel_vectors>{});

template <class T> struct ChannelTiles {
    void (*at[channel_pixels])(const ChannelTile<T>&);
};
template <class T, int... I> constexpr auto channel_tile_table(std::integer_sequence<int, I...>) {
    return ChannelTiles<T>{{channel_tile<T, I + 1>...}};
}
template <class T> constexpr auto channel_tiles =
    channel_tile_table<T>(std::make_integer_sequence<int, channel_pixels>{});

template <class T, int... I> constexpr auto tap_tile_table(std::integer_sequence<int, I...>) {
    TileTable<T, tap_rows, channel_vectors, TapTile<T>> table{};
    ((table.at[I / channel_vectors][I % channel_vectors] =
          tap_tile<T, I / channel_vectors + 1, I % channel_vectors + 1>),
     ...);
    return table;
}
template <class T> constexpr auto tap_tiles =
    tap_tile_table<T>(std::make_integer_sequence<int, tap_rows * channel_vectors>{});

template <class T, int... I> constexpr auto dot_tile_table(std::integer_sequence<int, I...>) {
    TileTable<T, dot_taps, 1, DotTile<T>> table{};
    ((table.at[I][0] = dot_tile<T, I + 1>), ...);
    return table;
}
template <class T> constexpr auto dot_tiles = dot_tile_table<T>(std::make_integer_sequence<int, dot_taps>{});

}  // namespace fw::windows
