// The gradient of a convolution with respect to its weights: w[row, k] = sum over pixels of y[row, pixel] *
// window[k, pixel].
//
// Vectors run along the output's channels: a chunk of y is turned so that these are neighbours, and the
// windows are read in place, a number at a time. With few channels in a group vectors run along the pixels of
// a line instead.
#include "conv/conv_weight.h"

#include "conv/conv_chunks.h"
#include "conv/conv_depthwise.h"
#include "conv/conv_kernel.h"
#include "conv/conv_unfolded.h"
#include "conv/conv_winograd.h"

namespace fw::windows {
namespace {

constexpr int64_t least_tasks = 8;   // fewer tiles than that share out the lines too
constexpr int64_t turned_pixels = 512;

// Planes of the input; `phased` ones have the windows of a line side by side, whatever the stride.
template <class T> Planes window_planes(const ConvShape& s, bool phased) {
    Planes planes;
    for (int d = 0; d < conv_dims; ++d) {
        const ConvAxis& a = s.axis[d];
        PlaneAxis& p = planes.axis[d];
        p.in = a.in;
        p.before = a.padding;
        p.extent = (a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1;
        if (!phased) continue;
        p.step = a.stride;
        p.phases.clear();
        for (int64_t t = 0; t < a.kernel; ++t) p.phases.push_back(t * a.dilation % a.stride);
        p.extent = a.out + (a.kernel - 1) * a.dilation / a.stride;
    }
    const int64_t y_bytes = s.rows * s.pixels() * int64_t(sizeof(T));
    planes.settle<T>(std::clamp<int64_t>(chunk_bytes / y_bytes, 1, s.n), s.channels, chunk_bytes);
    return planes;
}

// What both ways share: where windows and lines are.
template <class T> struct WindowLines {
    const ConvShape& s;
    Planes planes;
    std::vector<int64_t> offset, line;  // of every k of a group; of every line of a chunk
    int64_t length, step;

    WindowLines(const ConvShape& shape, bool phased) : s(shape), planes(window_planes<T>(shape, phased)) {
        for (int64_t c = 0; c < s.group_channels(); ++c) {
            for (int64_t t = 0; t < s.taps(); ++t) {
                int64_t at[conv_dims];
                s.tap(t, at);
                offset.push_back(c * planes.channel + planes.offset(at));
            }
        }
        int64_t by[conv_dims], count[conv_dims];
        for (int d = 0; d < conv_dims; ++d) {
            by[d] = planes.place[d] * (phased ? 1 : s.axis[d].stride);
            count[d] = s.axis[d].out;
        }
        length = count[2];
        step = by[2];
        if (length * step == by[1]) {  // lines follow each other
            length *= count[1];
            count[1] = 1;
        }
        for (int64_t n = 0; n < planes.images; ++n)
            for (int64_t i = 0; i < count[0]; ++i)
                for (int64_t j = 0; j < count[1]; ++j)
                    line.push_back(n * planes.image + i * by[0] + j * by[1]);
    }
    int64_t lines_each() const { return int64_t(line.size()) / planes.images; }
    int64_t group_from() const { return s.group_channels() * planes.channel; }
};

// -- vectors along the output's channels ----------------------------------------------------------

template <class T> struct TapProduct {
    static constexpr int64_t wide = channel_vectors * lanes<T>;
    const WindowLines<T>& at;
    int64_t k, rows, tiles, k_tiles, k_rows, parts, pixels;

    explicit TapProduct(const WindowLines<T>& lines) : at(lines), k(at.s.k()), rows(at.s.group_rows()) {
        tiles = (rows + wide - 1) / wide;
        k_tiles = (k + tap_rows - 1) / tap_rows;
        k_rows = (k + k_tiles - 1) / k_tiles;
        k_tiles = (k + k_rows - 1) / k_rows;
        pixels = at.planes.images * at.s.pixels();
        parts =
            std::clamp<int64_t>(least_tasks / (tiles * k_tiles * at.s.groups), 1, int64_t(at.line.size()));
    }
    int64_t width(int64_t tile) const {  // columns, rounded up to vectors
        return (std::min(wide, rows - tile * wide) + lanes<T> - 1) / lanes<T> * lanes<T>;
    }
    int64_t group_columns() const { return (tiles - 1) * wide + width(tiles - 1); }
    int64_t turned_size() const { return at.s.groups * group_columns() * pixels; }
    int64_t sum_size() const { return at.s.groups * group_columns() * k; }

    // y of `count` images, for every tile of channels pixel by pixel.
    void turn(T* to, const T* y, int64_t count) const {
        const int64_t each = at.s.pixels(), blocks = (each + turned_pixels - 1) / turned_pixels;
        const int64_t grain = 1 + (1 << 14) / (std::min(each, turned_pixels) * wide);
        parallel(at.s.groups * tiles * count * blocks, grain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t first = i % blocks * turned_pixels, image = i / blocks % count;
                const int64_t tile = i / blocks / count % tiles, group = i / blocks / count / tiles;
                const int64_t row = group * rows + tile * wide, w = width(tile);
                pack_panel(to + (group * group_columns() + tile * wide) * pixels + (image * each + first) * w,
                           int(w), y + (image * at.s.rows + row) * each + first,
                           int(std::min(wide, rows - tile * wide)), each, 1,
                           std::min(turned_pixels, each - first));
            }
        });
    }

