#include "conv/conv_winograd.h"

#include <atomic>

#include "conv/conv_winograd_tiles.h"
#include "gemm/gemm_kernel.h"
#include "base/pool.h"
#include "base/scratch.h"
#include "pooling/largest.h"

namespace fw::windows {
namespace {

template <int M> constexpr int places = (M + 2) * (M + 2);  // of a tile

bool three_by_three(const ConvShape& s, int64_t least_tiles) {
    const ConvAxis& depth = s.axis[0];
    if (s.groups != 1 || depth.in != 1 || depth.kernel != 1 || depth.padding != 0) return false;
    int64_t tiles = s.n;
    for (int d = 1; d < conv_dims; ++d) {
        const ConvAxis& a = s.axis[d];
        if (a.kernel != 3 || a.stride != 1 || a.dilation != 1 || a.padding > 2) return false;
        tiles *= (a.out + 1) / 2;
    }
    return tiles >= least_tiles;
}

constexpr int64_t least_channels = n_lanes == 16 ? 16 : 32;  // else the transforms cost more than they save
// with vectors of channels, whose products are quick ones also if they are short
constexpr int64_t few_channels = 16, few_rows = 32, wide_pixels = 56, more_rows = 48, most_channels = 128, few_tiles = 64;

bool has_few_channels(const ConvShape& s) {
    if (!has_channel_tiles || s.channels < few_channels || s.channels >= least_channels) return false;
    return s.rows % channel_cols<float> == 0 && s.rows >= (s.axis[2].out > wide_pixels ? more_rows : few_rows);
}

// Whether vectors are of channels: then the largest of squares are found in registers, and lines of few tiles leave no lanes
// empty. The bits are the same either way.
bool by_channels(const ConvShape& s, bool squares) {
    if (has_few_channels(s)) return true;
    if (!has_channel_tiles || s.rows % channel_cols<float> != 0 || s.channels >= most_channels) return false;
    if (squares) return true;
    const int64_t wide = (s.axis[2].out + 1) / 2, tiles = s.n * wide * ((s.axis[1].out + 1) / 2);
    return wide % (n_lanes / 2) != 0 && (s.channels < 2 * few_channels || tiles <= few_tiles);
}

// to[place * step + tile] of one channel; some rubbish behind the last tile
template <int M>
FW_INLINE void store_places(float* to, int64_t step, const Piece<M>& piece, const V (&v)[places<M>]) {
    to += piece.at;
    const int64_t second = piece.part[0].count;
    if (second == n_lanes / 2) {
#pragma GCC unroll 36
        for (int i = 0; i < places<M>; ++i, to += step) store(to, v[i]);
        return;
    }
#pragma GCC unroll 36
    for (int i = 0; i < places<M>; ++i, to += step) store_halves(to, to + second, v[i]);
}

template <int M, class T>
void input_tiles(float* to, int64_t step, const T* from, const std::vector<Piece<M>>& pieces) {
    for (const Piece<M>& piece : pieces) {
        V v[places<M>], w[places<M>];
#pragma GCC unroll 6
        for (int i = 0; i < M + 2; ++i) load_line<M, M + 2>(from, piece, i, v + (M + 2) * i);
        both_sides<M + 2, M + 2>(typename Matrices<M>::Input{}, v, w);
        store_places<M>(to, step, piece, w);
    }
}

void gradient_tiles(float* to, int64_t step, const float* from, const std::vector<Piece<2>>& pieces) {
    for (const Piece<2>& piece : pieces) {
        V v[4], w[places<2>];
        load_line<2, 2>(from, piece, 0, v);
        load_line<2, 2>(from, piece, 1, v + 2);
        both_sides<2, 4>(Matrices<2>::Gradient{}, v, w);
        store_places<2>(to, step, piece, w);
    }
}

template <int M> Tiling<M> input_tiling(const ConvShape& s) {
    const ConvAxis &y = s.axis[1], &x = s.axis[2];
    return {(y.out + M - 1) / M, (x.out + M - 1) / M, y.in, x.in, s.channels, y.padding, x.padding, M + 2};
}

Tiling<2> output_tiling(const ConvShape& s) {
    const ConvAxis &y = s.axis[1], &x = s.axis[2];
    return {(y.out + 1) / 2, (x.out + 1) / 2, y.out, x.out, s.rows, 0, 0, 2};
}

// -- forward --------------------------------------------------------------------------------------

template <int M> class Forward {
  public:
    explicit Forward(const ConvShape& shape, bool squares = false)
        : s(shape), tiling(input_tiling<M>(shape)), squares(squares) {
        if (M == 2 && by_channels(s, squares)) {
            constexpr int64_t most = 28;  // tiles at once, in whole lines where these are short
            const int64_t lines = ceil_div(s.n * tiling.high, threads() > 1 ? 4 * threads() : 1);
            row_tile = channel_cols<float>;
            width = tiling.wide > most ? ceil_div(tiling.wide, ceil_div(tiling.wide, most))
                                       : tiling.wide * std::min(most / tiling.wide, lines);
            step = s.channels * width + n_lanes;
            for (int64_t c = 0; c < s.channels; ++c) offset.push_back(c * width);
            return;
        }
        const int64_t heights = (s.rows + tile_rows - 1) / tile_rows;
        row_tile = (s.rows + heights - 1) / heights;
        const int64_t each = 4 * threads(), unit = tile_cols<float>;
        const int64_t most = cache / (places<M> * int64_t(sizeof(float)) * s.channels);
        const int64_t share = (s.n * tiling.each() + each - 1) / each;
        width = std::clamp(std::min(most, share) / unit * unit, unit, 8 * unit);
        step = s.channels * width + n_lanes;  // lines of all places<M> would share sets of the cache otherwise
    }
    int64_t weights() const { return places<M> * s.rows * s.channels; }
    int64_t rows_at_once() const { return row_tile; }

    // For every tile of rows and every place its weights, channel by channel.
    void pack(const Kernels& w, float* to) const {
        constexpr int64_t block = 16;
        const int64_t count = (s.rows + row_tile - 1) / row_tile, blocks = (s.channels + block - 1) / block;
        parallel(count * blocks, 4, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t row = i / blocks * row_tile, height = std::min(row_tile, s.rows - row);
                const int64_t first = i % blocks * block, last = std::min(first + block, s.channels);
                for (int64_t c = first; c < last; ++c)
                    for (int64_t r = 0; r < height; r += n_lanes)
                        pack(w, to + row * places<M> * s.channels + c * height + r, s.channels * height, row + r, c,
                             std::min<int64_t>(n_lanes, height - r));
            }
        });
    }

