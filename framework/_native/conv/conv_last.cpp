// The convolution and its input's gradient: y[pixel, row] = sum over k of window[pixel, k] * a[k, row], a product in tiles
// of some neighbouring pixels and two vectors of rows. A window is some stretches of numbers, one for each line of the kernel.
#include "conv/conv_last.h"

#include "base/vecmath_core.h"
#include "conv/conv_depthwise.h"
#include "conv/conv_frame.h"
#include "conv/conv_last_tile.h"
#include "conv/conv_winograd.h"

namespace fw::windows {
namespace {

using VF = Vec<float>;

template <int P, int V> void last_tile(const LastTile& t) {
    VF sum[P][V];
#pragma GCC unroll 14
    for (int i = 0; i < P; ++i)
#pragma GCC unroll 2
        for (int j = 0; j < V; ++j) sum[i][j] = t.start ? load(t.start + j * row_lanes) : VF{};
    const float* w = t.w;
    const int64_t pixel = t.pixel, run = t.run;
    for (const int64_t *offset = t.offset, *last = offset + t.stretches; offset != last; ++offset) {
        const float* rows[(P + 2) / 3];  // one pointer for three pixels
#pragma GCC unroll 5
        for (int i = 0; i < (P + 2) / 3; ++i) rows[i] = t.x + *offset + 3 * i * pixel;
        for (const float* stop = rows[0] + run; rows[0] != stop; w += V * row_lanes) {
            VF vw[V];
#pragma GCC unroll 2
            for (int j = 0; j < V; ++j) vw[j] = load(w + j * row_lanes);
#pragma GCC unroll 14
            for (int i = 0; i < P; ++i) {
                const VF v = splat(rows[i / 3][i % 3 * pixel]);
#pragma GCC unroll 2
                for (int j = 0; j < V; ++j) sum[i][j] = fma<float>(v, vw[j], sum[i][j]);
            }
#pragma GCC unroll 5
            for (int i = 0; i < (P + 2) / 3; ++i) ++rows[i];
        }
    }
    if (t.end) {
        const Epilogue<float> then = *t.end;
#pragma GCC unroll 14
        for (int i = 0; i < P; ++i)
#pragma GCC unroll 2
            for (int j = 0; j < V; ++j) sum[i][j] = then.clip(then.scaled(sum[i][j], t.end_row + j * row_lanes));
    }
    const int64_t rest = t.cols - (V - 1) * row_lanes;
    float* y = t.y;
#pragma GCC unroll 14
    for (int i = 0; i < P; ++i, y += t.y_pixel) {
        if (V > 1) store(y, sum[i][0]);
        if (rest == row_lanes) store(y + (V - 1) * row_lanes, sum[i][V - 1]);
        else store_first(y + (V - 1) * row_lanes, sum[i][V - 1], rest);
    }
}

template <int... I> constexpr auto last_tile_table(std::integer_sequence<int, I...>) {
    TileTable<float, tile_rows, 2, LastTile> table{};
    ((table.at[I / 2][I % 2] = last_tile<I / 2 + 1, I % 2 + 1>), ...);
    return table;
}
constexpr auto last_tiles = last_tile_table(std::make_integer_sequence<int, 2 * tile_rows>{});

}  // namespace

void run_last_tiles(LastTile t, int64_t pixels) {
    const int wide = t.cols > row_lanes ? 1 : 0;
    for (int64_t left = (pixels + tile_rows - 1) / tile_rows, now; left > 0; --left, pixels -= now) {
        now = pixels / left;
        last_tiles.at[now - 1][wide](t);
        t.x += now * t.pixel, t.y += now * t.y_pixel;
    }
}

namespace {

// Windows that lie evenly in a frame, and where their sums go.
struct LastProduct {
    int64_t lines = 0, length = 0;          // of windows, in an image
    int64_t line_step = 1, pixel_step = 1;  // from one to the next, in places of the frame
    int64_t to_start = 0, to_line = 0, to_pixel = 0;
    int64_t to_row = 1;  // more: each row is a plane of its own in memory, with pixels side by side
    Taps taps;
    int64_t groups = 1, channels = 0, rows = 0;  // of a group: those that are read and those of the result
    const float* packed = nullptr;
    Epilogue<float> end;

