#include "quantized/int8.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "base/pool.h"
#include "base/scratch.h"
#include "base/vecmath.h"
#include "quantized/int8_products.h"
#include "quantized/int8_tile.h"

namespace fw::int8 {
namespace {

constexpr int64_t GRAIN = 32768;      // numbers that a thread is woken for
constexpr int64_t PRODUCTS = 262144;  // and products, about as long

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t whole(int64_t n, int64_t step) { return ceil_div(n, step) * step; }

const Way* find(std::string_view name) {
    if (name == "plain") return &way_of<Loops<16>>("plain");
    if (name == "words") return &way_of<Words>("words");
    if (name == "bytes") return has_dot() ? &way_of<Dot>("bytes") : &way_of<Loops<FW_BYTES>>("bytes");
    if (name == "tiles") {
        // what is too small for tiles goes by rows of their length
        constexpr int64_t length = sizeof(Vec<uint8_t>);
        static const Way way = [] {
            Way w = length == STEP && has_dot() ? way_of<Dot>("tiles") : way_of<Loops<STEP>>("tiles");
            w.name = "tiles", w.tiles = amx::has_bytes() ? Way::unit : Way::twin;
            return w;
        }();
        return &way;
    }
    return nullptr;
}

const Way*& chosen() {
    static const Way* way = find(amx::has_bytes() ? "tiles" : has_dot() ? "bytes" : "words");
    return way;
}

// -- numbers to bytes -------------------------------------------------------------------------------

struct ByteRange {
    Vec<float> low{}, high{}, odd{};  // odd: not 0 where a number was inf or nan

    FW_INLINE void take(Vec<float> v) {
        low = v < low ? v : low, high = v > high ? v : high;
        odd += v - v;  // nan of inf and nan, and from then on
    }
};

void range_of(const float* x, int64_t n, float& low, float& high) {
    constexpr int step = lanes<float>;
    ByteRange r[4];
    int64_t i = 0;
    for (; i + 4 * step <= n; i += 4 * step)
        for (int j = 0; j < 4; ++j) r[j].take(load(x + i + j * step));
    for (; i < n; i += step) r[0].take(i + step <= n ? load(x + i) : load_part(x + i, n - i));
    low = high = 0;
    float odd = 0;
    for (const ByteRange& part : r)
        for (int j = 0; j < step; ++j) {
            low = std::min<float>(low, part.low[j]), high = std::max<float>(high, part.high[j]);
            odd += part.odd[j];
        }
    if (odd != odd) high = std::numeric_limits<float>::infinity();
}

// The bytes of lanes<float> numbers.
using Lanes = uint8_t __attribute__((vector_size(FW_BYTES / 4)));

FW_INLINE Lanes bytes_of(Vec<float> x, Vec<float> scale, Vec<float> zero) {
    Vec<float> q = math::rint(x / scale) + zero;
    q = select<float>(x == x, q, zero);
    q = q > Vec<float>{} ? q : Vec<float>{};
    q = q < splat(255.0f) ? q : splat(255.0f);
    const Vec<int32_t> whole = __builtin_convertvector(q, Vec<int32_t>);
#if defined(FW_AVX512)
    return (Lanes)_mm512_cvtepi32_epi8((__m512i)whole);
#elif defined(FW_AVX2)
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128((__m256i)whole),
                                           _mm256_extracti128_si256((__m256i)whole, 1));
    return bits<Lanes>(_mm_cvtsi128_si64(_mm_packus_epi16(words, words)));
#else
    return __builtin_convertvector(whole, Lanes);
#endif
}

void bytes_of(uint8_t* to, const float* x, int64_t n, Scale s) {
    constexpr int step = lanes<float>;
    const Vec<float> scale = splat(s.scale), zero = splat(float(s.zero));
    for (int64_t i = 0; i < n; i += step) {
        const bool all = i + step <= n;
        const Lanes q = bytes_of(all ? load(x + i) : load_part(x + i, n - i), scale, zero);
        std::memcpy(to + i, &q, all ? size_t(step) : size_t(n - i));
    }
}

// -- weights ----------------------------------------------------------------------------------------

// Rows of which whole steps can be read: the last ones, where a step would end behind the array, as copies.
class ByteRows {
  public:
    ByteRows(const int8_t* w, int64_t n, int64_t k, int64_t length) : w(w), k(k), length(length) {
        safe = std::min(n, n * k >= length ? (n * k - length) / std::max<int64_t>(k, 1) + 1 : 0);
        if (safe == n) return;
        int8_t* to = scratch<int8_t>(0, (n - safe) * length);
        std::memset(to, 0, size_t((n - safe) * length));
        for (int64_t i = safe; i < n; ++i) std::memcpy(to + (i - safe) * length, w + i * k, size_t(k));
        copies = to;
    }
    const int8_t* operator[](int64_t i) const { return i < safe ? w + i * k : copies + (i - safe) * length; }
    // How many rows from i on, at most `most`, lie one behind the other, and with which step.
    int together(int64_t i, int most) const { return int(i < safe ? std::min<int64_t>(most, safe - i) : most); }
    int64_t step(int64_t i) const { return i < safe ? k : length; }

