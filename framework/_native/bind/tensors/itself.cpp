// Calls that give a tensor back as it is: to the dtype, device or memory format that it has. Python's function does the rest.
#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

PyObject *dtype_type = nullptr, *device_type, *last_2d, *last_3d, *word_cpu, *word_memory_format;
Py_ssize_t at_numpy, at_type;

// Whether it lies in memory with its channels last, without gaps.
bool lies_last(PyArrayObject* a, int ndim) {
    if (PyArray_NDIM(a) != ndim) return false;
    npy_intp step = PyArray_ITEMSIZE(a);
    for (int i = ndim - 1; i >= 0; --i) {
        const int d = i == ndim - 1 ? 1 : i ? i + 1 : 0;
        if (PyArray_DIM(a, d) != 1 && PyArray_STRIDE(a, d) != step) return false;
        step *= PyArray_DIM(a, d);
    }
    return step > 0;
}

bool is_cpu(PyObject* text) { return PyUnicode_CheckExact(text) && PyUnicode_Compare(text, word_cpu) == 0; }

// Whether an array has what a dtype, a device or another tensor asks for.
bool is_like(PyArrayObject* a, PyObject* wanted) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(wanted));
    if (type == dtype_type) return slot(wanted, at_numpy) == reinterpret_cast<PyObject*>(PyArray_DESCR(a));
    if (type == device_type) return slot(wanted, at_type) && is_cpu(slot(wanted, at_type));
    if (PyArrayObject* b = array_of(wanted)) return PyArray_DESCR(a) == PyArray_DESCR(b);
    return is_cpu(wanted);
}

bool has_format(PyArrayObject* a, PyObject* wanted) {
    return (wanted == last_2d && lies_last(a, 4)) || (wanted == last_3d && lies_last(a, 5));
}

// Of the function behind (Python's, what it makes of everything: a dtype; None: of what is asked for; of memory formats: True).
PyObject* itself(PyObject* behind, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    PyObject *plain = PyTuple_GET_ITEM(behind, 0), *made = PyTuple_GET_ITEM(behind, 1);
    const Py_ssize_t more = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    const Held a = n ? array_of(args[0]) : nullptr;
    bool alike = false;
    if (a && dtype_type && made == Py_True) {
        const bool named = more == 1 && PyTuple_GET_ITEM(keywords, 0) == word_memory_format;
        alike = n + more == 1 ? PyArray_IS_C_CONTIGUOUS(a.a) : n + more == 2 && (!more || named) && has_format(a, args[1]);
    } else if (a && dtype_type && !more) {
        alike = made == Py_None ? n == 2 && is_like(a, args[1]) : n == 1 && is_like(a, made);
    }
    return alike ? Py_NewRef(args[0]) : PyObject_Vectorcall(plain, args, size_t(n), keywords);
}

PyMethodDef itself_method = {"itself", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&itself)), METH_FASTCALL | METH_KEYWORDS, nullptr};

}  // namespace

FW_BIND(m) {
    word_cpu = word("cpu"), word_memory_format = word("memory_format");
    m.def("itself", [](nb::object plain, nb::object made) {
        return taken(PyCFunction_NewEx(&itself_method, taken(PyTuple_Pack(2, plain.ptr(), made.ptr())).ptr(), nullptr));
    }, nb::arg("plain"), nb::arg("made").none());
    m.def("set_up_itself", [](nb::object dtype, nb::object device, nb::object last, nb::object last_of_3) {
        at_numpy = place_of(reinterpret_cast<PyTypeObject*>(dtype.ptr()), "numpy"), at_type = place_of(reinterpret_cast<PyTypeObject*>(device.ptr()), "type");
        device_type = device.release().ptr(), last_2d = last.release().ptr(), last_3d = last_of_3.release().ptr();
        dtype_type = dtype.release().ptr();
    });
}

}  // namespace fw::tensors
