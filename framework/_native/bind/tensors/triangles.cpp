// Triangles of matrices in a tensor's memory: what they have beside them becomes 0, the rest is not touched.
#include "bind/bf16_array.h"
#include "bind/move/copy.h"
#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

// (x, number of the diagonal, whether what is below it stays, name); null, and nothing done, where Python is to go the whole way
nb::object into_triangle(PyObject* const* args) {
    const Held a = memory_of(args[0]);
    if (!a || !PyArray_ISBEHAVED(a.a) || !PyLong_CheckExact(args[1])) return nb::object();
    int overflow = 0;
    const int64_t k = PyLong_AsLongLongAndOverflow(args[1], &overflow);
    const int ndim = PyArray_NDIM(a.a), bytes = moving::item_bytes(Array{a.a});
    if (overflow || ndim < 2 || !bytes || !PyArray_SIZE(a.a)) return nb::object();
    if (!moving::elements_apart(ndim, PyArray_DIMS(a.a), PyArray_STRIDES(a.a), bytes) || !nobody_looks()) return nb::object();
    moving::Block matrices;
    for (int d = 0; d < ndim - 2; ++d) matrices.add(PyArray_DIM(a.a, d), 0, PyArray_STRIDE(a.a, d));
    {
        Release release(PyArray_NBYTES(a.a), Writes::memory);
        moving::clear_triangles(matrices, PyArray_DIM(a.a, ndim - 2), PyArray_DIM(a.a, ndim - 1), PyArray_STRIDE(a.a, ndim - 2),
                                PyArray_STRIDE(a.a, ndim - 1), bytes, k, args[2] == Py_True, PyArray_BYTES(a.a));
    }
    bump(args[0], args[3]);
    return nb::borrow(args[0]);
}

PyObject* cleared(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (n != 4) return PyErr_Format(PyExc_TypeError, "wanted 4 arguments, got %zd", n);
    return guarded([&]() -> PyObject* {
        nb::object made = into_triangle(args);
        if (made.is_valid()) return made.release().ptr();
        Py_RETURN_NOTIMPLEMENTED;
    });
}

PyMethodDef clearing[] = {{"into_triangle", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&cleared)), METH_FASTCALL, nullptr},
                          {nullptr, nullptr, 0, nullptr}};

}  // namespace

FW_BIND(m) {
    if (PyModule_AddFunctions(m.ptr(), clearing) < 0) throw nb::python_error();
}

}  // namespace fw::tensors
