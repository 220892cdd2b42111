// Sampling of NumPy arrays.
#include <algorithm>

#include "bind/array.h"
#include "pooling/grid_sample.h"

namespace fw::sampling {
namespace {

bool read_shape(Shape& s, const Array& x, const Array& grid, const std::string& mode, const std::string& padding,
                bool align) {
    if (!x.is_float() || !grid.usable() || grid.type() != x.type() || grid.ndim() != x.ndim()) return false;
    const std::vector<int64_t> images(x.shape(), x.shape() + x.ndim()), places(grid.shape(), grid.shape() + x.ndim());
    return s.read(x.ndim(), images.data(), places.data(), mode, padding, align);
}

std::vector<npy_intp> result_shape(const Array& x, const Array& grid) {
    std::vector<npy_intp> shape(x.shape(), x.shape() + x.ndim());
    for (int d = 2; d < x.ndim(); ++d) shape[size_t(d)] = grid.shape(d - 1);
    return shape;
}

template <class F> void by_type(const Array& x, F&& f) {
    if (x.is<float>()) f(float{});
    else f(double{});
}

nb::object grid_sample(Array x, Array grid, const std::string& mode, const std::string& padding, bool align) {
    Shape s;
    if (!read_shape(s, x, grid, mode, padding, align)) return not_implemented();
    InRows image(x), places(grid);
    NewArray out = new_array(x.ndim(), result_shape(x, grid).data(), x.type());
    {
        Release release(out.size() * 8);
        by_type(x, [&](auto t) {
            using T = decltype(t);
            Sampling<T>::read(s, image.data<T>(), places.data<T>(), out.data<T>());
        });
    }
    return give(out);
}

// The gradients of image and places; of what is not wanted an empty array.
nb::object grid_sample_grad(Array g, Array x, Array grid, const std::string& mode, const std::string& padding,
                            bool align, const std::vector<bool>& wanted) {
    Shape s;
    if (wanted.size() != 2 || !read_shape(s, x, grid, mode, padding, align) || !g.usable() || g.type() != x.type()) return not_implemented();
    const std::vector<npy_intp> shape = result_shape(x, grid);
    if (g.ndim() != x.ndim() || !std::equal(shape.begin(), shape.end(), g.shape())) return not_implemented();
    InRows image(x), places(grid), given(g);
    const npy_intp none = 0;
    NewArray gx = wanted[0] ? like(x) : new_array(1, &none, x.type());
    NewArray gp = wanted[1] ? like(grid) : new_array(1, &none, x.type());
    {
        Release release(g.size() * 8);
        by_type(x, [&](auto t) {
            using T = decltype(t);
            if (wanted[0]) Sampling<T>::spread(s, given.data<T>(), places.data<T>(), gx.data<T>());
            if (wanted[1]) Sampling<T>::turn(s, given.data<T>(), image.data<T>(), places.data<T>(), gp.data<T>());
        });
    }
    return nb::make_tuple(give(gx), give(gp));
}

FW_BIND(m) {
    m.def("grid_sample", &grid_sample, nb::arg("x"), nb::arg("grid"), nb::arg("mode"), nb::arg("padding"),
          nb::arg("align"));
    m.def("grid_sample_grad", &grid_sample_grad, nb::arg("g"), nb::arg("x"), nb::arg("grid"), nb::arg("mode"),
          nb::arg("padding"), nb::arg("align"), nb::arg("wanted"));
}

}  // namespace
}  // namespace fw::sampling