  private:
    const int8_t* w;
    int64_t k, length, safe;
    const int8_t* copies = nullptr;
};

// The sums over the terms of each row, times `by`.
void totals(const int8_t* w, int64_t n, int64_t k, int32_t by, int32_t* out) {
    if (!by) return std::fill(out, out + n, 0), void();
    parallel(n, std::max<int64_t>(1, PRODUCTS / std::max<int64_t>(k, 1)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int32_t sum = 0;
            for (int64_t p = 0; p < k; ++p) sum += w[i * k + p];
            out[i] = sum * by;
        }
    });
}

// -- from sums to results -----------------------------------------------------------------------------

FW_INLINE FourFloats floats(Four v) { return __builtin_convertvector(v, FourFloats); }

template <class V, class T> FW_INLINE V four(const T* p, int n) {
    V v{};
    if (n == ACROSS) std::memcpy(&v, p, sizeof v);
    else std::memcpy(&v, p, size_t(n) * sizeof(T));
    return v;
}

FW_INLINE void put(float* to, FourFloats v, int n) {
    if (n == ACROSS) std::memcpy(to, &v, sizeof v);
    else std::memcpy(to, &v, size_t(n) * sizeof(float));
}

}  // namespace

Scale scale_of(float low, float high) {
    low = std::min(low, 0.0f), high = std::max(high, 0.0f);
    Scale s{(high - low) / 255.0f, 0};
    if (s.scale == 0) s.scale = 1;
    if (s.finite()) s.zero = int32_t(std::min(std::max(std::nearbyint(-low / s.scale), 0.0f), 255.0f));
    return s;
}

Scale scale_of(const float* x, int64_t n) {
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(ceil_div(n, GRAIN), 256));
    const int64_t each = ceil_div(n, pieces);
    float low[256] = {}, high[256] = {};
    parallel(pieces, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            range_of(x + std::min(n, i * each), std::min(each, std::max<int64_t>(0, n - i * each)), low[i], high[i]);
    });
    return scale_of(*std::min_element(low, low + pieces), *std::max_element(high, high + pieces));
}

void quantize(uint8_t* to, const float* x, int64_t n, Scale s) {
    parallel(n, GRAIN, [&](int64_t begin, int64_t end) { bytes_of(to + begin, x + begin, end - begin, s); });
}

