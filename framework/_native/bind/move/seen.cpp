// Views: the memory of an array in another shape, with other strides. NumPy's functions for them are written in Python.
#include <algorithm>

#include "bind/move/copy.h"

namespace fw::moving {

Array owner_of(Array x) {
    while (PyObject* base = PyArray_BASE(x.p)) {
        nb::object inner = nb::borrow(base);
        if (!PyArray_Check(base)) inner = nb::getattr(base, "base", nb::none());  // what as_strided puts between
        if (!PyArray_Check(inner.ptr())) break;
        x.p = reinterpret_cast<PyArrayObject*>(inner.ptr());
    }
    return x;
}

namespace {

NewArray view_of(Array x, int ndim, const npy_intp* shape, const npy_intp* strides, char* start, bool writeable) {
    PyArray_Descr* descr = PyArray_DESCR(x.p);
    Py_INCREF(descr);
    const int flags = writeable && x.writeable() ? NPY_ARRAY_WRITEABLE : 0;
    PyObject* made = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, const_cast<npy_intp*>(shape),
                                          const_cast<npy_intp*>(strides), start, flags, nullptr);
    if (!made) throw nb::python_error();
    NewArray out(made);
    Py_INCREF(x.p);
    if (PyArray_SetBaseObject(out.p, reinterpret_cast<PyObject*>(x.p)) < 0) throw nb::python_error();
    return out;
}

// A tuple of whole numbers; -1 where it is none, or longer than an array's shape.
int numbers(nb::handle given, npy_intp* to) {
    if (!PyTuple_Check(given.ptr()) || PyTuple_GET_SIZE(given.ptr()) > NPY_MAXDIMS) return -1;
    const int n = int(PyTuple_GET_SIZE(given.ptr()));
    for (int i = 0; i < n; ++i) {
        PyObject* item = PyTuple_GET_ITEM(given.ptr(), i);
        if (!PyLong_Check(item)) return -1;
        to[i] = PyLong_AsSsize_t(item);
        if (to[i] == -1 && PyErr_Occurred()) return PyErr_Clear(), -1;
    }
    return n;
}

// Repeated along dimensions of size 1, and along new ones in front: not to be written to, unless nothing is repeated.
nb::object expand(Array x, nb::handle size) {
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    const int ndim = x.usable() ? numbers(size, shape) : -1, extra = ndim - (ndim < 0 ? 0 : x.ndim());
    if (ndim < 0 || extra < 0 || !x.size()) return not_implemented();
    bool repeated = false;
    npy_intp step = PyArray_ITEMSIZE(x.p);
    for (int d = ndim; d-- > 0;) {
        const npy_intp had = d < extra ? 1 : x.shape(d - extra);
        if (shape[d] < 1 || (had != 1 && had != shape[d])) return not_implemented();
        strides[d] = had == shape[d] ? (d < extra ? step : x.stride(d - extra)) : 0;
        repeated = repeated || had != shape[d];
        if (had == shape[d]) step = strides[d] * had;
    }
    return give(view_of(x, ndim, shape, strides, x.data<char>(), !repeated));
}

// The gradient of a sum: every element of `shape` sees that of the sum over `dims` which it went into, whether or not those were kept.
nb::object spread(Array g, nb::handle size, nb::handle over) {
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS], dims[NPY_MAXDIMS];
    const int ndim = g.usable() ? numbers(size, shape) : -1, count = numbers(over, dims);
    if (ndim < 0 || count < 0 || (g.ndim() != ndim && g.ndim() + count != ndim)) return not_implemented();
    const bool kept = g.ndim() == ndim;
    for (int d = 0, of = 0; d < ndim; ++d) {
        const bool summed = std::find(dims, dims + count, d) != dims + count;
        if (shape[d] < 1 || (!summed && of == g.ndim())) return not_implemented();
        if (!(summed && !kept) && g.shape(of) != (summed ? 1 : shape[d])) return not_implemented();
        strides[d] = summed ? 0 : g.stride(of);
        of += !summed || kept;
    }
    return give(view_of(g, ndim, shape, strides, g.data<char>(), false));
}

