#include "conv_winograd.h"

#include <atomic>

#include "conv_edges.h"
#include "gemm_kernel.h"
#include "pool.h"
#include "scratch.h"

namespace fw::windows {
namespace {

constexpr int places = 16;  // of a 4x4 tile

// -- the three small matrices ---------------------------------------------------------------------

// Each takes vectors: one tile, channel or row in each lane.
FW_INLINE void input_line(V a, V b, V c, V d, V* to, int step) {  // B'
    to[0] = a - c;
    to[step] = b + c;
    to[2 * step] = c - b;
    to[3 * step] = b - d;
}

FW_INLINE void input_tile(V (&v)[places]) {  // B' v B
    V w[places];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) input_line(v[i], v[4 + i], v[8 + i], v[12 + i], w + i, 4);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) input_line(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3], v + 4 * i, 1);
}

FW_INLINE void output_tile(const V (&v)[places], V (&to)[4]) {  // A' v A
    V w[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        const V sum = v[4 + i] + v[8 + i], difference = v[4 + i] - v[8 + i];
        w[i] = v[i] + sum;
        w[4 + i] = difference - v[12 + i];
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
        const V *u = w + 4 * i, sum = u[1] + u[2], difference = u[1] - u[2];
        to[2 * i] = u[0] + sum;
        to[2 * i + 1] = difference - u[3];
    }
}

FW_INLINE void gradient_line(V a, V b, V* to, int step) {  // A
    to[0] = a;
    to[step] = a + b;
    to[2 * step] = a - b;
    to[3 * step] = -b;
}

FW_INLINE void gradient_tile(const V (&v)[4], V (&to)[places]) {  // A v A'
    V w[8];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) gradient_line(v[i], v[2 + i], w + i, 2);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) gradient_line(w[2 * i], w[2 * i + 1], to + 4 * i, 1);
}

FW_INLINE void kernel_line(V a, V b, V c, V* to, int step) {  // G
    const V half = splat(0.5f), ends = half * (a + c), middle = half * b;
    to[0] = a;
    to[step] = ends + middle;
    to[2 * step] = ends - middle;
    to[3 * step] = c;
}

FW_INLINE void kernel_tile(const V (&v)[9], V (&to)[places]) {  // G v G'
    V w[12];
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) kernel_line(v[i], v[3 + i], v[6 + i], w + i, 3);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) kernel_line(w[3 * i], w[3 * i + 1], w[3 * i + 2], to + 4 * i, 1);
}

FW_INLINE void kernel_gradient_line(V a, V b, V c, V d, V* to, int step) {  // G'
    const V half = splat(0.5f), sum = half * (b + c);
    to[0] = a + sum;
    to[step] = half * (b - c);
    to[2 * step] = sum + d;
}

FW_INLINE void kernel_gradient(const V (&v)[places], V (&to)[9]) {  // G' v G
    V w[12];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) kernel_gradient_line(v[i], v[4 + i], v[8 + i], v[12 + i], w + i, 4);
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i)
        kernel_gradient_line(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3], to + 3 * i, 1);
}

// -- halves of vectors ----------------------------------------------------------------------------

typedef float HalfVector __attribute__((vector_size(FW_BYTES / 2)));

template <size_t... I> FW_INLINE V join(HalfVector a, HalfVector b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, I...);
}
FW_INLINE V load_halves(const float* low, const float* high) {
    HalfVector a, b;
    std::memcpy(&a, low, sizeof a);
    std::memcpy(&b, high, sizeof b);
    return join(a, b, std::make_index_sequence<n_lanes>{});
}
FW_INLINE void store_halves(float* low, float* high, V v) {
    std::memcpy(low, &v, sizeof v / 2);
    std::memcpy(high, reinterpret_cast<const char*>(&v) + sizeof v / 2, sizeof v / 2);
}

// -- tiles of images ------------------------------------------------------------------------------

constexpr int half = n_lanes / 2;