namespace {

constexpr int64_t COLUMNS = 16;         // tiles of activations that are multiplied with the same weights
constexpr int64_t FROM_FAR = 4 << 20;   // bytes of weights that come from memory: one row is read row by row

// The sums of weights times `by`, of 32 rows.
void shares_of(const Way& way, const WeightRows& w, const uint8_t* ones, int64_t length, int32_t by, int32_t (&share)[SIDE]) {
    std::memset(share, 0, sizeof share);
    for (int64_t j = 0; j < w.count && by; j += ACROSS) {
        const int8_t* b[ACROSS];
        for (int64_t o = 0; o < ACROSS; ++o) b[o] = w.row(j + o);
        Four sums[4];
        way.activations_first[0](ones, length, b, length / way.chunk, sums);
        sums[0] *= by;
        std::memcpy(share + j, &sums[0], sizeof sums[0]);
    }
}

// q: the activations as bytes, in rows of whole steps, and a row of ones behind them.
template <class U> void linear_by_tiles(const Way& way, const Linear& g, Scale s, const uint8_t* q, int64_t length) {
    const int64_t chunks = length / STEP, tiles = ceil_div(g.m, amx::ROWS);
    uint8_t* fours = scratch<uint8_t>(1, tiles * amx::ROWS * length);
    parallel(tiles, std::max<int64_t>(1, GRAIN / (amx::ROWS * length)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const uint8_t* rows[amx::ROWS];
            const int64_t count = std::min<int64_t>(amx::ROWS, g.m - i * amx::ROWS);
            for (int64_t r = 0; r < count; ++r) rows[r] = q + (i * amx::ROWS + r) * length;
            pack_fours(fours + i * amx::ROWS * length, rows, count, chunks);
        }
    });
    const int64_t blocks = ceil_div(g.n, SIDE), wide = ceil_div(tiles, COLUMNS);
    const int64_t each = SIDE * std::min(tiles, COLUMNS) * amx::ROWS * length;
    parallel(blocks * wide, std::max<int64_t>(1, 16 * PRODUCTS / each), [&](int64_t begin, int64_t end) {
        U unit;
        alignas(64) ByteSums sums;
        for (int64_t i = begin; i < end; ++i) {
            const int64_t row = i / wide * SIDE, last = std::min(tiles, (i % wide + 1) * COLUMNS);
            const WeightRows w(g.w, g.n, g.k, row, g.n, length);
            alignas(64) int32_t share[SIDE];
            alignas(64) float factor[SIDE] = {}, bias[SIDE] = {};
            shares_of(way, w, q + g.m * length, length, s.zero - way.shift, share);
            for (int64_t r = 0; r < w.count; ++r) factor[r] = g.scales[row + r] * s.scale, bias[r] = g.bias ? g.bias[row + r] : 0;
            for (int64_t t = i % wide * COLUMNS; t < last; t += 2) {
                const int64_t column = t * amx::ROWS, room = std::min<int64_t>(2, last - t) * amx::ROWS;
                const int64_t cols = std::min(g.m - column, room);
                byte_sums(unit, w, fours + column * length, cols, chunks, sums);
                put_turned(g.out + column * g.n + row, g.n, sums, w.count, cols, share, factor, g.bias ? bias : nullptr);
            }
        }
    });
}

}  // namespace

