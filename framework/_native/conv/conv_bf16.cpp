// Convolutions of bfloat16 and their gradients, by vdpbf16ps: windows are packed into panels of pairs.
//
// A padded copy of the images has the stride of the last dimension in it: each row lies as `stride` rows, of every
// stride-th place from the first, the second, ... on. So neighbouring windows read neighbouring numbers.
// Where the processor cannot, the float32 kernels do it: `rounded.py` widens and rounds. Wide 3x3 convolutions of
// large images go by Winograd's way, in float32.
#include "conv/conv_bf16.h"

#include "base/pool.h"
#include "base/scratch.h"
#include "conv/conv_winograd.h"

#if FW_DOT_BF16

namespace fw::windows {
namespace {

using pairs::rows;
using pairs::width;
constexpr int64_t PANEL_BYTES = 192 << 10;  // of windows packed at a time

struct Copy {  // one axis of the padded copy
    int64_t in = 1, before = 0, extent = 1, stride = 1;
    int64_t phase() const { return (extent + stride - 1) / stride; }
};

struct HalfImages {
    int64_t n, channels;
    Copy axis[conv_dims];  // the stride counts for the last one only
    Buffer<int32_t> memory;  // of pairs

    static int64_t row(const Copy* a) { return a[2].stride * a[2].phase(); }
    static int64_t plane(const Copy* a) { return a[0].extent * a[1].extent * row(a); }

    HalfImages(int64_t n, int64_t channels, const Copy (&a)[conv_dims])
        : n(n), channels(channels), axis{a[0], a[1], a[2]}, memory(n * channels * plane(a) / 2 + 1) {}

    const Bf16* at(int64_t image) const {
        return reinterpret_cast<const Bf16*>(memory.data) + image * channels * plane(axis);
    }
    // Where the number at a place of the padded image lies.
    int64_t offset(const int64_t (&p)[conv_dims]) const {
        const Copy& w = axis[2];
        return (p[0] * axis[1].extent + p[1]) * row(axis) + p[2] % w.stride * w.phase() + p[2] / w.stride;
    }

    void fill(const Bf16* from) {
        const int64_t size = plane(axis), in = axis[0].in * axis[1].in * axis[2].in, wide = row(axis);
        auto* all = reinterpret_cast<Bf16*>(memory.data);
        parallel(n * channels, std::max<int64_t>(1, 16384 / size), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                for (int64_t d = 0; d < axis[0].extent; ++d)
                    for (int64_t h = 0; h < axis[1].extent; ++h) {
                        const int64_t z = d - axis[0].before, y = h - axis[1].before;
                        const bool inside = z >= 0 && z < axis[0].in && y >= 0 && y < axis[1].in;
                        line(all + i * size + (d * axis[1].extent + h) * wide,
                             inside ? from + i * in + (z * axis[1].in + y) * axis[2].in : nullptr);
                    }
        });
    }

    // One row of the copy; `from` is null outside of the image.
    void line(Bf16* to, const Bf16* from) const {
        const Copy& w = axis[2];
        if (!from) {
            std::memset(to, 0, size_t(row(axis)) * sizeof(Bf16));
        } else if (w.stride == 1) {
            for (int64_t i = 0; i < w.extent; i += 32) {
                const __mmask32 there = below(w.before + w.in - i) & ~below(w.before - i);
                const __m512i v = _mm512_maskz_loadu_epi16(there, from + i - w.before);
                _mm512_mask_storeu_epi16(to + i, below(w.extent - i), v);
            }
        } else {
            for (int64_t f = 0; f < w.stride; ++f)
                for (int64_t i = 0; i < w.phase(); ++i) {
                    const int64_t x = f + i * w.stride - w.before;
                    to[f * w.phase() + i] = x >= 0 && x < w.in ? from[x] : Bf16{0};
                }
        }
    }