// A vector of tiles: two stretches of neighbours, each of a line of tiles.
struct Piece {
    struct Part {
        int64_t image, line, column, count;
        int64_t from[4];    // where the lines of its tiles begin in a channel's plane
        Inside read[4][2];  // of each line, and two numbers further on
    } part[2];
    int64_t at;  // in the order of all tiles
};

// The tiles of a batch of images: `before` numbers before them, `size` wide and high, two apart.
struct Tiling {
    int64_t high, wide;                       // tiles of an image
    int64_t in_high, in_wide, channels;       // of the image
    int64_t before_high, before_wide, size;

    int64_t each() const { return high * wide; }

    // Tiles `first` to `first + count`.
    void cut(std::vector<Piece>& pieces, int64_t first, int64_t count) const {
        pieces.clear();
        for (int64_t at = 0; at < count;) {
            Piece& piece = pieces.emplace_back();
            piece.at = at;
            for (Piece::Part& part : piece.part) {
                const int64_t line = (first + at) / wide;
                part.image = line / high, part.line = line % high, part.column = (first + at) % wide;
                part.count = std::min({count - at, wide - part.column, int64_t(half)});
                if (part.count > 0) place(part);
                at += part.count;
            }
        }
    }

  private:
    void place(Piece::Part& part) const {
        const int64_t left = 2 * part.column - before_wide;
        for (int64_t i = 0; i < size; ++i) {
            const int64_t line = 2 * part.line - before_high + i;
            const bool exists = line >= 0 && line < in_high;
            part.from[i] = (part.image * channels * in_high + (exists ? line : 0)) * in_wide + left;
            for (int64_t j = 0; exists && j < size / 2; ++j)
                part.read[i][j].set(std::max<int64_t>(-left - 2 * j, 0),
                                    std::clamp<int64_t>(in_wide - left - 2 * j, 0, n_lanes));
        }
    }
};

// The numbers of line i of all tiles of a piece: v[j] is the j-th of each.
template <int Size> FW_INLINE void load_line(const float* from, const Piece& piece, int i, V* v) {
    const Piece::Part &a = piece.part[0], &b = piece.part[1];
#pragma GCC unroll 2
    for (int j = 0; j < Size / 2; ++j) {
        const V low = a.read[i][j].of(from + a.from[i] + 2 * j), up = b.read[i][j].of(from + b.from[i] + 2 * j);
        v[2 * j] = evens(low, up);
        v[2 * j + 1] = odds(low, up);
    }
}

// to[place * step + tile] of one channel; some rubbish behind the last tile
FW_INLINE void store_places(float* to, int64_t step, const Piece& piece, const V (&v)[places]) {
    to += piece.at;
    const int64_t second = piece.part[0].count;
#pragma GCC unroll 16
    for (int i = 0; i < places; ++i, to += step) store_halves(to, to + second, v[i]);
}

void input_tiles(float* to, int64_t step, const float* from, const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
        V v[places];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) load_line<4>(from, piece, i, v + 4 * i);
        input_tile(v);
        store_places(to, step, piece, v);
    }
}

void gradient_tiles(float* to, int64_t step, const float* from, const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
        V v[4], w[places];
        load_line<2>(from, piece, 0, v);
        load_line<2>(from, piece, 1, v + 2);
        gradient_tile(v, w);
        store_places(to, step, piece, w);
    }
}

Tiling input_tiling(const ConvShape& s) {
    const ConvAxis &y = s.axis[1], &x = s.axis[2];
    return {(y.out + 1) / 2, (x.out + 1) / 2, y.in, x.in, s.channels, y.padding, x.padding, 4};
}

Tiling output_tiling(const ConvShape& s) {
    const ConvAxis &y = s.axis[1], &x = s.axis[2];
    return {(y.out + 1) / 2, (x.out + 1) / 2, y.out, x.out, s.rows, 0, 0, 2};
}

// -- forward --------------------------------------------------------------------------------------

