// Nested lists and tuples of Python's numbers as an array.
#include "bind/array.h"

namespace fw::tensors {
namespace {

bool is_sequence(PyObject* o) { return PyList_CheckExact(o) || PyTuple_CheckExact(o); }

enum Kind { truth, whole, floating, other };
Kind kind_of(PyObject* o) {
    return PyFloat_CheckExact(o) ? floating : PyLong_CheckExact(o) ? whole : PyBool_Check(o) ? truth : other;
}

// The element, which is of this kind or one before it; nothing of Python's runs, so nobody changes the lists meanwhile.
bool put(PyObject* o, bool& to) {
    to = o == Py_True;
    return true;
}
bool put(PyObject* o, int64_t& to) {
    int overflow;
    to = PyLong_AsLongLongAndOverflow(o, &overflow);
    return !overflow;
}
bool put(PyObject* o, double& to) {
    to = PyFloat_CheckExact(o) ? PyFloat_AS_DOUBLE(o) : PyLong_AsDouble(o);
    if (to != -1.0 || !PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
}

// Sequences of sequences: how long they are at each depth.
struct Nested {
    int ndim = 0;
    npy_intp shape[NPY_MAXDIMS];
    Kind kind = other;  // of the numbers so far

    explicit Nested(PyObject* o) {
        for (; is_sequence(o); o = PySequence_Fast_GET_ITEM(o, 0)) {
            if (ndim == NPY_MAXDIMS || !PySequence_Fast_GET_SIZE(o)) return;
            shape[ndim++] = PySequence_Fast_GET_SIZE(o);
        }
        kind = kind_of(o);
    }

    // From depth d on, one number after the other; false where something does not fit. One of a later kind is noted.
    template <class T> bool write(PyObject* o, int d, Kind own, T*& to) {
        if (!is_sequence(o) || PySequence_Fast_GET_SIZE(o) != shape[d]) return false;
        PyObject** items = PySequence_Fast_ITEMS(o);
        for (npy_intp i = 0; i < shape[d]; ++i) {
            if (d + 1 < ndim) {
                if (!write(items[i], d + 1, own, to)) return false;
                continue;
            }
            const Kind found = kind_of(items[i]);
            if (found > own) {
                kind = found;
                return false;
            }
            if (!put(items[i], *to++)) return false;
        }
        return true;
    }
};

template <class T> nb::object written(Nested& nested, PyObject* data, int type) {
    NewArray out = new_array(nested.ndim, nested.shape, type);
    nb::object result = give(out);
    T* to = out.data<T>();
    return nested.write(data, 0, nested.kind, to) ? result : nb::object();
}

// As NumPy makes it: of truth values, 64-bit whole numbers or doubles, of which the widest kind that is there is taken.
nb::object listed(nb::handle data) {
    Nested nested(data.ptr());
    if (!nested.ndim || !countable(nested.shape, nested.ndim)) return not_implemented();
    for (Kind tried = other; nested.kind != other && nested.kind != tried;) {
        tried = nested.kind;
        nb::object made = tried == floating ? written<double>(nested, data.ptr(), NPY_DOUBLE)
                          : tried == whole ? written<int64_t>(nested, data.ptr(), NPY_INT64)
                                           : written<bool>(nested, data.ptr(), NPY_BOOL);
        if (made.is_valid()) return made;
    }
    return not_implemented();
}

}  // namespace

FW_BIND(m) { m.def("listed", &listed, nb::arg("data").none()); }

}  // namespace fw::tensors
