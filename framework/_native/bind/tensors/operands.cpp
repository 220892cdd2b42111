// What is asked of operands before their record is called, and how a record wants them: questions and changes that take Python a
// dozen steps. Each function gives NotImplemented where something is unusual, and Python looks itself.
#include <algorithm>
#include <cstring>

#include "bind/tensors/tensors.h"
#include "program/whole.h"

namespace fw::tensors {
namespace {

PyObject* unknown() { Py_RETURN_NOTIMPLEMENTED; }

// Whether all are tensors of one dtype: (x, ...)
PyObject* of_one_dtype(PyObject*, PyObject* const* args, Py_ssize_t n) {
    PyArray_Descr* found = nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyArrayObject* a = array_of(args[i]);
        if (!a) return unknown();
        if (found && PyArray_DESCR(a) != found) Py_RETURN_FALSE;
        found = PyArray_DESCR(a);
    }
    Py_RETURN_TRUE;
}

// Whether two tensors are of one dtype, and of so many dimensions each: (x, ndim, y, ndim)
PyObject* are_alike(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (n != 4 || !PyLong_CheckExact(args[1]) || !PyLong_CheckExact(args[3])) return unknown();
    PyArrayObject *a = array_of(args[0]), *b = array_of(args[2]);
    if (!a || !b) return unknown();
    if (PyArray_DESCR(a) != PyArray_DESCR(b)) Py_RETURN_FALSE;
    return PyBool_FromLong(PyArray_NDIM(a) == PyLong_AsLong(args[1]) && PyArray_NDIM(b) == PyLong_AsLong(args[3]));
}

// Whether a number of Python times each of the tensors, which are of floating or complex numbers, is of their dtype: (number, x, ...)
PyObject* are_floating(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (!n) return unknown();
    if (!PyFloat_CheckExact(args[0]) && !PyLong_CheckExact(args[0])) Py_RETURN_FALSE;
    for (Py_ssize_t i = 1; i < n; ++i) {
        PyArrayObject* a = array_of(args[i]);
        if (!a) return unknown();
        const char kind = PyArray_DESCR(a)->kind;
        if (kind != 'f' && kind != 'c' && kind != 'V') Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

}  // namespace

nb::object seen_as(PyArrayObject* a, int ndim, const npy_intp* shape, const npy_intp* strides, npy_intp offset, int type, bool writeable) {
    PyArray_Descr* descr = type < 0 ? PyArray_DESCR(a) : PyArray_DescrFromType(type);
    if (type < 0) Py_INCREF(descr);
    nb::object seen = taken(PyArray_NewFromDescr(&PyArray_Type, descr, ndim, const_cast<npy_intp*>(shape), const_cast<npy_intp*>(strides),
                                                 PyArray_BYTES(a) + offset, writeable ? PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE : 0, nullptr));
    Py_INCREF(a);
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(seen.ptr()), reinterpret_cast<PyObject*>(a)) < 0)
        throw nb::python_error();
    return seen;
}

