// Arrays one after another along a dimension: cat and stack.
#include <algorithm>
#include <vector>

#include "bind/move/alike.h"
#include "bind/move/copy.h"
#include "move/join.h"

namespace fw::moving {
namespace {

constexpr int64_t SHORT = 32;  // bytes: shorter pieces are copied element by element

// Arrays as parameters: of one type, of one number of dimensions.
struct JoinArrays {
    std::vector<Array> arrays;
    int bytes = 0;

    explicit JoinArrays(nb::args given) {
        for (nb::handle h : given) {
            PyObject* o = h.ptr();
            if (!PyArray_CheckExact(o) || !PyArray_ISBEHAVED_RO(reinterpret_cast<PyArrayObject*>(o))) return;
            Array a;
            a.p = reinterpret_cast<PyArrayObject*>(o);
            if (!arrays.empty() && (a.type() != arrays[0].type() || a.ndim() != arrays[0].ndim())) return;
            arrays.push_back(a);
        }
        if (!arrays.empty()) bytes = item_bytes(arrays[0]);
    }
};

// `out` is filled with the parts along `dim`; `fresh`: they have no such dimension themselves.
void join(const JoinArrays& parts, Array& out, int dim, bool fresh) {
    int64_t outer = product(out.shape(), 0, dim), inner = product(out.shape(), dim + 1, out.ndim()) * parts.bytes;
    JoinedBytes pieces;
    bool dense = true;
    for (const Array& a : parts.arrays) {
        int64_t size = (fresh ? 1 : a.shape(dim)) * inner;
        if (!size) continue;
        dense = dense && a.contiguous() && (size > SHORT || outer == 1);
        pieces.from.push_back(a.data<char>());
        pieces.ends.push_back((pieces.ends.empty() ? 0 : pieces.ends.back()) + size);
    }
    if (dense && out.contiguous()) return pieces.copy(outer, out.data<char>());
    char* to = out.data<char>();
    for (const Array& a : parts.arrays) {
        Block b;
        for (int d = 0; d < a.ndim(); ++d) b.add(a.shape(d), a.stride(d), out.stride(fresh && d >= dim ? d + 1 : d));
        copy_block(b, parts.bytes, a.data<char>(), to);
        to += (fresh ? 1 : a.shape(dim)) * out.stride(dim);
    }
}

// Whether all parts are images with their channels last; `axes`: the order of their dimensions in memory.
bool are_images(const JoinArrays& parts, int* axes) {
    const Array& first = parts.arrays[0];
    if (first.contiguous()) return false;
    axes_in_memory(first, axes);
    if (!are_channels_last(first.ndim(), axes)) return false;
    return std::all_of(parts.arrays.begin(), parts.arrays.end(), [&](const Array& a) { return dense_in_order(a, axes); });
}

nb::object joined(const JoinArrays& parts, int ndim, const npy_intp* shape, int dim, bool fresh) {
    if (!product(shape, 0, ndim)) return not_implemented();
    int axes[NPY_MAXDIMS];
    NewArray out = !fresh && are_images(parts, axes) ? new_in_order(ndim, shape, parts.arrays[0].type(), axes)
                                                       : new_array(ndim, shape, parts.arrays[0].type());
    nb::object result = give(out);
    Release release(out.size() * parts.bytes);
    join(parts, out, dim, fresh);
    return result;
}

nb::object cat(nb::args xs, int64_t dim) {
    JoinArrays parts(xs);
    if (!parts.bytes || parts.arrays.size() != xs.size()) return not_implemented();
    const Array& first = parts.arrays[0];
    if (dim < 0 || dim >= first.ndim()) return not_implemented();
    npy_intp shape[NPY_MAXDIMS];
    std::copy(first.shape(), first.shape() + first.ndim(), shape);
    shape[dim] = 0;
    for (const Array& a : parts.arrays) {
        for (int d = 0; d < a.ndim(); ++d)
            if (d != dim && a.shape(d) != shape[d]) return not_implemented();
        shape[dim] += a.shape(int(dim));
    }
    return joined(parts, first.ndim(), shape, int(dim), false);
}

// order: of the dimensions in memory; of none, that of theirs.
nb::object stack_in_order(nb::args xs, int64_t dim, nb::tuple order) {
    JoinArrays parts(xs);
    if (!parts.bytes || parts.arrays.size() != xs.size()) return not_implemented();
    const Array& first = parts.arrays[0];
    if (dim < 0 || dim > first.ndim() || first.ndim() + 1 > NPY_MAXDIMS) return not_implemented();
    for (const Array& a : parts.arrays)
        if (!a.same_shape(first)) return not_implemented();
    npy_intp shape[NPY_MAXDIMS];
    std::copy(first.shape(), first.shape() + dim, shape);
    shape[dim] = npy_intp(parts.arrays.size());
    std::copy(first.shape() + dim, first.shape() + first.ndim(), shape + dim + 1);
    if (!order.size()) return joined(parts, first.ndim() + 1, shape, int(dim), true);
    int axes[NPY_MAXDIMS];
    uint64_t seen = 0;
    if (int(order.size()) != first.ndim() + 1 || !product(shape, 0, first.ndim() + 1)) return not_implemented();
    for (int d = 0; d <= first.ndim(); ++d) {
        axes[d] = nb::cast<int>(order[size_t(d)]);
        if (axes[d] < 0 || axes[d] > first.ndim() || (seen >> axes[d] & 1)) return not_implemented();
        seen |= uint64_t(1) << axes[d];
    }
    NewArray out = new_in_order(first.ndim() + 1, shape, first.type(), axes);
    nb::object result = give(out);
    Release release(out.size() * parts.bytes);
    join(parts, out, int(dim), true);
    return result;
}

nb::object stack(nb::args xs, int64_t dim) { return stack_in_order(std::move(xs), dim, nb::tuple()); }

// Complex numbers of their parts, which are arrays of one type that broadcast.
nb::object join_parts(Array real, Array imag) {
    if (!real.is_float() || !imag.usable() || imag.type() != real.type()) return not_implemented();
    const moving::Alike parts(real, imag);
    if (!parts.fits) return not_implemented();
    NewArray out = parts.result(real.is<float>() ? NPY_CFLOAT : NPY_CDOUBLE);
    nb::object result = give(out);
    Release release(out.size() * 8);
    if (real.is<float>()) join_pairs(parts.x.data<float>(), parts.y.data<float>(), out.data<float>(), out.size());
    else join_pairs(parts.x.data<double>(), parts.y.data<double>(), out.data<double>(), out.size());
    return result;
}

}  // namespace

FW_BIND(m) {
    m.def("join_parts", &join_parts, nb::arg("real"), nb::arg("imag"));
    m.def("cat", &cat, nb::arg("xs"), nb::kw_only(), nb::arg("dim"));
    m.def("stack", &stack, nb::arg("xs"), nb::kw_only(), nb::arg("dim"));
    m.def("stack_in_order", &stack_in_order, nb::arg("xs"), nb::kw_only(), nb::arg("dim"), nb::arg("order"));
}

}  // namespace fw::moving
