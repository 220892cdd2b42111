// The gradient of kernels by the matrix unit: tiles of 16 rows times 16 numbers of a window, summed over windows. Windows
// of a stream (conv_stream.h) are packed two by two, the gradient is turned so that the windows of a row lie side by side.
#include "base/pool.h"
#include "base/scratch.h"
#include "conv/conv_tiles.h"

namespace fw::windows {
namespace {

constexpr int64_t AT_ONCE = 256;                // windows that are packed at a time: they stay in the first cache
constexpr int64_t SUMS = 512 << 10, PARTS = 8;  // bytes of sums, and parts of the images, that are summed up apart,
constexpr int64_t APIECE = 8 << 20;             // of so many operations

// R x 2 tiles of sums, after what is there unless `fresh`; tiles of `a` lie a_step numbers apart.
template <class U, int R>
void gradient_block(U& unit, const Bf16* a, int64_t a_step, const Bf16* b, int64_t steps, bool fresh, float* sums,
                    int64_t sums_row) {
    const int64_t row = sums_row * int64_t(sizeof(float));
    float *right = sums + amx::ROWS, *below = sums + amx::ROWS * sums_row, *last = below + amx::ROWS;
    if (fresh) {
        unit.template zero<0>();
        unit.template zero<1>();
        if constexpr (R > 1) unit.template zero<2>(), unit.template zero<3>();
    } else {
        unit.template load<0>(sums, row);
        unit.template load<1>(right, row);
        if constexpr (R > 1) unit.template load<2>(below, row), unit.template load<3>(last, row);
    }
    for (int64_t p = 0; p < steps; ++p, a += a_step, b += 2 * TILE) {
        unit.template load<4>(a, amx::ROW_BYTES);
        unit.template load<6>(b, amx::ROW_BYTES);
        unit.template dot<0, 4, 6>();
        unit.template load<7>(b + TILE, amx::ROW_BYTES), unit.template dot<1, 4, 7>();
        if constexpr (R > 1) {
            unit.template load<5>(a + TILE, amx::ROW_BYTES);
            unit.template dot<2, 5, 6>(), unit.template dot<3, 5, 7>();
        }
    }
    unit.template store<0>(sums, row);
    unit.template store<1>(right, row);
    if constexpr (R > 1) unit.template store<2>(below, row), unit.template store<3>(last, row);
}

struct TileWeights {
    const ConvShape& s;
    const Stream& all;
    const GivenImages &x, &y;
    StreamPieces pieces;
    int64_t parts = 1, shares = 1;
    float* sums = nullptr;  // of each part: for each row, for each tap, the numbers of a window

    TileWeights(const ConvShape& s, const Stream& all, const GivenImages& x, const GivenImages& y)
        : s(s), all(all), x(x), y(y), pieces(all, std::clamp<int64_t>(s.flops() / APIECE, 1, PARTS)) {
        parts = std::clamp<int64_t>(SUMS / (sums_size() * int64_t(sizeof(float))), 1, std::min(PARTS, pieces.count()));
        const int64_t wanted = threads() == 1 ? 1 : ceil_div(2 * threads(), parts);
        shares = std::min(wanted, columns() * s.groups);
    }
    int64_t taps() const { return s.taps() / all.inner(); }
    int64_t chunks() const { return all.group_depth / DEPTH; }
    // Where a tile is enough for the numbers of a tap, two taps share a panel.
    bool half() const { return all.channels / all.groups * all.inner() <= amx::ROWS; }
    int64_t tap_sums() const { return half() ? amx::ROWS : all.group_depth; }
    int64_t columns() const { return half() ? ceil_div(taps(), 2) : taps() * chunks(); }  // of a group, 32 numbers each
    int64_t sums_row() const { return columns() * DEPTH; }
    int64_t group_rows() const { return ceil_div(s.group_rows(), WIDE) * WIDE; }  // with those that fill tiles
    int64_t sums_size() const { return s.groups * group_rows() * sums_row(); }

