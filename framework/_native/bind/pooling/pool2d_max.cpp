// The largest element of every window, where it lies, and the way back, of NumPy arrays.
#include <algorithm>

#include "bind/images.h"
#include "pooling/pool2d.h"

namespace fw::windows {
namespace {

// The windows of images of shape x, and the shape of what they give; `a` are the numbers, of either.
struct Windows {
    PoolShape shape;
    Sizes out;
    bool fit;
    Windows(const Array& a, const Sizes& x, const Sizes& kernel, const Sizes& stride, const Sizes& padding,
            const Sizes& dilation, const Sizes& sizes)
        : out(sizes), fit(a.is_float() && pool_shape(shape, x, kernel, stride, padding, dilation, sizes)) {
        if (fit) out = pooled(x, sizes);
    }
    NewArray result(int type) const { return new_array(int(out.size()), out.data(), type); }
};

// Whether kernels of channels side by side do for these windows of images like `a`.
bool by_channels(const Array& a, const PoolShape& s, const Sizes& kernel) {
    return s.window() < 256 && has_channels_last(a, kernel);
}

// body(a number of the type of the places)
template <class F> void by_places(const Array& where, F&& body) {
    where.is<uint8_t>() ? body(uint8_t{}) : body(int32_t{});
}

WindowPlaces places(NewArray& where) {
    return where.is<uint8_t>() ? WindowPlaces(where.data<uint8_t>()) : WindowPlaces(where.data<int32_t>());
}

nb::object max_pool(Array x, const Sizes& kernel, const Sizes& stride, const Sizes& padding,
                    const Sizes& dilation, const Sizes& out) {
    const Windows w(x, sizes(x), kernel, stride, padding, dilation, out);
    if (!w.fit) return not_implemented();
    if (by_channels(x, w.shape, kernel)) {
        NewArray y = new_channels_last(x.ndim(), w.out.data(), x.type());
        {
            Release release(x.size() * 4);
            by_float(x, [&](auto t) {
                using T = decltype(t);
                max_channels<T>(w.shape, x.shape(1), x.data<T>(), y.data<T>(), nullptr);
            });
        }
        return give(y);
    }
    InRows rows(x);
    NewArray y = w.result(x.type());
    {
        Release release(x.size() * 4);
        by_float(x, [&](auto t) {
            using T = decltype(t);
            max_windows(w.shape, rows.a.data<T>(), y.data<T>(), {});
        });
    }
    return give_images(y, channels_last(x));
}

nb::object max_position(Array x, const Sizes& kernel, const Sizes& stride, const Sizes& padding,
                        const Sizes& dilation, const Sizes& out) {
    const Windows w(x, sizes(x), kernel, stride, padding, dilation, out);
    if (!w.fit) return not_implemented();
    if (by_channels(x, w.shape, kernel)) {
        NewArray where = new_channels_last(x.ndim(), w.out.data(), NPY_UINT8);
        {
            Release release(x.size() * 4);
            by_float(x, [&](auto t) {
                using T = decltype(t);
                max_channels<T>(w.shape, x.shape(1), x.data<T>(), nullptr, where.data<uint8_t>());
            });
        }
        return give(where);
    }
    InRows rows(x);
    NewArray where = w.result(w.shape.window() < 256 ? NPY_UINT8 : NPY_INT32);
    {
        Release release(x.size() * 4);
        by_float(x, [&](auto t) {
            using T = decltype(t);
            max_windows(w.shape, rows.a.data<T>(), static_cast<T*>(nullptr), places(where));
        });
    }
    return give(where);
}

// Both of them, of images in rows.
nb::object max_with_position(Array x, const Sizes& kernel, const Sizes& stride, const Sizes& padding,
                             const Sizes& dilation, const Sizes& out) {
    const Windows w(x, sizes(x), kernel, stride, padding, dilation, out);
    if (!w.fit || by_channels(x, w.shape, kernel)) return not_implemented();
    InRows rows(x);
    NewArray y = w.result(x.type()), where = w.result(w.shape.window() < 256 ? NPY_UINT8 : NPY_INT32);
    {
        Release release(x.size() * 4);
        by_float(x, [&](auto t) {
            using T = decltype(t);
            max_windows(w.shape, rows.a.data<T>(), y.data<T>(), places(where));
        });
    }
    nb::object largest = give_images(y, channels_last(x));
    return nb::make_tuple(largest, give(where));
}

// The largest elements and their places in the flattened images.
nb::object max_with_places(Array x, const Sizes& kernel, const Sizes& stride, const Sizes& padding,
                           const Sizes& dilation, const Sizes& out) {
    const Windows w(x, sizes(x), kernel, stride, padding, dilation, out);
    if (!w.fit) return not_implemented();
    const bool last = by_channels(x, w.shape, kernel), bytes = w.shape.window() < 256;
    constexpr int64_t MOST = 1 << 14;  // windows of a plane, of which a table is made
    const bool one_by_one = !last && w.shape.axis[conv_dims - 1].out < (x.is<float>() ? lanes<float> : lanes<double>) &&
                            w.shape.out_size() <= MOST;
    const InRows rows(x, !last);
    NewArray y = new_images(x.ndim(), w.out.data(), x.type(), last), where;
    NewArray index = new_images(x.ndim(), w.out.data(), NPY_INT64, last);
    if (!one_by_one) where = w.result(bytes ? NPY_UINT8 : NPY_INT32);
    {
        Release release(x.size() * 4);
        by_float(x, [&](auto t) {
            using T = decltype(t);
            if (one_by_one) return max_each_window(w.shape, rows.a.data<T>(), y.data<T>(), index.data<int64_t>());
            last ? max_channels<T>(w.shape, x.shape(1), x.data<T>(), y.data<T>(), where.data<uint8_t>())
                 : max_windows(w.shape, rows.a.data<T>(), y.data<T>(), places(where));
            by_places(where, [&](auto p) {
                flat_places(w.shape, last ? x.shape(1) : 1, where.data<decltype(p)>(), index.data<int64_t>());
            });
        });
    }
    nb::object largest = give_images(y, !last && channels_last(x)), places = give_images(index, !last && channels_last(x));
    return nb::make_tuple(largest, places);
}

// -- the way back ---------------------------------------------------------------------------------

bool are_places(const Array& where) { return where.is<uint8_t>() || where.is<int32_t>(); }

nb::object max_spread(Array y, Array where, const Sizes& x_shape, const Sizes& kernel, const Sizes& stride,
                      const Sizes& padding, const Sizes& dilation, const Sizes& out) {
    const Windows w(y, x_shape, kernel, stride, padding, dilation, out);
    if (!w.fit || !are_places(where) || !has_shape(y, w.out) || !y.same_shape(where)) return not_implemented();
    if (by_channels(y, w.shape, kernel) && channels_last(where)) {
        NewArray x = new_channels_last(y.ndim(), x_shape.data(), y.type());
        {
            Release release(x.size() * 4);
            by_float(y, [&](auto t) {
                using T = decltype(t);
                spread_channels<T>(w.shape, y.shape(1), y.data<T>(), where.data<uint8_t>(), x.data<T>());
            });
        }
        return give(x);
    }
    InRows rows(y), places(where);
    bool good = false;
    NewArray x = new_array(int(x_shape.size()), x_shape.data(), y.type());
    {
        Release release(x.size() * 4);
        by_float(y, [&](auto t) {
            using T = decltype(t);
            by_places(where, [&](auto p) {
                good = spread(w.shape, rows.a.data<T>(), places.a.data<decltype(p)>(), x.data<T>());
            });
        });
    }
    return good ? give_images(x, channels_last(y)) : not_implemented();
}

nb::object max_collect(Array x, Array where, const Sizes& kernel, const Sizes& stride, const Sizes& padding,
                       const Sizes& dilation, const Sizes& out) {
    const Windows w(x, sizes(x), kernel, stride, padding, dilation, out);
    if (!w.fit || !are_places(where) || !has_shape(where, w.out)) return not_implemented();
    if (by_channels(x, w.shape, kernel) && channels_last(where)) {
        NewArray y = new_channels_last(x.ndim(), w.out.data(), x.type());
        {
            Release release(x.size() * 4);
            by_float(x, [&](auto t) {
                using T = decltype(t);
                collect_channels<T>(w.shape, x.shape(1), x.data<T>(), where.data<uint8_t>(), y.data<T>());
            });
        }
        return give(y);
    }
    InRows rows(x), places(where);
    bool good = false;
    NewArray y = w.result(x.type());
    {
        Release release(x.size() * 4);
        by_float(x, [&](auto t) {
            using T = decltype(t);
            by_places(where, [&](auto p) {
                good = collect(w.shape, rows.a.data<T>(), places.a.data<decltype(p)>(), y.data<T>());
            });
        });
    }
    return good ? give_images(y, channels_last(x)) : not_implemented();
}

FW_BIND(m) {
    m.def("max_pool", &max_pool, nb::arg("x"), nb::arg("kernel"), nb::arg("stride"), nb::arg("padding"),
          nb::arg("dilation"), nb::arg("out"));
    m.def("max_position", &max_position, nb::arg("x"), nb::arg("kernel"), nb::arg("stride"),
          nb::arg("padding"), nb::arg("dilation"), nb::arg("out"));
    m.def("max_with_position", &max_with_position, nb::arg("x"), nb::arg("kernel"), nb::arg("stride"),
          nb::arg("padding"), nb::arg("dilation"), nb::arg("out"));
    m.def("max_with_places", &max_with_places, nb::arg("x"), nb::arg("kernel"), nb::arg("stride"),
          nb::arg("padding"), nb::arg("dilation"), nb::arg("out"));
    m.def("max_spread", &max_spread, nb::arg("y"), nb::arg("where"), nb::arg("x_shape"), nb::arg("kernel"),
          nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"), nb::arg("out"));
    m.def("max_collect", &max_collect, nb::arg("x"), nb::arg("where"), nb::arg("kernel"), nb::arg("stride"),
          nb::arg("padding"), nb::arg("dilation"), nb::arg("out"));
}

}  // namespace
}  // namespace fw::windows
