// Convolutions of bfloat16, and the gradient of images, by the matrix unit: tiles of 16 windows times 16 kernels.
//
// A piece of images is laid out as a stream (conv_stream.h), which stays in the second cache; tiles of windows are read
// in place, at the offset of each tap, those of kernels from panels that are packed once. The gradient of images is as
// many convolutions of the gradient as there are places between windows (phases), each with its own taps.
#include "conv/conv_tiles.h"

#include <array>

#include "base/pool.h"
#include "base/scratch.h"
#include "gemm/bf16_tile.h"
#include "gemm/gemm_share.h"

namespace fw::windows {
namespace {

constexpr int64_t STEPS = 18, PAIRS = 8;  // of a panel at a time, which stays in the first cache, for so many pairs of tiles

// The results of a phase lie at `first`, and every so many places from there.
struct ConvPhase {
    int64_t first[conv_dims], count[conv_dims];
    std::vector<std::array<int64_t, conv_dims>> at;  // its taps, in places of each dimension
    std::vector<int64_t> tap;                        // and in the kernels
    int64_t panels;                                  // where its own begin
};

struct TileProduct {
    Stream stream;  // of all windows
    std::vector<ConvPhase> phases;
    int64_t step[conv_dims], size[conv_dims];  // between results of a phase; of the results
    int64_t rows, taps;                        // of the results; of the kernels' outer dimensions
    const Bf16* kernels = nullptr;             // for each row, for each tap, the numbers of a group
    const Bf16* bias = nullptr;
    Bf16* panels = nullptr;

    int64_t group_rows() const { return rows / stream.groups; }
    int64_t blocks() const { return ceil_div(group_rows(), WIDE); }  // of a group
    int64_t numbers() const { return stream.channels / stream.groups * stream.inner(); }
    int64_t chunks() const { return stream.group_depth / DEPTH; }
    int64_t panel(const ConvPhase& p) const { return int64_t(p.tap.size()) * chunks() * 2 * TILE; }
    int64_t wide(int64_t block) const { return std::min(WIDE, group_rows() - block % blocks() * WIDE); }
    int64_t row(int64_t block) const { return block / blocks() * group_rows() + block % blocks() * WIDE; }

    int64_t results() const { return size[0] * size[1] * size[2]; }
    int64_t place_panels() {
        int64_t all = 0;
        for (ConvPhase& p : phases) p.panels = all, all += panel(p) * blocks() * stream.groups;
        return all;
    }
    void pack() const {
        const int64_t count = blocks() * stream.groups, row_size = taps * numbers();
        const int64_t grain = std::max<int64_t>(1, 16384 / (WIDE * row_size));
        parallel(int64_t(phases.size()) * count, grain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const ConvPhase& p = phases[size_t(i / count)];
                Bf16* to = panels + p.panels + i % count * panel(p);
                for (int64_t tap : p.tap)
                    for (int64_t k = 0; k < chunks() * DEPTH; k += DEPTH)
                        for (int64_t j = 0; j < WIDE; j += amx::ROWS, to += TILE)
                            turned::pairs_down(to, kernels + (row(i % count) + j) * row_size + tap * numbers() + k, row_size,
                                               wide(i % count) - j, numbers() - k);
            }
        });
    }
};