    template <class U> void run() const {
        parallel(parts * shares, 1, [&](int64_t begin, int64_t end) {
            U unit;
            for (int64_t i = begin; i < end; ++i) {
                const int64_t part = i / shares, count = pieces.count(), share = i % shares, many = columns() * s.groups;
                for (int64_t p = part * count / parts, first = p; p < (part + 1) * count / parts; ++p)
                    piece(unit, pieces[p], share * many / shares, (share + 1) * many / shares, p == first,
                          sums + part * sums_size());
            }
        });
    }

    template <class U>
    void piece(U& unit, const StreamPiece& p, int64_t begin, int64_t end, bool fresh, float* to) const {
        const Stream stream = pieces.stream(p);
        const int64_t windows = p.images * stream.windows(), steps = ceil_div(windows, amx::STEPS);
        Bf16* laid = scratch<Bf16>(0, stream.images * stream.image());
        stream.fill(x, p.image, laid, scratch<Bf16>(1, stream.room_size()));
        const std::vector<int64_t> places = places_of(stream, steps * amx::STEPS);
        const int64_t step = s.groups * group_rows() * amx::STEPS;
        Bf16* gradient = scratch<Bf16>(2, steps * step);
        turn_gradient(p, stream.windows(), steps, gradient);
        Bf16* panel = scratch<Bf16>(3, AT_ONCE / amx::STEPS * 2 * TILE);
        for (int64_t first = 0; first < steps; first += AT_ONCE / amx::STEPS) {
            const int64_t here = std::min(AT_ONCE / amx::STEPS, steps - first);
            for (int64_t i = begin; i < end; ++i) {
                const int64_t g = i / columns(), column = i % columns();
                const Bf16* from = laid + g * stream.group_depth;
                if (half()) {
                    const bool two = 2 * column + 1 < taps();
                    pack(panel, from + offset(stream, 2 * column), two ? from + offset(stream, 2 * column + 1) : nullptr,
                         stream.depth(), places.data() + first * amx::STEPS, here);
                } else {
                    const Bf16* at = from + offset(stream, column / chunks()) + column % chunks() * DEPTH;
                    pack(panel, at, at + amx::ROWS, stream.depth(), places.data() + first * amx::STEPS, here);
                }
                for (int64_t o = 0; o < s.group_rows(); o += WIDE) {
                    const bool low = s.group_rows() - o <= amx::ROWS;
                    const auto way = low ? gradient_block<U, 1> : gradient_block<U, 2>;
                    way(unit, gradient + first * step + (g * group_rows() + o) * amx::STEPS, step, panel, here, fresh && !first,
                        to + (g * group_rows() + o) * sums_row() + column * DEPTH, sums_row());
                }
            }
        }
    }

    // The places of the windows, in their order; -1 up to `count`.
    std::vector<int64_t> places_of(const Stream& stream, int64_t count) const {
        std::vector<int64_t> places;
        places.reserve(size_t(count));
        for (int64_t n = 0; n < stream.images; ++n)
            for (int64_t z = 0; z < stream.axis[0].count; ++z)
                for (int64_t h = 0; h < stream.axis[1].count; ++h)
                    for (int64_t w = 0; w < stream.axis[2].count; ++w) {
                        const int64_t window[conv_dims] = {z, h, w};
                        places.push_back(n * stream.grid.positions + stream.position(window));
                    }
        places.resize(size_t(count), -1);
        return places;
    }

    int64_t offset(const Stream& stream, int64_t outer_tap) const {
        int64_t at[conv_dims];
        s.tap(outer_tap * all.inner(), at);
        return stream.offset(at) * stream.depth();
    }

