// Elementwise functions, `x + y`, `x.relu()`: where nothing is to be promoted they go to their kernel without a frame of Python.
#include "bind/tensors/entries.h"
#include "bind/tensors/placed.h"

namespace fw::tensors {
namespace {

PyObject *word_element_writes, *word_element_name, *no_element_settings;
constexpr npy_intp MOST_COPIED = 1 << 12;  // elements of a result that is made and copied

// The parts of an elementwise function, a tuple: the kinds of dtype that need no promotion, those with which any number of Python's may
// stand and those with which whole ones may, and how many operands there are: -2 for two in the other order.
struct Element {
    enum { RECORD, KINDS, WEAK, WHOLE, ROAD, OPERANDS, PARTS };
};

bool has_kind(PyObject* kinds, char kind) { return PyUnicode_FindChar(kinds, Py_UCS4(kind), 0, PyUnicode_GET_LENGTH(kinds), 1) >= 0; }

// What needs no promotion: a tensor, or two of one dtype, or one and a number of Python's.
struct Operands {
    Held a = nullptr, b = nullptr;
    bool fit = false, recorded = false;

    Operands(PyObject* element, PyObject* const* args, Py_ssize_t n) : a(array_of(args[0])) {
        PyObject* kinds = part(element, Element::KINDS);
        const auto is_taken = [&](PyObject* number, char kind) {
            return has_kind(part(element, Element::WEAK), kind) || (PyLong_CheckExact(number) && has_kind(part(element, Element::WHOLE), kind));
        };
        const auto is_number = [](PyObject* x) { return PyFloat_CheckExact(x) || PyLong_CheckExact(x); };
        if (n > 1) b = array_of(args[1]);
        if (!a) {
            fit = n == 2 && b && is_number(args[0]) && is_taken(args[0], PyArray_DESCR(b)->kind);
            return;
        }
        const char kind = PyArray_DESCR(a)->kind;
        recorded = has_node(args[0]);
        if (n == 1) {
            fit = has_kind(kinds, kind);
        } else if (b) {
            fit = PyArray_DESCR(a) == PyArray_DESCR(b) && (!PyUnicode_GET_LENGTH(kinds) || has_kind(kinds, kind));
            recorded = recorded || has_node(args[1]);
        } else {
            fit = is_number(args[1]) && is_taken(args[1], kind);
            recorded = recorded && has_kind(part(element, Element::WEAK), kind);
        }
    }
};

// An elementwise function of one or two operands that need no promotion, the second of which may be a number; not `done` for others.
PyObject* element_made(PyObject* element, PyObject* const* args, Py_ssize_t n, bool& done) {
    PyObject *op = part(element, Element::RECORD), *short_road = part(element, Element::ROAD);
    const Operands x(element, args, n);
    done = x.fit;
    if (!done) return nullptr;
    if (!x.a) return elementwise_run(op, args, n, nullptr);
    PyObject *own = x.a.owner.ptr(), *recorded = x.recorded ? Py_True : Py_False;
    if (n == 1) {
        PyObject* way[] = {op, args[0], own, recorded};
        return elementwise(short_road, way, 4);
    }
    PyObject* way[] = {op, args[0], args[1], own, x.b ? x.b.owner.ptr() : args[1], recorded};
    return elementwise(short_road, way, 6);
}

// The same in `out`: by the kernel if it may write there, else made and copied, which takes less than to see whether the kernel might.
nb::object element_placed(PyObject* element, PyObject* const* args, Py_ssize_t n, PyObject* out) {
    PyObject* op = part(element, Element::RECORD);
    const Held a = array_of(out);
    if (!a || has_node(out) || PyArray_SIZE(a) > MOST_COPIED || is_watched() || !memory_of(out)) return nb::object();
    const nb::object name = asked(op, word_element_name);
    const Held first = array_of(args[0]);
    if (!first || PyArray_DESCR(first) == PyArray_DESCR(a) || PyArray_TYPE(a) != NPY_BOOL) {  // no kernel writes truth of numbers
        const nb::object inputs = tuple_of(args, n), writes = asked(op, word_element_writes);
        PyObject* call[] = {op, out, inputs.ptr(), no_element_settings, writes.ptr(), name.ptr()};
        nb::object written = write_call(call);
        if (written.is_valid()) return written;
    }
    bool done = false;
    nb::object result = nb::steal(element_made(element, args, n, done));
    if (!done) return nb::object();
    if (!result.is_valid()) throw nb::python_error();
    return put_into(out, result.ptr(), name.ptr());
}

}  // namespace

bool is_element(PyObject* element) { return PyTuple_CheckExact(element) && PyTuple_GET_SIZE(element) == Element::PARTS; }

PyObject* element_called(PyObject* element, PyObject* const* args, Py_ssize_t n, PyObject* out, bool& done) {
    const Py_ssize_t operands = PyLong_AsSsize_t(part(element, Element::OPERANDS));
    done = false;
    if (n != std::abs(operands)) return nullptr;
    if (out) {
        if (operands < 0) return nullptr;
        return guarded([&] {
            done = true;
            nb::object made = element_placed(element, args, n, out);
            done = made.is_valid();
            return made.release().ptr();
        });
    }
    PyObject* turned[] = {n > 1 ? args[1] : nullptr, args[0]};
    return element_made(element, operands < 0 ? turned : args, n, done);
}

FW_BIND(m) {
    static_cast<void>(m);
    word_element_writes = word("writes"), word_element_name = word("name"), no_element_settings = taken(PyDict_New()).release().ptr();
}

}  // namespace fw::tensors
