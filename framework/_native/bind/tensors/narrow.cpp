// Kernels on numbers of 16 bits as on float32 (`ops/record/rounded.py`): the usual calls, from arrays to the rounded result.
#include <algorithm>
#include <cmath>

#include "base/simd.h"
#include "bind/bf16_array.h"
#include "bind/move/copy.h"
#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

// What may stand beside the arrays: no dtype can be in it.
bool is_simple(PyObject* x) {
    return PyLong_CheckExact(x) || PyFloat_CheckExact(x) || PyBool_Check(x) || x == Py_None || PyUnicode_CheckExact(x) ||
           PySlice_Check(x) || x == Py_Ellipsis;
}

bool is_simple_setting(PyObject* x, int deep = 3) {
    if (!PyTuple_Check(x)) return is_simple(x);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(x); ++i)
        if (!deep || !is_simple_setting(PyTuple_GET_ITEM(x, i), deep - 1)) return false;
    return true;
}

// An array of 16 bits that has elements to convert.
bool has_narrow(PyArrayObject* a) {
    PyArray_Descr* d = PyArray_DESCR(a);
    return is_narrow(d) && PyArray_ISBEHAVED_RO(a) && PyArray_SIZE(a);
}

// The arguments of a call, some of them others than were given, which go when this does.
struct Arguments {
    static constexpr Py_ssize_t MOST = 24;
    PyObject* at[MOST];
    bool own[MOST] = {};
    Py_ssize_t count;

    Arguments(PyObject* const* args, Py_ssize_t count) : count(count) { std::copy(args, args + count, at); }
    Arguments(const Arguments&) = delete;
    ~Arguments() {
        for (Py_ssize_t i = 0; i < count; ++i)
            if (own[i]) Py_DECREF(at[i]);
    }
    void set(Py_ssize_t i, nb::object value) {
        at[i] = value.release().ptr();
        own[i] = true;
    }
};

double largest_of(const double* x, int64_t n) {  // without its sign
    constexpr int64_t L = lanes<double>;
    Vec<double> most[4] = {};
    int64_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L)
        for (int k = 0; k < 4; ++k) {
            const Vec<double> v = abs<double>(load(x + i + k * L));
            most[k] = v > most[k] ? v : most[k];
        }
    double all = 0;
    for (const Vec<double>& v : most) all = std::max(all, max_lanes<double>(v));
    for (; i < n; ++i) all = std::max(all, std::fabs(x[i]));
    return all;
}

// A kernel and Python's function for it, which is called where anything is unusual.
PyObject* narrowing(PyObject* both, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return guarded([&]() -> PyObject* {
        nb::object result = narrowed(PyTuple_GET_ITEM(both, 0), args, n, names);
        if (result.ptr() != Py_NotImplemented) return result.release().ptr();
        return PyObject_Vectorcall(PyTuple_GET_ITEM(both, 1), args, size_t(n), names);
    });
}

PyMethodDef method_of_kernel = {"narrowing", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&narrowing)),
                                METH_FASTCALL | METH_KEYWORDS, "A kernel on bfloat16 (or float16) as on float32."};

// (kernel, *arrays, **settings); `plain`: Python's function, which is called where anything is unusual.
PyObject* in_float32(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return guarded([&]() -> PyObject* {
        if (n > 0) {
            nb::object result = narrowed(args[0], args + 1, n - 1, names);
            if (result.ptr() != Py_NotImplemented) return result.release().ptr();
        }
        return PyObject_Vectorcall(plain, args, size_t(n), names);
    });
}

PyMethodDef method = {"in_float32", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&in_float32)),
                      METH_FASTCALL | METH_KEYWORDS,
                      "Run a kernel on bfloat16 (or float16) as on float32; beside a wider array the result stays as it is."};

}  // namespace

bool is_narrow(PyArray_Descr* type) { return type->type_num == NPY_HALF || is_bf16(type); }

bool widen_for_rule(nb::object& value, PyArray_Descr* wide) {
    PyObject* o = value.ptr();
    if (PyArray_CheckExact(o)) {
        if (is_narrow(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(o)))) value = in_dtype(o, wide);
        return true;
    }
    if (PyArray_DescrCheck(o)) {
        if (is_narrow(reinterpret_cast<PyArray_Descr*>(o))) value = nb::borrow(reinterpret_cast<PyObject*>(wide));
        return true;
    }
    return is_simple_setting(o);
}

nb::object in_dtype(PyObject* array, PyArray_Descr* wanted) {
    auto* a = reinterpret_cast<PyArrayObject*>(array);
    nb::object made = PyArray_SIZE(a) && PyArray_ISBEHAVED_RO(a) ? moving::converted(Array{a}, wanted) : not_implemented();
    if (made.ptr() != Py_NotImplemented) return made;
    Py_INCREF(wanted);
    return taken(PyArray_CastToType(a, wanted, 0));
}