namespace {

// A view of a tensor's memory for a record, which may keep it for its derivative: the version counter is the tensor's.
PyObject* sharing(nb::object view, PyObject* x) {
    nb::object result = tensor_over(std::move(view));
    Py_SETREF(slot(result.ptr(), at_counter), counter_of(x).release().ptr());
    return result.release().ptr();
}

// A tensor with a dimension in front, which positions have in records.
PyObject* led_alone(PyObject*, PyObject* x) {
    return guarded([&]() -> PyObject* {
        PyArrayObject* a = unwatched(x);
        if (!a || PyArray_NDIM(a) == NPY_MAXDIMS) return unknown();
        npy_intp shape[NPY_MAXDIMS] = {1}, strides[NPY_MAXDIMS] = {0};
        std::copy(PyArray_DIMS(a), PyArray_DIMS(a) + PyArray_NDIM(a), shape + 1);
        std::copy(PyArray_STRIDES(a), PyArray_STRIDES(a) + PyArray_NDIM(a), strides + 1);
        return sharing(seen_as(a, PyArray_NDIM(a) + 1, shape, strides), x);
    });
}

// The elements of a tensor in no graph in one dimension.
PyObject* flattened(PyObject*, PyObject* x) {
    return guarded([&]() -> PyObject* {
        PyArrayObject* a = unwatched(x);
        if (!a || has_node(x)) return unknown();
        if (PyArray_NDIM(a) == 1) return Py_NewRef(x);
        if (!PyArray_IS_C_CONTIGUOUS(a) && PyArray_SIZE(a)) {
            const InRows rows(Array{a});
            npy_intp size[] = {PyArray_SIZE(a)}, step[] = {PyArray_ITEMSIZE(a)};
            return tensor_over(seen_as(rows.a.p, 1, size, step)).release().ptr();
        }
        nb::object row = taken(PyArray_Ravel(a, NPY_CORDER));
        if (!PyArray_BASE(reinterpret_cast<PyArrayObject*>(row.ptr()))) return tensor_over(std::move(row)).release().ptr();
        return sharing(std::move(row), x);
    });
}

// Whether an array of whole numbers, or a number, has no 0: (x); False where Python is to look.
PyObject* without_zero(PyObject*, PyObject* y) {
    if (PyFloat_CheckExact(y) || PyLong_CheckExact(y)) return PyBool_FromLong(PyObject_IsTrue(y) == 1);
    if (!PyArray_CheckExact(y)) return unknown();
    auto* a = reinterpret_cast<PyArrayObject*>(y);
    if (PyArray_DESCR(a)->kind == 'f') Py_RETURN_TRUE;
    if (!PyArray_ISBEHAVED_RO(a) || !std::strchr("iu", PyArray_DESCR(a)->kind)) return unknown();
    return guarded([&] {
        const InRows rows(Array{a});
        switch (PyArray_ITEMSIZE(a)) {
            case 1: return PyBool_FromLong(whole::has_none<false>(rows.data<int8_t>(), PyArray_SIZE(a)));
            case 2: return PyBool_FromLong(whole::has_none<false>(rows.data<int16_t>(), PyArray_SIZE(a)));
            case 4: return PyBool_FromLong(whole::has_none<false>(rows.data<int32_t>(), PyArray_SIZE(a)));
            case 8: return PyBool_FromLong(whole::has_none<false>(rows.data<int64_t>(), PyArray_SIZE(a)));
            default: return unknown();
        }
    });
}

// Whether a call on these may be one kernel: all are None or tensors on the host, of which the floating ones have one dtype, nobody
// looks, and nothing is differentiated forward: (x, ...)
PyObject* have_kernels(PyObject*, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        if (here_of(quiet, word_run).is_none() || !PyBool_Check(here_of(modes, word_enabled).ptr())) return unknown();
        PyArray_Descr* found = nullptr;
        for (Py_ssize_t i = 0; i < n; ++i) {
            if (args[i] == Py_None) continue;
            PyArrayObject* a = array_of(args[i]);
            if (!a) return unknown();
            const char kind = PyArray_DESCR(a)->kind;
            if (std::strchr("iub", kind)) continue;
            if ((kind != 'f' && kind != 'V') || (found && PyArray_DESCR(a) != found)) return unknown();
            found = PyArray_DESCR(a);
        }
        return found ? Py_NewRef(Py_True) : unknown();
    });
}

bool is_one(PyObject* number) { return PyLong_CheckExact(number) && PyLong_AsLong(number) == 1; }

// Whether a tensor's elements are of the dtype of another one and expand to its shape.
bool expands(PyArrayObject* a, PyArrayObject* to) {
    const int n = PyArray_NDIM(a), lead = PyArray_NDIM(to) - n;
    if (lead < 0 || PyArray_DESCR(a) != PyArray_DESCR(to)) return false;
    for (int d = 0; d < n; ++d)
        if (PyArray_DIM(a, d) != 1 && PyArray_DIM(a, d) != PyArray_DIM(to, lead + d)) return false;
    return true;
}

// x + first @ second of tensors of one dtype: (matmul, add, x, first, its dimensions, second, its dimensions, beta, alpha), the first
// two being the records, and the last two, which may scale the summands, 1.
PyObject* product_added(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (n != 9 || !array_of(args[2]) || !is_one(args[7]) || !is_one(args[8])) return unknown();
    const nb::object alike = nb::steal(are_alike(nullptr, args + 3, 4));
    if (alike.ptr() != Py_True) return unknown();
    return guarded([&]() -> PyObject* {
        PyObject* factors[] = {args[0], args[3], args[5]};
        const nb::object product = taken(PyObject_VectorcallMethod(word_run, factors, 3, nullptr));
        PyArrayObject *x = array_of(args[2]), *made = array_of(product.ptr());
        if (!x || !made || !expands(x, made)) return unknown();
        PyObject* summands[] = {args[1], args[2], product.ptr()};
        return taken(PyObject_VectorcallMethod(word_run, summands, 3, nullptr)).release().ptr();
    });
}

