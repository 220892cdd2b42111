// Results written straight into the memory of a tensor outside the graph, or where no graph is made, and the change counted: what in-place forms try
// first. Each answers NotImplemented, and has changed nothing, where Python is to go the whole way.
#include <algorithm>

#include "bind/array_layout.h"
#include "bind/move/copy.h"
#include "bind/tensors/tensors.h"

namespace fw::tensors {

PyObject* word_site;

namespace {

PyObject* word_result;

}  // namespace

bool is_followed(PyObject* x) { return has_node(x) && (!modes || here_of(modes, word_enabled).ptr() != Py_False); }

Held memory_of(PyObject* x) {
    PyArrayObject* a = array_of(x);
    if (!a || !PyArray_ISWRITEABLE(a) || is_followed(x)) return nullptr;
    if (has_node(x)) keep_result_of(x);
    PyObject* more = slot(x, at_more);
    if (more && more != Py_None) {
        const nb::object base = nb::borrow(part_of(more, at_base));
        if (!base.is_none() && !array_of(base.ptr())) return nullptr;
        if (!base.is_none() && has_node(base.ptr())) {
            keep_result_of(base.ptr());
            return nullptr;
        }
    }
    return a;
}

void bump(PyObject* x, PyObject* name) {
    PyObject*& counter = slot(x, at_counter);
    if (!counter || counter == Py_None) {
        nb::object made = taken(PyList_New(2));
        PyList_SET_ITEM(made.ptr(), 0, taken(PyLong_FromLong(1)).release().ptr());
        Py_INCREF(name);
        PyList_SET_ITEM(made.ptr(), 1, name);
        Py_XSETREF(counter, made.release().ptr());
        return;
    }
    nb::object list = nb::borrow(counter), one = taken(PyLong_FromLong(1));
    nb::object next = taken(PyNumber_Add(PyList_GET_ITEM(list.ptr(), 0), one.ptr()));
    Py_INCREF(name);
    if (PyList_SetItem(list.ptr(), 0, next.release().ptr()) < 0 || PyList_SetItem(list.ptr(), 1, name) < 0)
        throw nb::python_error();
}

bool nobody_looks() {
    if (here_of(quiet, word_run).is_none() || !here_of(quiet, word_site).is_none()) return false;
    const nb::object settle = here_of(quiet, word_settle);  // what was put off reads the memory as it was
    if (!settle.is_none()) taken(PyObject_CallNoArgs(settle.ptr()));
    return true;
}

namespace {

PyObject *out_name, *is_declined = nullptr, *has_begun;
constexpr npy_intp NEAR = 1 << 17;  // bytes that one thread has copied before another one is there

bool is_weak(PyObject* x) { return PyFloat_CheckExact(x) || PyLong_CheckExact(x); }

// What a function of Python says of an error.
bool answer(PyObject* question, const nb::python_error& error) {
    nb::object value = nb::borrow(error.value());
    if (error.traceback().is_valid() && PyException_SetTraceback(value.ptr(), error.traceback().ptr()) < 0)
        throw nb::python_error();
    return taken(PyObject_CallOneArg(question, value.ptr())).ptr() == Py_True;
}

// Whether an array broadcasts to `a`; the dimensions that it has in full, a bit each, are missing no longer.
bool broadcasts(PyArrayObject* b, PyArrayObject* a, uint64_t& missing) {
    const int n = PyArray_NDIM(b), lead = PyArray_NDIM(a) - n;
    if (lead < 0) return false;
    for (int d = 0; d < n; ++d) {
        if (PyArray_DIM(b, d) == PyArray_DIM(a, lead + d)) missing &= ~(uint64_t(1) << (lead + d));
        else if (PyArray_DIM(b, d) != 1) return false;
    }
    return true;
}

// Those along which something changes.
uint64_t dimensions_of(PyArrayObject* a) {
    uint64_t all = 0;
    for (int d = 0; d < PyArray_NDIM(a); ++d) all |= uint64_t(PyArray_DIM(a, d) != 1) << d;
    return all;
}

// The operand at a place of two, whose dtype is not that of what is written, in that one; none where the other has another, too,
// or that is not what both are computed in.
nb::object in_dtype_of(PyArrayObject* a, PyObject* inputs, Py_ssize_t place) {
    PyArrayObject *b = array_of(PyTuple_GET_ITEM(inputs, place)), *other = array_of(PyTuple_GET_ITEM(inputs, 1 - place));
    if (!other || PyArray_DESCR(other) != PyArray_DESCR(a) || joint(other, b) != PyArray_DESCR(a)) return nb::object();
    return converted(b, PyArray_DESCR(a));
}

// Whether the input at a place is the condition of a choice, which is of no dtype but its own.
bool is_condition(PyObject* op, Py_ssize_t place, Py_ssize_t inputs, PyArrayObject* input) {
    return place == 0 && inputs == 3 && PyArray_TYPE(input) == NPY_BOOL &&
           PyUnicode_CompareWithASCIIString(asked(op, word_result).ptr(), "select") == 0;
}

}  // namespace

bool kernel_into(PyObject* op, PyObject** given, Py_ssize_t n, PyObject* settings, const Held& a, PyObject* x, PyObject* name) {
    const nb::object runner = here_of(quiet, word_run), kernel = kernel_of(op, PyArray_DESCR(a)->kind == 'V');
    const Py_ssize_t count = PyDict_GET_SIZE(settings);
    given[0] = kernel.ptr();
    nb::object names = nb::borrow(out_name);
    if (count) {
        names = taken(PyTuple_New(count + 1));
        PyObject *key, *value;
        Py_ssize_t at = 0, i = 0;
        while (PyDict_Next(settings, &at, &key, &value)) {
            Py_INCREF(key);
            PyTuple_SET_ITEM(names.ptr(), i, key);
            given[n + 1 + i++] = value;
        }
        PyTuple_SET_ITEM(names.ptr(), count, nb::borrow(PyTuple_GET_ITEM(out_name, 0)).release().ptr());
    }
    given[n + 1 + count] = a.owner.ptr();
    nb::object out = nb::steal(PyObject_Vectorcall(runner.ptr(), given, size_t(n + 1), names.ptr()));
    if (!out.is_valid()) {
        nb::python_error error;
        if (answer(is_declined, error)) return false;
        if (answer(has_begun, error)) bump(x, name);
        throw error;
    }
    bump(x, name);
    return true;
}

// op(*inputs, **settings) into x: (record, x, inputs, settings, the kinds of dtype that it writes, name). The inputs are
// tensors of the dtype of x, or one of two has another, which broadcast to its shape, together all of it, and numbers.
nb::object write_call(PyObject* const* args) {
    PyObject *op = args[0], *x = args[1], *inputs = args[2], *settings = args[3];
    if (!is_declined || !PyTuple_CheckExact(inputs) || !PyDict_CheckExact(settings) || !PyUnicode_Check(args[4])) return nb::object();
    const Held a = memory_of(x);
    if (!a) return nb::object();
    const Py_ssize_t n = PyTuple_GET_SIZE(inputs), count = PyDict_GET_SIZE(settings);
    if (n + count > MOST_WRITTEN) return nb::object();
    const char kind = PyArray_DESCR(a)->kind;
    if (PyUnicode_FindChar(args[4], Py_UCS4(kind), 0, PyUnicode_GET_LENGTH(args[4]), 1) < 0) return nb::object();
    PyObject* given[MOST_WRITTEN + 2];
    nb::object held[MOST_WRITTEN];
    uint64_t missing = dimensions_of(a);
    bool array = false;  // besides numbers
    const int type = PyArray_TYPE(a);
    const auto is_whole = [type](PyObject* x) {  // a number that elements of 32 or 64 bits can be
        if (!PyLong_CheckExact(x) || (type != NPY_INT64 && type != NPY_INT32)) return false;
        if (type == NPY_INT64) return true;
        int over = 0;
        const long long value = PyLong_AsLongLongAndOverflow(x, &over);
        return !over && value >= INT32_MIN && value <= INT32_MAX;
    };
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* other = PyTuple_GET_ITEM(inputs, i);
        if (PyArrayObject* b = array_of(other)) {
            if (is_followed(other)) return nb::object();
            if (PyArray_SAMESHAPE(a, b)) missing = 0;
            else if (!broadcasts(b, a, missing)) return nb::object();
            if (PyArray_DESCR(b) == PyArray_DESCR(a) || is_condition(op, i, n, b)) held[i] = nb::borrow(reinterpret_cast<PyObject*>(b));
            else if (n == 2) held[i] = in_dtype_of(a, inputs, i);
            if (!held[i].is_valid()) return nb::object();
            given[i + 1] = held[i].ptr();
            array = true;
        } else if (is_weak(other) && (kind == 'f' || kind == 'V' || kind == 'c' || is_whole(other))) {
            given[i + 1] = other;
        } else {
            return nb::object();
        }
    }
    if (!array || missing || here_of(quiet, word_run).is_none() || !here_of(quiet, word_site).is_none()) return nb::object();
    return kernel_into(op, given, n, settings, a, x, args[5]) ? nb::borrow(x) : nb::object();
}