    template <class T> void run(const float* weights, const Epilogue<float>& then, const T* from, T* to) {
        packed = weights, end = then;
        const int64_t all = s.n * tiling.each();
        parallel((all + width - 1) / width, 1, [&](int64_t begin, int64_t end) {
            std::vector<Piece<M>> pieces;
            for (int64_t i = begin; i < end; ++i) {
                const int64_t count = std::min(width, all - i * width);
                tiling.cut(pieces, i * width, count);
                if constexpr (M == 2 && has_channel_tiles && sizeof(T) == 4)
                    if (!offset.empty()) {
                        channel_block(from, to, pieces, i * width, count);
                        continue;
                    }
                block(from, to, pieces, count);
            }
        });
    }

  private:
    static constexpr int64_t cache = 512 << 10;  // bytes of a block's tiles of x
    const ConvShape& s;
    Epilogue<float> end;
    Tiling<M> tiling;
    int64_t row_tile, width, step;
    const bool squares;
    std::vector<int64_t> offset;  // of channels, where vectors are of channels of the result
    const float* packed = nullptr;

    void pack(const Kernels& w, float* to, int64_t to_step, int64_t row, int64_t c, int64_t count) const {
        float aside[9][n_lanes] = {};
        for (int64_t i = 0; i < count; ++i) {
            const float* from = w.data + (row + i) * w.row + c * w.channel;
            for (int t = 0; t < 9; ++t) aside[t][i] = from[w.turned ? 8 - t : t];
        }
        V v[9], u[places<M>];
        for (int t = 0; t < 9; ++t) v[t] = load(aside[t]);
        both_sides<3, M + 2>(typename Matrices<M>::Kernel{}, v, u);
        for (int i = 0; i < places<M>; ++i) store_first(to + i * to_step, u[i], count);
    }

