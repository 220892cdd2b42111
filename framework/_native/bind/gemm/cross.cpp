// Cross products of NumPy arrays.
#include "gemm/cross.h"

#include <algorithm>

#include "bind/array.h"
#include "move/block.h"

namespace fw {
namespace {

// x repeated to a shape that it broadcasts to, in rows.
nb::object repeated(const Array& x, int ndim, const npy_intp* shape) {
    NewArray out = new_array(ndim, shape, x.type());
    moving::Block block;
    int64_t stride = out.size() * PyArray_ITEMSIZE(x.p);
    for (int d = 0; d < ndim; ++d) {
        const int own = d - ndim + x.ndim();
        block.add(shape[d], own < 0 || x.shape(own) == 1 ? 0 : x.stride(own), stride /= shape[d]);
    }
    moving::copy_block(block, int(PyArray_ITEMSIZE(x.p)), x.data<char>(), out.data<char>());
    return give(out);
}

template <class T> nb::object crossed_in_rows(const Array& x, const Array& y, int at) {
    int64_t inner = 1;
    for (int d = at + 1; d < x.ndim(); ++d) inner *= x.shape(d);
    const InRows first(x), second(y);
    NewArray out = like(x);
    nb::object result = give(out);
    Release release(x.size() * 8);
    cross(first.data<T>(), second.data<T>(), x.size() / 3 / inner, inner, out.data<T>());
    return result;
}

// Along a dimension of 3 counted from the end; the others broadcast.
nb::object crossed(Array x, Array y, int dim) {
    if (!x.usable() || (!x.is_float() && !x.is<int64_t>()) || !y.usable() || x.type() != y.type() || x.ndim() != y.ndim() || !x.size() || !y.size())
        return not_implemented();
    if (dim >= 0 || dim < -x.ndim()) return not_implemented();
    const int at = x.ndim() + dim;
    if (x.shape(at) != 3 || y.shape(at) != 3) return not_implemented();
    nb::object held[2];
    if (!x.same_shape(y)) {
        npy_intp shape[NPY_MAXDIMS];
        for (int d = 0; d < x.ndim(); ++d) {
            if (x.shape(d) != y.shape(d) && x.shape(d) != 1 && y.shape(d) != 1) return not_implemented();
            shape[d] = std::max(x.shape(d), y.shape(d));
        }
        if (!countable(shape, x.ndim())) return not_implemented();
        held[0] = repeated(x, x.ndim(), shape), held[1] = repeated(y, x.ndim(), shape);
        x.p = reinterpret_cast<PyArrayObject*>(held[0].ptr()), y.p = reinterpret_cast<PyArrayObject*>(held[1].ptr());
    }
    if (x.is<int64_t>()) return crossed_in_rows<uint64_t>(x, y, at);
    return x.is<float>() ? crossed_in_rows<float>(x, y, at) : crossed_in_rows<double>(x, y, at);
}

}  // namespace

FW_BIND(m) { m.def("cross", &crossed, nb::arg("x"), nb::arg("y"), nb::kw_only(), nb::arg("dim")); }

}  // namespace fw