    static __mmask32 below(int64_t n) {  // places 0 to n - 1
        return n >= 32 ? ~__mmask32(0) : n <= 0 ? 0 : (__mmask32(1) << n) - 1;
    }
};

// Up to 32 windows side by side in a panel: parts of rows, whose numbers are loaded to their places by a mask.
struct Runs {
    struct OffsetRun {
        int64_t shift;  // of the pointer at which place 0 would lie
        __mmask32 mask;
    };
    OffsetRun all[32] = {};
    int count = 0;

    void add(int64_t from, int64_t place, int64_t n) {
        const __mmask32 mask = n >= 32 ? ~__mmask32(0) : ((__mmask32(1) << n) - 1) << place;
        all[count++] = {from - place, mask};
    }
    // Calls f(load), where load(base) gives the numbers: with few runs, their masks stay in registers.
    template <class F> FW_INLINE void with(F&& f) const {
        const OffsetRun a = all[0], b = all[1], c = all[2];
        auto one = [=](const Bf16* base) __attribute__((always_inline)) {
            return _mm512_maskz_loadu_epi16(a.mask, base + a.shift);
        };
        auto two = [=](const Bf16* base) __attribute__((always_inline)) {
            return _mm512_mask_loadu_epi16(one(base), b.mask, base + b.shift);
        };
        auto three = [=](const Bf16* base) __attribute__((always_inline)) {
            return _mm512_mask_loadu_epi16(two(base), c.mask, base + c.shift);
        };
        auto more = [=](const Bf16* base) __attribute__((always_inline)) {
            __m512i v = three(base);
            for (int i = 3; i < count; ++i) v = _mm512_mask_loadu_epi16(v, all[i].mask, base + all[i].shift);
            return v;
        };
        if (count == 1) f(one);
        else if (count == 2) f(two);
        else if (count == 3) f(three);
        else f(more);
    }
};

// The windows of an image in order; in the copy, one row of them begins `step` places after the other.
struct WindowGrid {
    int64_t count[conv_dims], step[conv_dims];

    int64_t size() const { return count[0] * count[1] * count[2]; }
    // The places from `first` on, where every row has `length` of them (those past its windows stay empty).
    Runs runs(int64_t first, int64_t n, int64_t length) const {
        Runs r;
        for (int64_t place = 0; place < n;) {
            const int64_t row = (first + place) / length, x = (first + place) % length;
            const int64_t part = std::min(length - x, n - place), real = std::min(part, count[2] - x);
            if (real > 0) r.add(row / count[1] * step[0] + row % count[1] * step[1] + x, place, real);
            place += part;
        }
        if (!r.count) r.all[r.count++] = {0, 0};
        return r;
    }
};

FW_INLINE void interleave(uint32_t* to, __m512i low, __m512i high) {
    alignas(64) static constexpr uint16_t first[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                       8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
    const __m512i index = _mm512_load_si512(first);
    const __m512i next = _mm512_add_epi16(index, _mm512_set1_epi16(16));
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(low, index, high));
    _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi16(low, next, high));
}

// to[o, window] = bias[o] + sum over k of weights[o, k] * image[offset[k] + window's place]
struct WindowProduct {
    const HalfImages& images;
    WindowGrid grid;
    std::vector<int64_t> offset;  // of each k, for the first group
    int64_t groups, out, group_from;  // rows of the result in a group; how far the groups' images lie apart
    const Bf16* weights;
    int64_t weights_row;  // even, zeros behind the last k
    const Bf16* bias;