// R x C tiles of sums: windows from two places on, kernels of a panel; after what is there unless `fresh`. `steps`: where
// the numbers of a step lie behind the place of the window.
template <class U, int R, int C>
void window_block(U& unit, const Bf16* a, const Bf16* b, const int64_t* steps, int64_t count, int64_t depth, const Bf16* panel,
           bool fresh, float* sums) {
    constexpr int64_t row = WIDE * sizeof(float);
    float *right = sums + amx::ROWS, *below = sums + amx::ROWS * WIDE, *last = below + amx::ROWS;
    if (fresh) {
        unit.template zero<0>();
        if constexpr (C > 1) unit.template zero<1>();
        if constexpr (R > 1) unit.template zero<2>();
        if constexpr (R * C > 2) unit.template zero<3>();
    } else {
        unit.template load<0>(sums, row);
        if constexpr (C > 1) unit.template load<1>(right, row);
        if constexpr (R > 1) unit.template load<2>(below, row);
        if constexpr (R * C > 2) unit.template load<3>(last, row);
    }
    const int64_t stride = depth * int64_t(sizeof(Bf16));
    for (int64_t i = 0; i < count; ++i, panel += 2 * TILE) {
        unit.template load<4>(a + steps[i], stride);
        unit.template load<6>(panel, amx::ROW_BYTES);
        unit.template dot<0, 4, 6>();
        if constexpr (C > 1) unit.template load<7>(panel + TILE, amx::ROW_BYTES), unit.template dot<1, 4, 7>();
        if constexpr (R > 1) unit.template load<5>(b + steps[i], stride), unit.template dot<2, 5, 6>();
        if constexpr (R * C > 2) unit.template dot<3, 5, 7>();
    }
    unit.template store<0>(sums, row);
    if constexpr (C > 1) unit.template store<1>(right, row);
    if constexpr (R > 1) unit.template store<2>(below, row);
    if constexpr (R * C > 2) unit.template store<3>(last, row);
}

#if FW_DOT_BF16
// The rows of a tile of sums, rounded, to where `result` says.
FW_WITH_BF16 void round_rows(const float* sums, const int64_t* result, Bf16* to, int64_t row, int64_t wide, const float* bias) {
    const __mmask32 there = turned::first(wide);
    const __m512 low = bias ? _mm512_load_ps(bias) : __m512{}, high = bias ? _mm512_load_ps(bias + 16) : __m512{};
    for (int64_t i = 0; i < amx::ROWS; ++i, sums += WIDE) {
        if (result[i] < 0) continue;
        __m512 a = _mm512_load_ps(sums), b = _mm512_load_ps(sums + 16);
        if (bias) a = _mm512_add_ps(a, low), b = _mm512_add_ps(b, high);
        _mm512_mask_storeu_epi16(to + result[i] * row, there, bits<__m512i>(_mm512_cvtne2ps_pbh(b, a)));
    }
}
#endif