class Forward {
  public:
    Forward(const ConvShape& shape, const Kernels& w, const float* bias)
        : s(shape), w(w), bias(bias), tiling(input_tiling(shape)) {
        const int64_t heights = (s.rows + tile_rows - 1) / tile_rows;
        row_tile = (s.rows + heights - 1) / heights;
        const int64_t each = 4 * threads(), unit = tile_cols<float>;
        const int64_t most = cache / (places * int64_t(sizeof(float)) * s.channels);
        const int64_t share = (s.n * tiling.each() + each - 1) / each;
        width = std::clamp(std::min(most, share) / unit * unit, unit, 8 * unit);
        step = s.channels * width + n_lanes;  // lines of all places would share sets of the cache otherwise
    }
    int64_t weights() const { return places * s.rows * s.channels; }

    // For every tile of rows and every place its weights, channel by channel.
    void take_weights(float* to) {
        packed = to;
        constexpr int64_t block = 16;
        const int64_t count = (s.rows + row_tile - 1) / row_tile, blocks = (s.channels + block - 1) / block;
        parallel(count * blocks, 4, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t row = i / blocks * row_tile, height = std::min(row_tile, s.rows - row);
                const int64_t first = i % blocks * block, last = std::min(first + block, s.channels);
                for (int64_t c = first; c < last; ++c)
                    for (int64_t r = 0; r < height; r += n_lanes)
                        pack(to + row * places * s.channels + c * height + r, s.channels * height, row + r, c,
                             std::min<int64_t>(n_lanes, height - r));
            }
        });
    }

    void run(const float* from, float* to) const {
        const int64_t all = s.n * tiling.each();
        parallel((all + width - 1) / width, 1, [&](int64_t begin, int64_t end) {
            std::vector<Piece> pieces;
            for (int64_t i = begin; i < end; ++i) {
                const int64_t count = std::min(width, all - i * width);
                tiling.cut(pieces, i * width, count);
                block(from, to, pieces, count);
            }
        });
    }

  private:
    static constexpr int64_t cache = 512 << 10;  // bytes of a block's tiles of x
    const ConvShape& s;
    Kernels w;
    const float* bias;
    Tiling tiling;
    int64_t row_tile, width, step;
    const float* packed = nullptr;

    void pack(float* to, int64_t to_step, int64_t row, int64_t c, int64_t count) const {
        float aside[9][n_lanes] = {};
        for (int64_t i = 0; i < count; ++i) {
            const float* from = w.data + (row + i) * w.row + c * w.channel;
            for (int t = 0; t < 9; ++t) aside[t][i] = from[w.turned ? 8 - t : t];
        }
        V v[9], u[places];
        for (int t = 0; t < 9; ++t) v[t] = load(aside[t]);
        kernel_tile(v, u);
        for (int i = 0; i < places; ++i) store_first(to + i * to_step, u[i], count);
    }

    void block(const float* from, float* to, const std::vector<Piece>& pieces, int64_t count) const {
        float* x = scratch<float>(0, places * step + n_lanes);
        for (int64_t c = 0; c < s.channels; ++c)
            input_tiles(x + c * width, step, from + c * s.in_pixels(), pieces);
        const int64_t place = row_tile * width + n_lanes;
        float* sums = scratch<float>(1, places * place + n_lanes);
        for (int64_t row = 0; row < s.rows; row += row_tile) {
            const int64_t height = std::min(row_tile, s.rows - row);
            for (int i = 0; i < places; ++i) {
                Tile<float> t;
                t.a = packed + (row * places + i * height) * s.channels;
                t.a_row = 1, t.a_step = height;
                t.b_step = t.c_row = width;
                t.k = s.channels, t.add = false;
                for (int64_t j = 0; j < count; j += tile_cols<float>) {
                    const int64_t rest = (count - j + n_lanes - 1) / n_lanes * n_lanes;
                    t.cols = int(std::min<int64_t>(tile_cols<float>, rest));
                    t.b = x + i * step + j;
                    t.c = sums + i * place + j;
                    run_tile(int(height), t);
                }
            }
            for (int64_t i = 0; i < height; ++i) give(to, sums + i * width, place, row + i, pieces);
        }
    }

    // The pixels of one row of the result.
    void give(float* to, const float* sums, int64_t place, int64_t row,
              const std::vector<Piece>& pieces) const {
        const V shift = splat(bias ? bias[row] : 0.0f);
        for (const Piece& piece : pieces) {
            V v[places], y[4];
            const float *low = sums + piece.at, *up = low + piece.part[0].count;
#pragma GCC unroll 16
            for (int i = 0; i < places; ++i) v[i] = load_halves(low + i * place, up + i * place);
            output_tile(v, y);
            for (V& u : y) u += shift;
            for (int i = 0; i < 2; ++i) {
                V line[2];
                zip<float>(y[2 * i], y[2 * i + 1], line[0], line[1], std::make_index_sequence<n_lanes>{});
                for (int part = 0; part < 2; ++part) give_line(to, piece.part[part], row, i, line[part]);
            }
        }
    }

    FW_INLINE void give_line(float* to, const Piece::Part& part, int64_t row, int i, V v) const {
        const int64_t high = s.axis[1].out, wide = s.axis[2].out, line = 2 * part.line + i;
        if (line >= high || part.count == 0) return;
        to += ((part.image * s.rows + row) * high + line) * wide + 2 * part.column;
        store_first(to, v, std::min(2 * part.count, wide - 2 * part.column));
    }
};