    // Windows two by two: 16 numbers from `left` on and as many from `right` on, which may be null.
    static void pack(Bf16* to, const Bf16* left, const Bf16* right, int64_t depth, const int64_t* places, int64_t steps) {
        for (int64_t p = 0; p < steps; ++p, to += 2 * TILE)
            for (int64_t q = 0; q < amx::ROWS; ++q, places += 2) {
                const int64_t a = places[0] * depth, b = places[1] * depth;
                turned::pairs_of(to + q * amx::STEPS, TILE, places[0] < 0 ? nullptr : left + a,
                                 places[0] < 0 || !right ? nullptr : right + a, places[1] < 0 ? nullptr : left + b,
                                 places[1] < 0 || !right ? nullptr : right + b);
            }
    }

    // The gradient of a piece: for each 32 windows those of all rows, zeros behind the last.
    void turn_gradient(const StreamPiece& p, int64_t windows, int64_t steps, Bf16* to) const {
        const int64_t plane = s.pixels(), start = p.begin * (plane / all.axis[pieces.cut].count), out = s.group_rows();
        const int64_t rows = s.groups * group_rows(), count = p.images * windows;
        const auto place = [&](int64_t row, int64_t i) {
            return to + (i / amx::STEPS * rows + row / out * group_rows() + row % out) * amx::STEPS + i % amx::STEPS;
        };
        if (out < group_rows()) std::memset(static_cast<void*>(to), 0, size_t(steps * rows * amx::STEPS) * sizeof(Bf16));
        else std::memset(static_cast<void*>(to + (steps - 1) * rows * amx::STEPS), 0, size_t(rows * amx::STEPS) * sizeof(Bf16));
        if (y.last)  // of several images all windows are there
            return turned::turn_matrix(y.data + (p.image * plane + start) * s.rows, s.rows, count, s.rows, place);
        for (int64_t n = 0; n < p.images; ++n)
            for (int64_t o = 0; o < s.rows; ++o) {
                const Bf16* from = y.data + ((p.image + n) * s.rows + o) * plane + start;
                for (int64_t i = n * windows, end = i + windows; i < end;) {
                    const int64_t many = std::min(end - i, amx::STEPS - i % amx::STEPS);
                    turned::copy(place(o, i), from, many);
                    i += many, from += many;
                }
            }
    }

    void give(Bf16* w, bool last) const {
        const int64_t each = s.group_channels(), inner = all.inner(), count = sums_row();
        parallel(s.rows, std::max<int64_t>(1, 16384 / count), [&](int64_t begin, int64_t end) {
            Bf16* rounded = scratch<Bf16>(0, count);
            for (int64_t o = begin; o < end; ++o) {
                float* total = sums + (o / s.group_rows() * group_rows() + o % s.group_rows()) * count;
                for (int64_t p = 1; p < parts; ++p)
                    for (int64_t i = 0; i < count; ++i) total[i] += total[p * sums_size() + i];
                narrow(rounded, total, count);
                Bf16* to = w + o * s.k();
                if (last || s.taps() == 1) {
                    for (int64_t t = 0; t < taps(); ++t)
                        turned::copy(to + t * inner * each, rounded + t * tap_sums(), inner * each);
                } else if (inner == 1) {
                    turned::turn_matrix(rounded, tap_sums(), s.taps(), each,
                                        [&](int64_t c, int64_t t) { return to + c * s.taps() + t; });
                } else {
                    for (int64_t t = 0; t < taps(); ++t)
                        turned::turn_matrix(rounded + t * tap_sums(), each, inner, each,
                                            [&](int64_t c, int64_t i) { return to + c * s.taps() + t * inner + i; });
                }
            }
        });
    }
};

}  // namespace

void conv_weights_by_tiles(const ConvShape& s, const GivenImages& x, const GivenImages& y, Bf16* w, bool last, bool plain) {
    const Stream stream = stream_of(s);
    TileWeights product(s, stream, x, y);
    const Buffer<float> sums(product.parts * product.sums_size());
    product.sums = sums.data;
    if (plain) product.run<amx::Twin>();
    else product.run<amx::Unit>();
    product.give(w, last);
}

}  // namespace fw::windows