    void run(Bf16* to) const {
        const int64_t k = int64_t(offset.size()), count = (k + 1) / 2, pixels = grid.size();
        const int64_t panels = (pixels + width - 1) / width;
        const int64_t each = std::min(std::max<int64_t>(PANEL_BYTES / (count * width * 4), 1), panels);
        const int64_t parts = (panels + each - 1) / each;
        parallel(images.n * groups * parts, 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t image = i / parts / groups, group = i / parts % groups, first = i % parts * each;
                part(to, image, group, first * width, std::min(pixels, (first + each) * width));
            }
        });
    }

    void part(Bf16* to, int64_t image, int64_t group, int64_t first, int64_t last) const {
        const int64_t k = int64_t(offset.size()), count = (k + 1) / 2, pixels = grid.size();
        uint32_t* panels = scratch<uint32_t>(2, (last - first + width - 1) / width * width * count);
        const Bf16* from = images.at(image) + group * group_from;
        uint32_t* panel = panels;
        for (int64_t j = first; j < last; j += width) {
            const Runs runs = grid.runs(j, std::min<int64_t>(width, last - j), grid.count[2]);
            runs.with([&](auto load) __attribute__((always_inline)) {
                const int64_t* at = offset.data();
                for (int64_t p = 0; p < k / 2; ++p, panel += width, at += 2)
                    interleave(panel, load(from + at[0]), load(from + at[1]));
                if (k % 2) interleave(panel, load(from + at[0]), __m512i{}), panel += width;
            });
        }
        const int64_t high = (out + rows - 1) / rows;
        for (int64_t n = 0, o = 0; n < high; ++n) {
            const int height = int(out / high + (n < out % high));
            for (int64_t j = first; j < last; j += width) {
                pairs::Tile t;
                t.a = weights + (group * out + o) * weights_row, t.a_row = weights_row, t.a_step = 2;
                t.b = panels + (j - first) * count, t.pairs = count;
                t.cols = int(std::min<int64_t>(width, last - j)), t.sums = nullptr, t.sums_row = 0, t.add = false;
                t.c = to + (image * groups * out + group * out + o) * pixels + j, t.c_row = pixels;
                t.row_bias = bias ? bias + group * out + o : nullptr;
                pairs::run(height, t);
            }
            o += height;
        }
    }
};

// Rows of `k` numbers with a zero behind them if k is odd, not a power of two apart.
int64_t row_of(int64_t k) {
    const int64_t even = (k + 1) / 2 * 2;
    return even % 512 == 0 ? even + 32 : even;
}

HalfImages images_of(const ConvShape& s) {
    Copy a[conv_dims];
    for (int d = 0; d < conv_dims; ++d) {
        const ConvAxis& x = s.axis[d];
        a[d] = {x.in, x.padding, (x.out - 1) * x.stride + (x.kernel - 1) * x.dilation + 1, d == 2 ? x.stride : 1};
    }
    return HalfImages(s.n, s.channels, a);
}

WindowGrid grid_of(const ConvShape& s, const HalfImages& images) {
    const int64_t line = HalfImages::row(images.axis);
    return {{s.axis[0].out, s.axis[1].out, s.axis[2].out},
            {s.axis[0].stride * images.axis[1].extent * line, s.axis[1].stride * line, 1}};
}

// Where the numbers of a window lie, of all channels of a group and all taps.
std::vector<int64_t> offsets(const ConvShape& s, const HalfImages& images, int64_t channels) {
    std::vector<int64_t> found;
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t t = 0; t < s.taps(); ++t) {
            int64_t at[conv_dims];
            s.tap(t, at);
            found.push_back(c * HalfImages::plane(images.axis) + images.offset(at));
        }
    return found;
}

// Whether Winograd's few products of float32 take less time than all of bfloat16, of which the processor does two
// in the time of one: with enough tiles of 4x4 pixels for the kernels' transforms to pay, and most of them full.
// For the gradient of the kernels they never do.
bool winograd_wins(const ConvShape& s) {
    const int64_t tiles = s.n * ceil_div(s.axis[1].out, 4) * ceil_div(s.axis[2].out, 4);
    return s.channels >= 32 && s.rows >= 32 && tiles >= 256 && 4 * s.n * s.pixels() >= 3 * 16 * tiles;
}

struct Widened : Buffer<float> {
    Widened(const Bf16* from, int64_t count) : Buffer(count) { widen(data, from, count); }
};

}  // namespace

