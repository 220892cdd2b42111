#include "pooling/pool2d_adaptive.h"

#include <atomic>

#include "pooling/channels.h"
#include "pooling/largest.h"

namespace fw::windows {
namespace {

struct Extent {
    int64_t begin, end;
    Extent(const Cuts& cut, int64_t i) : begin(cut.begin(i)), end(cut.end(i)) {}
};

// The place of the first of the largest elements, or of the first nan, in planes of lines of slices.
template <class T>
int64_t place_of(const T* x, const Extent& slices, const Extent& lines, const Extent& row, int64_t lines_in, int64_t in) {
    int64_t best = (slices.begin * lines_in + lines.begin) * in + row.begin;
    T value = x[best];
    for (int64_t i = slices.begin; i < slices.end; ++i)
        for (int64_t j = lines.begin; j < lines.end; ++j) {
            const int64_t line = (i * lines_in + j) * in;
            for (int64_t p = line + row.begin; p < line + row.end; ++p)
                if (!(x[p] <= value) && value == value) value = x[p], best = p;
        }
    return best;
}

// body(place in the rows, place in the numbers) for all places of rows [begin, end); false if one is out of range.
// They are checked where they are used, since another thread may change them.
template <class F> bool each_place(const PlaceRows& r, const int64_t* index, int64_t begin, int64_t end, F&& body) {
    for (int64_t i = begin; i < end; ++i)
        for (int64_t p = i * r.places; p < (i + 1) * r.places; ++p) {
            const int64_t at = index[p];
            if (uint64_t(at) >= uint64_t(r.numbers)) return false;
            body(p, i * r.numbers + at);
        }
    return true;
}

// The same of channels side by side.
template <class F> bool each_place_of_channels(const PlaceRows& r, int64_t channels, const int64_t* index, F&& body) {
    std::atomic<bool> good{true};
    const int64_t shares = (channels + SHARE - 1) / SHARE, images = r.rows / channels;
    parallel(images * shares, 1 + r.grain() / std::min(channels, SHARE), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t image = i / shares, first = i % shares * SHARE, last = std::min(channels, first + SHARE);
            body(image * r.numbers * channels, first, last, [&](auto&& use) {
                for (int64_t p = image * r.places; p < (image + 1) * r.places; ++p)
                    for (int64_t c = first; c < last; ++c) {
                        const int64_t at = index[p * channels + c];
                        if (uint64_t(at) >= uint64_t(r.numbers)) {
                            good = false;
                            return;
                        }
                        use(p * channels + c, (image * r.numbers + at) * channels + c);
                    }
            });
        }
    });
    return good;
}

}  // namespace

template <class T>
void adaptive_max_channels(const Cuts (&cut)[conv_dims], int64_t images, int64_t channels, const T* x, T* largest,
                           int64_t* places) {
    const int64_t lines = cut[0].out * cut[1].out, wide = cut[2].out, in = cut[0].in * cut[1].in * cut[2].in;
    parallel(images * lines, 1 + (1 << 14) / (1 + in / lines * channels), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const Extent as(cut[0], i % lines / cut[1].out), bs(cut[1], i % lines % cut[1].out);
            const T* from = x + i / lines * in * channels;
            for (int64_t l = 0; l < wide; ++l) {
                const Extent row(cut[2], l);
                const int64_t to = (i * wide + l) * channels;
                for (int64_t c = 0; c < channels; c += lanes<T>) {
                    const int64_t n = std::min<int64_t>(lanes<T>, channels - c);
                    const int64_t corner = (as.begin * cut[1].in + bs.begin) * cut[2].in + row.begin;
                    Best<T, true> best{some(from + corner * channels + c, n), Mask<T>{} + Int<T>(corner)};
                    for (int64_t a = as.begin; a < as.end; ++a)
                        for (int64_t b = bs.begin; b < bs.end; ++b)
                            for (int64_t k = row.begin; k < row.end; ++k) {
                                const int64_t pixel = (a * cut[1].in + b) * cut[2].in + k;
                                best.look(some(from + pixel * channels + c, n), Int<T>(pixel));
                            }
                    keep(largest + to + c, best.value, n);
                    for (int64_t k = 0; k < n; ++k) places[to + c + k] = best.place[k];
                }
            }
        }
    });
}

