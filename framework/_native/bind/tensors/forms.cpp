// Forms in place of public functions, `x.add_(y)`: where nothing is unusual they write into the tensor, or let it see its memory as
// another view, without a frame of Python.
#include <algorithm>
#include <cstring>

#include "bind/tensors/entries.h"

namespace fw::tensors {
namespace {

PyObject *word_of_writes, *nothing_set, *write = nullptr;  // write: of `ops/write/inplace.py`

// The parts of a form, a tuple. The plan gives the record, its inputs and settings for the arguments of a call; without one the
// arguments are the inputs, so many. Where the plan has no answer, the result of the function is written, if there is one.
struct Form {
    enum { RECORD, WRITES, NAME, INPUTS, PLAN, RULE, FUNCTION, PARTS };
};

// What else a form may be: of a record that leaves whole numbers as they are (and a plan that is of others, and of real ones), or gives
// truth, which is written as numbers; of a function in the place of the plan, whose result is written, or that gives a view, as which
// the tensor sees its memory from there on. kept: as `whole`, and whatever numbers are given besides.
enum class Rule : long { none, whole, truth, function, view, kept };

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
nb::object function_written(PyObject* form, PyObject* function, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    const Py_ssize_t all = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    if (is_watched() || !std::all_of(args, args + all, is_free) || !memory_of(args[0])) return nb::object();
    const nb::object result = taken(PyObject_Vectorcall(function, args, size_t(n), keywords));
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

// Few truth values as numbers, one after the other; false, and nothing done, for others.
bool few_as_numbers(PyArrayObject* a, PyArrayObject* truth) {
    constexpr npy_intp FEW = 256;
    const npy_intp n = PyArray_SIZE(truth);
    if (n > FEW || PyArray_TYPE(truth) != NPY_BOOL || !PyArray_IS_C_CONTIGUOUS(a) || !PyArray_IS_C_CONTIGUOUS(truth) || !PyArray_ISBEHAVED(a)) return false;
    const auto* from = static_cast<const npy_bool*>(PyArray_DATA(truth));
    const auto write = [&](auto number) {
        if (!nobody_looks() || PyArray_SIZE(a) != n) return false;
        auto* to = static_cast<decltype(number)*>(PyArray_DATA(a));
        for (npy_intp i = 0; i < n; ++i) to[i] = decltype(number)(from[i]);
        return true;
    };
    switch (PyArray_TYPE(a)) {
        case NPY_FLOAT: return write(0.0f);
        case NPY_DOUBLE: return write(0.0);
        case NPY_INT64: return write(int64_t(0));
        default: return false;
    }
}

// What a record says of tensors, truth values, as numbers in the memory of the first.
nb::object truth_written(PyObject* form, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    const Held a = memory_of(args[0]);
    if (!a || keywords || n != PyLong_AsSsize_t(part(form, Form::INPUTS)) || is_watched() || !std::all_of(args, args + n, is_free)) return nb::object();
    const nb::object truth = taken(elementwise_run(part(form, Form::RECORD), args, n, nullptr));
    const Held b = array_of(truth.ptr()), now = memory_of(args[0]);
    if (!b || a.a != now.a || !PyArray_SAMESHAPE(a.a, b.a) || category_of(b) > category_of(a)) return nb::object();
    if (!few_as_numbers(a, b) && !convert_over(a, b)) return nb::object();
    bump(args[0], part(form, Form::NAME));
    return nb::borrow(args[0]);
}

// Whole numbers that stay as they are, whatever else is given: the change is counted.
nb::object kept(PyObject* form, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    const auto is_number = [](PyObject* x) { return x == Py_None || PyFloat_CheckExact(x) || PyLong_CheckExact(x); };
    if (keywords || !memory_of(args[0]) || !std::all_of(args + 1, args + n, is_number) || !nobody_looks()) return nb::object();
    bump(args[0], part(form, Form::NAME));
    return nb::borrow(args[0]);
}

}  // namespace

bool has_plan(PyObject* form) { return part(form, Form::PLAN) != Py_None; }

bool is_form(PyObject* form) { return PyTuple_CheckExact(form) && PyTuple_GET_SIZE(form) == Form::PARTS; }

nb::object form_written(PyObject* form, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    if (!n || !array_of(args[0])) return nb::object();
    const Rule rule = Rule(PyLong_AsLong(part(form, Form::RULE)));
    if (rule == Rule::function) return function_written(form, part(form, Form::PLAN), args, n, keywords);
    if (rule == Rule::view) return view_taken(form, args, n, keywords);
    const char kind = PyArray_DESCR(array_of(args[0]))->kind;
    if (rule == Rule::truth && kind != 'b') return truth_written(form, args, n, keywords);
    if (rule == Rule::kept && (kind == 'i' || kind == 'u')) return kept(form, args, n, keywords);
    if ((rule == Rule::whole || rule == Rule::kept) && part(form, Form::PLAN) != Py_None && std::strchr("iuc", kind)) return nb::object();
    const Way way = plan_of(form, args, n, keywords);
    if (!way.record.is_valid()) {
        PyObject* function = part(form, Form::FUNCTION);
        return function == Py_None ? nb::object() : function_written(form, function, args, n, keywords);
    }
    nb::object kinds = nb::borrow(part(form, Form::WRITES));
    if (kinds.is_none()) kinds = asked(way.record.ptr(), word_of_writes);
    PyObject* name = part(form, Form::NAME);
    PyObject* call[] = {way.record.ptr(), args[0], way.inputs.ptr(), way.settings.ptr(), kinds.ptr(), name};
    nb::object x = write_form(call);
    if (!x.is_valid() && rule == Rule::truth) return truth_written(form, args, n, keywords);
    if (x.is_valid() || rule != Rule::whole || (kind != 'i' && kind != 'u')) return x;
    const Held a = memory_of(args[0]);
    if (!a || here_of(quiet, word_run).is_none() || !here_of(quiet, word_site).is_none()) return x;
    bump(args[0], name);
    return nb::borrow(args[0]);
}

namespace {

// The plan of calls whose last arguments are numbers, the settings of one record: of as many tensors of floating numbers of one dtype
// as it has inputs, and plain numbers for all settings. Another record may take tensors in their place; whole numbers are then such,
// too. The plan behind it knows all other calls. bound: (record, its number of inputs, names of its settings, that plan, the other
// record or None)
PyObject* planned_with_numbers(PyObject* bound, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    PyObject *names = part(bound, 2), *of_tensors = part(bound, 4);
    const Py_ssize_t inputs = PyLong_AsSsize_t(part(bound, 1));
    PyArrayObject* a = !keywords && n == inputs + PyTuple_GET_SIZE(names) ? array_of(args[0]) : nullptr;
    const auto is_alike = [a](PyObject* x) { return array_of(x) && PyArray_DESCR(array_of(x)) == PyArray_DESCR(a); };
    const bool whole = a && of_tensors != Py_None && PyArray_TYPE(a) == NPY_INT64;
    const auto is_number = [whole](PyObject* x) {
        int over = 0;
        if (!PyLong_CheckExact(x)) return !whole && PyFloat_CheckExact(x);
        return !whole || (PyLong_AsLongLongAndOverflow(x, &over), !over);
    };
    if (a && of_tensors != Py_None && std::all_of(args + 1, args + n, is_alike))
        return guarded([&] {
            const nb::object given = tuple_of(args, n);
            return PyTuple_Pack(3, of_tensors, given.ptr(), nothing_set);
        });
    if (!a || !(whole || std::strchr("fV", PyArray_DESCR(a)->kind)) || !std::all_of(args + 1, args + inputs, is_alike) ||
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
    m.def("plan_with_numbers", [](nb::object record, Py_ssize_t inputs, nb::tuple names, nb::object plan, nb::object of_tensors) {
        if (inputs < 1) throw nb::value_error("plan_with_numbers: inputs must be 1 or more");
        return taken(PyCFunction_NewEx(&plan_method, nb::make_tuple(record, inputs, names, plan, of_tensors).ptr(), nullptr));
    }, nb::arg("record"), nb::arg("inputs"), nb::arg("names"), nb::arg("plan"), nb::arg("of_tensors").none() = nb::none());
    m.def("set_up_forms", [](nb::object writing) { write = writing.release().ptr(); });
}

}  // namespace fw::tensors
