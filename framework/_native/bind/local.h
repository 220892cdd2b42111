// What each thread has of its own, as C++ asks for it.
#pragma once

#include "bind/array.h"

namespace fw {

// The dictionary of this thread, borrowed, of a `Local`; null with an error set.
PyObject* values_here(PyObject* local);

// A value of this thread's.
inline nb::object here_of(PyObject* local, PyObject* name) {
    PyObject* values = values_here(local);
    if (!values) throw nb::python_error();
    PyObject* value = PyDict_GetItemWithError(values, name);
    if (value) return nb::borrow(value);
    nb::object found = PyErr_Occurred() ? nb::object() : nb::steal(PyObject_GetAttr(local, name));
    if (!found.is_valid()) throw nb::python_error();
    return found;
}

}  // namespace fw
