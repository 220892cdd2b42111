// The properties of tensors that programs, and functions of ours, ask for most, and their element. Each is a function of which
// Python's own, behind it (`__self__`), is asked for what is unusual.
#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

PyObject *cpu, *shapes_known;
PyObject *dtypes_known[NPY_NTYPES_LEGACY];  // by NumPy's number

PyObject* shape_of(PyObject* plain, PyObject* x) {
    if (PyArrayObject* a = array_of(x)) {
        PyObject* sizes = PyArray_IntTupleFromIntp(PyArray_NDIM(a), PyArray_DIMS(a));
        if (!sizes) return nullptr;
        PyObject* found = PyDict_GetItemWithError(shapes_known, sizes);
        Py_DECREF(sizes);
        if (found || PyErr_Occurred()) return Py_XNewRef(found);
    }
    return PyObject_CallOneArg(plain, x);
}

PyObject* ndim_of(PyObject* plain, PyObject* x) {
    PyArrayObject* a = array_of(x);
    return a ? PyLong_FromLong(PyArray_NDIM(a)) : PyObject_CallOneArg(plain, x);
}

PyObject* dtype_of(PyObject* plain, PyObject* x) {
    PyArrayObject* a = array_of(x);
    if (!a) return PyObject_CallOneArg(plain, x);
    const int type = PyArray_TYPE(a);
    if (type < 0 || type >= NPY_NTYPES_LEGACY || !PyArray_ISNBO(PyArray_DESCR(a)->byteorder)) return PyObject_CallOneArg(plain, x);
    PyObject*& known = dtypes_known[type];
    if (known) return Py_NewRef(known);
    PyObject* found = PyObject_CallOneArg(plain, x);
    if (found && !known) known = Py_NewRef(found);
    return found;
}

PyObject* device_of(PyObject* plain, PyObject* x) {
    return array_of(x) ? Py_NewRef(cpu) : PyObject_CallOneArg(plain, x);
}

PyMethodDef getters[] = {{"shape", shape_of, METH_O, nullptr}, {"ndim", ndim_of, METH_O, nullptr},
                         {"dtype", dtype_of, METH_O, nullptr}, {"device", device_of, METH_O, nullptr}};

// (the class of tensors, the CPU, the shapes that are known)
void set_up_properties(nb::object tensor, nb::object host, nb::object shapes) {
    cpu = host.release().ptr(), shapes_known = shapes.release().ptr();
    for (PyMethodDef& getter : getters) {
        nb::object property = tensor.attr(getter.ml_name), plain = property.attr("fget");
        nb::object quick = taken(PyCFunction_NewEx(&getter, plain.ptr(), nullptr));
        nb::setattr(tensor, getter.ml_name, nb::handle(reinterpret_cast<PyObject*>(&PyProperty_Type))(
            quick, property.attr("fset"), property.attr("fdel"), property.attr("__doc__")));
    }
}

// The element of a tensor that has one.
PyObject* item_of(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    PyArrayObject* a = n == 1 && !keywords ? array_of(args[0]) : nullptr;
    if (!a || PyArray_SIZE(a) != 1) return PyObject_Vectorcall(plain, args, size_t(n), keywords);
    const Held held = a;
    return PyArray_GETITEM(held.a, static_cast<char*>(PyArray_DATA(held.a)));
}

PyMethodDef item_method = {"item", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&item_of)), METH_FASTCALL | METH_KEYWORDS, nullptr};

}  // namespace

FW_BIND(m) {
    m.def("set_up_properties", &set_up_properties);
    m.def("item", [](nb::object plain) { return taken(PyCFunction_NewEx(&item_method, plain.ptr(), nullptr)); });
}

}  // namespace fw::tensors
