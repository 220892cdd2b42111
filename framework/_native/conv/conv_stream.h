// Images of bfloat16 as rows of numbers, one for each place, in which windows are read by adding an offset: the channels
// of a place lie side by side, those of a group up to a multiple of 32, with zeros behind them.
//
// Windows that move by more than one place read every so-manieth place of each dimension: places are laid out by what they
// leave over, so that the places of neighbouring windows are neighbours. Where channels are few a row holds those of
// several taps (`folded`), of the innermost dimensions: fewer zeros, but windows are copied.
#pragma once

#include <vector>

#include "base/turn.h"
#include "conv/conv_shape.h"

namespace fw::windows {

constexpr int64_t DEPTH = 32;  // numbers that a step of products takes of a row

struct StreamAxis {
    int64_t in = 1, count = 1;      // of the images; windows
    int64_t step = 1, before = 0;   // between windows; places in front of the image, where the first one begins
    int64_t reach = 0;              // from a window's first tap to its last
    int64_t taps = 1, between = 1;  // taps, and the places between them
    int64_t extent() const { return (count - 1) * step + reach + 1; }
};

// Where the places of images lie.
struct StreamGrid {
    int64_t step[conv_dims], phase[conv_dims], along[conv_dims], positions = 1;

    // `whole`: dimensions from this one on are not told by what they leave over.
    StreamGrid(const StreamAxis (&axis)[conv_dims], int whole) {
        for (int d = 0; d < conv_dims; ++d) step[d] = d < whole ? axis[d].step : 1;
        for (int d = conv_dims - 1; d >= 0; --d) {
            along[d] = positions;
            positions *= d < whole ? axis[d].count + axis[d].reach / axis[d].step : axis[d].extent();
        }
        for (int d = conv_dims - 1; d >= 0; --d) phase[d] = positions, positions *= step[d];
    }
    int64_t at(int d, int64_t place) const { return place % step[d] * phase[d] + place / step[d] * along[d]; }
};

struct GivenImages {
    const Bf16* data;
    bool last;  // the channels of a place lie side by side, else those of a channel do
};

class Stream {
  public:
    int64_t images, channels, groups;
    StreamAxis axis[conv_dims];
    int folded;           // dimensions, from the last one on, whose taps a row holds
    int64_t group_depth;  // numbers of a group in a row
    StreamGrid grid;

    Stream(int64_t images, int64_t channels, int64_t groups, const StreamAxis (&a)[conv_dims], int folded)
        : images(images), channels(channels), groups(groups), axis{a[0], a[1], a[2]}, folded(folded),
          group_depth(ceil_div(channels / groups * inner_taps(a, folded), DEPTH) * DEPTH), grid(a, conv_dims) {
        if (folded) {
            StreamAxis outer[conv_dims];
            for (int d = 0; d < conv_dims; ++d) {
                outer[d] = a[d];
                if (d >= conv_dims - folded) outer[d].step = 1, outer[d].reach = 0;
            }
            grid = StreamGrid(outer, conv_dims);
        }
    }

    static int64_t inner_taps(const StreamAxis (&a)[conv_dims], int folded) {
        int64_t taps = 1;
        for (int d = conv_dims - folded; d < conv_dims; ++d) taps *= a[d].taps;
        return taps;
    }
    // How many dimensions are folded: what the products of a window and its copy take, in cycles.
    static int best_fold(const StreamAxis (&axis)[conv_dims], int64_t channels, int64_t rows) {
        int best = 0;
        double least = 0;
        for (int f = 0; f <= conv_dims; ++f) {
            const int64_t inner = inner_taps(axis, f), outer = inner_taps(axis, conv_dims) / inner;
            const int64_t steps = ceil_div(channels * inner, DEPTH), runs = inner / axis[2].taps;
            const double time = double(outer * steps * ceil_div(rows, 16)) + (f ? double(3 * runs + 2 * steps) : 0);
            if (f && (inner == inner_taps(axis, f - 1) || time >= least)) continue;
            best = f, least = time;
        }
        return best;
    }
    int64_t depth() const { return group_depth * groups; }
    int64_t inner() const { return inner_taps(axis, folded); }
    int64_t image() const { return grid.positions * depth(); }  // numbers
    int64_t windows() const { return axis[0].count * axis[1].count * axis[2].count; }

