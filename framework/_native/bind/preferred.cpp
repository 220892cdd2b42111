// A function that is asked first, and one for what it leaves alone: as one object, which costs a call nothing.
#include <cstddef>
#include <string>

#include "bind/array.h"
#include "bind/collected.h"
#include "bind/tensors/tensors.h"
#include <structmember.h>

namespace fw {

namespace {

struct Preferred {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject* native;  // or None
    PyObject* plain;
    PyObject* wide;  // what stands behind it for numbers of 16 bits, which go to it once more as float32 first; or None
    tensors::Whole whole;  // how it goes to whole numbers once more as doubles first, if it does
    void close() {}
};

// Whether one may be of 16 bits: an array, or parts of a list.
bool has_narrow(PyObject* const* args, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (PyList_Check(args[i]) || PyTuple_Check(args[i])) return true;
        if (!PyArray_Check(args[i])) continue;
        const auto* a = reinterpret_cast<PyArrayObject*>(args[i]);
        if (PyArray_ITEMSIZE(a) == 2 && (PyArray_DESCR(a)->kind == 'f' || PyArray_DESCR(a)->kind == 'V')) return true;
    }
    return false;
}

bool has_whole(PyObject* const* args, Py_ssize_t n) {
    return n && PyArray_Check(args[0]) && PyArray_TYPE(reinterpret_cast<PyArrayObject*>(args[0])) == NPY_INT64;
}

PyObject* preferred_call(PyObject* self, PyObject* const* args, size_t given, PyObject* keywords) {
    auto* p = reinterpret_cast<Preferred*>(self);
    if (p->native != Py_None) {
        PyObject* result = PyObject_Vectorcall(p->native, args, given, keywords);
        if (result != Py_NotImplemented) return result;
        Py_DECREF(result);
    }
    if (p->wide != Py_None && has_narrow(args, PyVectorcall_NARGS(given))) {
        PyObject* rounded = guarded([&]() {
            return tensors::narrowed(self, args, PyVectorcall_NARGS(given), keywords).release().ptr();
        });
        if (rounded != Py_NotImplemented) return rounded;
        Py_DECREF(rounded);
        return PyObject_Vectorcall(p->wide, args, given, keywords);
    }
    if (p->whole != tensors::Whole::no && has_whole(args, PyVectorcall_NARGS(given))) {
        PyObject* exact = guarded([&]() {
            return tensors::in_doubles(p->native, args, PyVectorcall_NARGS(given), keywords, p->whole).release().ptr();
        });
        if (exact != Py_NotImplemented) return exact;
        Py_DECREF(exact);
    }
    return PyObject_Vectorcall(p->plain, args, given, keywords);
}

using Owned = Collected<Preferred, &Preferred::native, &Preferred::plain, &Preferred::wide>;

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Preferred, call), READONLY, nullptr},
                         {"native", T_OBJECT, offsetof(Preferred, native), READONLY, nullptr},
                         {"plain", T_OBJECT, offsetof(Preferred, plain), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_traverse, reinterpret_cast<void*>(Owned::traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(Owned::clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(Owned::free)},
                       {Py_tp_members, members},
                       {0, nullptr}};

PyType_Spec spec = {"framework._native.Preferred", sizeof(Preferred), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

PyTypeObject* preferred_type = nullptr;

nb::object preferring(nb::object native, nb::object plain, nb::object wide, const std::string& whole) {
    if (!whole.empty() && whole != "kept" && whole != "summed")
        throw nb::value_error("preferring: whole is '', 'kept' or 'summed'");
    auto* p = PyObject_GC_New(Preferred, preferred_type);
    if (!p) throw nb::python_error();
    p->call = preferred_call;
    p->whole = whole.empty() ? tensors::Whole::no : whole == "kept" ? tensors::Whole::kept : tensors::Whole::summed;
    p->wide = wide.release().ptr();
    p->native = native.release().ptr();
    p->plain = plain.release().ptr();
    PyObject_GC_Track(reinterpret_cast<PyObject*>(p));
    return nb::steal(reinterpret_cast<PyObject*>(p));
}

}  // namespace

FW_BIND(m) {
    preferred_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!preferred_type) throw nb::python_error();
    m.def("preferring", &preferring, nb::arg("native").none(), nb::arg("plain"), nb::arg("wide").none() = nb::none(),
          nb::arg("whole") = "");
}

}  // namespace fw
