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

void find_slots(PyTypeObject* type) {
    at_array = place_of(type, "_array"), at_node = place_of(type, "_node");
    at_counter = place_of(type, "_counter"), at_more = place_of(type, "_more");
}

void set_up(nb::object tensor, nb::object how, nb::object mode) {
    auto* type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
    find_slots(type);
    word_run = word("run"), word_settle = word("settle"), word_enabled = word("enabled");
    quiet = how.release().ptr(), modes = mode.release().ptr();
    tensor_type = reinterpret_cast<PyTypeObject*>(tensor.release().ptr());
}

PyTypeObject* wrapped_type = nullptr;
PyObject* word_node;

// A tensor over an array: (array, class, node), of which Python's function makes those of other classes.
PyObject* wrap(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    PyObject* node = n == 3 ? args[2] : Py_None;
    bool good = n && n < 4 && named < 2 && (n == 1 || args[1] == reinterpret_cast<PyObject*>(wrapped_type));
    if (named && good) {
        good = n < 3 && PyTuple_GET_ITEM(names, 0) == word_node;
        node = args[n];
    }
    if (!good) return PyObject_Vectorcall(plain, args, size_t(n), names);
    PyObject* made = wrapped_type->tp_alloc(wrapped_type, 0);
    if (!made) return nullptr;
    slot(made, at_array) = Py_NewRef(args[0]), slot(made, at_node) = Py_NewRef(node);
    slot(made, at_counter) = none(), slot(made, at_more) = none();
    return made;
}

PyMethodDef wrap_method = {"wrap", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&wrap)),
                           METH_FASTCALL | METH_KEYWORDS, nullptr};

// `tensor.wrap`, as soon as there are tensors.
nb::object set_up_wrap(nb::object tensor, nb::object plain) {
    word_node = word("node");
    find_slots(reinterpret_cast<PyTypeObject*>(tensor.ptr()));
    wrapped_type = reinterpret_cast<PyTypeObject*>(tensor.release().ptr());
    return taken(PyCFunction_NewEx(&wrap_method, plain.ptr(), nullptr));
}

}  // namespace

FW_BIND(m) {
    m.def("set_up_wrap", &set_up_wrap);
    m.def("set_up_tensors", &set_up);
    m.def("set_up_parameters", [](nb::object type) {
        parameter_type = reinterpret_cast<PyTypeObject*>(type.release().ptr());
    });
}

}  // namespace fw::tensors