void take_over(PyArrayObject* a, PyArrayObject* b) {
    const bool rows = PyArray_IS_C_CONTIGUOUS(a) && PyArray_IS_C_CONTIGUOUS(b);
    if (rows && PyArray_NBYTES(a) <= NEAR) std::memmove(PyArray_DATA(a), PyArray_DATA(b), size_t(PyArray_NBYTES(a)));
    else if (!moving::copy_over(Array{b}, Array{a}) && PyArray_CopyInto(a, b) < 0) throw nb::python_error();
}

namespace {

// out[...] = x, an array that broadcasts or a number, where NumPy has no word to say about it.
bool write_over(nb::handle x, Array out) {
    if (!moving::item_bytes(out)) return false;
    if (PyArray_CheckExact(x.ptr())) return moving::copy_over(nb::cast<Array>(x), out);
    moving::Pair bits{};
    return element_of(PyArray_DESCR(out.p), x.ptr(), bits) && moving::fill_over(bits, out);
}

}  // namespace

bool convert_over(PyArrayObject* a, PyArrayObject* b) {
    if (!PyArray_ISBEHAVED(a) || !PyArray_ISBEHAVED_RO(b)) return false;
    if (PyArray_DESCR(b)->kind == 'c' && PyArray_DESCR(a)->kind != 'c') return false;  // with a warning
    if (!nobody_looks()) return false;
    const Array from{b}, to{a};
    if (moving::convert_into(from, to)) return true;
    if (!PyArray_SAMESHAPE(a, b) || !PyArray_SIZE(a)) return false;
    const nb::object made = moving::converted(from, PyArray_DESCR(a));
    if (made.ptr() == Py_NotImplemented) return false;
    take_over(a, reinterpret_cast<PyArrayObject*>(made.ptr()));
    return true;
}