void linear(const Linear& g, Scale s) {
    if (!s.finite()) return std::fill(g.out, g.out + g.m * g.n, std::numeric_limits<float>::quiet_NaN()), void();
    if (!g.m || !g.n) return;
    const Way& way = *chosen();
    const int64_t chunks = ceil_div(g.k, way.chunk), length = chunks * way.chunk;
    const ByteRows w(g.w, g.n, g.k, length);
    // the activations, and behind them a row of ones, of which the products are the sums of the weights
    uint8_t* q = scratch<uint8_t>(0, (g.m + 1) * length);
    parallel(g.m, std::max<int64_t>(1, GRAIN / std::max<int64_t>(g.k, 1)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            bytes_of(q + i * length, g.x + i * g.k, g.k, s);
            std::memset(q + i * length + g.k, way.shift, size_t(length - g.k));
        }
    });
    std::memset(q + g.m * length, way.shift + 1, size_t(g.k));
    std::memset(q + g.m * length + g.k, way.shift, size_t(length - g.k));

    if (way.tiles && (g.m > 1 || g.n * g.k <= FROM_FAR)) {
        const auto by_tiles = way.tiles == Way::unit ? linear_by_tiles<amx::Unit> : linear_by_tiles<amx::Twin>;
        return by_tiles(way, g, s, q, length);
    }
    const int32_t zero = s.zero - way.shift;
    const bool alone = g.m == 1 && zero;  // then the ones go along, since the weights come from far
    int32_t* shares = scratch<int32_t>(0, alone ? 1 : g.n);
    if (!alone) totals(g.w, g.n, g.k, zero, shares);
    const int64_t high = std::min<int64_t>(g.m, 16 * way.rows), row_blocks = ceil_div(g.m, high);
    const int64_t groups = ceil_div(g.n, ACROSS), cost = std::max<int64_t>(g.k, 1) * high * ACROSS;
    const int64_t wide = std::clamp<int64_t>(PRODUCTS / cost, 1, groups), wides = ceil_div(groups, wide);
    parallel(row_blocks * wides, 1, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
            const int64_t top = unit / wides * high, bottom = std::min(g.m, top + high);
            for (int64_t j = unit % wides * wide * ACROSS, last = std::min(g.n, j + wide * ACROSS); j < last; j += ACROSS) {
                const int n = int(std::min<int64_t>(ACROSS, g.n - j));
                const int8_t* b[ACROSS];
                for (int o = 0; o < ACROSS; ++o) b[o] = w[j + std::min(o, n - 1)];
                const FourFloats factor = four<FourFloats>(g.scales + j, n) * s.scale;
                const FourFloats bias = g.bias ? four<FourFloats>(g.bias + j, n) : FourFloats{};
                Four sums[4], share;
                if (alone) {
                    way.activations_first[1](q, length, b, chunks, sums);
                    share = sums[1] * zero;
                } else {
                    share = four<Four>(shares + j, n);
                }
                for (int64_t i = top; i < bottom;) {
                    const int rows = int(std::min<int64_t>(way.rows, bottom - i));
                    if (!alone) way.activations_first[rows - 1](q + i * length, length, b, chunks, sums);
                    for (int r = 0; r < rows; ++r, ++i) {
                        FourFloats y = floats(sums[r] - share) * factor;
                        put(g.out + i * g.n + j, g.bias ? y + bias : y, n);
                    }
                }
            }
        }
    });
}

// -- convolutions -----------------------------------------------------------------------------------

