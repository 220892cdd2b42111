// Cross products of NumPy arrays.
#include "gemm/cross.h"

#include "bind/array.h"

namespace fw {
namespace {

// Of arrays of one shape, along a dimension of 3 counted from the end.
nb::object crossed(Array x, Array y, int dim) {
    if (!x.is_float() || !y.usable() || x.type() != y.type() || !x.same_shape(y) || !x.size()) return not_implemented();
    const int at = x.ndim() + dim;
    if (dim >= 0 || at < 0 || x.shape(at) != 3) return not_implemented();
    int64_t inner = 1;
    for (int d = at + 1; d < x.ndim(); ++d) inner *= x.shape(d);
    const InRows first(x), second(y);
    NewArray out = new_array(x.ndim(), x.shape(), x.type());
    nb::object result = give(out);
    Release release(x.size() * 8);
    if (x.is<float>()) cross(first.data<float>(), second.data<float>(), x.size() / 3 / inner, inner, out.data<float>());
    else cross(first.data<double>(), second.data<double>(), x.size() / 3 / inner, inner, out.data<double>());
    return result;
}

}  // namespace

FW_BIND(m) { m.def("cross", &crossed, nb::arg("x"), nb::arg("y"), nb::kw_only(), nb::arg("dim")); }

}  // namespace fw