nb::object given_back(nb::object result, int computed, PyArray_Descr* type) {
    PyObject* o = result.ptr();
    if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
        const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
        nb::object made = taken(PyTuple_New(n));
        for (Py_ssize_t i = 0; i < n; ++i)
            PyTuple_SET_ITEM(made.ptr(), i, given_back(nb::borrow(PySequence_Fast_GET_ITEM(o, i)), computed, type).release().ptr());
        return made;
    }
    if (PyArray_IsScalar(o, Generic)) result = taken(PyArray_FromScalar(o, nullptr)), o = result.ptr();
    if (!PyArray_Check(o) || PyArray_TYPE(reinterpret_cast<PyArrayObject*>(o)) != computed) return result;
    return in_dtype(o, type);
}

nb::object narrowed(PyObject* kernel, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    const Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
    if (n + count > Arguments::MOST) return not_implemented();
    PyArray_Descr* found = nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (!PyArray_CheckExact(args[i])) {
            if (!is_simple(args[i])) return not_implemented();
            continue;
        }
        auto* a = reinterpret_cast<PyArrayObject*>(args[i]);
        PyArray_Descr* d = PyArray_DESCR(a);
        if (d->kind == 'i' || d->kind == 'u' || d->kind == 'b') continue;
        if (!has_narrow(a) || (found && found != d)) return not_implemented();
        found = d;
    }
    if (!found) return not_implemented();
    for (Py_ssize_t i = 0; i < count; ++i)
        if (!is_simple_setting(args[n + i])) return not_implemented();
    const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(found));  // while arrays come and go
    const nb::object wide = nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_FLOAT)));
    Arguments given(args, n + count);
    for (Py_ssize_t i = 0; i < n; ++i)
        if (PyArray_CheckExact(args[i]) && has_narrow(reinterpret_cast<PyArrayObject*>(args[i])))
            given.set(i, in_dtype(args[i], reinterpret_cast<PyArray_Descr*>(wide.ptr())));
    nb::object result = taken(PyObject_Vectorcall(kernel, given.at, size_t(n), names));
    return given_back(std::move(result), NPY_FLOAT, reinterpret_cast<PyArray_Descr*>(type.ptr()));
}

nb::object in_doubles(PyObject* kernel, PyObject* const* args, Py_ssize_t n, PyObject* names, Whole whole) {
    const Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
    if (n + count > Arguments::MOST) return not_implemented();
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (args[i] == Py_None) continue;
        auto* a = reinterpret_cast<PyArrayObject*>(args[i]);
        if (!PyArray_CheckExact(args[i]) || PyArray_TYPE(a) != NPY_INT64 || !PyArray_ISBEHAVED_RO(a) || !PyArray_SIZE(a))
            return not_implemented();
    }
    for (Py_ssize_t i = 0; i < count; ++i)
        if (!is_simple_setting(args[n + i])) return not_implemented();
    const nb::object type = nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_INT64)));
    const nb::object wide = nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_DOUBLE)));
    Arguments given(args, n + count);
    bool any = false;
    double largest = 1, terms = 1e18, more = 0;  // of a product; how many of them are added up, and what to them
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (args[i] == Py_None) continue;
        any = true;
        given.set(i, in_dtype(args[i], reinterpret_cast<PyArray_Descr*>(wide.ptr())));
        auto* a = reinterpret_cast<PyArrayObject*>(given.at[i]);
        const double most = std::max(1.0, largest_of(static_cast<const double*>(PyArray_DATA(a)), PyArray_SIZE(a)));
        if (i < 2) largest *= most, terms = std::min(terms, double(PyArray_SIZE(a)));
        else more += most;
    }
    constexpr double WHOLE = double(int64_t(1) << 53);  // below it doubles hold all whole numbers
    if (!any || (whole == Whole::summed ? largest * terms + more : largest) >= WHOLE) return not_implemented();
    nb::object result = taken(PyObject_Vectorcall(kernel, given.at, size_t(n), names));
    return given_back(std::move(result), NPY_DOUBLE, reinterpret_cast<PyArray_Descr*>(type.ptr()));
}

FW_BIND(m) {
    m.def("narrowing", [](nb::object kernel, nb::object plain) {
        return taken(PyCFunction_NewEx(&method_of_kernel, nb::make_tuple(kernel, plain).ptr(), nullptr));
    });
    m.def("short_in_float32", [](nb::object plain) { return taken(PyCFunction_NewEx(&method, plain.ptr(), nullptr)); });
}

}  // namespace fw::tensors
