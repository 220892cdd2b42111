// The gradient of the kernels: w[row, tap, channel] = sum over pixels of y[pixel, row] * window[pixel, tap, channel], in
// tiles of some rows and two vectors of what a stretch of the windows holds. Both factors are read as they lie.
#include "conv/conv_depthwise.h"
#include "conv/conv_frame.h"
#include "conv/conv_last.h"
#include "conv/conv_last_tile.h"
#include "conv/conv_winograd.h"
#include "gemm/gemm_kernel.h"

namespace fw::windows {
namespace {

using VW = Vec<float>;

template <int R, int V> void sum_tile(const SumTile& t) {
    VW sum[R][V];
#pragma GCC unroll 14
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
        for (int j = 0; j < V; ++j) sum[i][j] = VW{};
    const int64_t x_pixel = t.x_pixel, y_pixel = t.y_pixel, rest = t.cols - (V - 1) * row_lanes;
    for (const Lines* some = t.lines; some != t.stop; ++some)
        for (int64_t line = 0; line < some->count; ++line) {
            const float *x = some->x + line * t.x_line + t.x_at, *y = some->y + line * t.y_line + t.y_at;
            for (const float* end = y + t.length * y_pixel; y != end; x += x_pixel, y += y_pixel) {
                VW v[V];
                if (V > 1) v[0] = load(x);
                v[V - 1] = load_first(x + (V - 1) * row_lanes, rest);
#pragma GCC unroll 14
                for (int i = 0; i < R; ++i) {
                    const VW g = splat(y[i]);
#pragma GCC unroll 2
                    for (int j = 0; j < V; ++j) sum[i][j] = fma<float>(g, v[j], sum[i][j]);
                }
            }
        }
#pragma GCC unroll 14
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
        for (int j = 0; j < V; ++j) {
            float* c = t.c + i * t.c_row + j * row_lanes;
            store(c, load(c) + sum[i][j]);
        }
}

template <int... I> constexpr auto sum_tile_table(std::integer_sequence<int, I...>) {
    TileTable<float, tile_rows, 2, SumTile> table{};
    ((table.at[I / 2][I % 2] = sum_tile<I / 2 + 1, I % 2 + 1>), ...);
    return table;
}
constexpr auto sum_tiles = sum_tile_table(std::make_integer_sequence<int, 2 * tile_rows>{});

}  // namespace

void run_sum_tile(const SumTile& t) { sum_tiles.at[t.rows - 1][t.cols > row_lanes ? 1 : 0](t); }

namespace {

// The sums of all tiles, of images some lines at a time. Few tiles share out the lines too, in parts that depend on the
// shape alone and are put together in order.
struct LastWeights {
    static constexpr int64_t cache = 1 << 20;  // bytes of both factors, which every tile goes over
    static constexpr int64_t least_tasks = 8;
    const ConvShape& s;
    const Frame frame = input_frame(s);
    const Taps taps = window_taps(s, frame);
    const int64_t rows = s.group_rows(), stretches = int64_t(taps.offset.size());
    const int64_t columns = (taps.run + row_lanes - 1) / row_lanes * row_lanes;
    const int64_t blocks = (taps.run + row_block - 1) / row_block, heights = (rows + tile_rows - 1) / tile_rows;
    const int64_t tiles = s.groups * stretches * blocks * heights;
    int64_t band, bands, units, parts;  // lines at once of an image, so many bands; bands at once; see above

    explicit LastWeights(const ConvShape& shape) : s(shape) {
        const ConvAxis& h = s.axis[1];
        const int64_t line = (h.stride * frame.pitch() + s.axis[2].out * s.rows) * int64_t(sizeof(float));
        band = std::clamp<int64_t>(cache / line, 1, h.out);
        bands = (h.out + band - 1) / band;
        units = std::clamp<int64_t>(cache / (band * line), 1, s.n * bands);
        parts = std::clamp<int64_t>(least_tasks / tiles, 1, units);
    }
    int64_t sum_size() const { return s.rows * stretches * columns; }
    int64_t band_lines() const { return (band - 1) * s.axis[1].stride + taps.high - taps.low; }
    int64_t framed() const { return frame.copied() ? units * band_lines() * frame.pitch() : 0; }

