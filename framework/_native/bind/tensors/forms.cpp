// Forms in place of public functions, `x.add_(y)`: where nothing is unusual they write into the tensor, or let it see its memory as
// another view, without a frame of Python.
#include <algorithm>
#include <cstring>

#include "bind/tensors/entries.h"

namespace fw::tensors {
namespace {

PyObject *word_of_writes, *nothing_set, *write = nullptr;  // write: of `ops/write/inplace.py`

// The parts of a form, a tuple. The plan gives the record, its inputs and settings for the arguments of a call; without one the
// arguments are the inputs, so many.
struct Form {
    enum { RECORD, WRITES, NAME, INPUTS, PLAN, RULE, PARTS };
};

// What else a form may be: of a record that leaves whole numbers as they are (and a plan that is of others, and of real ones), or gives
// truth, which is written as numbers; of a function in the place of the plan, whose result is written, or that gives a view, as which
// the tensor sees its memory from there on.
enum class Rule : long { none, whole, truth, function, view };

// The record that a call of a form in place is of, its inputs and settings; a null record where Python is to look at it.
struct Way {
    nb::object record, inputs, settings;
};

Way plan_of(PyObject* form, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    PyObject* plan = part(form, Form::PLAN);
    if (plan == Py_None) {
        if (keywords || n != PyLong_AsSsize_t(part(form, Form::INPUTS))) return {};
        return {nb::borrow(part(form, Form::RECORD)), tuple_of(args, n), nb::borrow(nothing_set)};
    }
    nb::object way = taken(PyObject_Vectorcall(plan, args, size_t(n), keywords));
    if (!PyTuple_CheckExact(way.ptr()) || PyTuple_GET_SIZE(way.ptr()) != 3) return {};
    return {nb::borrow(PyTuple_GET_ITEM(way.ptr(), 0)), nb::borrow(PyTuple_GET_ITEM(way.ptr(), 1)), nb::borrow(PyTuple_GET_ITEM(way.ptr(), 2))};
}

}  // namespace

bool is_watched() { return here_of(quiet, word_run).is_none() || !here_of(quiet, word_site).is_none() || !here_of(quiet, word_settle).is_none(); }

namespace {

bool is_free(PyObject* x) { return !PyObject_TypeCheck(x, tensor_type) || (array_of(x) && !is_followed(x)); }

// The result of a function of Python into the first of its arguments.
nb::object function_written(PyObject* form, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    const Py_ssize_t all = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    if (is_watched() || !std::all_of(args, args + all, is_free) || !memory_of(args[0])) return nb::object();
    const nb::object result = taken(PyObject_Vectorcall(part(form, Form::PLAN), args, size_t(n), keywords));
    if (result.ptr() == Py_NotImplemented) return result;
    PyObject *x = args[0], *name = part(form, Form::NAME);
    const Held a = memory_of(x), b = array_of(result.ptr());
    if (a && b && !is_followed(result.ptr()) && PyArray_DESCR(a) == PyArray_DESCR(b) && PyArray_SAMESHAPE(a, b) && nobody_looks()) {
        take_over(a, b);
        bump(x, name);
        return nb::borrow(x);
    }
    return taken(PyObject_CallFunctionObjArgs(write, x, result.ptr(), name, nullptr));
}

// A tensor of no graph, of which there are no views and which is none, sees its memory as a function's view of it does.
nb::object view_taken(PyObject* form, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    constexpr Py_ssize_t MOST = 8;
    PyObject *x = args[0], *more = slot(x, at_more), *given[MOST];
    const Py_ssize_t all = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    if (all > MOST || has_node(x) || (more && more != Py_None) || is_watched()) return nb::object();
    const Held a = array_of(x);
    const nb::object other = tensor_over(a.owner);
    std::copy(args, args + all, given);
    given[0] = other.ptr();
    const nb::object view = taken(PyObject_Vectorcall(part(form, Form::PLAN), given, size_t(n), keywords));
    const Held b = array_of(view.ptr());
    if (!b || has_node(view.ptr()) || array_of(x) != a.a) return nb::object();
    Py_SETREF(slot(x, at_array), Py_NewRef(b.owner.ptr()));
    bump(x, part(form, Form::NAME));
    return nb::borrow(x);
}

}  // namespace

bool has_plan(PyObject* form) { return part(form, Form::PLAN) != Py_None; }

bool is_form(PyObject* form) { return PyTuple_CheckExact(form) && PyTuple_GET_SIZE(form) == Form::PARTS; }

nb::object form_written(PyObject* form, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    if (!n || !array_of(args[0])) return nb::object();
    const Rule rule = Rule(PyLong_AsLong(part(form, Form::RULE)));
    if (rule == Rule::function) return function_written(form, args, n, keywords);
    if (rule == Rule::view) return view_taken(form, args, n, keywords);
    if (rule == Rule::whole && part(form, Form::PLAN) != Py_None && std::strchr("iuc", PyArray_DESCR(array_of(args[0]))->kind))
        return nb::object();
    const Way way = plan_of(form, args, n, keywords);
    if (!way.record.is_valid()) return nb::object();
    nb::object kinds = nb::borrow(part(form, Form::WRITES));
    if (kinds.is_none()) kinds = asked(way.record.ptr(), word_of_writes);
    PyObject* name = part(form, Form::NAME);
    PyObject* call[] = {way.record.ptr(), args[0], way.inputs.ptr(), way.settings.ptr(), kinds.ptr(), name};
    nb::object x = write_form(call);
    if (x.is_valid() || rule == Rule::none) return x;
    const Held a = memory_of(args[0]);
    if (!a || here_of(quiet, word_run).is_none() || !here_of(quiet, word_site).is_none()) return x;
    if (rule == Rule::whole) {
        if (PyArray_DESCR(a)->kind != 'i' && PyArray_DESCR(a)->kind != 'u') return x;
    } else {
        const nb::object truth = taken(PyObject_Call(asked(way.record.ptr(), word_run).ptr(), way.inputs.ptr(), nullptr));
        const Held b = array_of(truth.ptr()), now = memory_of(args[0]);
        if (!b || a.a != now.a || !PyArray_SAMESHAPE(a.a, b.a) || category_of(b) > category_of(a) || !convert_over(a, b)) return x;
    }
    bump(args[0], name);
    return nb::borrow(args[0]);
}

namespace {

// The plan of calls whose last arguments are numbers, the settings of one record: of as many tensors of floating numbers of one dtype
// as it has inputs, and plain numbers for all settings; the plan behind it knows all other calls. bound: (record, its number of
// inputs, names of its settings, that plan)
PyObject* planned_with_numbers(PyObject* bound, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    PyObject* names = part(bound, 2);
    const Py_ssize_t inputs = PyLong_AsSsize_t(part(bound, 1));
    PyArrayObject* a = !keywords && n == inputs + PyTuple_GET_SIZE(names) ? array_of(args[0]) : nullptr;
    const auto is_alike = [a](PyObject* x) { return array_of(x) && PyArray_DESCR(array_of(x)) == PyArray_DESCR(a); };
    const auto is_number = [](PyObject* x) { return PyFloat_CheckExact(x) || PyLong_CheckExact(x); };
    if (!a || !std::strchr("fV", PyArray_DESCR(a)->kind) || !std::all_of(args + 1, args + inputs, is_alike) ||
        !std::all_of(args + inputs, args + n, is_number))
        return PyObject_Vectorcall(part(bound, 3), args, size_t(n), keywords);
    return guarded([&] {
        const nb::object settings = taken(PyDict_New()), given = tuple_of(args, inputs);
        for (Py_ssize_t i = inputs; i < n; ++i)
            if (PyDict_SetItem(settings.ptr(), part(names, i - inputs), args[i]) < 0) throw nb::python_error();
        return PyTuple_Pack(3, part(bound, 0), given.ptr(), settings.ptr());
    });
}

PyMethodDef plan_method = {"plan", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&planned_with_numbers)),
                           METH_FASTCALL | METH_KEYWORDS, nullptr};

}  // namespace

FW_BIND(m) {
    word_of_writes = word("writes"), nothing_set = taken(PyDict_New()).release().ptr();
    m.def("plan_with_numbers", [](nb::object record, Py_ssize_t inputs, nb::tuple names, nb::object plan) {
        if (inputs < 1) throw nb::value_error("plan_with_numbers: inputs must be 1 or more");
        return taken(PyCFunction_NewEx(&plan_method, nb::make_tuple(record, inputs, names, plan).ptr(), nullptr));
    });
    m.def("set_up_forms", [](nb::object writing) { write = writing.release().ptr(); });
}

}  // namespace fw::tensors