    // How far the place of a tap lies behind that of its window; those of folded dimensions lie in the same row.
    template <class At> int64_t offset(const At& at) const {
        int64_t sum = 0;
        for (int d = 0; d < conv_dims - folded; ++d) sum += grid.at(d, at[size_t(d)]);
        return sum;
    }
    int64_t position(const int64_t (&window)[conv_dims]) const {
        return window[0] * grid.along[0] + window[1] * grid.along[1] + window[2] * grid.along[2];
    }

    // Whether the images lie as this would lay them out.
    bool as_given(const GivenImages& from) const {
        if (!(from.last || axis[0].in * axis[1].in * axis[2].in == 1) || folded || group_depth * groups != channels)
            return false;
        for (const StreamAxis& a : axis)
            if (a.step != 1 || a.before || a.in != a.extent()) return false;
        return true;
    }

    // Lays out the images from `first` on at `to`; `room` is for as many numbers as `room_size` says.
    void fill(const GivenImages& from, int64_t first, Bf16* to, Bf16* room) const {
        if (!folded) return lay(from, first, grid, group_depth, to);
        lay(from, first, StreamGrid(axis, conv_dims - folded), channels / groups, room);
        gather(room, to);
    }
    int64_t room_size() const {
        return folded ? images * StreamGrid(axis, conv_dims - folded).positions * channels + DEPTH : 0;
    }

  private:
    // The places of images, channels side by side, those of a group `deep` numbers apart from those of the next.
    void lay(const GivenImages& from, int64_t first, const StreamGrid& g, int64_t deep, Bf16* to) const {
        const int64_t row = deep * groups, each = channels / groups;
        std::memset(static_cast<void*>(to), 0, size_t(images * g.positions * row) * sizeof(Bf16));
        int64_t low[conv_dims], count[conv_dims], inner = 1;  // which places of the images there are
        for (int d = 0; d < conv_dims; ++d) {
            low[d] = std::max<int64_t>(0, -axis[d].before);
            count[d] = std::min(axis[d].in, axis[d].extent() - axis[d].before) - low[d];
            if (count[d] <= 0) return;
            inner *= axis[d].in;
        }
        std::vector<int64_t> lines, places;  // in numbers
        for (int64_t y = 0; y < count[1]; ++y) lines.push_back(g.at(1, low[1] + y + axis[1].before) * row);
        for (int64_t x = 0; x < count[2]; ++x) places.push_back(g.at(2, low[2] + x + axis[2].before) * row);
        const bool joined = !from.last && count[2] == axis[2].in;  // lines are one in memory
        if (joined) {
            places.resize(size_t(count[1] * count[2]));
            for (int64_t y = count[1] - 1; y >= 0; --y)
                for (int64_t x = 0; x < count[2]; ++x) places[size_t(y * count[2] + x)] = lines[size_t(y)] + places[size_t(x)];
            lines.assign(1, 0);
        }
        const bool alike = deep == each && g.step[2] == 1;  // a line is one piece at the other end as well
        for (int64_t i = 0; i < images; ++i)
            for (int64_t z = 0; z < count[0]; ++z)
                for (size_t y = 0; y < lines.size(); ++y) {
                    const int64_t pixel = ((low[0] + z) * axis[1].in + low[1] + int64_t(y)) * axis[2].in + low[2];
                    Bf16* line = to + (i * g.positions + g.at(0, low[0] + z + axis[0].before)) * row + lines[y];
                    if (!from.last) {
                        for (int64_t k = 0; k < groups; ++k)
                            turned::turn_matrix(from.data + ((first + i) * channels + k * each) * inner + pixel, inner, each,
                                                int64_t(places.size()),
                                                [&](int64_t p, int64_t c) { return line + places[size_t(p)] + k * deep + c; });
                        continue;
                    }
                    const Bf16* at = from.data + ((first + i) * inner + pixel) * channels;
                    if (alike) turned::copy(line + places[0], at, count[2] * row);
                    else
                        for (const int64_t place : places)
                            for (int64_t k = 0; k < groups; ++k, at += each) turned::copy(line + place + k * deep, at, each);
                }
    }