// How many elements of an array of truth values in rows hold.
PyObject* count_true(PyObject*, PyObject* x) {
    auto* a = reinterpret_cast<PyArrayObject*>(x);
    if (!PyArray_CheckExact(x) || PyArray_TYPE(a) != NPY_BOOL || !PyArray_IS_C_CONTIGUOUS(a)) return unknown();
    return PyLong_FromSsize_t(PyArray_CountNonzero(a));
}

#define FW_ASKED(name) {#name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&name)), METH_FASTCALL, nullptr}
PyMethodDef asked_methods[] = {FW_ASKED(of_one_dtype), FW_ASKED(are_alike), FW_ASKED(are_floating), FW_ASKED(have_kernels), FW_ASKED(product_added),
                                {"without_zero", without_zero, METH_O, nullptr}, {"count_true", count_true, METH_O, nullptr},
                         {"led_alone", led_alone, METH_O, nullptr}, {"flattened", flattened, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

// -- arguments: as `ops/record/args.py` has them, whose functions stand behind these -------------------

PyObject* as_given(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return PyObject_Vectorcall(plain, args, size_t(n), names);
}

// A tensor: (x, ...)
PyObject* tensor_argument(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    const bool good = n && tensor_type && PyObject_TypeCheck(args[0], tensor_type);
    return good ? Py_NewRef(args[0]) : as_given(plain, args, n, names);
}

// A tensor of real numbers: (x, ...)
PyObject* real_argument(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyArrayObject* a = n ? array_of(args[0]) : nullptr;
    return a && PyArray_DESCR(a)->kind != 'c' ? Py_NewRef(args[0]) : as_given(plain, args, n, names);
}

// No tensor: (x, ...)
PyObject* number_argument(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    const bool good = n == 3 && !names && tensor_type && !PyObject_TypeCheck(args[0], tensor_type);
    return good ? Py_NewRef(args[0]) : as_given(plain, args, n, names);
}

// A dimension in [0, ndim); -1 where Python is to look.
long dimension(PyObject* const* args, Py_ssize_t n) {
    if (n < 3 || !PyLong_CheckExact(args[0]) || !PyLong_CheckExact(args[1])) return -1;
    int beyond = 0;
    const long d = PyLong_AsLongAndOverflow(args[0], &beyond), ndim = PyLong_AsLong(args[1]);
    if (beyond || d < -ndim || d >= ndim) return -1;
    return d < 0 ? d + ndim : d;
}

// (dim, ndim, ...)
PyObject* one_dimension(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    const long d = dimension(args, n);
    return d < 0 ? as_given(plain, args, n, names) : PyLong_FromLong(d);
}

// One, or all of few for None, as a tuple.
PyObject* dimensions(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    const bool all = n > 2 && args[0] == Py_None && PyLong_CheckExact(args[1]);
    const long d = all ? 0 : dimension(args, n), count = all ? PyLong_AsLong(args[1]) : 1;
    if (d < 0 || count < 0 || count > NPY_MAXDIMS) return as_given(plain, args, n, names);
    PyObject* made = PyTuple_New(count);
    for (long i = 0; made && i < count; ++i) {
        PyObject* number = PyLong_FromLong(d + i);
        if (!number) Py_CLEAR(made);
        else PyTuple_SET_ITEM(made, i, number);
    }
    return made;
}

PyObject* dim_name;  // ("dim",)

// What a record makes of a tensor of floating numbers along a dimension: (record, x, dim, None)
PyObject* run_along(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyArrayObject* a = n == 4 && !names && args[3] == Py_None && PyLong_CheckExact(args[2]) ? array_of(args[1]) : nullptr;
    if (!a || !std::strchr("fV", PyArray_DESCR(a)->kind)) return as_given(plain, args, n, names);
    int beyond = 0;
    const long ndim = PyArray_NDIM(a), dim = PyLong_AsLongAndOverflow(args[2], &beyond);
    if (beyond || dim < -ndim || dim >= ndim) return as_given(plain, args, n, names);
    return guarded([&] {
        const nb::object at = taken(PyLong_FromLong(dim < 0 ? dim + ndim : dim));
        PyObject* call[] = {args[0], args[1], at.ptr()};
        return PyObject_VectorcallMethod(word_run, call, 2, dim_name);
    });
}

#define FW_ARGUMENT(name) \
    {#name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&name)), METH_FASTCALL | METH_KEYWORDS, nullptr}
PyMethodDef arguments[] = {FW_ARGUMENT(tensor_argument), FW_ARGUMENT(real_argument), FW_ARGUMENT(number_argument),
                           FW_ARGUMENT(one_dimension), FW_ARGUMENT(dimensions), FW_ARGUMENT(run_along)};

// The function of that name with Python's behind it.
nb::object before(nb::str name, nb::object plain) {
    for (PyMethodDef& argument : arguments)
        if (!std::strcmp(argument.ml_name, name.c_str())) return taken(PyCFunction_NewEx(&argument, plain.ptr(), nullptr));
    throw nb::key_error(name.c_str());
}

// The last two dimensions of a tensor in no graph swapped, for a record alone.
PyObject* turned_alone(PyObject*, PyObject* x) {
    return guarded([&]() -> PyObject* {
        PyArrayObject* a = unwatched(x);
        const int n = a ? PyArray_NDIM(a) : 0;
        if (n < 2 || has_node(x)) return unknown();
        npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
        std::copy(PyArray_DIMS(a), PyArray_DIMS(a) + n, shape);
        std::copy(PyArray_STRIDES(a), PyArray_STRIDES(a) + n, strides);
        std::swap(shape[n - 2], shape[n - 1]), std::swap(strides[n - 2], strides[n - 1]);
        return sharing(seen_as(a, n, shape, strides), x);
    });
}

// A vector in no graph as a column, for a record alone.
PyObject* column_alone(PyObject*, PyObject* x) {
    return guarded([&]() -> PyObject* {
        PyArrayObject* a = unwatched(x);
        if (!a || PyArray_NDIM(a) != 1 || has_node(x)) return unknown();
        npy_intp shape[] = {PyArray_DIM(a, 0), 1}, strides[] = {PyArray_STRIDE(a, 0), PyArray_ITEMSIZE(a)};
        return sharing(seen_as(a, 2, shape, strides), x);
    });
}

// Some positions along a dimension of a tensor in no graph, for a record alone: (x, dim, start, stop), all of which are there.
PyObject* piece_alone(PyObject*, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        PyArrayObject* a = n == 4 ? unwatched(args[0]) : nullptr;
        if (!a || has_node(args[0])) return unknown();
        npy_intp at[3];
        for (int i = 0; i < 3; ++i) {
            if (!PyLong_CheckExact(args[i + 1])) return unknown();
            at[i] = PyLong_AsSsize_t(args[i + 1]);
            if (at[i] == -1 && PyErr_Occurred()) return PyErr_Clear(), unknown();
        }
        const int ndim = PyArray_NDIM(a);
        if (at[0] < 0 || at[0] >= ndim || at[1] < 0 || at[2] < at[1] || at[2] > PyArray_DIM(a, int(at[0]))) return unknown();
        npy_intp shape[NPY_MAXDIMS];
        std::copy(PyArray_DIMS(a), PyArray_DIMS(a) + ndim, shape);
        shape[at[0]] = at[2] - at[1];
        return sharing(seen_as(a, ndim, shape, PyArray_STRIDES(a), at[1] * PyArray_STRIDE(a, int(at[0]))), args[0]);
    });
}

PyMethodDef alone_methods[] = {FW_ASKED(piece_alone), {"turned_alone", turned_alone, METH_O, nullptr}, {"column_alone", column_alone, METH_O, nullptr},
                               {nullptr, nullptr, 0, nullptr}};

}  // namespace

FW_BIND(m) {
    dim_name = taken(PyTuple_Pack(1, word("dim"))).release().ptr();
    if (PyModule_AddFunctions(m.ptr(), alone_methods) < 0) throw nb::python_error();
    m.def("before", &before);
    if (PyModule_AddFunctions(m.ptr(), asked_methods) < 0) throw nb::python_error();
}

}  // namespace fw::tensors