void conv_forward(const ConvShape& s, const Bf16* x, const Bf16* w, const Bf16* bias, Bf16* y) {
    const int64_t k = s.k(), row = row_of(k);
    if (winograd_suits(s, 0) && winograd_wins(s)) {
        const Widened kernels(w, s.rows * k), start(bias, bias ? s.rows : 0);
        return winograd(s, x, kernels_of(s, kernels.data), Epilogue<float>{bias ? start.data : nullptr}, y);
    }
    HalfImages images = images_of(s);
    Buffer<int32_t> weights(s.rows * row / 2);
    images.fill(x);
    auto* to = reinterpret_cast<Bf16*>(weights.data);
    for (int64_t o = 0; o < s.rows; ++o) {
        std::memcpy(to + o * row, w + o * k, size_t(k) * sizeof(Bf16));
        std::memset(to + o * row + k, 0, size_t(row - k) * sizeof(Bf16));
    }
    WindowProduct{images, grid_of(s, images), offsets(s, images, s.group_channels()), s.groups, s.group_rows(),
            s.group_channels() * HalfImages::plane(images.axis), to, row, bias}
        .run(y);
}

bool steps_of_one(const ConvShape& s) {
    for (const ConvAxis& a : s.axis)
        if (a.stride != 1) return false;
    return true;
}

// The convolution of the gradient with the turned kernel.
void conv_transposed(const ConvShape& s, const Bf16* y, const Bf16* w, Bf16* x) {
    const int64_t taps = s.taps(), out = s.group_rows(), in = s.group_channels(), k = out * taps, row = row_of(k);
    if (winograd_suits(s, 0) && winograd_wins(gradient_shape(s))) {
        const Widened kernels(w, s.rows * s.k());
        return winograd(gradient_shape(s), y, gradient_kernels(s, kernels.data), {}, x);
    }
    Copy a[conv_dims];
    for (int d = 0; d < conv_dims; ++d) {
        const ConvAxis& x_axis = s.axis[d];
        const int64_t reach = (x_axis.kernel - 1) * x_axis.dilation;
        a[d] = {x_axis.out, reach - x_axis.padding, x_axis.in + reach, 1};
    }
    HalfImages images(s.n, s.rows, a);
    Buffer<int32_t> weights(s.channels * row / 2);
    images.fill(y);
    auto* to = reinterpret_cast<Bf16*>(weights.data);
    parallel(s.channels, 8, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
            Bf16* line = to + c * row;
            for (int64_t o = 0; o < out; ++o)
                for (int64_t t = 0; t < taps; ++t)
                    *line++ = w[((c / in * out + o) * in + c % in) * taps + taps - 1 - t];
            std::memset(line, 0, size_t(row - k) * sizeof(Bf16));
        }
    });
    const int64_t line = HalfImages::row(a);
    WindowGrid grid{{s.axis[0].in, s.axis[1].in, s.axis[2].in}, {a[1].extent * line, line, 1}};
    WindowProduct{images, grid, offsets(s, images, out), s.groups, in, out * HalfImages::plane(a), to, row, nullptr}.run(x);
}

// -- gradient with respect to the weights ---------------------------------------------------------

namespace {

// sums[o, k] = sum over images and windows of y[o, window] * image[offset[k] + window's place]
struct HalfWeightGradient {
    const ConvShape& s;
    const HalfImages& images;
    WindowGrid grid;
    std::vector<int64_t> offset;
    const Bf16* y;    // rows of windows with even length
    int64_t length;   // of a row of windows, even
    int64_t parts;    // of the batch, each with sums of its own
    float* sums;      // (parts, rows, columns)
    int64_t columns;  // a multiple of a panel's

    int64_t places() const { return grid.count[0] * grid.count[1] * length; }

    void run() const {
        const int64_t panels = columns / width;
        parallel(parts * s.groups * panels, 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                panel(i / panels / s.groups, i / panels % s.groups, i % panels * width);
        });
    }