namespace {

constexpr int64_t PIXELS = 64;           // windows that are laid out at a time, at most
constexpr int64_t WINDOWS = 16 << 10;    // and their bytes: they stay in the first cache
constexpr int64_t OUTPUTS_FOR_TILES = 8;  // of a group
constexpr int64_t PIECE = 16;   // bytes that a window is copied in

using Sixteen = uint8_t __attribute__((vector_size(16)));

// A square of 16 x 16 bytes: rows become columns.
FW_INLINE void turn(Sixteen (&v)[16]) {
    for (int stage = 0; stage < 4; ++stage) {
        Sixteen w[16];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
            w[2 * i] = __builtin_shufflevector(v[i], v[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            w[2 * i + 1] =
                __builtin_shufflevector(v[i], v[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
        std::memcpy(v, w, sizeof w);
    }
}

// The images as bytes, channels last, with their borders, which are the zero point.
class ByteImages {
  public:
    ByteImages(const Conv& g, Scale s) : g(g), high(g.height + 2 * g.padding[0]), wide(g.width + 2 * g.padding[1]) {
        const int64_t rows = g.images * high, row = wide * g.channels;
        to = scratch<uint8_t>(1, rows * row + PIECE);
        parallel(rows, std::max<int64_t>(1, GRAIN / std::max<int64_t>(row, 1)), [&](int64_t begin, int64_t end) {
            const int64_t line = whole(g.width, 16);
            uint8_t* lines = scratch<uint8_t>(2, 16 * line);
            for (int64_t i = begin; i < end; ++i) {
                uint8_t* at = to + i * row;
                const int64_t image = i / high, y = i % high - g.padding[0];
                std::memset(at, s.zero, size_t(row));
                if (y < 0 || y >= g.height) continue;
                at += g.padding[1] * g.channels;
                for (int64_t c = 0; c < g.channels; c += 16) {
                    const int64_t deep = std::min<int64_t>(16, g.channels - c);
                    for (int64_t d = 0; d < deep; ++d)
                        bytes_of(lines + d * line, g.x + ((image * g.channels + c + d) * g.height + y) * g.width, g.width, s);
                    for (int64_t x = 0; x < g.width; x += 16) {
                        Sixteen v[16];
                        for (int d = 0; d < 16; ++d) std::memcpy(&v[d], lines + d * line + x, sizeof v[d]);
                        turn(v);
                        const int64_t many = std::min<int64_t>(16, g.width - x);
                        for (int64_t i = 0; i < many; ++i) {
                            uint8_t* pixel = at + (x + i) * g.channels + c;
                            if (deep == 16) std::memcpy(pixel, &v[i], 16);
                            else std::memcpy(pixel, &v[i], size_t(deep));
                        }
                    }
                }
            }
        });
    }

    // The bytes of group `part` at the upper left corner of the window at row y and column x of the result.
    const uint8_t* window(int64_t image, int64_t part, int64_t y, int64_t x) const {
        return to + ((image * high + y * g.stride[0]) * wide + x * g.stride[1]) * g.channels +
               part * (g.channels / g.groups);
    }

    // The window in one piece, in the order of the weights; up to PIECE - 1 bytes of rubbish behind it.
    void lay_out(uint8_t* out, const uint8_t* from) const {
        const int64_t depth = g.channels / g.groups;
        const bool joined = g.groups == 1 && g.dilation[1] == 1;  // a row of the window lies in one piece
        const int64_t pieces = joined ? 1 : g.kernel[1], run = joined ? g.kernel[1] * depth : depth;
        for (int64_t ky = 0; ky < g.kernel[0]; ++ky) {
            const uint8_t* row = from + ky * g.dilation[0] * wide * g.channels;
            for (int64_t kx = 0; kx < pieces; ++kx, out += run)
                for (int64_t b = 0; b < run; b += PIECE)
                    std::memcpy(out + b, row + kx * g.dilation[1] * g.channels + b, PIECE);
        }
    }

  private:
    const Conv& g;
    const int64_t high, wide;
    uint8_t* to;
};

// The results of some windows, which lie side by side, for the outputs of a group, from the first one's place on.
template <class U>
void windows_by_tiles(const Conv& g, Scale s, const uint8_t* const* at, int64_t count, int64_t length, int64_t part,
                      const int32_t* shares, float* out) {
    U unit;
    alignas(64) ByteSums sums;
    const int64_t chunks = length / STEP, each = g.outputs / g.groups, pixels = g.out_size(0) * g.out_size(1);
    uint8_t* fours = scratch<uint8_t>(2, PIXELS * length);
    for (int64_t i = 0; i < count; i += amx::ROWS)
        pack_fours(fours + i * length, at + i, std::min<int64_t>(amx::ROWS, count - i), chunks);
    for (int64_t o = 0; o < each; o += SIDE) {
        const int64_t row = part * each + o;
        const WeightRows w(g.w, g.outputs, g.terms(), row, (part + 1) * each, length);
        for (int64_t i = 0; i < count; i += SIDE) {
            const int64_t cols = std::min(SIDE, count - i);
            byte_sums(unit, w, fours + i * length, cols, chunks, sums);
            for (int64_t r = 0; r < w.count; ++r) {
                const float factor = s.scale * g.scales[row + r];
                float* to = out + (o + r) * pixels + i;
                for (int64_t c = 0; c < cols; ++c) to[c] = float(sums[r][c] - shares[row + r]) * factor;
                if (g.bias)
                    for (int64_t c = 0; c < cols; ++c) to[c] += g.bias[row + r];
            }
        }
    }
}

}  // namespace

void conv(const Conv& g, Scale s) {
    const int64_t pixels = g.out_size(0) * g.out_size(1), all = g.images * g.outputs * pixels;
    if (!s.finite()) return std::fill(g.out, g.out + all, std::numeric_limits<float>::quiet_NaN()), void();
    if (!all) return;
    const Way& way = *chosen();
    const int64_t k = g.terms(), chunks = ceil_div(k, way.chunk), length = chunks * way.chunk;
    const ByteRows w(g.w, g.outputs, k, length);
    int32_t* shares = scratch<int32_t>(0, g.outputs);
    totals(g.w, g.outputs, k, s.zero - way.shift, shares);
    const ByteImages images(g, s);
    // a window of one pixel with all channels is in one piece as it lies
    const bool in_place = g.kernel[0] * g.kernel[1] * g.groups == 1 && k == length;
    const int64_t row = g.out_size(1), each = g.outputs / g.groups;
    const bool tiles = way.tiles && each >= OUTPUTS_FOR_TILES;
    const int64_t most = tiles ? std::clamp<int64_t>(4 * WINDOWS / length / SIDE * SIDE, SIDE, PIXELS)
                               : std::clamp<int64_t>(WINDOWS / length / 4 * 4, 8, 48);
    const int64_t blocks = ceil_div(pixels, most);
    parallel(g.images * g.groups * blocks, std::max<int64_t>(1, PRODUCTS / (most * each * length)),
             [&](int64_t begin, int64_t end) {
        uint8_t* windows = scratch<uint8_t>(3, most * length + PIECE);
        const uint8_t* at[PIXELS];
        std::optional<amx::Unit> set_up;  // for all of them
        if (tiles && way.tiles == Way::unit) set_up.emplace();
        for (int64_t unit = begin; unit < end; ++unit) {
            const int64_t first = unit % blocks * most, count = std::min(most, pixels - first);
            const int64_t part = unit / blocks % g.groups, image = unit / blocks / g.groups;
            for (int64_t i = 0, y = first / row, x = first % row; i < count; ++i, ++x) {
                if (x == row) x = 0, ++y;
                const uint8_t* from = images.window(image, part, y, x);
                at[i] = in_place ? from : windows + i * length;
                if (!in_place) images.lay_out(windows + i * length, from);
            }
            if (!in_place && k < length)  // each was written over by the one behind it
                for (int64_t i = 0; i < count; ++i) std::memset(windows + i * length + k, way.shift, size_t(length - k));
            if (tiles) {
                float* out = g.out + (image * g.outputs + part * each) * pixels + first;
                const auto by_tiles = way.tiles == Way::unit ? windows_by_tiles<amx::Unit> : windows_by_tiles<amx::Twin>;
                by_tiles(g, s, at, count, length, part, shares, out);
                continue;
            }
            for (int64_t i = count; i < whole(count, ACROSS); ++i) at[i] = at[0];
            for (int64_t o = part * each, last = o + each; o < last;) {
                const int rows = w.together(o, int(std::min<int64_t>(way.rows, last - o)));
                for (int64_t i = 0; i < count; i += ACROSS) {
                    Four sums[4];
                    way.weights_first[rows - 1](w[o], w.step(o), at + i, chunks, sums);
                    for (int r = 0; r < rows; ++r) {
                        FourFloats y = floats(sums[r] - shares[o + r]) * (s.scale * g.scales[o + r]);
                        if (g.bias) y += g.bias[o + r];
                        put(g.out + (image * g.outputs + o + r) * pixels + first + i, y,
                            int(std::min<int64_t>(ACROSS, count - i)));
                    }
                }
                o += rows;
            }
        }
    });
}

const char* way() { return chosen()->name; }

bool use(const char* name) {
    const Way* way = find(name);
    if (way) chosen() = way;
    return way != nullptr;
}

}  // namespace fw::int8
