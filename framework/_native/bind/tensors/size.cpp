// The methods of `Size` (size.py) that programs call most: what is cut out of a shape, or added to it. Sizes as functions are given
// them.
#include <algorithm>

#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

PyTypeObject* size_type = nullptr;

PyObject* as_size(nb::object numbers) {
    nb::object args = taken(PyTuple_Pack(1, numbers.ptr()));
    return taken(PyTuple_Type.tp_new(size_type, args.ptr(), nullptr)).release().ptr();
}

PyObject* item(PyObject* self, PyObject* key) {
    return guarded([&]() -> PyObject* {
        nb::object found = taken(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
        return PySlice_Check(key) ? as_size(std::move(found)) : found.release().ptr();
    });
}

PyObject* joined(PyObject* self, PyObject* other) {
    return guarded([&]() -> PyObject* {
        if (!PyTuple_Check(other)) Py_RETURN_NOTIMPLEMENTED;
        return as_size(taken(PyTuple_Type.tp_as_sequence->sq_concat(self, other)));
    });
}

// `f(2, 3)`, `f((2, 3))` and `f([2, 3])` alike as a tuple of ints; None where Python is to look: (sizes), none of them negative if so
template <bool NEGATIVE> PyObject* numbers_of(PyObject*, PyObject* sizes) {
    if (!PyTuple_CheckExact(sizes)) Py_RETURN_NONE;
    PyObject* only = PyTuple_GET_SIZE(sizes) == 1 ? PyTuple_GET_ITEM(sizes, 0) : nullptr;
    PyObject* numbers = only && (PyTuple_Check(only) || PyList_CheckExact(only)) ? PySequence_Tuple(only) : Py_NewRef(sizes);
    if (!numbers) return nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); ++i) {
        PyObject* n = PyTuple_GET_ITEM(numbers, i);
        int beyond = 0;
        if (PyLong_CheckExact(n) && (NEGATIVE || PyLong_AsLongAndOverflow(n, &beyond) >= 0)) continue;
        Py_DECREF(numbers);
        Py_RETURN_NONE;
    }
    return numbers;
}

// The shape that several broadcast to; None where Python is to look: (a tuple or list of shapes)
PyObject* common_shape(PyObject*, PyObject* shapes) {
    if (!PyTuple_CheckExact(shapes) && !PyList_CheckExact(shapes)) Py_RETURN_NONE;
    PyObject** all = PySequence_Fast_ITEMS(shapes);
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(shapes);
    Py_ssize_t ndim = 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!PyTuple_Check(all[i])) Py_RETURN_NONE;
        ndim = std::max(ndim, PyTuple_GET_SIZE(all[i]));
    }
    PyObject* sizes[NPY_MAXDIMS] = {};
    if (ndim > NPY_MAXDIMS) Py_RETURN_NONE;
    long known[NPY_MAXDIMS];
    std::fill(known, known + ndim, 1);
    for (Py_ssize_t i = 0; i < count; ++i) {
        const Py_ssize_t n = PyTuple_GET_SIZE(all[i]);
        for (Py_ssize_t d = 0; d < n; ++d) {
            PyObject* size = PyTuple_GET_ITEM(all[i], d);
            int beyond = 0;
            const long value = PyLong_CheckExact(size) ? PyLong_AsLongAndOverflow(size, &beyond) : -1;
            const Py_ssize_t at = ndim - n + d;
            if (value < 0 || (value != 1 && known[at] != 1 && known[at] != value)) Py_RETURN_NONE;
            if (value != 1 || !sizes[at]) sizes[at] = size, known[at] = value;
        }
    }
    PyObject* shape = PyTuple_New(ndim);
    for (Py_ssize_t d = 0; shape && d < ndim; ++d) PyTuple_SET_ITEM(shape, d, Py_NewRef(sizes[d]));
    return shape;
}

PyMethodDef functions_of_sizes[] = {{"common_shape", common_shape, METH_O, nullptr}, {"ints_of", numbers_of<true>, METH_O, nullptr}, {"sizes_of", numbers_of<false>, METH_O, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};
PyMethodDef methods[] = {{"__getitem__", item, METH_O | METH_COEXIST, nullptr},
                         {"__add__", joined, METH_O | METH_COEXIST, nullptr}};

void set_up(nb::object size) {
    size_type = reinterpret_cast<PyTypeObject*>(size.ptr());
    if (!PyType_IsSubtype(size_type, &PyTuple_Type)) throw nb::type_error("a Size is a tuple");
    for (PyMethodDef& method : methods) nb::setattr(size, method.ml_name, taken(PyDescr_NewMethod(size_type, &method)));
    size.release();
}

}  // namespace

FW_BIND(m) {
    m.def("set_up_size", &set_up);
    if (PyModule_AddFunctions(m.ptr(), functions_of_sizes) < 0) throw nb::python_error();
}

}  // namespace fw::tensors
