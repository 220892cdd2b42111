// Results written into the memory of a tensor and recorded: `recorded_into` and `write` of `ops/write/inplace.py`, for
// tensors that are no views, have none, and carry no hooks.
#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

// preserved: the record of a copy that lies likewise; keep_result: that of `tensor.py`
PyObject *word_outputs, *word_record, *word_saved_hooks, *preserved = nullptr, *keep_result = nullptr;

// Whether `x` is no view, and has none that somebody holds; those that are gone are forgotten, as after any write.
bool stands_alone(PyObject* x) {
    PyObject* more = slot(x, at_more);
    if (!more || more == Py_None) return more;
    if (part_of(more, at_base) != Py_None) return false;
    const nb::object views = nb::borrow(part_of(more, at_views));
    if (views.is_none()) return true;
    if (!PyList_CheckExact(views.ptr())) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(views.ptr()); ++i) {
        PyObject* view = PyList_GET_ITEM(views.ptr(), i);
        if (!PyWeakref_CheckRef(view) || PyWeakref_GET_OBJECT(view) != Py_None) return false;
    }
    if (PyList_SetSlice(views.ptr(), 0, PyList_GET_SIZE(views.ptr()), nullptr) < 0) throw nb::python_error();
    return true;
}

// Whether `x` may take another place in the graph, with nobody to be told.
bool may_move(PyObject* x) {
    PyArrayObject* a = array_of(x);
    if (!a || !PyArray_ISWRITEABLE(a) || !is_left_alone(slot(x, at_node))) return false;
    if (here_of(modes, word_enabled).ptr() != Py_True || here_of(quiet, word_run).is_none() || !here_of(quiet, word_site).is_none()) return false;
    return stands_alone(x);
}

void move_to(PyObject* x, nb::object node) { Py_SETREF(slot(x, at_node), node.release().ptr()); }

bool is_like(PyArrayObject* b, PyArrayObject* a) { return b && PyArray_DESCR(b) == PyArray_DESCR(a) && PyArray_SAMESHAPE(a, b); }

// Whether only one tensor holds this memory, besides `a`, and what is kept is not handed to hooks.
bool is_alone(const Held& a) {
    const auto* array = reinterpret_cast<PyArrayObject*>(a.owner.ptr());
    return Py_REFCNT(array) == 2 && !PyArray_BASE(array) && PyObject_IsTrue(here_of(modes, word_saved_hooks).ptr()) == 0;
}

// `op.run(*inputs, **settings)`
nb::object run(PyObject* op, PyObject* inputs, PyObject* settings) {
    return taken(PyObject_Call(asked(op, word_run).ptr(), inputs, settings));
}

// The inputs with the tensor `with` in the places of `x`.
nb::object replaced(PyObject* inputs, PyObject* x, const nb::object& with) {
    const Py_ssize_t n = PyTuple_GET_SIZE(inputs);
    nb::object made = taken(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* input = PyTuple_GET_ITEM(inputs, i);
        PyTuple_SET_ITEM(made.ptr(), i, Py_NewRef(input == x ? with.ptr() : input));
    }
    return made;
}

// The node of a call whose result lies in `a`.
nb::object recorded(PyObject* op, PyObject* inputs, PyObject* const* arrays, PyObject* settings, PyObject* x, const Held& a) {
    const Py_ssize_t n = PyTuple_GET_SIZE(inputs);
    PyObject* const* given = PySequence_Fast_ITEMS(inputs);
    const nb::object result = tensor_over(a.owner);
    Py_XSETREF(slot(result.ptr(), at_counter), counter_of(x).release().ptr());
    PyObject* results[] = {result.ptr()};
    nb::object node = node_of(op, given, arrays, n, results, 1, settings);
    if (node.is_valid()) return node;
    nb::object list = taken(PyList_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) PyList_SET_ITEM(list.ptr(), i, Py_NewRef(arrays[i]));
    PyObject* record[] = {op, inputs, list.ptr(), result.ptr(), settings};
    taken(PyObject_VectorcallMethod(word_record, record, 5, nullptr));
    return nb::borrow(slot(result.ptr(), at_node));
}

