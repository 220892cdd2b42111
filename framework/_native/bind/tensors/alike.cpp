// Whether tensors of a list can be joined as they are, and in which memory, which Python asks in a loop otherwise (`ops/shape/join.py`).
#include "bind/array_layout.h"
#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

// How many dimensions all tensors of a list or tuple have, twice, and one more where they have one shape. -1 where there are
// none, where one is of another kind, dtype or number of dimensions, has none, or is of shape (0,), which is passed over.
long alike(nb::handle tensors) {
    PyObject* list = tensors.ptr();
    if (!PyList_CheckExact(list) && !PyTuple_CheckExact(list)) return -1;
    PyArrayObject* first = nullptr;
    bool equal = true;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); ++i) {
        PyArrayObject* a = array_of(PySequence_Fast_GET_ITEM(list, i));
        if (!a || !PyArray_NDIM(a) || (PyArray_NDIM(a) == 1 && !PyArray_DIM(a, 0))) return -1;
        if (!first) first = a;
        if (PyArray_DESCR(a) != PyArray_DESCR(first) || PyArray_NDIM(a) != PyArray_NDIM(first)) return -1;
        equal = equal && PyArray_SAMESHAPE(a, first);
    }
    return first ? 2L * PyArray_NDIM(first) + equal : -1;
}

// Whether the memory of `out` and of a tensor in the list may have places in common; true of what is not looked through, too.
bool may_meet(nb::handle out, nb::handle tensors) {
    PyObject* list = tensors.ptr();
    PyArrayObject* own = array_of(out.ptr());
    if (!own || (!PyList_CheckExact(list) && !PyTuple_CheckExact(list))) return true;
    const auto to = ArrayLayout::extent(own);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); ++i) {
        PyArrayObject* a = array_of(PySequence_Fast_GET_ITEM(list, i));
        if (!a) return true;
        const auto from = ArrayLayout::extent(a);
        if (from.first < to.second && to.first < from.second) return true;
    }
    return false;
}

}  // namespace

FW_BIND(m) {
    m.def("alike", &alike, nb::arg("tensors"));
    m.def("may_meet", &may_meet, nb::arg("out"), nb::arg("tensors"));
}

}  // namespace fw::tensors
