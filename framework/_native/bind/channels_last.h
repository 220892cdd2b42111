// Images whose channels lie side by side: (n, c, h, w) in shape, n h w c in memory (also of three sizes).
#pragma once

#include <numeric>

#include "bind/move/copy.h"

namespace fw {

// The dimensions in the order of memory: n, the sizes, c.
inline void channels_last_order(int ndim, int* to) {
    to[0] = 0, to[ndim - 1] = 1;
    std::iota(to + 1, to + ndim - 1, 2);
}

// Whether it is dense in that order, and not row-major as well.
inline bool channels_last(const Array& a) {
    if (!a.usable() || (a.ndim() != 4 && a.ndim() != 5) || a.contiguous() || !a.size()) return false;
    int order[5];
    channels_last_order(a.ndim(), order);
    int64_t step = PyArray_ITEMSIZE(a.p);
    for (int i = a.ndim() - 1; i >= 0; --i) {
        const int64_t size = a.shape(order[i]);
        if (size != 1 && a.stride(order[i]) != step) return false;
        step *= size;
    }
    return true;
}

// A new array of `shape` in that order, a view of one that is row-major.
inline NewArray new_channels_last(int ndim, const npy_intp* shape, int type) {
    int order[5];
    npy_intp sizes[5], back[5];
    channels_last_order(ndim, order);
    for (int i = 0; i < ndim; ++i) sizes[i] = shape[order[i]], back[order[i]] = i;
    nb::object owner = give(new_array(ndim, sizes, type));
    PyArray_Dims dims{back, ndim};
    PyObject* view = PyArray_Transpose(reinterpret_cast<PyArrayObject*>(owner.ptr()), &dims);
    if (!view) throw nb::python_error();
    return NewArray(view);
}

// An array in that order, of at least four dimensions: itself, or a copy that goes with this.
struct InChannels {
    nb::object owner;
    Array a;
    explicit InChannels(const Array& given) : a(given) {
        const bool alike = given.contiguous() && (given.shape(1) == 1 || given.shape(0) * given.shape(1) == given.size());
        if (!alike && !channels_last(given)) turn(given);
    }
    template <class T> const T* data() const { return a.data<T>(); }

  private:
    void turn(const Array& given) {
        npy_intp order[5];
        int axes[5];
        channels_last_order(given.ndim(), axes);
        std::copy(axes, axes + given.ndim(), order);
        PyArray_Dims dims{order, given.ndim()};
        nb::object turned = nb::steal(PyArray_Transpose(given.p, &dims));
        if (!turned.is_valid()) throw nb::python_error();
        NewArray made = new_channels_last(given.ndim(), given.shape(), given.type());
        Array source;
        source.p = reinterpret_cast<PyArrayObject*>(turned.ptr());
        Release release(given.size() * int64_t(PyArray_ITEMSIZE(given.p)));
        moving::copy_array(source, made.data<char>());
        a = made, owner = give(made);
    }
};

inline NewArray new_images(int ndim, const npy_intp* shape, int type, bool last) {
    return last ? new_channels_last(ndim, shape, type) : new_array(ndim, shape, type);
}

// Images as kernels for rows made them, to Python: in the layout asked for.
inline nb::object give_images(NewArray& rows, bool last) {
    nb::object made = give(rows);
    if (!last || rows.ndim() < 4 || !rows.size()) return made;
    NewArray view = new_channels_last(rows.ndim(), rows.shape(), rows.type());
    nb::object result = give(view);
    npy_intp back[5];
    int order[5];
    channels_last_order(rows.ndim(), order);
    std::copy(order, order + rows.ndim(), back);
    PyArray_Dims dims{back, rows.ndim()};
    nb::object turned = nb::steal(PyArray_Transpose(rows.p, &dims));
    if (!turned.is_valid()) throw nb::python_error();
    Array source;
    source.p = reinterpret_cast<PyArrayObject*>(turned.ptr());
    Release release(rows.size() * int64_t(PyArray_ITEMSIZE(rows.p)));
    moving::copy_array(source, view.data<char>());
    return result;
}

}  // namespace fw