    void add(T* sums, const T* x, const T* turned, int64_t count) const {
        const int64_t all = at.s.groups * tiles * k_tiles * parts, lines = count * at.lines_each();
        const int64_t part_lines = (lines + parts - 1) / parts;
        const int64_t work = part_lines * at.length * k_rows * channel_vectors;  // vector multiplications
        parallel(all, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t first = i % k_tiles * k_rows, part = i / k_tiles % parts;
                const int64_t tile = i / k_tiles / parts % tiles, group = i / k_tiles / parts / tiles;
                const int64_t column = group * group_columns() + tile * wide, w = width(tile);
                const int64_t line = part * part_lines, height = std::min(k_rows, k - first);
                if (line >= lines) continue;
                tap_tiles<T>.at[height - 1][w / lanes<T> - 1]({
                    x + group * at.group_from(), at.offset.data() + first, at.line.data() + line,
                    std::min(part_lines, lines - line), at.length, at.step,
                    turned + column * pixels + line * at.length * w, w,
                    sums + part * sum_size() + column * k + first * w, w});
            }
        });
    }

    // The sums of all parts, as weights.
    void finish(T* w, const T* sums) const {
        parallel(at.s.groups * rows, 1 + (1 << 13) / k, [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o) {
                const int64_t row = o % rows, tile = row / wide, step = width(tile);
                const T* from = sums + (o / rows * group_columns() + tile * wide) * k + row % wide;
                for (int64_t p = 0; p < k; ++p) {
                    T sum = from[p * step];
                    for (int64_t part = 1; part < parts; ++part) sum += from[part * sum_size() + p * step];
                    w[o * k + p] = sum;
                }
            }
        });
    }
};

template <class T> void by_channels(const ConvShape& s, const T* x, const T* y, T* w) {
    const WindowLines<T> at(s, false);
    const TapProduct<T> product(at);
    Buffer<T> copy(at.planes.size), turned(product.turned_size()), sums(product.parts * product.sum_size());
    std::fill(sums.data, sums.data + product.parts * product.sum_size(), T(0));
    each_chunk(at.planes, x, s.n, copy.data, [&](const T* from, int64_t first, int64_t count) {
        product.turn(turned.data, y + first * s.rows * s.pixels(), count);
        product.add(sums.data, from, turned.data, count);
    });
    product.finish(w, sums.data);
}

// -- vectors along the pixels ---------------------------------------------------------------------

template <class T> void by_pixels(const ConvShape& s, const T* x, const T* y, T* w) {
    const WindowLines<T> at(s, true);
    const int64_t k = s.k(), rows = s.group_rows(), tiles = (k + dot_taps - 1) / dot_taps;
    Buffer<T> copy(at.planes.size);
    std::fill(w, w + s.rows * k, T(0));
    each_chunk(at.planes, x, s.n, copy.data, [&](const T* from, int64_t first, int64_t count) {
        const int64_t work = 1 + count * s.pixels() * std::min<int64_t>(k, dot_taps) / lanes<T>;
        parallel(s.rows * tiles, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t row = i / tiles, p = i % tiles * dot_taps;
                dot_tiles<T>.at[std::min<int64_t>(dot_taps, k - p) - 1][0](
                    {from + row / rows * at.group_from(), at.offset.data() + p, at.line.data(), count,
                     at.lines_each(), at.length, y + (first * s.rows + row) * s.pixels(),
                     s.rows * s.pixels(), w + row * k + p});
            }
        });
    });
}

// Which is quicker? Turning y costs about as much as so many multiplications of it; along the pixels a
// multiplication waits for its number from the cache, and lines end in vectors that are not full.
template <class T> bool along_pixels(const ConvShape& s) {
    constexpr double turning = 16, loading = 1.6;
    constexpr int64_t n = lanes<T>;
    const int64_t length = s.axis[2].out, rows = s.group_rows();
    bool copied = false;
    for (const ConvAxis& a : s.axis) copied = copied || a.padding > 0 || a.stride > 1;
    if (!copied && length % n) return false;  // it reads whole vectors; only copies have room for that
    const double by_pixels =
        loading * double(s.k() * rows) * double((length + n - 1) / n * n) / double(length);
    return by_pixels < (double(s.k()) + turning) * double((rows + n - 1) / n * n);
}

}  // namespace

template <class T> void conv_weights(const ConvShape& s, const T* x, const T* y, T* w) {
    const bool filtered = sizeof(T) == 4 && winograd_suits(s, 8);
    if (unfolded_weights_suit(s, filtered)) return unfolded_weights(s, x, y, w);
    if constexpr (sizeof(T) == 4) {
        if (filtered) return winograd_weights(s, x, y, w);
        if (depthwise_suits(s)) return depthwise_weights(s, x, y, w, false);
    }
    (along_pixels<T>(s) ? by_pixels<T> : by_channels<T>)(s, x, y, w);
}

template void conv_weights(const ConvShape&, const float*, const float*, float*);
template void conv_weights(const ConvShape&, const double*, const double*, double*);

}  // namespace fw::windows