// What `write_call` does, where it is recorded; nothing has changed where the answer is null.
nb::object write_recorded(PyObject* const* args) {
    PyObject *op = args[0], *x = args[1], *settings = args[3];
    if (!preserved || !may_move(x) || !here_of(quiet, word_settle).is_none()) return nb::object();
    const Held a = array_of(x);
    nb::object inputs = nb::borrow(args[2]);
    const Py_ssize_t n = PyTuple_GET_SIZE(inputs.ptr());
    if (PyArray_DESCR(a)->kind != 'f' || PyUnicode_FindChar(args[4], 'f', 0, PyUnicode_GET_LENGTH(args[4]), 1) < 0) return nb::object();
    if (n + PyDict_GET_SIZE(settings) > MOST_WRITTEN || PyTuple_GET_SIZE(asked(op, word_outputs).ptr()) > 1) return nb::object();
    bool leads = false, copied = false;  // copied: since backward wants what is written over
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* input = PyTuple_GET_ITEM(inputs.ptr(), i);
        if (!PyFloat_CheckExact(input) && !PyLong_CheckExact(input) && !is_like(array_of(input), a)) return nb::object();
        leads = leads || (array_of(input) && has_node(input));
        copied = copied || (input == x && wants(op, false, i, inputs.ptr()));
    }
    if (!leads) return nb::object();
    if (copied) {
        nb::object copy = taken(PyObject_CallOneArg(preserved, a.owner.ptr()));
        inputs = replaced(inputs.ptr(), x, tensor_over(std::move(copy), nb::borrow(slot(x, at_node))));
    }
    keep_result_of(x);
    if (wants(op, true, 0, inputs.ptr()) && !is_alone(a)) {  // beside it: others may change it, of which backward would not know
        const nb::object result = run(op, inputs.ptr(), settings);
        const Held b = array_of(result.ptr());
        if (!is_like(b, a)) return nb::object();
        take_over(a, b);
        bump(x, args[5]);
        move_to(x, nb::borrow(slot(result.ptr(), at_node)));
        return nb::borrow(x);
    }
    PyObject* given[MOST_WRITTEN + 2];
    nb::object held[MOST_WRITTEN];
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* input = PyTuple_GET_ITEM(inputs.ptr(), i);
        PyArrayObject* b = array_of(input);
        held[i] = nb::borrow(b ? reinterpret_cast<PyObject*>(b) : input);
        given[i + 1] = held[i].ptr();
    }
    if (!kernel_into(op, given, n, settings, a, x, args[5])) return nb::object();
    move_to(x, recorded(op, inputs.ptr(), given + 1, settings, x, a));
    return nb::borrow(x);
}

// A result of x's dtype and shape into x, which takes its place in the graph: (x, result, name)
PyObject* put_result(PyObject*, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        if (n != 3) return PyErr_Format(PyExc_TypeError, "wanted 3 arguments, got %zd", n);
        PyObject *x = args[0], *result = args[1];
        if (x == result || !may_move(x) || !is_like(array_of(result), array_of(x)) || !nobody_looks()) Py_RETURN_NOTIMPLEMENTED;
        const Held a = array_of(x), b = array_of(result);
        if (!may_move(x) || !is_like(b, a)) Py_RETURN_NOTIMPLEMENTED;  // what was put off has run meanwhile
        keep_result_of(x);
        take_over(a, b);
        bump(x, args[2]);
        move_to(x, nb::borrow(slot(result, at_node)));
        return Py_NewRef(x);
    });
}

PyMethodDef result_methods[] = {{"into_result", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&put_result)), METH_FASTCALL, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

void keep_result_of(PyObject* x) {
    PyObject *node = slot(x, at_node), *kept = node && keep_result ? kept_of(node) : nullptr, *name, *value;
    if (!kept) return;
    Py_ssize_t at = 0;
    while (PyDict_Next(kept, &at, &name, &value))
        if (value == slot(x, at_array)) return void(taken(PyObject_CallOneArg(keep_result, x)));
}

nb::object write_form(PyObject* const* args) {
    PyObject *inputs = args[2], *settings = args[3];
    nb::object written = write_call(args);
    if (written.is_valid() || !PyTuple_CheckExact(inputs) || !PyDict_CheckExact(settings) || !PyUnicode_Check(args[4])) return written;
    return write_recorded(args);
}

FW_BIND(m) {
    word_outputs = word("outputs"), word_record = word("record"), word_saved_hooks = word("saved_hooks");
    if (PyModule_AddFunctions(m.ptr(), result_methods) < 0) throw nb::python_error();
    m.def("set_up_recorded", [](nb::object copy, nb::object keep) {
        preserved = copy.release().ptr(), keep_result = keep.release().ptr();
    });
}

}  // namespace fw::tensors