    int64_t k() const { return taps.run * int64_t(taps.offset.size()); }
    int64_t group_columns() const { return (rows + row_lanes - 1) / row_lanes * row_lanes; }
    int64_t weights() const { return groups * group_columns() * k(); }

    // For each group and block of rows, for every step the rows side by side: the number of row i, channel c and tap t of
    // group g lies at w + g * group + i * row + c * channel + t * tap.
    void pack(float* to, const float* w, int64_t group, int64_t row, int64_t channel, int64_t tap) const {
        const int64_t blocks = (rows + row_block - 1) / row_block;
        parallel(groups * blocks, 1 + (1 << 12) / (row_block * k()), [&](int64_t begin, int64_t stop) {
            for (int64_t b = begin; b < stop; ++b) {
                const int64_t g = b / blocks, first = b % blocks * row_block, count = std::min(row_block, rows - first);
                const int64_t width = (count + row_lanes - 1) / row_lanes * row_lanes;
                float* panel = to + (g * group_columns() + first) * k();
                const float* from = w + g * group + first * row;
                if (tap == 1 && channel > 1 && row > channel) {
                    pack_rows(panel, from, count, width, row, channel);
                    continue;
                }
                if (tap == 1 && row > 1 && row < channel) {
                    pack_columns(panel, from, count, width, row, channel);
                    continue;
                }
                for (const Taps::Tap& t : taps.all) {
                    pack_panel(panel, int(width), from + t.number * tap, int(count), row, channel, channels);
                    panel += width * channels;
                }
            }
        });
    }

    // Lines [first, last) of an image; `frame` is where the frame's line 0 would be.
    void run(const Frame& f, const float* frame, float* to, int64_t first, int64_t last) const {
        LastTile t{};
        t.pixel = pixel_step * f.channels, t.offset = taps.offset.data();
        t.stretches = int64_t(taps.offset.size()), t.run = taps.run, t.y_pixel = to_pixel;
        t.end = end.more() ? &end : nullptr;
        for (int64_t g = 0; g < groups; ++g)
            for (int64_t row = 0; row < rows; row += row_block) {
                t.cols = std::min(row_block, rows - row), t.end_row = g * rows + row;
                t.w = packed + (g * group_columns() + row) * k();
                t.start = end.bias ? end.bias + t.end_row : nullptr;
                for (int64_t line = first; line < last; ++line) {
                    t.x = frame + line * line_step * f.pitch() + g * channels;
                    t.y = to + to_start + line * to_line + t.end_row * to_row;
                    to_row == 1 ? run_last_tiles(t, length) : run_turned(t);
                }
            }
    }

  private:
    // The same of kernels in rows, whose numbers follow each other tap by tap.
    void pack_rows(float* panel, const float* from, int64_t count, int64_t width, int64_t row, int64_t channel) const {
        const int64_t some = std::max<int64_t>(1, 256 / channel);  // channels at once
        float* aside = scratch<float>(2, some * channel * width);
        for (int64_t c = 0; c < channels; c += some) {
            const int64_t now = std::min(some, channels - c);
            pack_panel(aside, int(width), from + c * channel, int(count), row, 1, now * channel);
            for (size_t t = 0; t < taps.all.size(); ++t)
                for (int64_t i = 0; i < now; ++i)
                    std::copy_n(aside + (i * channel + taps.all[t].number) * width, width,
                                panel + (int64_t(t) * channels + c + i) * width);
        }
    }

    // The same where the taps of a row follow each other, and those of the next row behind.
    void pack_columns(float* panel, const float* from, int64_t count, int64_t width, int64_t row, int64_t channel) const {
        float* aside = scratch<float>(2, row * width);
        for (int64_t c = 0; c < channels; ++c) {
            pack_panel(aside, int(width), from + c * channel, int(count), row, 1, row);
            for (size_t t = 0; t < taps.all.size(); ++t)
                std::copy_n(aside + taps.all[t].number * width, width, panel + (int64_t(t) * channels + c) * width);
        }
    }