    void panel(int64_t part, int64_t group, int64_t column) const {
        const int64_t each = (s.n + parts - 1) / parts, size = places(), out = s.group_rows();
        constexpr int64_t most = 1024;  // places packed at a time
        uint32_t* words = scratch<uint32_t>(2, most / 2 * width);
        float* to = sums + (part * s.rows + group * out) * columns + column;
        for (int64_t o = 0; o < out; ++o) std::fill(to + o * columns, to + o * columns + width, 0.f);
        const int64_t n = std::min<int64_t>(width, int64_t(offset.size()) - column);
        for (int64_t image = part * each; image < std::min(s.n, (part + 1) * each); ++image)
            for (int64_t first = 0; first < size; first += most) {
                const int64_t count = std::min(most, size - first);
                const Bf16* from = images.at(image) + group * s.group_channels() * HalfImages::plane(images.axis);
                pack(words, from, column, n, first, count);
                multiply(to, y + ((image * s.rows + group * out) * size + first), words, count / 2, size, n);
            }
    }

    void pack(uint32_t* words, const Bf16* from, int64_t column, int64_t n, int64_t first, int64_t count) const {
        for (int64_t place = 0; place < count; place += 32, words += 16 * width) {
            const int64_t here = std::min<int64_t>(32, count - place);
            const Runs runs = grid.runs(first + place, here, length);
            runs.with([&](auto load) __attribute__((always_inline)) {
                for (int half = 0; half < width; half += 16) {
                    Vec<float> v[16];
                    const int64_t* at = offset.data() + column + half;
                    if (half + 16 <= n) {
#pragma GCC unroll 16
                        for (int i = 0; i < 16; ++i) v[i] = (Vec<float>)load(from + at[i]);
                    } else {
                        for (int i = 0; i < 16; ++i)
                            v[i] = half + i < n ? (Vec<float>)load(from + at[i]) : Vec<float>{};
                    }
                    fw::transpose<float>(v);
                    float* to = reinterpret_cast<float*>(words + half);
#pragma GCC unroll 16
                    for (int p = 0; p < 16; ++p)
                        if (2 * p < here) store(to + p * width, v[p]);
                }
            });
        }
    }

    void multiply(float* to, const Bf16* from, const uint32_t* words, int64_t count, int64_t size, int64_t n) const {
        const int64_t out = s.group_rows(), high = (out + rows - 1) / rows;
        for (int64_t i = 0, o = 0; i < high; ++i) {
            const int height = int(out / high + (i < out % high));
            pairs::Tile t;
            t.a = from + o * size, t.a_row = size, t.a_step = 2;
            t.b = words, t.pairs = count, t.cols = int(n);
            t.sums = to + o * columns, t.sums_row = columns, t.add = true;
            pairs::run(height, t);
            o += height;
        }
    }

    void give(Bf16* to) const {
        const int64_t k = int64_t(offset.size());
        parallel(s.rows, 8, [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o) {
                float* total = sums + o * columns;
                for (int64_t p = 1; p < parts; ++p)
                    for (int64_t j = 0; j < k; ++j) total[j] += sums[(p * s.rows + o) * columns + j];
                narrow(to + o * k, total, k);
            }
        });
    }
};

}  // namespace

void conv_weights(const ConvShape& s, const Bf16* x, const Bf16* y, Bf16* w) {
    HalfImages images = images_of(s);
    const int64_t k = s.k(), columns = (k + width - 1) / width * width, panels = columns / width * s.groups;
    const int64_t parts = panels < 8 ? std::min<int64_t>(s.n, 8) : 1;
    const int64_t wide = s.axis[2].out, length = (wide + 1) / 2 * 2, lines = s.n * s.rows * s.pixels() / wide;
    Buffer<float> sums(parts * s.rows * columns);
    Buffer<int32_t> even(length == wide ? 0 : lines * length / 2);
    images.fill(x);
    const Bf16* gradient = y;
    if (length != wide) {
        auto* to = reinterpret_cast<Bf16*>(even.data);
        for (int64_t i = 0; i < lines; ++i) {
            std::memcpy(to + i * length, y + i * wide, size_t(wide) * sizeof(Bf16));
            to[i * length + wide] = Bf16{0};
        }
        gradient = to;
    }
    HalfWeightGradient g{s, images, grid_of(s, images), offsets(s, images, s.group_channels()), gradient, length,
                     parts, sums.data, columns};
    g.run();
    g.give(w);
}

}  // namespace fw::windows

#endif