    // The lines of units [first, first + count), whose frames are copied to `room`, if at all.
    void take(std::vector<Lines>& lines, int64_t first, int64_t count, const float* x, const float* y, float* room) const {
        const ConvAxis& h = s.axis[1];
        lines.resize(size_t(count));
        const int64_t copied = band_lines() * frame.pitch();
        parallel(count, 1 + (1 << 14) / (band_lines() * frame.pitch()), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t image = (first + i) / bands, line = (first + i) % bands * band, now = std::min(band, h.out - line);
                const float* from = x + image * frame.image();
                const int64_t start = line * h.stride + taps.low;
                if (frame.copied()) frame.copy(room + i * copied, from, start, (now - 1) * h.stride + taps.high - taps.low);
                lines[size_t(i)] = {frame.copied() ? room + i * copied - taps.low * frame.pitch()
                                                   : from + line * h.stride * frame.pitch(),
                                    y + (image * h.out + line) * s.axis[2].out * s.rows, now};
            }
        });
    }

    void add(const std::vector<Lines>& lines, float* sums) const {
        const int64_t count = int64_t(lines.size()), part_lines = (count + parts - 1) / parts;
        const int64_t work = part_lines * band * s.axis[2].out * tile_rows * 2;
        parallel(tiles * parts, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t part = i / tiles, height = i % heights, block = i / heights % blocks;
                const int64_t stretch = i / heights / blocks % stretches, group = i / heights / blocks / stretches % s.groups;
                const int64_t row = height * rows / heights;
                SumTile t{};
                t.lines = lines.data() + std::min(part * part_lines, count);
                t.stop = lines.data() + std::min((part + 1) * part_lines, count);
                t.x_at = taps.offset[size_t(stretch)] + group * s.group_channels() + block * row_block;
                t.y_at = group * rows + row;
                t.x_line = s.axis[1].stride * frame.pitch(), t.y_line = s.axis[2].out * s.rows;
                t.x_pixel = s.axis[2].stride * s.channels, t.y_pixel = s.rows, t.length = s.axis[2].out;
                t.rows = (height + 1) * rows / heights - row, t.cols = std::min(row_block, taps.run - block * row_block);
                t.c_row = stretches * columns;
                t.c = sums + part * sum_size() + (group * rows + row) * t.c_row + stretch * columns + block * row_block;
                run_sum_tile(t);
            }
        });
    }

    void finish(float* w, const float* sums) const {
        for (int64_t i = 0; i < s.rows * stretches; ++i, w += taps.run, sums += columns)
            for (int64_t p = 0; p < taps.run; ++p) {
                float sum = sums[p];
                for (int64_t part = 1; part < parts; ++part) sum += sums[part * sum_size() + p];
                w[p] = sum;
            }
    }
};

}  // namespace

void last_weights(const ConvShape& s, const float* x, const float* y, float* w) {
    if (depthwise_suits(s)) return depthwise_weights(s, x, y, w, true);
    const bool filtered = winograd_suits(s, 8);
    if (last_unfolds(s, kernels_of_channels(s, w), std::min(s.rows, s.channels) >= 32, filtered ? 0.5 : 4))
        return unfolded_last_weights(s, x, y, w);
    if (filtered) return winograd_last_weights(s, x, y, w);
    const LastWeights all(s);
    Buffer<float> sums(all.parts * all.sum_size()), room(all.framed());
    std::fill(sums.data, sums.data + all.parts * all.sum_size(), 0.0f);
    std::vector<Lines> lines;
    for (int64_t first = 0; first < s.n * all.bands; first += all.units) {
        all.take(lines, first, std::min(all.units, s.n * all.bands - first), x, y, room.data);
        all.add(lines, sums.data);
    }
    all.finish(w, sums.data);
}

}  // namespace fw::windows