namespace {

// Which elements of another tensor are taken over: of the same dtype and shape, of a shape and of a dtype that fits, or whatever
// broadcasts and converts.
enum class Taken { same, fitting, any };

// (x, other, name)
template <Taken WHAT> nb::object copy(PyObject* const* args) {
    const Held a = memory_of(args[0]), b = array_of(args[1]);
    if (!a || !b || is_followed(args[1]) || args[0] == args[1]) return nb::object();
    const bool same = PyArray_SAMESHAPE(a.a, b.a);
    if (!same && WHAT != Taken::any) return nb::object();
    if (PyArray_DESCR(a) != PyArray_DESCR(b)) {
        if (WHAT == Taken::same || (WHAT == Taken::fitting && category_of(b) > category_of(a)) || !convert_over(a, b)) return nb::object();
        bump(args[0], args[2]);
        return nb::borrow(args[0]);
    }
    if (!nobody_looks()) return nb::object();
    if (same) take_over(a, b);
    else if (!PyArray_ISBEHAVED_RO(b.a) || !moving::copy_over(Array{b}, Array{a})) return nb::object();
    bump(args[0], args[2]);
    return nb::borrow(args[0]);
}

// An array of the dtype and shape of a tensor: (x, array, name)
nb::object put(PyObject* const* args) {
    const Held a = memory_of(args[0]);
    if (!a || !PyArray_CheckExact(args[1])) return nb::object();
    auto* b = reinterpret_cast<PyArrayObject*>(args[1]);
    if (PyArray_DESCR(a) != PyArray_DESCR(b) || !PyArray_SAMESHAPE(a, b)) return nb::object();
    if (!nobody_looks()) return nb::object();
    take_over(a, b);
    bump(args[0], args[2]);
    return nb::borrow(args[0]);
}

template <class T> bool all_equal(PyArrayObject* a, PyArrayObject* b) {
    const T *x = static_cast<const T*>(PyArray_DATA(a)), *y = static_cast<const T*>(PyArray_DATA(b));
    const npy_intp n = PyArray_SIZE(a);
    constexpr npy_intp PIECE = 256;  // looked at as a whole, by vectors
    for (npy_intp start = 0; start < n; start += PIECE) {
        bool same = true;
        for (npy_intp i = start; i < std::min(n, start + PIECE); ++i) same &= x[i] == y[i];
        if (!same) return false;
    }
    return true;
}

// Whether two tensors of one dtype have the same shape and elements: (x, other)
nb::object equal(PyObject* const* args) {
    const Held a = array_of(args[0]), b = array_of(args[1]);
    if (!a || !b || !PyArray_ISBEHAVED_RO(a.a) || !PyArray_ISBEHAVED_RO(b.a)) return nb::object();
    if (PyArray_DESCR(a) != PyArray_DESCR(b) || here_of(quiet, word_run).is_none()) return nb::object();
    if (!PyArray_SAMESHAPE(a, b)) return nb::borrow(Py_False);
    if (!PyArray_IS_C_CONTIGUOUS(a) || !PyArray_IS_C_CONTIGUOUS(b) || PyArray_SIZE(a) >= LARGE) return nb::object();
    bool same;
    switch (PyArray_TYPE(a)) {
        case NPY_FLOAT: same = all_equal<float>(a, b); break;
        case NPY_DOUBLE: same = all_equal<double>(a, b); break;
        case NPY_LONG: same = all_equal<long>(a, b); break;
        case NPY_BOOL: same = all_equal<npy_bool>(a, b); break;
        default: return nb::object();
    }
    return nb::borrow(same ? Py_True : Py_False);
}

// A number in every element: (x, number, name)
nb::object fill(PyObject* const* args) {
    const Held a = memory_of(args[0]);
    moving::Pair bits{};
    if (!a || !PyArray_ISBEHAVED(a.a)) return nb::object();
    nb::object number = nb::borrow(args[1]);
    if (PyArray_DESCR(a)->kind == 'i' && PyFloat_CheckExact(args[1])) {  // without its fraction
        number = nb::steal(PyLong_FromDouble(PyFloat_AS_DOUBLE(args[1])));
        if (!number.is_valid()) return PyErr_Clear(), nb::object();
    }
    if (!element_of(PyArray_DESCR(a), number.ptr(), bits) || !nobody_looks()) return nb::object();
    if (!moving::fill_over(bits, Array{a}) && PyArray_FillWithScalar(a, number.ptr()) < 0) {
        PyErr_Clear();
        return nb::object();
    }
    bump(args[0], args[2]);
    return nb::borrow(args[0]);
}

template <nb::object (*F)(PyObject* const*), int ARGS> PyObject* called(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (n != ARGS) return PyErr_Format(PyExc_TypeError, "wanted %d arguments, got %zd", ARGS, n);
    return guarded([&]() -> PyObject* {
        nb::object made = F(args);
        if (made.is_valid()) return made.release().ptr();
        Py_RETURN_NOTIMPLEMENTED;
    });
}

#define FW_INTO(name, function, args) \
    {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&called<function, args>)), METH_FASTCALL, nullptr}
PyMethodDef methods[] = {FW_INTO("into_call", write_call, 6), FW_INTO("into_form", write_form, 6), FW_INTO("into_copy", copy<Taken::any>, 3), FW_INTO("into_fitting", copy<Taken::fitting>, 3), FW_INTO("into_same", copy<Taken::same>, 3), FW_INTO("into_fill", fill, 3),
                         FW_INTO("into_put", put, 3), FW_INTO("tensors_equal", equal, 2),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

FW_BIND(m) {
    word_site = word("site"), word_result = word("result");
    out_name = taken(PyTuple_Pack(1, word("out"))).release().ptr();
    if (PyModule_AddFunctions(m.ptr(), methods) < 0) throw nb::python_error();
    m.def("copy_over", &write_over, nb::arg("x"), nb::arg("out"));
    m.def("set_up_into", [](nb::object declined, nb::object begun) {
        is_declined = declined.release().ptr(), has_begun = begun.release().ptr();
    });
}

}  // namespace fw::tensors