template <class T> bool pick_channels(const PlaceRows& r, int64_t channels, const T* x, const int64_t* index, T* y) {
    return each_place_of_channels(r, channels, index, [=](int64_t, int64_t, int64_t, auto&& each) {
        each([=](int64_t p, int64_t at) { y[p] = x[at]; });
    });
}

template <class T>
bool put_channels(const PlaceRows& r, int64_t channels, const T* y, const int64_t* index, bool adds, T* x) {
    return each_place_of_channels(r, channels, index, [=](int64_t image, int64_t first, int64_t last, auto&& each) {
        if (last - first == channels) std::fill_n(x + image, r.numbers * channels, T(0));
        else for (int64_t k = 0; k < r.numbers; ++k) std::fill(x + image + k * channels + first, x + image + k * channels + last, T(0));
        if (adds) each([=](int64_t p, int64_t at) { x[at] += y[p]; });
        else each([=](int64_t p, int64_t at) { x[at] = y[p]; });
    });
}

template <class T>
void adaptive_max(const Cuts (&cut)[conv_dims], const T* x, int64_t planes, T* largest, int64_t* places) {
    const int64_t in = cut[0].in * cut[1].in * cut[2].in, out = cut[0].out * cut[1].out * cut[2].out;
    parallel(planes, 1 + (1 << 13) / (in + out), [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
            const T* image = x + plane * in;
            int64_t next = plane * out;
            for (int64_t i = 0; i < cut[0].out; ++i)
                for (int64_t j = 0; j < cut[1].out; ++j) {
                    const Extent slices(cut[0], i), lines(cut[1], j);
                    for (int64_t l = 0; l < cut[2].out; ++l, ++next) {
                        places[next] = place_of(image, slices, lines, Extent(cut[2], l), cut[1].in, cut[2].in);
                        largest[next] = image[places[next]];
                    }
                }
        }
    });
}

bool PlaceRows::fit(const Sizes& x, const Sizes& index, int64_t d) {
    const int64_t dims = int64_t(index.size());
    if (d < 1 || dims < d || int64_t(x.size()) != dims || !countable(x.data(), int(dims))) return false;
    for (int64_t i = 0; i < dims; ++i) {
        const bool lead = i < dims - d;
        if (lead && x[size_t(i)] != index[size_t(i)]) return false;
        (lead ? rows : numbers) *= x[size_t(i)];
        if (!lead) places *= index[size_t(i)];
    }
    return rows * numbers * places > 0;
}

template <class T> bool pick_places(const PlaceRows& r, const T* x, const int64_t* index, T* y) {
    std::atomic<bool> good{true};
    parallel(r.rows, r.grain(), [&](int64_t begin, int64_t end) {
        if (!each_place(r, index, begin, end, [=](int64_t p, int64_t at) { y[p] = x[at]; })) good = false;
    });
    return good;
}

template <class T> bool put_places(const PlaceRows& r, const T* y, const int64_t* index, bool adds, T* x) {
    std::atomic<bool> good{true};
    parallel(r.rows, r.grain(), [&](int64_t begin, int64_t end) {
        std::fill(x + begin * r.numbers, x + end * r.numbers, T(0));
        const bool fit = adds ? each_place(r, index, begin, end, [=](int64_t p, int64_t at) { x[at] += y[p]; })
                              : each_place(r, index, begin, end, [=](int64_t p, int64_t at) { x[at] = y[p]; });
        if (!fit) good = false;
    });
    return good;
}

template void adaptive_max(const Cuts (&)[conv_dims], const float*, int64_t, float*, int64_t*);
template void adaptive_max(const Cuts (&)[conv_dims], const double*, int64_t, double*, int64_t*);
#define FW_OF(T)                                                                                                \
    template void adaptive_max_channels(const Cuts (&)[conv_dims], int64_t, int64_t, const T*, T*, int64_t*); \
    template bool pick_channels(const PlaceRows&, int64_t, const T*, const int64_t*, T*);                     \
    template bool put_channels(const PlaceRows&, int64_t, const T*, const int64_t*, bool, T*);
FW_OF(float)
FW_OF(double)
#undef FW_OF
template bool pick_places(const PlaceRows&, const float*, const int64_t*, float*);
template bool pick_places(const PlaceRows&, const double*, const int64_t*, double*);
template bool put_places(const PlaceRows&, const float*, const int64_t*, bool, float*);
template bool put_places(const PlaceRows&, const double*, const int64_t*, bool, double*);

}  // namespace fw::windows