// What is done with a piece of images: results from `to` on, `row` numbers of a place side by side.
template <class U> struct PieceOfTiles {
    const TileProduct& product;
    const Stream& stream;  // of the piece
    const Bf16* from;
    int64_t limit;         // places from there on that may be read
    int64_t begin, end;    // blocks of rows
    Bf16* to;
    int64_t row;

    // `count`: the windows of the phase that are here; the place of the first result from `to` on, and of an image's.
    void run(U& unit, const ConvPhase& phase, const int64_t (&count)[conv_dims], int64_t place, int64_t image) const {
        const int64_t depth = stream.depth();
        std::vector<int64_t> starts, result, steps;
        for (const auto& at : phase.at)
            for (int64_t k = 0; k < stream.group_depth; k += DEPTH) steps.push_back(stream.offset(at) * depth + k);
        places(count, place, image, limit - reach(steps) / depth - amx::ROWS, starts, result);
        if (starts.size() % 2) starts.push_back(-1);
        const int64_t all = int64_t(steps.size()), parts = std::max<int64_t>(1, ceil_div(all, STEPS)), first = product.row(begin);
        alignas(64) float sums[PAIRS][WIDE * WIDE];
        for (size_t s = 0; s < starts.size(); s += 2 * PAIRS)
            for (int64_t i = begin; i < end; ++i) {
                const Bf16* at = from + i / product.blocks() * stream.group_depth;
                const Bf16* panel = product.panels + phase.panels + i * product.panel(phase);
                const int64_t wide = product.wide(i), pairs = std::min<int64_t>(PAIRS, int64_t(starts.size() - s) / 2);
                const Bf16* bias = product.bias ? product.bias + product.row(i) : nullptr;
                for (int64_t part = 0; part < parts; ++part)
                    for (int64_t pair = 0; pair < pairs; ++pair) {
                        const int64_t step = part * all / parts, count = (part + 1) * all / parts - step;
                        const int64_t a = starts[s + size_t(2 * pair)], b = starts[s + size_t(2 * pair + 1)];
                        const auto way = wide > amx::ROWS ? b >= 0 ? window_block<U, 2, 2> : window_block<U, 1, 2>
                                                          : b >= 0 ? window_block<U, 2, 1> : window_block<U, 1, 1>;
                        way(unit, at + a * depth, at + (b >= 0 ? b : a) * depth, steps.data() + step, count, depth,
                            panel + step * 2 * TILE, !part, sums[pair]);
                        if (part + 1 < parts) continue;
                        Bf16* here = to + product.row(i) - first;
                        finish(sums[pair], result.data() + a, here, wide, bias);
                        if (b >= 0) finish(sums[pair] + amx::ROWS * WIDE, result.data() + b, here, wide, bias);
                    }
            }
    }

    static int64_t reach(const std::vector<int64_t>& offsets) {
        return offsets.empty() ? 0 : *std::max_element(offsets.begin(), offsets.end());
    }

  private:
    // Where tiles of windows begin, at `most` at the latest, and which result each place of the stream gives, or -1.
    void places(const int64_t (&count)[conv_dims], int64_t place, int64_t image, int64_t most, std::vector<int64_t>& starts,
                std::vector<int64_t>& result) const {
        const int64_t positions = stream.grid.positions, lines = stream.images * count[0] * count[1];
        result.assign(size_t(stream.images * positions + amx::ROWS), -1);
        if (!lines || !count[2]) return;
        int64_t last = 0;
        const auto line_of = [&](int64_t i) {
            const int64_t at[conv_dims] = {i / count[1] % count[0], i % count[1], 0};
            return i / (count[0] * count[1]) * positions + stream.position(at);
        };
        for (int64_t i = 0; i < lines; ++i) {
            const int64_t z = i / count[1] % count[0], y = i % count[1], n = i / (count[0] * count[1]);
            const int64_t* size = product.size, *step = product.step;
            int64_t r = place + n * image + (z * step[0] * size[1] + y * step[1]) * size[2];
            last = line_of(i);
            for (int64_t x = 0; x < count[2]; ++x, r += step[2]) result[size_t(last + x)] = r;
        }
        const int64_t all = last + count[2], by_lines = lines * ceil_div(count[2], amx::ROWS);
        const auto add = [&](int64_t at) { starts.push_back(std::min(at, most)); };
        if (by_lines < ceil_div(all, amx::ROWS)) {
            for (int64_t i = 0; i < lines; ++i)
                for (int64_t x = 0; x < count[2]; x += amx::ROWS) add(line_of(i) + x);
        } else {
            for (int64_t at = 0; at < all; at += amx::ROWS) add(at);
        }
    }

    void finish(float* sums, const int64_t* result, Bf16* at, int64_t wide, const Bf16* bias) const {
        alignas(64) float shift[WIDE] = {};
        if (bias) widen(shift, bias, wide);
#if FW_DOT_BF16
        if constexpr (!std::is_same_v<U, amx::Twin>) return round_rows(sums, result, at, row, wide, bias ? shift : nullptr);
#endif
        for (int64_t i = 0; i < amx::ROWS; ++i, sums += WIDE) {
            if (result[i] < 0) continue;
            for (int64_t j = 0; j < wide; ++j) sums[j] = amx::Twin::flushed(bias ? sums[j] + shift[j] : sums[j]);
            narrow(at + result[i] * row, sums, wide);
        }
    }
};

