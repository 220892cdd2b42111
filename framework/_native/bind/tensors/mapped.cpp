// What a function of Python makes of elements, one after the other.
#include <array>
#include <cmath>

#include "bind/move/copy.h"
#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

constexpr int MOST_MAPPED = 2;

PyObject* number_at(const Array& a, npy_intp i) {
    if (a.is<float>()) return PyFloat_FromDouble(double(a.data<float>()[i]));
    if (a.is<double>()) return PyFloat_FromDouble(a.data<double>()[i]);
    return PyLong_FromLongLong(a.data<int64_t>()[i]);
}

// Whether a result is a number that goes into this memory as it is.
bool put(const NewArray& out, npy_intp i, PyObject* result) {
    if (out.is<int64_t>()) {
        if (!PyLong_CheckExact(result)) return false;
        int beyond = 0;
        out.data<int64_t>()[i] = PyLong_AsLongLongAndOverflow(result, &beyond);
        return !beyond;
    }
    if (!PyFloat_CheckExact(result)) return false;
    const double value = PyFloat_AS_DOUBLE(result);
    if (out.is<double>()) return out.data<double>()[i] = value, true;
    out.data<float>()[i] = float(value);
    return std::isinf(out.data<float>()[i]) == std::isinf(value);  // else NumPy has a word to say
}

// A copy, which the function cannot change.
NewArray own_rows(const Array& x) {
    NewArray rows = like(x);
    moving::copy_array(x, rows.data<char>());
    return rows;
}

// (function, arrays of one shape): an array in the shape and dtype of the first one, or the list of all results where NumPy has to
// look at them; not_implemented(), and nothing done, for other arrays.
nb::object mapped(nb::object function, nb::tuple arrays) {
    const size_t n = arrays.size();
    if (!n || n > MOST_MAPPED) return not_implemented();
    std::array<Array, MOST_MAPPED> given;
    for (size_t k = 0; k < n; ++k) {
        given[k] = nb::cast<Array>(arrays[k]);
        if (!given[k].usable() || !(given[k].is_float() || given[k].is<int64_t>()) || !given[k].same_shape(given[0])) return not_implemented();
    }
    std::array<NewArray, MOST_MAPPED> rows;
    std::array<nb::object, MOST_MAPPED> owners;
    for (size_t k = 0; k < n; ++k) rows[k] = own_rows(given[k]), owners[k] = give(rows[k]);
    NewArray out = like(rows[0]);
    const nb::object array = give(out);
    const npy_intp count = out.size();
    nb::object all;  // the results, once one of them is none of these numbers
    for (npy_intp i = 0; i < count; ++i) {
        nb::object held[MOST_MAPPED];
        PyObject* args[MOST_MAPPED];
        for (size_t k = 0; k < n; ++k) held[k] = taken(number_at(rows[k], i)), args[k] = held[k].ptr();
        const nb::object result = taken(PyObject_Vectorcall(function.ptr(), args, n, nullptr));
        if (!all.is_valid()) {
            if (put(out, i, result.ptr())) continue;
            all = taken(PyList_New(0));
            for (npy_intp j = 0; j < i; ++j)
                if (PyList_Append(all.ptr(), taken(number_at(out, j)).ptr()) < 0) throw nb::python_error();
        }
        if (PyList_Append(all.ptr(), result.ptr()) < 0) throw nb::python_error();
    }
    return all.is_valid() ? all : array;
}

}  // namespace

FW_BIND(m) { m.def("mapped", &mapped, nb::arg("function"), nb::arg("arrays")); }

}  // namespace fw::tensors
