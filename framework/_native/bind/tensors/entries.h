// What the objects that stand for public functions (`entries.cpp`) do where nothing is unusual.
#pragma once

#include "bind/tensors/tensors.h"

namespace fw::tensors {

// Whether a tuple has the parts of a form in place, or of an elementwise function (`record/entries.py`).
bool is_form(PyObject* form);
bool is_element(PyObject* element);
bool has_plan(PyObject* form);  // whether a form asks a function of Python
// A form in place; null, and nothing done, where Python is to look at the call.
nb::object form_written(PyObject* form, PyObject* const* args, Py_ssize_t n, PyObject* keywords);
// The result of an elementwise function, in `out` if that is given, or null with an error set; not `done` where Python is to look at it.
PyObject* element_called(PyObject* element, PyObject* const* args, Py_ssize_t n, PyObject* out, bool& done);
inline PyObject* part(PyObject* tuple, Py_ssize_t which) { return PyTuple_GET_ITEM(tuple, which); }

}  // namespace fw::tensors
