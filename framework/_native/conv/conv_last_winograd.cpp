// Minimal filtering (conv_winograd.h) of images whose channels lie side by side: vectors are of channels from the image to
// the result, so that no tile is turned.
#include "conv/conv_last.h"
#include "conv/conv_last_tile.h"
#include "conv/conv_winograd_tiles.h"

namespace fw::windows {
namespace {

constexpr int places16 = 16;

int64_t whole_vectors(int64_t n) { return (n + n_lanes - 1) / n_lanes * n_lanes; }
// From tile to tile, of n channels: tiles a power of two apart would share sets of the first cache.
int64_t pitch_of(int64_t n) {
    const int64_t vectors = whole_vectors(n) / n_lanes;
    return (vectors >= 4 ? vectors | 1 : vectors) * n_lanes;
}

// Tiles of images: `size` by `size` pixels, two apart, the first `before` pixels before the image.
struct TileGrid {
    int64_t high, wide;  // of an image
    int64_t in_high, in_wide, channels;
    int64_t before_high, before_wide;

    int64_t each() const { return high * wide; }

    // v[i * Size + j]: a vector of channels of pixel (i, j) of a tile; 0 outside.
    template <int Size> FW_INLINE void load_tile(const float* image, int64_t tile, int64_t n, V (&v)[Size * Size]) const {
        const int64_t top = 2 * (tile / wide) - before_high, left = 2 * (tile % wide) - before_wide;
        const float* from = image + (top * in_wide + left) * channels;
        if (top >= 0 && left >= 0 && top + Size <= in_high && left + Size <= in_wide) {
#pragma GCC unroll 4
            for (int i = 0; i < Size; ++i)
#pragma GCC unroll 4
                for (int j = 0; j < Size; ++j) v[i * Size + j] = load_first(from + (i * in_wide + j) * channels, n);
            return;
        }
#pragma GCC unroll 4
        for (int i = 0; i < Size; ++i)
#pragma GCC unroll 4
            for (int j = 0; j < Size; ++j) {
                const bool inside = uint64_t(top + i) < uint64_t(in_high) && uint64_t(left + j) < uint64_t(in_wide);
                v[i * Size + j] = inside ? load_first(from + (i * in_wide + j) * channels, n) : V{};
            }
    }

    // to[place * step + tile * columns + channel], of tiles [first, first + count) of all images
    template <int Size, class Line>
    void transform(const float* x, int64_t first, int64_t count, float* to, int64_t step, int64_t columns) const {
        for (int64_t i = 0; i < count; ++i, to += columns) {
            const float* image = x + (first + i) / each() * in_high * in_wide * channels;
            for (int64_t c = 0; c < channels; c += n_lanes) {
                V v[Size * Size], w[places16];
                load_tile<Size>(image + c, (first + i) % each(), std::min<int64_t>(n_lanes, channels - c), v);
                both_sides<Size, 4>(Line{}, v, w);
#pragma GCC unroll 16
                for (int k = 0; k < places16; ++k) store(to + k * step + c, w[k]);
            }
        }
    }
};

TileGrid input_tiles_of(const ConvShape& s) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    return {(h.out + 1) / 2, (v.out + 1) / 2, h.in, v.in, s.channels, h.padding, v.padding};
}
TileGrid output_tiles_of(const ConvShape& s) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    return {(h.out + 1) / 2, (v.out + 1) / 2, h.out, v.out, s.rows, 0, 0};
}

// For each block of rows and every place the weights, channel by channel.
struct PackedTiles {
    const ConvShape& s;
    const int64_t columns = whole_vectors(s.rows), blocks = (s.rows + row_block - 1) / row_block;

    int64_t size() const { return places16 * columns * s.channels; }
    int64_t width(int64_t block) const { return std::min(row_block, columns - block * row_block); }

    void pack(const TapKernels& w, bool turned, float* to) const {
        parallel(blocks * s.channels, 1 + 128 / row_block, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t block = i / s.channels, c = i % s.channels;
                for (int64_t part = 0; part < width(block); part += n_lanes) {
                    const int64_t row = block * row_block + part, n = std::clamp<int64_t>(s.rows - row, 0, n_lanes);
                    float aside[9][n_lanes] = {};
                    for (int t = 0; t < 9; ++t) {
                        const float* from = w.data + row * w.row + c * w.channel + (turned ? 8 - t : t) * w.tap;
                        for (int64_t k = 0; k < n; ++k) aside[t][k] = from[k * w.row];
                    }
                    V v[9], u[places16];
                    for (int t = 0; t < 9; ++t) v[t] = load(aside[t]);
                    both_sides<3, 4>(Matrices<2>::Kernel{}, v, u);
                    float* at = to + block * row_block * places16 * s.channels + c * width(block) + part;
                    for (int k = 0; k < places16; ++k) store(at + k * width(block) * s.channels, u[k]);
                }
            }
        });
    }
};

struct ForwardTiles {
    static constexpr int64_t cache = 1 << 20, most = 4 * tile_rows;  // bytes and tiles of a block
    const ConvShape& s;
    const Epilogue<float>& end;
    const float* packed;
    const TileGrid grid = input_tiles_of(s);
    const PackedTiles tiles{s};