    // A line of sums, turned into a line for each row.
    void run_turned(LastTile t) const {
        constexpr int64_t n = row_lanes;
        float *sums = scratch<float>(1, (length + n) * row_block), *to = t.y;
        t.y = sums, t.y_pixel = row_block;
        run_last_tiles(t, length);
        for (int64_t row = 0; row < t.cols; row += n)
            for (int64_t p = 0; p < length; p += n) {
                const int64_t now = std::min(n, length - p), some = std::min(n, t.cols - row);
                VF v[row_lanes];
#pragma GCC unroll 16
                for (int i = 0; i < n; ++i) v[i] = load(sums + (p + i) * row_block + row);
                transpose<float>(v);
                for (int64_t i = 0; i < some; ++i) {
                    float* target = to + (row + i) * to_row + p * to_pixel;
                    if (to_pixel == 1) {
                        store_first(target, v[i], now);
                        continue;
                    }
                    alignas(64) float aside[row_lanes];
                    store(aside, v[i]);
                    store_steps(target, aside, now, to_pixel);
                }
            }
    }
};

// The products of all images with one frame, some lines at a time, which stay in the second-level cache.
void run_products(const Frame& f, const std::vector<LastProduct>& products, int64_t n, const float* from, float* to,
                  int64_t to_image) {
    constexpr int64_t cache = 256 << 10;
    int64_t low = products[0].taps.low, high = products[0].taps.high, lines = 0, work = 0;
    for (const LastProduct& p : products) {
        low = std::min(low, p.taps.low), high = std::max(high, p.taps.high), lines = std::max(lines, p.lines);
        work += p.length * p.k() * p.groups * p.group_columns() / row_lanes;
    }
    const int64_t step = products[0].line_step, line_bytes = step * f.pitch() * int64_t(sizeof(float));
    const int64_t share = threads() > 1 ? (lines * n + 4 * threads() - 1) / (4 * threads()) : lines;
    const int64_t band = std::clamp<int64_t>(std::min(cache / line_bytes, share), 1, lines), bands = (lines + band - 1) / band;
    parallel(n * bands, 1 + (1 << 14) / (band * work), [&](int64_t begin, int64_t stop) {
        for (int64_t i = begin; i < stop; ++i) {
            const int64_t image = i / bands, first = i % bands * band, last = std::min(lines, first + band);
            const float* frame = from + image * f.image();
            if (f.copied()) {
                const int64_t start = first * step + low, count = (last - 1 - first) * step + high - low;
                float* room = scratch<float>(0, count * f.pitch());
                f.copy(room, frame, start, count);
                frame = room - start * f.pitch();
            }
            for (const LastProduct& p : products) p.run(f, frame, to + image * to_image, first, std::min(last, p.lines));
        }
    });
}

// -- the input's gradient -------------------------------------------------------------------------

// The inputs first + stride * j, j < count, along one dimension; each reads outputs j + low - shift by these taps.
struct Class {
    int64_t first, count, low;
    std::vector<int64_t> taps, shifts;
    Class(const ConvAxis& a, int64_t f) {
        low = std::max<int64_t>(ceil_div(a.padding - f, a.stride), 0);
        first = a.stride * low + f - a.padding;
        count = first < a.in ? (a.in - 1 - first) / a.stride + 1 : 0;
        for (int64_t t = 0; t < a.kernel; ++t)
            if (t * a.dilation % a.stride == f) taps.push_back(t), shifts.push_back((t * a.dilation - f) / a.stride);
    }
    bool any() const { return count > 0 && !taps.empty(); }
};

struct LastClasses {
    std::vector<Class> high, wide;
    explicit LastClasses(const ConvShape& s) {
        for (int64_t f = 0; f < s.axis[1].stride; ++f) high.emplace_back(s.axis[1], f);
        for (int64_t f = 0; f < s.axis[2].stride; ++f) wide.emplace_back(s.axis[2], f);
    }
    static void reach(const std::vector<Class>& all, int64_t& before, int64_t& extent) {
        before = 0;
        for (const Class& c : all)
            if (c.any()) before = std::max(before, c.shifts.back() - c.low);
        extent = 1;
        for (const Class& c : all)
            if (c.any()) extent = std::max(extent, before + c.low - c.shifts.front() + c.count);
    }
    bool all_read() const {
        for (const auto* axis : {&high, &wide})
            for (const Class& c : *axis)
                if (c.count > 0 && c.taps.empty()) return false;
        return true;
    }
};

}  // namespace

PaddedEnd::PaddedEnd(const Epilogue<float>& given, int64_t rows) : room(size_t(3 * (rows + row_block))), end(given) {
    float* to = room.data();
    for (const float** part : {&end.bias, &end.scale, &end.shift}) {
        if (*part) *part = std::copy(*part, *part + rows, to) - rows;
        to += rows + row_block;
    }
}

bool last_suits(const ConvShape& s) {
    constexpr int64_t least = 8;  // channels of a group: else vectors of channels would be empty
    const ConvAxis& depth = s.axis[0];
    if (depth.in != 1 || depth.kernel != 1 || depth.padding != 0) return false;
    if (depthwise_suits(s)) return true;
    return s.groups == 1 ? s.rows >= least : s.group_rows() >= least && s.group_channels() >= least;
}

namespace {

// The product of a convolution, but for its kernels, and where its results go.
LastProduct forward_product(const ConvShape& s, const Frame& frame) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    LastProduct p;
    p.lines = h.out, p.length = v.out, p.line_step = h.stride, p.pixel_step = v.stride;
    p.to_line = v.out * s.rows, p.to_pixel = s.rows;
    p.taps = window_taps(s, frame);
    p.groups = s.groups, p.channels = s.group_channels(), p.rows = s.group_rows();
    return p;
}

void pack_forward(const LastProduct& p, const TapKernels& w, float* to) {
    p.pack(to, w.data, p.rows * w.row, w.row, w.channel, w.tap);
}

}  // namespace

