// Pooling to a given size, and picking and putting numbers at places: where each window's largest element is.
#include <atomic>

#include "bind/images.h"
#include "pooling/pool2d.h"

namespace fw::windows {
namespace {

// Window i of `out` windows runs from floor(i * in / out) to ceil((i + 1) * in / out).
struct Cuts {
    int64_t in = 1, out = 1;
    int64_t begin(int64_t i) const { return i * in / out; }
    int64_t end(int64_t i) const { return ((i + 1) * in + out - 1) / out; }
};

// The place of the first of the largest elements, or of the first nan.
template <class T>
int64_t place_of(const T* x, const Cuts (&cut)[conv_dims], const int64_t (&at)[conv_dims]) {
    int64_t best = -1;
    for (int64_t i = cut[0].begin(at[0]); i < cut[0].end(at[0]); ++i) {
        for (int64_t j = cut[1].begin(at[1]); j < cut[1].end(at[1]); ++j) {
            const int64_t line = (i * cut[1].in + j) * cut[2].in;
            for (int64_t p = line + cut[2].begin(at[2]); p < line + cut[2].end(at[2]); ++p) {
                if (best < 0 || x[p] > x[best]) best = p;
                if (x[p] != x[p]) return p;
            }
        }
    }
    return best;
}

template <class T> void places(const Cuts (&cut)[conv_dims], const T* x, int64_t planes, int64_t* to) {
    const int64_t in = cut[0].in * cut[1].in * cut[2].in, out = cut[0].out * cut[1].out * cut[2].out;
    parallel(planes, 1 + (1 << 13) / (in + out), [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
            int64_t* next = to + plane * out;
            for (int64_t i = 0; i < cut[0].out; ++i)
                for (int64_t j = 0; j < cut[1].out; ++j)
                    for (int64_t l = 0; l < cut[2].out; ++l)
                        *next++ = place_of(x + plane * in, cut, {i, j, l});
        }
    });
}

nb::object max_place(Array x, const Sizes& out) {
    const int d = int(out.size());
    if (!x.is_float() || d < 1 || d > conv_dims || x.ndim() < d || x.size() == 0) return not_implemented();
    Cuts cut[conv_dims];
    int64_t planes = x.size();
    for (int i = 0; i < d; ++i) {
        Cuts& c = cut[conv_dims - d + i];
        c = {x.shape(x.ndim() - d + i), out[size_t(i)]};
        if (c.out < 1) return not_implemented();
        planes /= c.in;
    }
    if (!countable(out.data(), d)) return not_implemented();
    for (const Cuts& c : cut)
        if (double(c.in) * double(c.out) > 9e18) return not_implemented();
    InRows rows(x);
    const Sizes shape = pooled(sizes(x), out);
    NewArray index = new_array(int(shape.size()), shape.data(), NPY_INT64);
    {
        Release release(x.size() * 8);
        by_float(x, [&](auto t) {
            places(cut, rows.a.data<decltype(t)>(), planes, index.data<int64_t>());
        });
    }
    return give(index);
}

// -- numbers at places ----------------------------------------------------------------------------

// Rows of `from` numbers and of `to` places among them.
struct PlaceRows {
    int64_t rows = 1, numbers = 1, places = 1;

    bool fit(const Sizes& x, const Array& index, int64_t d) {
        if (d < 1 || index.ndim() < d || int64_t(x.size()) != index.ndim() || !countable(x.data(), index.ndim()))
            return false;
        for (int i = 0; i < index.ndim(); ++i) {
            const bool lead = i < index.ndim() - d;
            if (lead && x[size_t(i)] != index.shape(i)) return false;
            (lead ? rows : numbers) *= x[size_t(i)];
            if (!lead) places *= index.shape(i);
        }
        return rows * numbers * places > 0;
    }
    int64_t grain() const { return 1 + (1 << 14) / (numbers + places); }
};

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

template <class T> bool pick(const PlaceRows& r, const T* x, const int64_t* index, T* y) {
    std::atomic<bool> good{true};
    parallel(r.rows, r.grain(), [&](int64_t begin, int64_t end) {
        if (!each_place(r, index, begin, end, [=](int64_t p, int64_t at) { y[p] = x[at]; })) good = false;
    });
    return good;
}

template <class T> bool put(const PlaceRows& r, const T* y, const int64_t* index, T* x) {
    std::atomic<bool> good{true};
    parallel(r.rows, r.grain(), [&](int64_t begin, int64_t end) {
        std::fill(x + begin * r.numbers, x + end * r.numbers, T(0));
        if (!each_place(r, index, begin, end, [=](int64_t p, int64_t at) { x[at] += y[p]; })) good = false;
    });
    return good;
}

nb::object pick_places(Array x, Array index, int64_t d) {
    PlaceRows r;
    if (!x.is_float() || !index.is<int64_t>() || !index.contiguous() || !r.fit(sizes(x), index, d))
        return not_implemented();
    InRows rows(x);
    NewArray y = new_array(index.ndim(), index.shape(), x.type());
    bool good = false;
    {
        Release release(y.size() * 8);
        by_float(x, [&](auto t) {
            using T = decltype(t);
            good = pick(r, rows.a.data<T>(), index.data<int64_t>(), y.data<T>());
        });
    }
    return good ? give_images(y, channels_last(x)) : not_implemented();
}

nb::object put_places(Array y, Array index, int64_t d, const Sizes& x_shape) {
    PlaceRows r;
    if (!y.is_float() || !index.is<int64_t>() || !index.contiguous() || !y.same_shape(index) ||
        !r.fit(x_shape, index, d))
        return not_implemented();
    InRows rows(y);
    NewArray x = new_array(int(x_shape.size()), x_shape.data(), y.type());
    bool good = false;
    {
        Release release(x.size() * 4);
        by_float(y, [&](auto t) {
            using T = decltype(t);
            good = put(r, rows.a.data<T>(), index.data<int64_t>(), x.data<T>());
        });
    }
    return good ? give_images(x, channels_last(y)) : not_implemented();
}

FW_BIND(m) {
    m.def("max_place", &max_place, nb::arg("x"), nb::arg("out"));
    m.def("pick_places", &pick_places, nb::arg("x"), nb::arg("index"), nb::arg("d"));
    m.def("put_places", &put_places, nb::arg("y"), nb::arg("index"), nb::arg("d"), nb::arg("x_shape"));
}

}  // namespace
}  // namespace fw::windows
