// Tiles of images for F(MxM, 3x3), M = 2 or 4: the small matrices, and how tiles are read from images.
//
//     y = A' [ (G w G') * (B' x B) ] A    for every tile of M+2 by M+2 numbers of x and every 3x3 kernel
//
// All work on vectors: one tile, channel or row in each lane.
#pragma once

#include <vector>

#include "conv/conv_edges.h"

namespace fw::windows {

// A small matrix times the numbers v[0], v[step], ...
#define FW_LINE(name) \
    struct name { FW_INLINE void operator()(const V* v, int step, V* to, int to_step) const
template <int M> struct Matrices;

template <> struct Matrices<2> {
    FW_LINE(Input) {  // B'
        const V a = v[0], b = v[step], c = v[2 * step], d = v[3 * step];
        to[0] = a - c;
        to[to_step] = b + c;
        to[2 * to_step] = c - b;
        to[3 * to_step] = b - d;
    }};
    FW_LINE(Output) {  // A'
        const V sum = v[step] + v[2 * step], difference = v[step] - v[2 * step];
        to[0] = v[0] + sum;
        to[to_step] = difference - v[3 * step];
    }};
    FW_LINE(Gradient) {  // A
        const V a = v[0], b = v[step];
        to[0] = a;
        to[to_step] = a + b;
        to[2 * to_step] = a - b;
        to[3 * to_step] = -b;
    }};
    FW_LINE(Kernel) {  // G
        const V half = splat(0.5f), ends = half * (v[0] + v[2 * step]), middle = half * v[step];
        to[0] = v[0];
        to[to_step] = ends + middle;
        to[2 * to_step] = ends - middle;
        to[3 * to_step] = v[2 * step];
    }};
    FW_LINE(KernelGradient) {  // G'
        const V half = splat(0.5f), b = v[step], c = v[2 * step], sum = half * (b + c);
        to[0] = v[0] + sum;
        to[to_step] = half * (b - c);
        to[2 * to_step] = sum + v[3 * step];
    }};
};

// The points 0, 1, -1, 2, -2 and infinity; for images alone.
template <> struct Matrices<4> {
    FW_LINE(Input) {
        const V a = v[0], b = v[step], c = v[2 * step], d = v[3 * step], e = v[4 * step], f = v[5 * step];
        const V four = splat(4.0f), five = splat(5.0f);
        const V even = fma<float>(-four, c, e), odd = fma<float>(-four, b, d);
        const V near = e - c, far = (d - b) + (d - b);
        to[0] = fma<float>(four, a, fma<float>(-five, c, e));
        to[to_step] = even + odd;
        to[2 * to_step] = even - odd;
        to[3 * to_step] = near + far;
        to[4 * to_step] = near - far;
        to[5 * to_step] = fma<float>(four, b, fma<float>(-five, d, f));
    }};
    FW_LINE(Output) {
        const V p = v[step] + v[2 * step], m = v[step] - v[2 * step];
        const V q = v[3 * step] + v[4 * step], n = v[3 * step] - v[4 * step];
        to[0] = v[0] + p + q;
        to[to_step] = fma<float>(splat(2.0f), n, m);
        to[2 * to_step] = fma<float>(splat(4.0f), q, p);
        to[3 * to_step] = fma<float>(splat(8.0f), n, m) + v[5 * step];
    }};
    FW_LINE(Kernel) {
        const V a = v[0], b = v[step], c = v[2 * step], sixth = splat(1.0f / 6);
        const V ends = -sixth * (a + c), middle = sixth * b;
        const V far = fma<float>(splat(1.0f / 24), a, sixth * c), wide = splat(1.0f / 12) * b;
        to[0] = splat(0.25f) * a;
        to[to_step] = ends - middle;
        to[2 * to_step] = ends + middle;
        to[3 * to_step] = far + wide;
        to[4 * to_step] = far - wide;
        to[5 * to_step] = c;
    }};
};
#undef FW_LINE

// The matrix on both sides of a tile of From x From numbers, which becomes one of To x To.
template <int From, int To, class Line> FW_INLINE void both_sides(const Line& line, const V* v, V* to) {
    V w[To * From];
#pragma GCC unroll 6
    for (int i = 0; i < From; ++i) line(v + i, From, w + i, From);
#pragma GCC unroll 6
    for (int i = 0; i < To; ++i) line(w + i * From, 1, to + i * To, 1);
}

