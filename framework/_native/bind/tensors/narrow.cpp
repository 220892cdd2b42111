// Kernels on numbers of 16 bits as on float32 (`ops/record/rounded.py`): the usual calls, from arrays to the rounded result.
#include <vector>

#include "bind/bf16_array.h"
#include "bind/move/copy.h"
#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

// What may stand beside the arrays: no dtype can be in it.
bool is_simple(PyObject* x) {
    return PyLong_CheckExact(x) || PyFloat_CheckExact(x) || PyBool_Check(x) || x == Py_None || PyUnicode_CheckExact(x);
}
bool is_simple_setting(PyObject* x, int deep = 3) {
    if (!PyTuple_Check(x)) return is_simple(x);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(x); ++i)
        if (!deep || !is_simple_setting(PyTuple_GET_ITEM(x, i), deep - 1)) return false;
    return true;
}

// An array of 16 bits that has elements to convert.
bool is_narrow(PyArrayObject* a) {
    PyArray_Descr* d = PyArray_DESCR(a);
    return (d->type_num == NPY_HALF || is_bf16(d)) && PyArray_ISBEHAVED_RO(a) && PyArray_SIZE(a);
}

nb::object as(PyObject* array, PyArray_Descr* wanted) {
    auto* a = reinterpret_cast<PyArrayObject*>(array);
    nb::object made = PyArray_SIZE(a) && PyArray_ISBEHAVED_RO(a) ? moving::converted(Array{a}, wanted) : not_implemented();
    if (made.ptr() != Py_NotImplemented) return made;
    Py_INCREF(wanted);
    return taken(PyArray_CastToType(a, wanted, 0));
}

// A result with its float32 arrays in the type that the arrays had.
nb::object rounded(nb::object result, PyArray_Descr* type) {
    PyObject* o = result.ptr();
    if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
        const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
        nb::object made = taken(PyTuple_New(n));
        for (Py_ssize_t i = 0; i < n; ++i)
            PyTuple_SET_ITEM(made.ptr(), i, rounded(nb::borrow(PySequence_Fast_GET_ITEM(o, i)), type).release().ptr());
        return made;
    }
    if (PyArray_IsScalar(o, Generic)) result = taken(PyArray_FromScalar(o, nullptr)), o = result.ptr();
    if (!PyArray_Check(o) || PyArray_TYPE(reinterpret_cast<PyArrayObject*>(o)) != NPY_FLOAT) return result;
    return as(o, type);
}

// (kernel, *arrays, **settings); `plain`: Python's function, which is called where anything is unusual.
PyObject* in_float32(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return guarded([&]() -> PyObject* {
        if (n > 0) {
            nb::object result = narrowed(args[0], args + 1, n - 1, names);
            if (result.ptr() != Py_NotImplemented) return result.release().ptr();
        }
        return PyObject_Vectorcall(plain, args, size_t(n), names);
    });
}

PyMethodDef method = {"in_float32", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&in_float32)),
                      METH_FASTCALL | METH_KEYWORDS,
                      "Run a kernel on bfloat16 (or float16) as on float32; beside a wider array the result stays as it is."};

}  // namespace

nb::object narrowed(PyObject* kernel, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    const Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
    PyArray_Descr* found = nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (!PyArray_CheckExact(args[i])) {
            if (!is_simple(args[i])) return not_implemented();
            continue;
        }
        auto* a = reinterpret_cast<PyArrayObject*>(args[i]);
        PyArray_Descr* d = PyArray_DESCR(a);
        if (d->kind == 'i' || d->kind == 'u' || d->kind == 'b') continue;
        if (!is_narrow(a) || (found && found != d)) return not_implemented();
        found = d;
    }
    if (!found) return not_implemented();
    for (Py_ssize_t i = 0; i < count; ++i)
        if (!is_simple_setting(args[n + i])) return not_implemented();
    const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(found));  // while arrays come and go
    const nb::object wide = nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_FLOAT)));
    std::vector<nb::object> made;
    std::vector<PyObject*> given(args, args + n + count);
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (!PyArray_CheckExact(given[size_t(i)]) || !is_narrow(reinterpret_cast<PyArrayObject*>(given[size_t(i)]))) continue;
        made.push_back(as(given[size_t(i)], reinterpret_cast<PyArray_Descr*>(wide.ptr())));
        given[size_t(i)] = made.back().ptr();
    }
    nb::object result = taken(PyObject_Vectorcall(kernel, given.data(), size_t(n), names));
    return rounded(std::move(result), reinterpret_cast<PyArray_Descr*>(type.ptr()));
}

FW_BIND(m) {
    m.def("short_in_float32", [](nb::object plain) { return taken(PyCFunction_NewEx(&method, plain.ptr(), nullptr)); });
}

}  // namespace fw::tensors
