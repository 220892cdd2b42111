// Public functions as their callers find them: a plain call goes straight to the function that computes, without the tuple
// and the dictionary that Python makes for `*args, **settings`. Whatever else there is to know (other names of arguments, blocks
// of autocast, what asks first) the Python function knows for which this object stands, and as which it looks.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "bind/collected.h"
#include "bind/tensors/placed.h"
#include <structmember.h>

namespace fw::tensors {

namespace {

PyObject *word_out_given, *word_reduce, *word_reduce_ex, *word_function, *word_writes, *word_name, *no_settings;
constexpr npy_intp MOST_COPIED = 1 << 12;  // elements of a result that is made and copied
PyObject *asked_late = nullptr, *write = nullptr;  // of `torch_function.py`, and of `ops/write/inplace.py`
bool choosing = false;           // whether a block of autocast was ever opened

struct Entry {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject* weak;
    PyObject* function;  // what it stands for
    PyObject* code;      // of the function, as it is while nobody has to be asked first
    PyObject* quick;     // what computes
    PyObject* names;     // a dictionary, whose keys are further names of arguments
    PyObject* place;     // (name, exact, record, plan) of a function with `out=`; or None
    PyObject* element;   // of an elementwise function, which has no `quick`: (record, kinds of dtype, those that
                         // take any number, those that take whole ones, short road, operands: -2 for two in the other order)
    PyObject* form;      // of a form in place, which has no `quick`: (record, the kinds of dtype that it writes, name, inputs, plan, rule)
    void close() {
        if (weak) PyObject_ClearWeakRefs(reinterpret_cast<PyObject*>(this));
    }
};

Entry* entry_of(PyObject* self) { return reinterpret_cast<Entry*>(self); }

// Whether a keyword is one that only the Python function knows; -1 with an error set.
int is_known(const Entry* e, PyObject* keywords) {
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i) {
        PyObject* key = PyTuple_GET_ITEM(keywords, i);
        if (e->place != Py_None && PyUnicode_Compare(key, word_out_given) == 0) return 1;
        if (const int found = PyDict_Contains(e->names, key)) return found;
    }
    return 0;
}

struct Given {
    nb::object positional, settings;
};

// The arguments as Python passes them, but `out=`.
Given gathered(PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    Given given{taken(PyTuple_New(n)), taken(PyDict_New())};
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(given.positional.ptr(), i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i) {
        PyObject* key = PyTuple_GET_ITEM(keywords, i);
        if (key != word_out_given && PyDict_SetItem(given.settings.ptr(), key, args[n + i]) < 0) throw nb::python_error();
    }
    return given;
}

// The error of a call whose arguments did not fit is set: another name of one of them, or an object that overrides functions.
PyObject* refused(PyObject* self, PyObject* const* args, size_t given, PyObject* keywords) {
    const Entry* e = entry_of(self);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const int known = is_known(e, keywords);
    PyObject* result = nullptr;
    if (known == 0) {
        result = guarded([&] {
            const Given all = gathered(args, PyVectorcall_NARGS(given), keywords);
            PyObject* asked[] = {self, all.positional.ptr(), all.settings.ptr()};
            return PyObject_Vectorcall(asked_late, asked, 3, nullptr);
        });
        if (result == Py_NotImplemented) {
            Py_DECREF(result);
            PyErr_Restore(type, value, trace);
            return nullptr;
        }
    }
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
    return known > 0 ? PyObject_Vectorcall(e->function, args, given, keywords) : result;
}

// The result in `out`: as `with_out` of `public.py` does it.
nb::object placed(const Entry* e, PyObject* const* args, Py_ssize_t n, PyObject* keywords, PyObject* out) {
    const Given given = gathered(args, n, keywords);
    PyObject *name = PyTuple_GET_ITEM(e->place, 0), *plan = PyTuple_GET_ITEM(e->place, 3);
    if (plan != Py_None) {
        const nb::object found = taken(PyObject_Call(plan, given.positional.ptr(), given.settings.ptr()));
        if (PyTuple_CheckExact(found.ptr()) && PyTuple_GET_SIZE(found.ptr()) == 3) {
            PyObject* const* call = PySequence_Fast_ITEMS(found.ptr());
            PyObject* way[] = {call[0], call[1], call[2], out, name};
            return compute_into(way);
        }
    }
    PyObject* way[] = {e->quick, given.positional.ptr(), given.settings.ptr(), out, name, PyTuple_GET_ITEM(e->place, 1), PyTuple_GET_ITEM(e->place, 2)};
    return run_into(way);
}

// What else a form in place may be: of a record that leaves whole numbers as they are (and a plan that is of others, and of real
// ones), or gives truth, which is written as numbers;
// of a function, whose result is written, or that gives a view, as which the tensor sees its memory from there on.
enum class Rule : long { none, whole, truth, function, view };

// The record that a call of a form in place is of, its inputs and settings; a null record where Python is to look at it.
struct Way {
    nb::object record, inputs, settings;
};

Way plan_of(PyObject* form, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    PyObject* plan = PyTuple_GET_ITEM(form, 4);
    if (plan == Py_None) {
        if (keywords || n != PyLong_AsSsize_t(PyTuple_GET_ITEM(form, 3))) return {};
        return {nb::borrow(PyTuple_GET_ITEM(form, 0)), gathered(args, n, nullptr).positional, nb::borrow(no_settings)};
    }
    nb::object way = taken(PyObject_Vectorcall(plan, args, size_t(n), keywords));
    if (!PyTuple_CheckExact(way.ptr()) || PyTuple_GET_SIZE(way.ptr()) != 3) return {};
    return {nb::borrow(PyTuple_GET_ITEM(way.ptr(), 0)), nb::borrow(PyTuple_GET_ITEM(way.ptr(), 1)), nb::borrow(PyTuple_GET_ITEM(way.ptr(), 2))};
}

bool is_watched() { return asked(quiet, word_run).is_none() || !asked(quiet, word_site).is_none() || !asked(quiet, word_settle).is_none(); }

bool is_free(PyObject* x) { return !PyObject_TypeCheck(x, tensor_type) || (array_of(x) && !is_followed(x)); }

// The result of a function of Python into the first of its arguments.
nb::object function_written(PyObject* form, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    const Py_ssize_t all = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    if (is_watched() || !std::all_of(args, args + all, is_free) || !memory_of(args[0])) return nb::object();
    const nb::object result = taken(PyObject_Vectorcall(PyTuple_GET_ITEM(form, 4), args, size_t(n), keywords));
    if (result.ptr() == Py_NotImplemented) return result;
    PyObject *x = args[0], *name = PyTuple_GET_ITEM(form, 2);
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
    const nb::object view = taken(PyObject_Vectorcall(PyTuple_GET_ITEM(form, 4), given, size_t(n), keywords));
    const Held b = array_of(view.ptr());
    if (!b || has_node(view.ptr()) || array_of(x) != a.a) return nb::object();
    Py_SETREF(slot(x, at_array), Py_NewRef(b.owner.ptr()));
    bump(x, PyTuple_GET_ITEM(form, 2));
    return nb::borrow(x);
}

// A form in place, where nothing is unusual; else null.
nb::object form_written(PyObject* form, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    if (!n || !array_of(args[0])) return nb::object();
    const Rule rule = Rule(PyLong_AsLong(PyTuple_GET_ITEM(form, 5)));
    if (rule == Rule::function) return function_written(form, args, n, keywords);
    if (rule == Rule::view) return view_taken(form, args, n, keywords);
    if (rule == Rule::whole && PyTuple_GET_ITEM(form, 4) != Py_None && std::strchr("iuc", PyArray_DESCR(array_of(args[0]))->kind))
        return nb::object();
    const Way way = plan_of(form, args, n, keywords);
    if (!way.record.is_valid()) return nb::object();
    nb::object kinds = nb::borrow(PyTuple_GET_ITEM(form, 1));
    if (kinds.is_none()) kinds = asked(way.record.ptr(), word_writes);
    PyObject* name = PyTuple_GET_ITEM(form, 2);
    PyObject* call[] = {way.record.ptr(), args[0], way.inputs.ptr(), way.settings.ptr(), kinds.ptr(), name};
    nb::object x = write_form(call);
    if (x.is_valid() || rule == Rule::none) return x;
    const Held a = memory_of(args[0]);
    if (!a || asked(quiet, word_run).is_none() || !asked(quiet, word_site).is_none()) return x;
    if (rule == Rule::whole) {
        if (PyArray_DESCR(a)->kind != 'i' && PyArray_DESCR(a)->kind != 'u') return x;
    } else {
        const nb::object truth = taken(PyObject_Call(asked(way.record.ptr(), word_run).ptr(), way.inputs.ptr(), nullptr));
        const Held b = array_of(truth.ptr()), now = memory_of(args[0]);
        if (!b || a.a != now.a || PyArray_SIZE(a) >= LARGE || !convert_over(a, b)) return x;
    }
    bump(args[0], name);
    return nb::borrow(args[0]);
}

bool has(PyObject* kinds, char kind) { return PyUnicode_FindChar(kinds, Py_UCS4(kind), 0, PyUnicode_GET_LENGTH(kinds), 1) >= 0; }

// An elementwise function of one or two operands that need no promotion, the second of which may be a number; not `done` for others.
PyObject* element_made(PyObject* element, PyObject* const* args, Py_ssize_t n, bool& done) {
    PyObject *op = PyTuple_GET_ITEM(element, 0), *kinds = PyTuple_GET_ITEM(element, 1), *short_road = PyTuple_GET_ITEM(element, 4);
    const auto is_taken = [&](PyObject* number, char kind) {
        return has(PyTuple_GET_ITEM(element, 2), kind) || (PyLong_CheckExact(number) && has(PyTuple_GET_ITEM(element, 3), kind));
    };
    const auto is_number = [](PyObject* x) { return PyFloat_CheckExact(x) || PyLong_CheckExact(x); };
    const Held a = array_of(args[0]);
    done = false;
    if (!a) {
        const Held b = n == 2 && is_number(args[0]) ? array_of(args[1]) : nullptr;
        done = b && is_taken(args[0], PyArray_DESCR(b)->kind);
        return done ? elementwise_run(op, args, n, nullptr) : nullptr;
    }
    const char kind = PyArray_DESCR(a)->kind;
    auto* own = reinterpret_cast<PyObject*>(a.a);
    if (n == 1) {
        if (!has(kinds, kind)) return nullptr;
        PyObject* way[] = {op, args[0], own, has_node(args[0]) ? Py_True : Py_False};
        done = true;
        return elementwise(short_road, way, 4);
    }
    bool recorded = has_node(args[0]);
    const Held b = array_of(args[1]);
    PyObject* other = args[1];
    if (b) {
        if (PyArray_DESCR(a) != PyArray_DESCR(b) || (PyUnicode_GET_LENGTH(kinds) && !has(kinds, kind))) return nullptr;
        other = reinterpret_cast<PyObject*>(b.a), recorded = recorded || has_node(args[1]);
    } else {
        if (!is_number(other) || !is_taken(other, kind)) return nullptr;
        recorded = recorded && has(PyTuple_GET_ITEM(element, 2), kind);
    }
    PyObject* way[] = {op, args[0], args[1], own, other, recorded ? Py_True : Py_False};
    done = true;
    return elementwise(short_road, way, 6);
}

// The same in `out`: by the kernel if it may write there, else made and copied, which takes less than to see whether the kernel might.
nb::object element_placed(PyObject* element, PyObject* const* args, Py_ssize_t n, PyObject* out) {
    PyObject* op = PyTuple_GET_ITEM(element, 0);
    const Held a = array_of(out);
    if (!a || has_node(out) || PyArray_SIZE(a) > MOST_COPIED || is_watched() || !memory_of(out)) return nb::object();
    const nb::object inputs = gathered(args, n, nullptr).positional, writes = asked(op, word_writes), name = asked(op, word_name);
    PyObject* call[] = {op, out, inputs.ptr(), no_settings, writes.ptr(), name.ptr()};
    nb::object written = write_call(call);
    if (written.is_valid()) return written;
    bool done = false;
    nb::object result = nb::steal(element_made(element, args, n, done));
    if (!done) return nb::object();
    if (!result.is_valid()) throw nb::python_error();
    return put_into(out, result.ptr(), name.ptr());
}

PyObject* entry_call(PyObject* self, PyObject* const* args, size_t given, PyObject* keywords) {
    const Entry* e = entry_of(self);
    if (PyFunction_GET_CODE(e->function) != e->code || choosing) return PyObject_Vectorcall(e->function, args, given, keywords);
    if (e->element != Py_None) {
        const Py_ssize_t n = PyVectorcall_NARGS(given), operands = PyLong_AsSsize_t(PyTuple_GET_ITEM(e->element, 5));
        bool done = false;
        PyObject *result = nullptr, *turned[] = {n > 1 ? args[1] : nullptr, args[0]};
        if (n == std::abs(operands) && !keywords) {
            result = element_made(e->element, operands < 0 ? turned : args, n, done);
        } else if (n == operands && PyTuple_GET_SIZE(keywords) == 1 && PyTuple_GET_ITEM(keywords, 0) == word_out_given) {
            result = guarded([&] {
                done = true;
                nb::object out = element_placed(e->element, args, n, args[n]);
                done = out.is_valid();
                return out.release().ptr();
            });
        }
        return done ? result : PyObject_Vectorcall(e->function, args, given, keywords);
    }
    if (e->form != Py_None) {
        bool done = true;
        PyObject* result = guarded([&] {
            nb::object x = form_written(e->form, args, PyVectorcall_NARGS(given), keywords);
            done = x.is_valid();
            return x.release().ptr();
        });
        if (!result && done && keywords && PyErr_ExceptionMatches(PyExc_TypeError)) PyErr_Clear(), done = false;  // it knows its name
        return done ? result : PyObject_Vectorcall(e->function, args, given, keywords);
    }
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i) {
        if (PyTuple_GET_ITEM(keywords, i) != word_out_given || e->place == Py_None) continue;
        PyObject* out = args[PyVectorcall_NARGS(given) + i];
        bool other = out == Py_None;
        for (Py_ssize_t j = 0; !other && j < PyTuple_GET_SIZE(keywords); ++j) {
            const int found = PyDict_Contains(e->names, PyTuple_GET_ITEM(keywords, j));
            if (found < 0) return nullptr;
            other = found;
        }
        if (other) return PyObject_Vectorcall(e->function, args, given, keywords);
        const nb::object alive = nb::borrow(self);
        return guarded([&] { return placed(e, args, PyVectorcall_NARGS(given), keywords, out).release().ptr(); });
    }
    PyObject* result = PyObject_Vectorcall(e->quick, args, given, keywords);
    return result || !PyErr_ExceptionMatches(PyExc_TypeError) ? result : refused(self, args, given, keywords);
}