template <class U> struct TileRun {
    const TileProduct& product;
    const GivenImages& from;
    Bf16* to;
    bool last;
    StreamPieces pieces;
    int64_t parts;  // of the rows

    TileRun(const TileProduct& product, const GivenImages& from, Bf16* to, bool last)
        : product(product), from(from), to(to), last(last), pieces(product.stream, threads() == 1 ? 1 : 4 * threads()) {
        const int64_t wanted = threads() == 1 ? 1 : ceil_div(2 * threads(), pieces.count());
        parts = std::min(wanted, product.blocks() * product.stream.groups);
    }

    void run() const {
        const Stream& all = product.stream;
        const int64_t count = pieces.count() * parts;
        const double work = double(all.windows()) * double(all.images) * double(product.rows) *
                            double(all.group_depth * product.taps) / double(count);
        const int64_t grain = std::max<int64_t>(1, int64_t(8 * double(worth(WORTH_A_THREAD)) / work));
        parallel(count, grain, [&](int64_t begin, int64_t end) {
            U unit;
            for (int64_t i = begin; i < end; ++i) one(unit, pieces[i / parts], i % parts);
        });
    }

    void one(U& unit, const StreamPiece& p, int64_t part) const {
        const int cut = pieces.cut;
        const int64_t blocks = product.blocks() * product.stream.groups;
        const int64_t first = part * blocks / parts, end = (part + 1) * blocks / parts, row = product.row(first);
        const int64_t rows = (end < blocks ? product.row(end) : product.rows) - row;
        const int64_t plane = product.results(), slice = plane / product.size[cut], start = p.begin * product.step[cut];
        const int64_t size = (std::min(p.end * product.step[cut], product.size[cut]) - start) * slice;
        const Laid laid = lay(p);
        // channels last: to where they belong; else side by side first
        Bf16* out = last ? to + (p.image * plane + start * slice) * product.rows + row : scratch<Bf16>(2, p.images * size * rows);
        const PieceOfTiles<U> piece{product, laid.stream, laid.from, laid.limit, first, end, out, last ? product.rows : rows};
        for (const ConvPhase& phase : product.phases) {
            int64_t count[conv_dims], place = 0;
            for (int d = 0; d < conv_dims; ++d) {
                count[d] = phase.count[d];
                place = place * product.size[d] + phase.first[d];
            }
            count[cut] = std::clamp<int64_t>(count[cut] - p.begin, 0, p.end - p.begin);
            piece.run(unit, phase, count, place, last ? plane : size);
        }
        for (int64_t n = 0; n < p.images && !last; ++n)
            turned::turn_matrix(out + n * size * rows, rows, size, rows, [&](int64_t c, int64_t pixel) {
                return to + ((p.image + n) * product.rows + row + c) * plane + start * slice + pixel;
            });
    }

  private:
    struct Laid {
        Stream stream;
        const Bf16* from;
        int64_t limit;  // places that may be read
    };

    Laid lay(const StreamPiece& p) const {
        const Stream& all = product.stream;
        if (all.as_given(from)) {
            Laid found{all, nullptr, 0};
            const int64_t before = p.image * all.grid.positions + p.begin * all.grid.along[pieces.cut];
            found.stream.images = p.images;
            found.from = from.data + before * all.depth(), found.limit = all.images * all.grid.positions - before;
            int64_t reach = 0;
            for (const ConvPhase& phase : product.phases)
                for (const auto& at : phase.at) reach = std::max(reach, all.offset(at));
            if (found.limit >= amx::ROWS + reach) return found;
        }
        Laid made{pieces.stream(p), nullptr, 0};
        const Stream& s = made.stream;
        const int64_t laid = s.images * s.grid.positions, depth = s.depth();
        made.limit = laid + amx::ROWS;  // the last tile ends there
        Bf16* rows = scratch<Bf16>(0, made.limit * depth);
        std::memset(static_cast<void*>(rows + laid * depth), 0, size_t(amx::ROWS * depth) * sizeof(Bf16));
        s.fill(from, p.image, rows, scratch<Bf16>(1, s.room_size()));
        made.from = rows;
        return made;
    }
};