// memory[offset + sum of steps[d] * i[d]] += x[i] for one index after another, so that several may go to one place.
template <class T> void add_at_steps(Array memory, Array x, const npy_intp* steps, int64_t offset) {
    T* to = memory.data<T>();
    npy_intp at[NPY_MAXDIMS] = {};
    for (int64_t left = x.size(); left > 0; --left) {
        const char* from = x.data<char>();
        int64_t place = offset;
        for (int d = 0; d < x.ndim(); ++d) from += at[d] * x.stride(d), place += at[d] * steps[d];
        to[place] += *reinterpret_cast<const T*>(from);
        for (int d = x.ndim(); d-- > 0 && ++at[d] == x.shape(d);) at[d] = 0;
    }
}

// The gradient of a view with these steps (elements): its elements are added to those that they show of `memory`, a row.
bool add_seen(Array memory, Array x, nb::handle by, int64_t offset) {
    constexpr int64_t FEW = 1 << 12;  // Python's way adds a part that does not meet itself at once
    npy_intp steps[NPY_MAXDIMS], reach;
    if (!memory.is_float() || !x.usable() || x.type() != memory.type() || x.size() > FEW || numbers(by, steps) != x.ndim()) return false;
    if (memory.ndim() != 1 || !memory.contiguous() || !memory.writeable()) return false;
    npy_intp low = offset, high = offset;
    for (int d = 0; d < x.ndim() && x.size(); ++d) {
        if (__builtin_mul_overflow(x.shape(d) - 1, steps[d], &reach)) return false;
        if (__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) return false;
    }
    if (x.size() && (low < 0 || high >= memory.size())) return false;
    if (memory.is<float>()) add_at_steps<float>(memory, x, steps, offset);
    else add_at_steps<double>(memory, x, steps, offset);
    return true;
}

// (bytes of its memory before the first element, bytes of it in all)
nb::object memory_around(Array x) {
    if (!x.usable()) return not_implemented();
    const Array owner = owner_of(x);
    return nb::make_tuple(x.data<char>() - owner.data<char>(), PyArray_NBYTES(owner.p));
}

// strides and offset in bytes; NotImplemented where it would reach out of the memory of x's owner.
nb::object seen(Array x, nb::handle size, nb::handle steps, int64_t offset, bool writeable) {
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (!x.usable() || !x.size()) return not_implemented();
    const int ndim = numbers(size, shape);
    if (ndim < 0 || numbers(steps, strides) != ndim) return not_implemented();
    const Array owner = owner_of(x);
    if (!PyArray_IS_C_CONTIGUOUS(owner.p) && !PyArray_IS_F_CONTIGUOUS(owner.p)) return not_implemented();
    npy_intp low, high, reach;
    if (__builtin_add_overflow(npy_intp(x.data<char>() - owner.data<char>()), offset, &low) ||
        __builtin_add_overflow(low, PyArray_ITEMSIZE(x.p), &high))
        return not_implemented();
    for (int d = 0; d < ndim; ++d) {
        if (shape[d] < 1 || __builtin_mul_overflow(shape[d] - 1, strides[d], &reach)) return not_implemented();
        if (__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) return not_implemented();
    }
    if (low < 0 || high > npy_intp(PyArray_NBYTES(owner.p))) return not_implemented();
    return give(view_of(x, ndim, shape, strides, x.data<char>() + offset, writeable));
}

}  // namespace

FW_BIND(m) {
    m.def("expand", &expand, nb::arg("x"), nb::arg("size"));
    m.def("spread", &spread, nb::arg("g"), nb::arg("size"), nb::arg("over"));
    m.def("add_seen", &add_seen, nb::arg("memory"), nb::arg("x"), nb::arg("by"), nb::arg("offset"));
    m.def("memory_around", &memory_around, nb::arg("x"));
    m.def("seen", &seen, nb::arg("x"), nb::arg("size"), nb::arg("steps"), nb::arg("offset"), nb::arg("writeable"));
}

}  // namespace fw::moving