    template <class T>
    void block(const T* from, T* to, const std::vector<Piece<M>>& pieces, int64_t count) const {
        float* x = scratch<float>(0, places<M> * step + n_lanes);
        for (int64_t c = 0; c < s.channels; ++c)
            input_tiles<M>(x + c * width, step, from + c * s.in_pixels(), pieces);
        const int64_t place = row_tile * width + n_lanes;
        float* sums = scratch<float>(1, places<M> * place + n_lanes);
        for (int64_t row = 0; row < s.rows; row += row_tile) {
            const int64_t height = std::min(row_tile, s.rows - row);
            for (int i = 0; i < places<M>; ++i) {
                Tile<float> t;
                t.a = packed + (row * places<M> + i * height) * s.channels;
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

    // Some tiles from `first` on, in vectors of channels.
    void channel_block(const float* from, float* to, const std::vector<Piece<M>>& pieces, int64_t first, int64_t count) const {
        constexpr int64_t cols = channel_cols<float>, each = channel_pixels;
        float* x = scratch<float>(0, places<M> * step + n_lanes);
        for (int64_t c = 0; c < s.channels; ++c) input_tiles<M>(x + c * width, step, from + c * s.in_pixels(), pieces);
        const int64_t line = (2 * width + n_lanes) * cols, place = (width + 1) * cols;
        float *lines = scratch<float>(1, 2 * line + places<M> * place), *sums = lines + 2 * line;
        ChannelTile<float> t{};
        t.k = s.channels, t.offset = offset.data(), t.a = packed;
        for (int64_t row = 0; row < s.rows; row += cols) {
            for (int i = 0; i < places<M>; ++i, t.a += cols * s.channels) {
                for (int64_t left = ceil_div(count, each), j = 0, now; left > 0; --left, j += now) {
                    const float* b[each];
                    now = (count - j) / left;
                    for (int64_t q = 0; q < now; ++q) b[q] = x + i * step + j + q;
                    t.b = b, t.c = sums + i * place + j * cols;
                    channel_tiles<float>.at[now - 1](t);
                }
            }
            for (int64_t j = 0; j < count; ++j)
                for (int64_t part = 0; part < cols; part += n_lanes)
                    finish_tile(sums + j * cols + part, place, row + part, lines + part, line, j);
            give_tiles(lines, line, to + row * (squares ? tiling.each() : s.pixels()), first, count);
        }
    }

    // The pixels of one tile, in lines of tiles; or the largest of them.
    FW_INLINE void finish_tile(const float* sums, int64_t place, int64_t row, float* lines, int64_t line, int64_t tile) const {
        constexpr int64_t cols = channel_cols<float>;
        V v[places<M>], y[M * M];
#pragma GCC unroll 16
        for (int i = 0; i < places<M>; ++i) v[i] = load(sums + i * place);
        both_sides<M + 2, M>(typename Matrices<M>::Output{}, v, y);
        const V shift = end.bias ? load(end.bias + row) : V{};
        for (V& u : y) u = end.scaled(u + shift, row);
        if (squares) return store(lines + tile * cols, end.clip(largest_of<float>(y[0], y[1], y[2], y[3])));
        for (int i = 0; i < M * M; ++i) store(lines + i / M * line + (M * tile + i % M) * cols, end.clip(y[i]));
    }

    // Lines of tiles from `first` on go where some channels of the first image's result begin.
    void give_tiles(const float* lines, int64_t line, float* to, int64_t first, int64_t count) const {
        constexpr int64_t cols = channel_cols<float>;
        const int64_t high = s.axis[1].out, wide = s.axis[2].out, each = tiling.each();
        for (int64_t at = 0, now; at < count; at += now) {
            const int64_t image = (first + at) / each, tile = (first + at) % each;
            if (squares) {
                now = std::min(count - at, each - tile);
                give_lines(lines + at * cols, now, to + image * s.rows * each + tile, each);
                continue;
            }
            const int64_t column = tile % tiling.wide, top = M * (tile / tiling.wide);
            now = std::min(count - at, tiling.wide - column);
            for (int64_t i = 0; i < M && top + i < high; ++i)
                give_lines(lines + i * line + M * at * cols, std::min(M * now, wide - M * column),
                           to + (image * s.rows * high + top + i) * wide + M * column, s.pixels());
        }
    }

    // The pixels of one row of the result.
    template <class T>
    void give(T* to, const float* sums, int64_t place, int64_t row, const std::vector<Piece<M>>& pieces) const {
        const V shift = splat(end.start(row));
        for (const Piece<M>& piece : pieces) {
            V v[places<M>], y[M * M];
            const float *low = sums + piece.at, *up = low + piece.part[0].count;
#pragma GCC unroll 36
            for (int i = 0; i < places<M>; ++i) v[i] = load_halves(low + i * place, up + i * place);
            both_sides<M + 2, M>(typename Matrices<M>::Output{}, v, y);
            for (V& u : y) u = end(u + shift, row);
            for (int i = 0; i < M; ++i) {
                V line[M];
                mix_line<M>(y + M * i, line);
                for (int part = 0; part < 2; ++part)
                    give_line(to, piece.part[part], row, i, line + part * (M / 2));
            }
        }
    }

    template <class T>
    FW_INLINE void give_line(T* to, const typename Piece<M>::Part& part, int64_t row, int i, const V* v) const {
        const int64_t high = s.axis[1].out, wide = s.axis[2].out, line = M * part.line + i;
        if (line >= high || part.count == 0) return;
        to += ((part.image * s.rows + row) * high + line) * wide + M * part.column;
        int64_t rest = std::min(M * part.count, wide - M * part.column);
        for (int k = 0; k < M / 2 && rest > 0; ++k, rest -= n_lanes)
            store_first(to + k * n_lanes, v[k], std::min<int64_t>(rest, n_lanes));
    }
};

template <class T> constexpr int side = sizeof(T) == 4 ? 2 : 4;  // pixels of a tile

std::atomic<bool> wanted{true};

}  // namespace

bool winograd_suits(const ConvShape& s, int64_t least_tiles) {
    return wanted && s.channels >= least_channels && s.rows >= least_channels && three_by_three(s, least_tiles);
}

bool winograd_of_few(const ConvShape& s, int64_t least_tiles) {
    return wanted && has_few_channels(s) && three_by_three(s, least_tiles);
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

template <class T>
void winograd(const ConvShape& s, const T* x, const Kernels& w, const Epilogue<float>& end, T* y) {
    Forward<side<T>> forward(s);
    Buffer<float> weights(forward.weights());
    forward.pack(w, weights.data);
    forward.run(weights.data, end, x, y);
}

bool winograd_pools(const ConvShape& s) {
    return by_channels(s, true) && s.axis[1].out % 2 == 0 && s.axis[2].out % 2 == 0;
}

int64_t winograd_packed(const ConvShape& s) { return Forward<2>(s).weights(); }
int64_t winograd_rows(const ConvShape& s, bool squares) { return Forward<2>(s, squares).rows_at_once(); }
void winograd_pack(const ConvShape& s, const Kernels& w, float* to, bool squares) { Forward<2>(s, squares).pack(w, to); }
void winograd(const ConvShape& s, const float* x, const float* packed, const Epilogue<float>& end, float* y, bool squares) {
    Forward<2>(s, squares).run(packed, end, x, y);
}

template void winograd(const ConvShape&, const float*, const Kernels&, const Epilogue<float>&, float*);
#if defined(FW_AVX512)
template void winograd(const ConvShape&, const Bf16*, const Kernels&, const Epilogue<float>&, Bf16*);
#endif

// -- gradient with respect to the kernels ---------------------------------------------------------

namespace {

class WeightGradient {
  public:
    explicit WeightGradient(const ConvShape& shape)
        : s(shape), in(input_tiling<2>(shape)), out(output_tiling(shape)) {
        const int64_t bytes = places<2> * (s.channels + s.rows) * int64_t(sizeof(float));
        count = std::min(std::clamp<int64_t>(cache / bytes, least, most), s.n * in.each());
        pitch = (count / n_lanes + 1) * n_lanes + n_lanes;
        if (pitch / n_lanes % 2 == 0) pitch += n_lanes;  // rows would share sets of the cache otherwise
    }
    int64_t x_size() const { return places<2> * s.channels * pitch + n_lanes; }
    int64_t y_size() const { return places<2> * s.rows * pitch + n_lanes; }
    int64_t sum_size() const { return places<2> * s.rows * s.channels; }

    void run(const float* x, const float* y, float* x_tiles, float* y_tiles, float* sums) const {
        std::vector<Piece<2>> pieces;
        for (int64_t first = 0; first < s.n * in.each(); first += count) {
            const int64_t now = std::min(count, s.n * in.each() - first);
            in.cut(pieces, first, now);
            take(x_tiles, s.channels, x, s.in_pixels(), pieces, input_tiles<2, float>);
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
    Tiling<2> in, out;
    int64_t count, pitch;

    // For every place and channel the tiles side by side.
    template <class F>
    void take(float* to, int64_t channels, const float* from, int64_t plane,
              const std::vector<Piece<2>>& pieces, F&& tiles) const {
        const int64_t work = int64_t(pieces.size()) * n_lanes * places<2>;
        parallel(channels, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end) {
            for (int64_t c = begin; c < end; ++c) tiles(to + c * pitch, channels * pitch, from + c * plane, pieces);
        });
    }

    // For every place, sums[row, channel] of y_tiles[row, tile] * x_tiles[channel, tile].
    void multiply(float* sums, const float* x_tiles, const float* y_tiles, int64_t tiles, bool add) const {
        constexpr int64_t wide = tile_cols<float>;
        const int64_t columns = (s.channels + wide - 1) / wide, heights = (s.rows + tile_rows - 1) / tile_rows;
        const int64_t height = (s.rows + heights - 1) / heights;
        parallel(places<2> * columns, 1, [&](int64_t begin, int64_t end) {
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
        V v[places<2>], taps[9];
        for (int i = 0; i < places<2>; ++i) v[i] = load_first(sums + i * s.rows * s.channels, n);
        both_sides<4, 3>(Matrices<2>::KernelGradient{}, v, taps);
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
    gradient.run(x, y, x_tiles.data, y_tiles.data, sums.data);
    gradient.finish(w, sums.data);
}

bool use_winograd(bool on) { return wanted.exchange(on); }

}  // namespace fw::windows