void start(TileProduct& product, const GivenImages& from, Bf16* to, bool last, bool plain) {
    const Buffer<int32_t> panels(product.place_panels() / 2);
    product.panels = reinterpret_cast<Bf16*>(panels.data);
    product.pack();
    if (plain) TileRun<amx::Twin>(product, from, to, last).run();
    else TileRun<amx::Unit>(product, from, to, last).run();
}

}  // namespace

// What is laid out of a piece at least, and of kernels: few dimensions are cut, groups of few channels are made wider.
bool tiles_can(const ConvShape& s) {
    double places = 1, kernels = 1, phases = 1;
    for (const ConvAxis& a : s.axis) {
        places *= double(std::max(a.in, a.out)) + 2 * double((a.kernel - 1) * a.dilation + 1 + a.padding + a.stride);
        kernels *= double(a.kernel), phases *= double(a.stride);
    }
    const double in = double(s.groups) * double(s.group_channels() + DEPTH);
    const double out = double(s.groups) * double(s.group_rows() + DEPTH);
    return places * std::max(in, out) < 1e8 && kernels * in * double(s.group_rows() + DEPTH) < 1e8 && phases <= 64;
}

bool tiles_suit(const ConvShape& s) {
    constexpr int64_t LEAST = 2 << 20, KERNELS = 1 << 16;  // operations, or numbers of kernels to be laid out, which all ways do
    return amx::available() && s.group_channels() * s.taps() >= 16 && s.group_rows() >= 8 &&
           (s.flops() >= LEAST || s.rows * s.k() >= KERNELS) && tiles_can(s);
}

void conv_forward_by_tiles(const ConvShape& s, const GivenImages& x, const GivenImages& w, const Bf16* bias, Bf16* y, bool last,
                           bool plain) {
    const int64_t each = s.group_channels(), taps = s.taps();
    ConvPhase phase{};
    for (int d = 0; d < conv_dims; ++d) phase.count[d] = s.axis[d].out;
    TileProduct product{stream_of(s), {}, {1, 1, 1}, {s.axis[0].out, s.axis[1].out, s.axis[2].out}, s.rows, 0};
    product.taps = taps / product.stream.inner();
    for (int64_t t = 0; t < product.taps; ++t) {
        int64_t at[conv_dims];
        s.tap(t * product.stream.inner(), at);
        phase.at.push_back({at[0], at[1], at[2]}), phase.tap.push_back(t);
    }
    product.phases.push_back(std::move(phase));
    const bool lies = w.last || taps == 1 || each == 1;
    const Buffer<int32_t> memory(lies ? 0 : s.rows * s.k() / 2 + 1);
    auto* kernels = reinterpret_cast<Bf16*>(memory.data);
    if (!lies)
        parallel(s.rows, std::max<int64_t>(1, 16384 / s.k()), [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o)
                turned::turn_matrix(w.data + o * s.k(), taps, each, taps,
                                    [&](int64_t t, int64_t c) { return kernels + o * s.k() + t * each + c; });
        });
    product.kernels = lies ? w.data : kernels;
    product.bias = bias;
    start(product, x, y, last, plain);
}

namespace {

// Which taps reach the places of a phase along one dimension, and how far from there they read.
struct PhaseTaps {
    std::vector<int64_t> tap, shift;
    PhaseTaps(const ConvAxis& a, int64_t phase) {
        for (int64_t t = a.kernel - 1; t >= 0; --t) {  // as they lie in the gradient
            const int64_t from = phase + a.padding - t * a.dilation;
            if (from - floor_div(from, a.stride) * a.stride) continue;
            tap.push_back(t), shift.push_back(floor_div(from, a.stride));
        }
    }
};

// The kernels with their rows innermost, taps from the last to the first.
void turn_kernels(const ConvShape& s, const GivenImages& w, Bf16* to) {
    const int64_t taps = s.taps(), each = s.group_channels(), out = s.group_rows();
    const bool last = w.last;
    parallel(s.groups * each, std::max<int64_t>(1, 16384 / (out * taps)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end;) {  // channels of a group
            const int64_t g = i / each, c = i % each, many = std::min(end - i, each - c);
            const Bf16* from = w.data + g * out * s.k();
            const auto place = [&](int64_t channel, int64_t t, int64_t o) {
                return to + ((g * each + channel) * taps + taps - 1 - t) * out + o;
            };
            if (last) {
                for (int64_t t = 0; t < taps; ++t)
                    turned::turn_matrix(from + t * each + c, s.k(), out, many,
                                        [&](int64_t j, int64_t o) { return place(c + j, t, o); });
            } else {
                turned::turn_matrix(from + c * taps, s.k(), out, many * taps,
                                    [&](int64_t j, int64_t o) { return place(c + j / taps, j % taps, o); });
            }
            i += many;
        }
    });
}

}  // namespace