PyObject* entry_bound(PyObject* self, PyObject* object, PyObject*) {
    return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

// It looks as its function does, but that it is pickled by its name, and tells its function.
PyObject* entry_get(PyObject* self, PyObject* name) {
    for (PyObject* own : {word_reduce, word_reduce_ex, word_function})
        if (PyUnicode_Compare(name, own) == 0) return PyObject_GenericGetAttr(self, name);
    return PyObject_GetAttr(entry_of(self)->function, name);
}

int entry_set(PyObject* self, PyObject* name, PyObject* value) {
    PyObject* function = entry_of(self)->function;
    return value ? PyObject_SetAttr(function, name, value) : PyObject_DelAttr(function, name);
}

PyObject* entry_reduced(PyObject* self, PyObject*) { return PyObject_GetAttrString(entry_of(self)->function, "__qualname__"); }
PyObject* entry_text(PyObject* self) { return PyObject_Repr(entry_of(self)->function); }
PyObject* entry_names(PyObject* self, PyObject*) { return PyObject_Dir(entry_of(self)->function); }

// Nothing is cleared: whatever else is in a cycle can be, and a call finds what it needs as long as there is one.
using OwnedByEntry = Collected<Entry, &Entry::function, &Entry::code, &Entry::quick, &Entry::names, &Entry::place, &Entry::element, &Entry::form>;

PyMemberDef entry_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Entry, call), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(Entry, weak), READONLY, nullptr},
                         {"entry_of", T_OBJECT, offsetof(Entry, function), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyMethodDef entry_methods[] = {{"__reduce__", entry_reduced, METH_NOARGS, nullptr},
                         {"__reduce_ex__", entry_reduced, METH_O, nullptr},
                         {"__dir__", entry_names, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

template <class F> void* slot_of(F f) { return reinterpret_cast<void*>(f); }
PyType_Slot entry_slots[] = {{Py_tp_call, slot_of(PyVectorcall_Call)},
                       {Py_tp_descr_get, slot_of(entry_bound)},
                       {Py_tp_getattro, slot_of(entry_get)},
                       {Py_tp_setattro, slot_of(entry_set)},
                       {Py_tp_repr, slot_of(entry_text)},
                       {Py_tp_traverse, slot_of(OwnedByEntry::traverse)},
                       {Py_tp_dealloc, slot_of(OwnedByEntry::free)},
                       {Py_tp_methods, entry_methods},
                       {Py_tp_members, entry_members},
                       {0, nullptr}};
PyType_Spec entry_spec = {"framework._native.Entry", sizeof(Entry), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, entry_slots};
PyTypeObject* entry_type = nullptr;

nb::object entry(nb::object function, nb::object quick, nb::dict names, nb::object place, nb::object element, nb::object form) {
    if (!PyFunction_Check(function.ptr())) throw nb::type_error("entry: function must be one of Python");
    if (!place.is_none() && (!PyTuple_CheckExact(place.ptr()) || PyTuple_GET_SIZE(place.ptr()) != 4))
        throw nb::type_error("entry: place must be (name, exact, record, plan) or None");
    if (!element.is_none() && (!PyTuple_CheckExact(element.ptr()) || PyTuple_GET_SIZE(element.ptr()) != 6))
        throw nb::type_error("entry: element must be (record, kinds, weak, whole, short road, operands) or None");
    if (!form.is_none() && (!PyTuple_CheckExact(form.ptr()) || PyTuple_GET_SIZE(form.ptr()) != 6))
        throw nb::type_error("entry: form must be (record, kinds, name, inputs, plan, rule) or None");
    auto* e = PyObject_GC_New(Entry, entry_type);
    if (!e) throw nb::python_error();
    e->call = entry_call, e->weak = nullptr;
    e->code = Py_NewRef(PyFunction_GET_CODE(function.ptr()));
    e->function = function.release().ptr();
    e->quick = quick.release().ptr();
    e->names = names.release().ptr();
    e->place = place.release().ptr();
    e->element = element.release().ptr();
    e->form = form.release().ptr();
    PyObject_GC_Track(reinterpret_cast<PyObject*>(e));
    return nb::steal(reinterpret_cast<PyObject*>(e));
}

}  // namespace

FW_BIND(m) {
    word_writes = word("writes"), word_name = word("name"), no_settings = taken(PyDict_New()).release().ptr();
    word_out_given = word("out"), word_reduce = word("__reduce__"), word_reduce_ex = word("__reduce_ex__"), word_function = word("entry_of");
    entry_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&entry_spec));
    if (!entry_type) throw nb::python_error();
    m.attr("Entry") = nb::borrow(reinterpret_cast<PyObject*>(entry_type));
    m.def("set_up_entries", [](nb::object late) { asked_late = late.release().ptr(); });
    m.def("set_up_forms", [](nb::object writing) { write = writing.release().ptr(); });
    m.def("choose_from_here", [] { choosing = true; });
    m.def("entry", &entry, nb::arg("function"), nb::arg("quick").none(), nb::arg("names"), nb::arg("place").none() = nb::none(),
          nb::arg("element").none() = nb::none(), nb::arg("form").none() = nb::none());
}

}  // namespace fw::tensors
