// Operands of several dtypes.
#include <algorithm>
#include <cstring>

#include "bind/move/copy.h"
#include "bind/tensors/tensors.h"

namespace fw::tensors {

int category_of(PyArrayObject* a) {
    const char kind = PyArray_DESCR(a)->kind;
    return kind == 'b' ? 0 : kind == 'i' || kind == 'u' ? 1 : kind == 'f' || kind == 'V' ? 2 : kind == 'c' ? 3 : -1;
}

PyArray_Descr* joint(PyArrayObject* a, PyArrayObject* b) {
    constexpr const char* categories = "bif";
    const auto kind = [](PyArrayObject* x) {
        const PyArray_Descr* type = PyArray_DESCR(x);
        return type->kind == 'V' ? 'f' : type->type_num == NPY_UINT8 ? 'i' : type->kind;  // bfloat16
    };
    const char *of_a = std::strchr(categories, kind(a)), *of_b = std::strchr(categories, kind(b));
    if (!of_a || !of_b || !*of_a || !*of_b) return nullptr;
    PyArrayObject* wins = nullptr;
    if (of_a != of_b) wins = of_a > of_b ? a : b;
    else if ((PyArray_NDIM(a) > 0) != (PyArray_NDIM(b) > 0)) wins = PyArray_NDIM(a) ? a : b;
    else wins = PyArray_ITEMSIZE(a) > PyArray_ITEMSIZE(b) ? a : b;
    if (of_a == of_b && *of_a == 'i' && PyArray_ITEMSIZE(a) == PyArray_ITEMSIZE(b)) return nullptr;  // with a sign and without
    const bool narrows = of_a == of_b && PyArray_ITEMSIZE(wins) < std::max(PyArray_ITEMSIZE(a), PyArray_ITEMSIZE(b));
    if (narrows && (*of_a != 'f' || (PyArray_NDIM(a) && PyArray_NDIM(b)))) return nullptr;
    return of_a == of_b && *of_a == 'f' && PyArray_ITEMSIZE(wins) < 4 ? nullptr : PyArray_DESCR(wins);
}

nb::object converted(PyArrayObject* a, PyArray_Descr* into) {
    if (PyArray_ISBEHAVED_RO(a) && PyArray_SIZE(a)) {
        nb::object made = moving::converted(Array{a}, into);  // without NumPy's warning of what becomes infinite
        if (made.ptr() != Py_NotImplemented) return made;
    }
    Py_INCREF(into);
    return taken(PyArray_CastToType(a, into, PyArray_IS_F_CONTIGUOUS(a)));
}

}  // namespace fw::tensors