void last_forward(const ConvShape& s, const float* x, const TapKernels& w, const Epilogue<float>& end, float* y) {
    if (depthwise_suits(s)) return depthwise(s, x, w, end, y, true);
    const bool filtered = winograd_suits(s, 32);
    if (last_unfolds(s, w, s.rows >= 24, 0.8)) return unfolded_last_forward(s, x, w.data, end, y);
    if (filtered) return winograd_last(s, x, w, false, end, y);
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    const Frame frame = input_frame(s);
    LastProduct p = forward_product(s, frame);
    Buffer<float> packed(p.weights());
    pack_forward(p, w, packed.data);
    p.packed = packed.data;
    const PaddedEnd padded(end, s.rows);
    p.end = padded.end;
    if (!frame.copied() && s.taps() == 1 && h.stride == 1 && v.stride == 1) {  // all pixels are one line, cut anywhere
        constexpr int64_t each = 12 * tile_rows;
        const int64_t all = s.n * s.pixels(), lines = all / each, done = lines * each;
        const Frame flat{lines, each, s.channels, 0, 0, lines, each};
        p.lines = lines, p.length = each, p.to_line = each * s.rows;
        if (lines) run_products(flat, {p}, 1, x, y, 0);
        p.length = all - done;
        if (p.length) p.run(flat, x + done * s.channels, y + done * s.rows, 0, 1);
        return;
    }
    run_products(frame, {p}, s.n, x, y, s.rows * s.pixels());
}

// -- images in rows, which are turned some lines at a time ----------------------------------------

bool turned_suits(const ConvShape& s) {
    constexpr int64_t some_channels = 12, many = 256, long_window = 128;
    // one chain of sums for a pixel: without fma, where products are rounded too, it is further off than the product's tiles
    if (!math::has_fma || s.groups != 1 || !last_suits(s)) return false;
    if (s.taps() == 1) return s.channels >= many;
    // else vectors along a line, which are quicker where they are full
    return s.channels >= some_channels || (s.k() >= long_window && s.axis[2].out % row_lanes != 0);
}

