// The methods of `Size` (size.py) that programs call most: what is cut out of a shape, or added to it.
#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

PyTypeObject* size_type = nullptr;

PyObject* as_size(nb::object numbers) {
    nb::object args = taken(PyTuple_Pack(1, numbers.ptr()));
    return taken(PyTuple_Type.tp_new(size_type, args.ptr(), nullptr)).release().ptr();
}

PyObject* item(PyObject* self, PyObject* key) {
    return guarded([&]() -> PyObject* {
        nb::object found = taken(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
        return PySlice_Check(key) ? as_size(std::move(found)) : found.release().ptr();
    });
}

PyObject* joined(PyObject* self, PyObject* other) {
    return guarded([&]() -> PyObject* {
        if (!PyTuple_Check(other)) Py_RETURN_NOTIMPLEMENTED;
        return as_size(taken(PyTuple_Type.tp_as_sequence->sq_concat(self, other)));
    });
}

PyMethodDef methods[] = {{"__getitem__", item, METH_O | METH_COEXIST, nullptr},
                         {"__add__", joined, METH_O | METH_COEXIST, nullptr}};

void set_up(nb::object size) {
    size_type = reinterpret_cast<PyTypeObject*>(size.ptr());
    if (!PyType_IsSubtype(size_type, &PyTuple_Type)) throw nb::type_error("a Size is a tuple");
    for (PyMethodDef& method : methods) nb::setattr(size, method.ml_name, taken(PyDescr_NewMethod(size_type, &method)));
    size.release();
}

}  // namespace

FW_BIND(m) { m.def("set_up_size", &set_up); }

}  // namespace fw::tensors
