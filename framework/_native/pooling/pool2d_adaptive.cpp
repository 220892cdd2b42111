#include "pooling/pool2d_adaptive.h"

#include <atomic>

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

}  // namespace

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
template bool pick_places(const PlaceRows&, const float*, const int64_t*, float*);
template bool pick_places(const PlaceRows&, const double*, const int64_t*, double*);
template bool put_places(const PlaceRows&, const float*, const int64_t*, bool, float*);
template bool put_places(const PlaceRows&, const double*, const int64_t*, bool, double*);

}  // namespace fw::windows