    // Rows of windows' innermost taps, from places that lie as `lay` leaves them.
    void gather(const Bf16* from, Bf16* to) const {
        const StreamGrid places(axis, conv_dims - folded);
        const int64_t each = channels / groups, row = depth();
        struct Run {
            int64_t from, to, count;
        };
        std::vector<Run> runs;
        for (int64_t k = 0; k < groups; ++k)
            for (int64_t t = 0; t < inner(); ++t) {
                int64_t at = 0, rest = t;
                for (int d = conv_dims - 1; d >= conv_dims - folded; --d)
                    at += rest % axis[d].taps * axis[d].between * places.along[d], rest /= axis[d].taps;
                const Run run{at * channels + k * each, k * group_depth + t * each, each};
                Run* before = runs.empty() ? nullptr : &runs.back();
                if (before && before->from + before->count == run.from && before->to + before->count == run.to)
                    before->count += each;
                else
                    runs.push_back(run);
            }
        std::memset(static_cast<void*>(to), 0, size_t(images * image()) * sizeof(Bf16));
        int64_t outer = 1, step = 0;  // places of dimensions that are not folded are the same in both
        for (int d = 0; d < conv_dims - folded; ++d) outer *= (axis[d].count + axis[d].reach / axis[d].step) * axis[d].step;
        for (int d = conv_dims - folded; d < conv_dims; ++d) step = step ? step * axis[d].extent() : axis[d].extent();
        const int64_t high = folded > 1 ? axis[1].count : 1, deep = folded > 2 ? axis[0].count : 1;
        for (int64_t i = 0; i < images * outer; ++i)
            for (int64_t z = 0; z < deep; ++z)
                for (int64_t y = 0; y < high; ++y) {
                    const int64_t line = i * step + (folded > 2 ? z * axis[0].step * places.along[0] : 0) +
                                         (folded > 1 ? y * axis[1].step * places.along[1] : 0);
                    const Bf16* at = from + line * channels;
                    for (int64_t x = 0; x < axis[2].count; ++x, at += axis[2].step * channels, to += row)
                        for (const Run& run : runs) turned::copy(to + run.to, at + run.from, run.count);
                }
    }
};

// The images of a convolution.
inline Stream stream_of(const ConvShape& s) {
    StreamAxis axis[conv_dims];
    for (int d = 0; d < conv_dims; ++d) {
        const ConvAxis& a = s.axis[d];
        axis[d] = {a.in, a.out, a.stride, a.padding, (a.kernel - 1) * a.dilation, a.kernel, a.dilation};
    }
    return Stream(s.n, s.channels, s.groups, axis, Stream::best_fold(axis, s.group_channels(), s.group_rows()));
}

// Images are worked on in pieces: some of them, or a part of the windows of one, cut along the outermost dimension.
struct StreamPiece {
    int64_t image, images, begin, end;
};

class StreamPieces {
  public:
    static constexpr int64_t MOST = 512 << 10;  // bytes of a piece, which stays in the second cache
    static constexpr int64_t LEAST = 64;        // windows, for more threads

    const Stream& all;
    int cut = 0;

    // At least `wanted` of them, if they are large enough.
    StreamPieces(const Stream& all, int64_t wanted) : all(all) {
        while (cut < conv_dims - 1 && all.axis[cut].in == 1 && all.axis[cut].count == 1) ++cut;
        const int64_t bytes = all.image() * int64_t(sizeof(Bf16)), windows = all.windows();
        const int64_t more = std::min(ceil_div(wanted, all.images), std::max<int64_t>(1, windows / LEAST));
        cuts = std::min(all.axis[cut].count, std::max(more, ceil_div(bytes, MOST)));
        if (cuts == 1) together = std::clamp<int64_t>(all.images / wanted, 1, std::max<int64_t>(1, MOST / bytes));
        groups = ceil_div(all.images, together);
    }
    int64_t count() const { return groups * cuts; }
    StreamPiece operator[](int64_t i) const {
        const int64_t image = i / cuts * together, windows = all.axis[cut].count;
        return {image, std::min(together, all.images - image), i % cuts * windows / cuts, (i % cuts + 1) * windows / cuts};
    }
    Stream stream(const StreamPiece& p) const {
        StreamAxis axis[conv_dims] = {all.axis[0], all.axis[1], all.axis[2]};
        axis[cut].before -= p.begin * axis[cut].step;
        axis[cut].count = p.end - p.begin;
        return Stream(p.images, all.channels, all.groups, axis, all.folded);
    }

  private:
    int64_t cuts = 1, together = 1, groups = 1;
};

}  // namespace fw::windows