std::atomic<bool> wanted{true};

}  // namespace

bool winograd_suits(const ConvShape& s, int64_t least_tiles) {
    const ConvAxis& depth = s.axis[0];
    if (!wanted || s.groups != 1 || depth.in != 1 || depth.kernel != 1 || depth.padding != 0) return false;
    int64_t tiles = s.n;
    for (int d = 1; d < conv_dims; ++d) {
        const ConvAxis& a = s.axis[d];
        if (a.kernel != 3 || a.stride != 1 || a.dilation != 1 || a.padding > 2) return false;
        tiles *= (a.out + 1) / 2;
    }
    constexpr int64_t least_channels = n_lanes == 16 ? 16 : 32;  // else the transforms cost more than they save
    return s.channels >= least_channels && s.rows >= least_channels && tiles >= least_tiles;
}

ConvShape gradient_shape(const ConvShape& s) {
    ConvShape back = s;
    std::swap(back.channels, back.rows);
    for (ConvAxis& a : back.axis) {
        std::swap(a.in, a.out);
        a.padding = a.kernel - 1 - a.padding;
    }
    return back;
}

void winograd(const ConvShape& s, const float* x, const Kernels& w, const float* bias, float* y) {
    Forward forward(s, w, bias);
    Buffer<float> weights(forward.weights());
    Release release(s.flops());
    forward.take_weights(weights.data);
    forward.run(x, y);
}

// -- gradient with respect to the kernels ---------------------------------------------------------

namespace {

class WeightGradient {
  public:
    explicit WeightGradient(const ConvShape& shape)
        : s(shape), in(input_tiling(shape)), out(output_tiling(shape)) {
        const int64_t bytes = places * (s.channels + s.rows) * int64_t(sizeof(float));
        count = std::min(std::clamp<int64_t>(cache / bytes, least, most), s.n * in.each());
        pitch = (count / n_lanes + 1) * n_lanes + n_lanes;
        if (pitch / n_lanes % 2 == 0) pitch += n_lanes;  // rows would share sets of the cache otherwise
    }
    int64_t x_size() const { return places * s.channels * pitch + n_lanes; }
    int64_t y_size() const { return places * s.rows * pitch + n_lanes; }
    int64_t sum_size() const { return places * s.rows * s.channels; }