void conv_transposed_by_tiles(const ConvShape& s, const GivenImages& y, const GivenImages& w, Bf16* x, bool last, bool plain) {
    StreamAxis axis[conv_dims];
    std::vector<PhaseTaps> found[conv_dims];
    int64_t phases[conv_dims], all = 1;
    for (int d = 0; d < conv_dims; ++d) {
        const ConvAxis& a = s.axis[d];
        int64_t low = INT64_MAX, high = INT64_MIN;
        phases[d] = std::min(a.stride, a.in), all *= phases[d];
        for (int64_t f = 0; f < phases[d]; ++f) {
            found[d].emplace_back(a, f);
            for (const int64_t shift : found[d].back().shift) low = std::min(low, shift), high = std::max(high, shift);
        }
        if (low > high) low = high = 0;
        axis[d] = {a.out, ceil_div(a.in, a.stride), 1, -low, high - low, a.kernel, a.dilation};
    }
    const int64_t taps = s.taps();
    const bool dense = s.axis[0].stride * s.axis[1].stride * s.axis[2].stride == 1;
    const int fold = dense ? Stream::best_fold(axis, s.group_rows(), s.group_channels()) : 0;
    TileProduct product{Stream(s.n, s.rows, s.groups, axis, fold), {}, {s.axis[0].stride, s.axis[1].stride, s.axis[2].stride},
                        {s.axis[0].in, s.axis[1].in, s.axis[2].in}, s.channels, 0};
    product.taps = taps / product.stream.inner();
    const int outer = conv_dims - fold;
    for (int64_t f = 0; f < all; ++f) {
        const int64_t at[conv_dims] = {f / phases[2] / phases[1], f / phases[2] % phases[1], f % phases[2]};
        const PhaseTaps* of[conv_dims];
        ConvPhase p{};
        int64_t many[conv_dims];
        for (int d = 0; d < conv_dims; ++d) {
            of[d] = &found[d][size_t(at[d])];
            p.first[d] = at[d], p.count[d] = ceil_div(s.axis[d].in - at[d], s.axis[d].stride);
            many[d] = d < outer ? int64_t(of[d]->tap.size()) : 1;
        }
        for (int64_t i = 0; i < many[0] * many[1] * many[2]; ++i) {
            const int64_t which[conv_dims] = {i / many[2] / many[1], i / many[2] % many[1], i % many[2]};
            std::array<int64_t, conv_dims> shift{};
            int64_t tap = 0;
            for (int d = 0; d < outer; ++d) {
                shift[size_t(d)] = of[d]->shift[size_t(which[d])] + axis[d].before;
                tap = tap * s.axis[d].kernel + s.axis[d].kernel - 1 - of[d]->tap[size_t(which[d])];
            }
            p.at.push_back(shift), p.tap.push_back(tap);
        }
        product.phases.push_back(std::move(p));
    }
    const Buffer<int32_t> memory(s.rows * s.k() / 2 + 1);
    auto* kernels = reinterpret_cast<Bf16*>(memory.data);
    turn_kernels(s, w, kernels);
    product.kernels = kernels;
    start(product, y, x, last, plain);
}

}  // namespace fw::windows