    // The pixels of one tile, of a vector of rows from `row` on.
    FW_INLINE void give(const float* sums, int64_t step, int64_t tile, int64_t row, float* y) const {
        V v[places16], out[4];
#pragma GCC unroll 16
        for (int i = 0; i < places16; ++i) v[i] = load(sums + i * step);
        both_sides<4, 2>(Matrices<2>::Output{}, v, out);
        const V shift = end.bias ? load(end.bias + row) : V{};
        const ConvAxis &h = s.axis[1], &w = s.axis[2];
        const int64_t top = 2 * (tile % grid.each() / grid.wide), left = 2 * (tile % grid.wide), n = s.rows - row;
        y += ((tile / grid.each() * h.out + top) * w.out + left) * s.rows + row;
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            if (top + i / 2 >= h.out || left + i % 2 >= w.out) continue;
            const V result = end.clip(end.scaled(out[i] + shift, row));
            store_first(y + (i / 2 * w.out + i % 2) * s.rows, result, std::min<int64_t>(n, n_lanes));
        }
    }

    void block(const float* x, int64_t first, int64_t count, float* y) const {
        const int64_t columns = pitch_of(s.channels), step = count * columns + n_lanes;
        const int64_t place = count * row_block + n_lanes, none = 0;
        float* in = scratch<float>(0, places16 * step);
        float* sums = scratch<float>(1, places16 * place);
        grid.transform<4, Matrices<2>::Input>(x, first, count, in, step, columns);
        for (int64_t b = 0; b < tiles.blocks; ++b) {
            const int64_t row = b * row_block;
            LastTile t{};
            t.pixel = columns, t.offset = &none, t.stretches = 1, t.run = s.channels;
            t.y_pixel = row_block, t.cols = tiles.width(b);
            for (int i = 0; i < places16; ++i) {
                t.x = in + i * step, t.y = sums + i * place;
                t.w = packed + (row * places16 + i * tiles.width(b)) * s.channels;
                run_last_tiles(t, count);
            }
            for (int64_t i = 0; i < count; ++i)
                for (int64_t part = 0; part < tiles.width(b); part += n_lanes)
                    give(sums + i * row_block + part, place, first + i, row + part, y);
        }
    }

    void run(const float* x, float* y) const {
        const int64_t all = s.n * grid.each(), room = cache / (places16 * int64_t(sizeof(float)) * s.channels);
        int64_t width = std::clamp<int64_t>(room / tile_rows * tile_rows, tile_rows, most);
        if (threads() > 1) width = std::min(width, std::max<int64_t>(1, all / (4 * threads())));
        parallel((all + width - 1) / width, 1, [&](int64_t begin, int64_t stop) {
            for (int64_t i = begin; i < stop; ++i) block(x, i * width, std::min(width, all - i * width), y);
        });
    }
};

}  // namespace

void winograd_last(const ConvShape& s, const float* x, const TapKernels& w, bool turned, const Epilogue<float>& end, float* y) {
    const PackedTiles tiles{s};
    Buffer<float> packed(tiles.size());
    tiles.pack(w, turned, packed.data);
    const PaddedEnd padded(end, s.rows);
    ForwardTiles{s, padded.end, packed.data}.run(x, y);
}

// Of some tiles at a time: their transforms, then for every place a product over them, then all sums back.
void winograd_last_weights(const ConvShape& s, const float* x, const float* y, float* w) {
    constexpr int64_t cache = 1 << 20, least = 128, most = 512;  // bytes of both factors; tiles, more would lose digits
    const TileGrid in = input_tiles_of(s), out = output_tiles_of(s);
    const int64_t columns = whole_vectors(s.channels), x_pitch = pitch_of(s.channels), y_pitch = pitch_of(s.rows);
    const int64_t all = s.n * in.each(), fits = cache / (places16 * (x_pitch + y_pitch) * int64_t(sizeof(float)));
    const int64_t count = std::min(std::clamp<int64_t>(fits, least, most), all);
    const int64_t x_step = count * x_pitch + n_lanes, y_step = count * y_pitch + n_lanes;
    const int64_t heights = (s.rows + tile_rows - 1) / tile_rows, blocks = (columns + row_block - 1) / row_block;
    Buffer<float> x_tiles(places16 * x_step), y_tiles(places16 * y_step), sums(places16 * s.rows * columns);
    std::fill(sums.data, sums.data + places16 * s.rows * columns, 0.0f);
    for (int64_t first = 0; first < all; first += count) {
        const int64_t now = std::min(count, all - first);
        parallel(now, 1 + (1 << 9) / (x_pitch + y_pitch), [&](int64_t begin, int64_t end) {
            in.transform<4, Matrices<2>::Input>(x, first + begin, end - begin, x_tiles.data + begin * x_pitch, x_step, x_pitch);
            out.transform<2, Matrices<2>::Gradient>(y, first + begin, end - begin, y_tiles.data + begin * y_pitch, y_step, y_pitch);
        });
        parallel(places16 * heights * blocks, 1 + (1 << 10) / now, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t place = i / heights / blocks, block = i / heights % blocks, height = i % heights;
                const int64_t row = height * s.rows / heights;
                const Lines line{x_tiles.data + place * x_step, y_tiles.data + place * y_step, 1};
                SumTile t{};
                t.lines = &line, t.stop = &line + 1;
                t.x_at = block * row_block, t.y_at = row;
                t.x_pixel = x_pitch, t.y_pixel = y_pitch, t.length = now;
                t.rows = (height + 1) * s.rows / heights - row, t.cols = std::min(row_block, columns - block * row_block);
                t.c = sums.data + (place * s.rows + row) * columns + block * row_block, t.c_row = columns;
                run_sum_tile(t);
            }
        });
    }
    parallel(s.rows, 1 + (1 << 10) / s.channels, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
            for (int64_t c = 0; c < s.channels; c += n_lanes) {
                V v[places16], taps[9];
                for (int i = 0; i < places16; ++i) v[i] = load(sums.data + (i * s.rows + row) * columns + c);
                both_sides<4, 3>(Matrices<2>::KernelGradient{}, v, taps);
                for (int t = 0; t < 9; ++t)
                    store_first(w + (row * 9 + t) * s.channels + c, taps[t], std::min<int64_t>(n_lanes, s.channels - c));
            }
    });
}

}  // namespace fw::windows