int64_t turned_packed(const ConvShape& s) { return forward_product(s, input_frame(s)).weights(); }

void turned_pack(const ConvShape& s, const float* w, float* to) {
    pack_forward(forward_product(s, input_frame(s)), kernels_in_rows(s, w), to);
}

void turned_forward(const ConvShape& s, const float* x, const float* packed, const Epilogue<float>& end, float* y) {
    Frame frame = input_frame(s);
    frame.planes = true;
    LastProduct p = forward_product(s, frame);
    p.to_line = p.length, p.to_pixel = 1, p.to_row = s.pixels();
    p.packed = packed;
    const PaddedEnd padded(end, s.rows);
    p.end = padded.end;
    run_products(frame, {p}, s.n, x, y, s.rows * s.pixels());
}

namespace {

// Of images with channels last, or all in rows.
void input_gradient(const ConvShape& s, const float* y, const TapKernels& w, float* x, bool planes) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    const LastClasses classes(s);
    Frame frame{h.out, v.out, s.rows};
    frame.planes = planes;
    const int64_t pixel = planes ? 1 : s.channels;
    LastClasses::reach(classes.high, frame.before_high, frame.extent_high);
    LastClasses::reach(classes.wide, frame.before_wide, frame.extent_wide);
    if (!classes.all_read()) std::fill(x, x + s.n * s.channels * s.in_pixels(), 0.0f);
    std::vector<LastProduct> products;
    int64_t weights = 0;
    for (const Class& a : classes.high)
        for (const Class& b : classes.wide) {
            if (!a.any() || !b.any()) continue;
            LastProduct& p = products.emplace_back();
            p.lines = a.count, p.length = b.count;
            p.to_start = (a.first * v.in + b.first) * pixel;
            p.to_line = h.stride * v.in * pixel, p.to_pixel = v.stride * pixel, p.to_row = planes ? s.in_pixels() : 1;
            p.groups = s.groups, p.channels = s.group_rows(), p.rows = s.group_channels();
            for (size_t i = 0; i < a.taps.size(); ++i)
                for (size_t j = 0; j < b.taps.size(); ++j)
                    p.taps.all.push_back({frame.before_high + a.low - a.shifts[i], frame.before_wide + b.low - b.shifts[j],
                                          a.taps[i] * v.kernel + b.taps[j]});
            p.taps.settle(frame, p.channels);
            weights += p.weights();
        }
    if (products.empty()) return;
    Buffer<float> packed(weights);
    float* to = packed.data;
    for (LastProduct& p : products) {
        p.pack(to, w.data, p.channels * w.row, w.channel, w.row, w.tap);
        p.packed = to, to += p.weights();
    }
    run_products(frame, products, s.n, y, x, s.channels * s.in_pixels());
}

}  // namespace

void last_input(const ConvShape& s, const float* y, const TapKernels& w, float* x) {
    if (depthwise_suits(s)) return depthwise_input(s, y, w, x, true);
    const bool filtered = winograd_suits(s, 8);
    if (last_unfolds(s, w, s.channels >= 24, filtered ? 0.5 : 1.5)) return unfolded_last_input(s, y, w.data, x);
    if (filtered) return winograd_last(gradient_shape(s), y, {w.data, w.channel, w.row, w.tap}, true, {}, x);
    input_gradient(s, y, w, x, false);
}

bool turned_input_suits(const ConvShape& s) {
    constexpr int64_t some_channels = 12;
    return s.groups == 1 && last_suits(s) && s.taps() > 1 && s.rows >= some_channels && s.channels >= some_channels;
}

void turned_input(const ConvShape& s, const float* y, const float* w, float* x) {
    input_gradient(s, y, kernels_in_rows(s, w), x, true);
}

}  // namespace fw::windows
