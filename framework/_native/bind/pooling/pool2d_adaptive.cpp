// Pooling of NumPy arrays to a given size, and their numbers at places.
#include "bind/images.h"
#include "pooling/pool2d_adaptive.h"

namespace fw::windows {
namespace {

nb::object adaptive_max_of(Array x, const Sizes& out) {
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
    const Sizes shape = pooled(sizes(x), out);
    if (has_channels_last(x, out) && x.size() < INT32_MAX) {
        NewArray y = new_channels_last(x.ndim(), shape.data(), x.type());
        NewArray index = new_channels_last(x.ndim(), shape.data(), NPY_INT64);
        {
            Release release(x.size() * 8);
            by_float(x, [&](auto t) {
                using T = decltype(t);
                adaptive_max_channels(cut, x.shape(0), x.shape(1), x.data<T>(), y.data<T>(), index.data<int64_t>());
            });
        }
        return nb::make_tuple(give(y), give(index));
    }
    InRows rows(x);
    NewArray y = new_array(int(shape.size()), shape.data(), x.type());
    NewArray index = new_array(int(shape.size()), shape.data(), NPY_INT64);
    {
        Release release(x.size() * 8);
        by_float(x, [&](auto t) {
            using T = decltype(t);
            adaptive_max(cut, rows.a.data<T>(), planes, y.data<T>(), index.data<int64_t>());
        });
    }
    nb::object largest = give_images(y, channels_last(x)), places = give_images(index, channels_last(x));
    return nb::make_tuple(largest, places);
}

nb::object pick_of(Array x, Array index, int64_t d) {
    PlaceRows r;
    if (!x.is_float() || !index.is<int64_t>() || !r.fit(sizes(x), sizes(index), d))
        return not_implemented();
    if (x.ndim() == int(d) + 2 && channels_last(x) && channels_last(index)) {
        NewArray y = new_channels_last(index.ndim(), index.shape(), x.type());
        bool good = false;
        {
            Release release(y.size() * 8);
            by_float(x, [&](auto t) {
                using T = decltype(t);
                good = pick_channels(r, x.shape(1), x.data<T>(), index.data<int64_t>(), y.data<T>());
            });
        }
        return good ? give(y) : not_implemented();
    }
    InRows rows(x), places(index);
    NewArray y = new_array(index.ndim(), index.shape(), x.type());
    bool good = false;
    {
        Release release(y.size() * 8);
        by_float(x, [&](auto t) {
            using T = decltype(t);
            good = pick_places(r, rows.a.data<T>(), places.a.data<int64_t>(), y.data<T>());
        });
    }
    return good ? give_images(y, channels_last(x)) : not_implemented();
}

nb::object put_of(Array y, Array index, int64_t d, const Sizes& x_shape, bool adds) {
    PlaceRows r;
    if (!y.is_float() || !index.is<int64_t>() || !y.same_shape(index) || !r.fit(x_shape, sizes(index), d))
        return not_implemented();
    if (y.ndim() == int(d) + 2 && channels_last(y) && channels_last(index)) {
        NewArray x = new_channels_last(y.ndim(), x_shape.data(), y.type());
        bool good = false;
        {
            Release release(x.size() * 4);
            by_float(y, [&](auto t) {
                using T = decltype(t);
                good = put_channels(r, y.shape(1), y.data<T>(), index.data<int64_t>(), adds, x.data<T>());
            });
        }
        return good ? give(x) : not_implemented();
    }
    InRows rows(y), places(index);
    NewArray x = new_array(int(x_shape.size()), x_shape.data(), y.type());
    bool good = false;
    {
        Release release(x.size() * 4);
        by_float(y, [&](auto t) {
            using T = decltype(t);
            good = put_places(r, rows.a.data<T>(), places.a.data<int64_t>(), adds, x.data<T>());
        });
    }
    return good ? give_images(x, channels_last(y)) : not_implemented();
}

FW_BIND(m) {
    m.def("adaptive_max", &adaptive_max_of, nb::arg("x"), nb::arg("out"));
    m.def("pick_places", &pick_of, nb::arg("x"), nb::arg("index"), nb::arg("d"));
    m.def("put_places", [](Array y, Array index, int64_t d, const Sizes& x_shape) { return put_of(y, index, d, x_shape, true); },
          nb::arg("y"), nb::arg("index"), nb::arg("d"), nb::arg("x_shape"));
    m.def("unpool_places", [](Array y, Array index, int64_t d, const Sizes& x_shape) {
        return put_of(y, index, d, x_shape, false);
    }, nb::arg("y"), nb::arg("index"), nb::arg("d"), nb::arg("x_shape"));
}

}  // namespace
}  // namespace fw::windows