// -- tiles of images ------------------------------------------------------------------------------

// A vector of tiles: two stretches of neighbours, each of a line of tiles.
template <int M> struct Piece {
    struct Part {
        int64_t image, line, column, count;
        int64_t from[M + 2];             // where the lines of its tiles begin in a channel's plane
        Inside read[M + 2][2][M / 2];    // the vectors of each line, and M numbers further on
    } part[2];
    int64_t at;  // in the order of all tiles
};

// The tiles of a batch of images: `before` numbers before them, `size` wide and high, M apart.
template <int M> struct Tiling {
    int64_t high, wide;                       // tiles of an image
    int64_t in_high, in_wide, channels;       // of the image
    int64_t before_high, before_wide, size;

    int64_t each() const { return high * wide; }

    // Tiles `first` to `first + count`.
    void cut(std::vector<Piece<M>>& pieces, int64_t first, int64_t count) const {
        constexpr int64_t half = n_lanes / 2;
        pieces.clear();
        for (int64_t at = 0; at < count;) {
            Piece<M>& piece = pieces.emplace_back();
            piece.at = at;
            for (auto& part : piece.part) {
                const int64_t line = (first + at) / wide;
                part.image = line / high, part.line = line % high, part.column = (first + at) % wide;
                part.count = std::min({count - at, wide - part.column, half});
                if (part.count > 0) place(part);
                at += part.count;
            }
        }
    }

  private:
    void place(typename Piece<M>::Part& part) const {
        const int64_t left = M * part.column - before_wide;
        for (int64_t i = 0; i < size; ++i) {
            const int64_t line = M * part.line - before_high + i;
            const bool exists = line >= 0 && line < in_high;
            part.from[i] = (part.image * channels * in_high + (exists ? line : 0)) * in_wide + left;
            for (int64_t j = 0; exists && j < (size > M ? 2 : 1); ++j)
                for (int64_t k = 0; k < M / 2; ++k) {
                    const int64_t at = left + M * j + n_lanes * k;
                    part.read[i][j][k].set(std::clamp<int64_t>(-at, 0, n_lanes),
                                           std::clamp<int64_t>(in_wide - at, 0, n_lanes));
                }
        }
    }
};

// The numbers of line i of all tiles of a piece: v[j] is the j-th of each, for j < Size.
template <int M, int Size, class T> FW_INLINE void load_line(const T* from, const Piece<M>& piece, int i, V* v) {
    const auto &a = piece.part[0], &b = piece.part[1];
#pragma GCC unroll 2
    for (int j = 0; j < (Size > M ? 2 : 1); ++j, v += M) {
        const T *low = from + a.from[i] + M * j, *up = from + b.from[i] + M * j;
        const auto &in_low = a.read[i][j], &in_up = b.read[i][j];
        if constexpr (M == 2) {
            const V first = in_low[0].of(low), second = in_up[0].of(up);
            v[0] = evens<float>(first, second);
            v[1] = odds<float>(first, second);
        } else {
            const V a0 = in_low[0].of(low), a1 = in_low[1].of(low + n_lanes);
            const V b0 = in_up[0].of(up), b1 = in_up[1].of(up + n_lanes);
            const V even_a = evens<float>(a0, a1), even_b = evens<float>(b0, b1), odd_a = odds<float>(a0, a1), odd_b = odds<float>(b0, b1);
            v[0] = evens<float>(even_a, even_b);
            v[1] = evens<float>(odd_a, odd_b);
            if (j == 1) continue;
            v[2] = odds<float>(even_a, even_b);
            v[3] = odds<float>(odd_a, odd_b);
        }
    }
}

// line[k]: the numbers of a line of tiles in order, first those of the first half of the lanes.
template <int M> FW_INLINE void mix_line(const V* v, V (&line)[M]) {
    constexpr auto all = std::make_index_sequence<n_lanes>{};
    if constexpr (M == 2) {
        zip<float>(v[0], v[1], line[0], line[1], all);
    } else {
        V even_low, even_up, odd_low, odd_up;
        zip<float>(v[0], v[2], even_low, even_up, all);
        zip<float>(v[1], v[3], odd_low, odd_up, all);
        zip<float>(even_low, odd_low, line[0], line[1], all);
        zip<float>(even_up, odd_up, line[2], line[3], all);
    }
}

}  // namespace fw::windows