    void run(const float* x, const float* y, float* x_tiles, float* y_tiles, float* sums) const {
        std::vector<Piece> pieces;
        for (int64_t first = 0; first < s.n * in.each(); first += count) {
            const int64_t now = std::min(count, s.n * in.each() - first);
            in.cut(pieces, first, now);
            take(x_tiles, s.channels, x, s.in_pixels(), pieces, input_tiles);
            out.cut(pieces, first, now);
            take(y_tiles, s.rows, y, s.pixels(), pieces, gradient_tiles);
            multiply(sums, x_tiles, y_tiles, now, first > 0);
        }
    }

    void finish(float* w, const float* sums) const {
        parallel(s.rows, 1 + (1 << 10) / s.channels, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row)
                for (int64_t c = 0; c < s.channels; c += n_lanes)
                    kernels(w + (row * s.channels + c) * 9, sums + row * s.channels + c,
                            std::min<int64_t>(n_lanes, s.channels - c));
        });
    }

  private:
    static constexpr int64_t cache = 3 << 20;  // bytes of both factors, in the caches of all cores
    static constexpr int64_t least = 128, most = 512;  // tiles at once; more would lose digits
    const ConvShape& s;
    Tiling in, out;
    int64_t count, pitch;

    // For every place and channel the tiles side by side.
    template <class F>
    void take(float* to, int64_t channels, const float* from, int64_t plane,
              const std::vector<Piece>& pieces, F&& tiles) const {
        const int64_t work = int64_t(pieces.size()) * n_lanes * places;
        parallel(channels, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end) {
            for (int64_t c = begin; c < end; ++c) tiles(to + c * pitch, channels * pitch, from + c * plane, pieces);
        });
    }

    // For every place, sums[row, channel] of y_tiles[row, tile] * x_tiles[channel, tile].
    void multiply(float* sums, const float* x_tiles, const float* y_tiles, int64_t tiles, bool add) const {
        constexpr int64_t wide = tile_cols<float>;
        const int64_t columns = (s.channels + wide - 1) / wide, heights = (s.rows + tile_rows - 1) / tile_rows;
        const int64_t height = (s.rows + heights - 1) / heights;
        parallel(places * columns, 1, [&](int64_t begin, int64_t end) {
            float* panel = scratch<float>(0, (tiles + n_lanes) * wide);
            for (int64_t i = begin; i < end; ++i) {
                const int64_t place = i / columns, c = i % columns * wide;
                Tile<float> t;
                t.cols = int(std::min(wide, s.channels - c));
                const int width = (t.cols + n_lanes - 1) / n_lanes * n_lanes;
                pack_panel(panel, width, x_tiles + (place * s.channels + c) * pitch, t.cols, pitch, 1, tiles);
                t.b = panel, t.b_step = width, t.k = tiles, t.add = add;
                t.a_row = pitch, t.a_step = 1, t.c_row = s.channels;
                for (int64_t row = 0; row < s.rows; row += height) {
                    t.a = y_tiles + (place * s.rows + row) * pitch;
                    t.c = sums + (place * s.rows + row) * s.channels + c;
                    run_tile(int(std::min(height, s.rows - row)), t);
                }
            }
        });
    }

    void kernels(float* to, const float* sums, int64_t n) const {
        V v[places], taps[9];
        for (int i = 0; i < places; ++i) v[i] = load_first(sums + i * s.rows * s.channels, n);
        kernel_gradient(v, taps);
        float aside[9][n_lanes];
        for (int t = 0; t < 9; ++t) store(aside[t], taps[t]);
        for (int64_t i = 0; i < n; ++i)
            for (int t = 0; t < 9; ++t) *to++ = aside[t][i];
    }
};

}  // namespace

void winograd_weights(const ConvShape& s, const float* x, const float* y, float* w) {
    const WeightGradient gradient(s);
    Buffer<float> x_tiles(gradient.x_size()), y_tiles(gradient.y_size()), sums(gradient.sum_size());
    Release release(s.flops());
    gradient.run(x, y, x_tiles.data, y_tiles.data, sums.data);
    gradient.finish(w, sums.data);
}

FW_BIND(m) {
    m.def("use_winograd", [](bool on) { return wanted.exchange(on); }, nb::arg("on"));
}

}  // namespace fw::windows
