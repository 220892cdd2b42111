// The class of tensors, told once by Python.
#include "bind/tensors/tensors.h"

#include <structmember.h>

namespace fw::tensors {

PyTypeObject *tensor_type = nullptr, *parameter_type = nullptr;
PyObject *quiet = nullptr, *modes = nullptr, *word_run = nullptr, *word_settle = nullptr, *word_enabled = nullptr;
Py_ssize_t at_array, at_node, at_counter, at_more;

Py_ssize_t place_of(PyTypeObject* type, const char* name) {
    PyObject* found = PyDict_GetItemString(type->tp_dict, name);
    if (!found || Py_TYPE(found) != &PyMemberDescr_Type) throw nb::type_error("no such slot");
    return reinterpret_cast<PyMemberDescrObject*>(found)->d_member->offset;
}

PyObject* word(const char* text) { return taken(PyUnicode_InternFromString(text)).release().ptr(); }

namespace {

void set_up(nb::object tensor, nb::object how, nb::object mode) {
    auto* type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
    at_array = place_of(type, "_array"), at_node = place_of(type, "_node");
    at_counter = place_of(type, "_counter"), at_more = place_of(type, "_more");
    word_run = word("run"), word_settle = word("settle"), word_enabled = word("enabled");
    quiet = how.release().ptr(), modes = mode.release().ptr();
    tensor_type = reinterpret_cast<PyTypeObject*>(tensor.release().ptr());
}

}  // namespace

FW_BIND(m) {
    m.def("set_up_tensors", &set_up);
    m.def("set_up_parameters", [](nb::object type) {
        parameter_type = reinterpret_cast<PyTypeObject*>(type.release().ptr());
    });
}

}  // namespace fw::tensors
