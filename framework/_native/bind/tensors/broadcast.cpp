// Gradients of operands that were broadcast: summed over the elements that one of theirs stood for.
#include <vector>

#include "bind/tensors/tensors.h"

namespace fw::tensors {

bool is_broadcast(PyArrayObject* g, PyObject* shape) {
    if (!PyTuple_CheckExact(shape)) return false;
    if (PyTuple_GET_SIZE(shape) != PyArray_NDIM(g)) return true;
    for (int d = 0; d < PyArray_NDIM(g); ++d)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d)) != PyArray_DIM(g, d)) return true;
    return false;
}

namespace {

PyObject *sum_to = nullptr, *word_fold, *word_sum;

nb::object by_sum(const nb::object& grad, PyObject* shape) {
    PyObject* given[] = {grad.ptr(), shape};
    return taken(PyObject_Vectorcall(sum_to, given, 2, nullptr));
}

// The dimensions of `g` that a sum to such a shape is over.
nb::object dims_to_sum(PyArrayObject* g, PyObject* shape) {
    const int extra = PyArray_NDIM(g) - int(PyTuple_GET_SIZE(shape));
    nb::list dims;
    for (int d = 0; d < PyArray_NDIM(g); ++d)
        if (d < extra || (PyArray_DIM(g, d) != 1 && PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d - extra)) == 1)) dims.append(d);
    return nb::tuple(dims);
}

}  // namespace

nb::object folded(const nb::object& f, PyObject* shape, PyObject* const* arguments, size_t n) {
    const nb::object fold = nb::steal(PyObject_GetAttr(f.ptr(), word_fold));
    if (!fold) {
        PyErr_Clear();
        return not_implemented();
    }
    auto* g = reinterpret_cast<PyArrayObject*>(arguments[0]);
    const nb::object dims = dims_to_sum(g, shape), keeps = nb::bool_(PyTuple_GET_SIZE(shape) == PyArray_NDIM(g)), correction = nb::int_(0);
    std::vector<PyObject*> given{word_sum, dims.ptr(), keeps.ptr(), correction.ptr()};
    given.insert(given.end(), arguments, arguments + n);
    return taken(PyObject_Vectorcall(fold.ptr(), given.data(), given.size(), nullptr));
}

nb::object summed(nb::object grad, PyObject* shape) {
    if (!PyArray_CheckExact(grad.ptr())) return by_sum(grad, shape);
    auto* array = reinterpret_cast<PyArrayObject*>(grad.ptr());
    if (!is_broadcast(array, shape)) return grad;
    const int n = int(PyTuple_GET_SIZE(shape));
    if (n > NPY_MAXDIMS) return by_sum(grad, shape);  // which says what is wrong
    npy_intp sizes[NPY_MAXDIMS], count = 1;
    for (int d = 0; d < n; ++d) count *= sizes[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
    if (count != PyArray_SIZE(array)) return by_sum(grad, shape);
    PyArray_Dims dims{sizes, n};
    return taken(PyArray_Newshape(array, &dims, NPY_CORDER));
}

FW_BIND(m) {
    word_fold = word("fold"), word_sum = word("sum");
    m.def("set_up_summed", [](nb::object sum) { sum_to = sum.release().ptr(); });
}

}  // namespace fw::tensors
