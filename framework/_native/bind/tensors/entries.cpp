// Public functions as their callers find them: a plain call goes straight to the function that computes, without the tuple
// and the dictionary that Python makes for `*args, **settings`. Whatever else there is to know (other names of arguments, blocks
// of autocast, what asks first) the Python function knows for which this object stands, and as which it looks.
#include <cstddef>

#include "bind/collected.h"
#include "bind/tensors/entries.h"
#include "bind/tensors/placed.h"
#include <structmember.h>

namespace fw::tensors {

namespace {

PyObject *word_out_given, *word_reduce, *word_reduce_ex, *word_function, *word_choose;
PyObject* asked_late = nullptr;  // of `torch_function.py`
PyObject* choosing = nullptr;    // `thread` of `autocast.py`, once a block was opened: whose `choose` is None outside of blocks

struct Entry {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject* weak;
    PyObject* function;  // what it stands for
    PyObject* code;      // of the function, as it is while nobody has to be asked first
    PyObject* quick;     // what computes
    PyObject* names;     // a dictionary, whose keys are further names of arguments
    PyObject* place;     // (name, exact, record, plan) of a function with `out=`; or None
    PyObject* element;   // of an elementwise function, which has no `quick`: its parts (`elements.cpp`); or None
    PyObject* form;      // of a form in place, which has no `quick` either: its parts (`forms.cpp`); or None
    void close() {
        if (weak) PyObject_ClearWeakRefs(reinterpret_cast<PyObject*>(this));
    }
};

// Whether this thread is in a block of autocast, or that is not known.
bool is_choosing() {
    if (!choosing) return false;
    PyObject* values = values_here(choosing);
    PyObject* choose = values ? PyDict_GetItemWithError(values, word_choose) : nullptr;
    if (!choose) PyErr_Clear();
    return choose != Py_None;
}

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
    const Given given{tuple_of(args, n), taken(PyDict_New())};
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
    PyObject *name = PyTuple_GET_ITEM(e->place, 0), *plan = PyTuple_GET_ITEM(e->place, 3);
    Arguments given(args, n, PyTuple_GET_SIZE(keywords) - 1);  // but `out`
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords); ++i)
        if (PyTuple_GET_ITEM(keywords, i) != word_out_given) given.add(PyTuple_GET_ITEM(keywords, i), args[n + i]);
    PyObject *const* items = given.items(), *names = given.names();
    if (plan != Py_None) {
        const nb::object found = taken(PyObject_Vectorcall(plan, items, size_t(n), names));
        if (PyTuple_CheckExact(found.ptr()) && PyTuple_GET_SIZE(found.ptr()) == 3) {
            PyObject* const* call = PySequence_Fast_ITEMS(found.ptr());
            PyObject* way[] = {call[0], call[1], call[2], out, name};
            return compute_into(way);
        }
    }
    return call_into({e->quick, items, n, names, out, name, PyTuple_GET_ITEM(e->place, 1), PyTuple_GET_ITEM(e->place, 2)});
}

PyObject* entry_call(PyObject* self, PyObject* const* args, size_t given, PyObject* keywords) {
    const Entry* e = entry_of(self);
    if (PyFunction_GET_CODE(e->function) != e->code) return PyObject_Vectorcall(e->function, args, given, keywords);
    if (e->element != Py_None) {
        const Py_ssize_t n = PyVectorcall_NARGS(given), more = keywords ? PyTuple_GET_SIZE(keywords) : 0;
        const bool placed = more == 1 && PyTuple_GET_ITEM(keywords, 0) == word_out_given;
        bool done = false;
        PyObject* result = !more || placed ? element_called(e->element, args, n, placed ? args[n] : nullptr, done) : nullptr;
        return done ? result : PyObject_Vectorcall(e->function, args, given, keywords);
    }
    // elements on the CPU stay in their dtype, and so does what a record writes
    if ((e->form == Py_None || has_plan(e->form)) && is_choosing()) return PyObject_Vectorcall(e->function, args, given, keywords);
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
    if (!element.is_none() && !is_element(element.ptr()))
        throw nb::type_error("entry: element must be (record, kinds, weak, whole, short road, operands) or None");
    if (!form.is_none() && !is_form(form.ptr()))
        throw nb::type_error("entry: form must be (record, kinds, name, inputs, plan, rule, function) or None");
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
    word_out_given = word("out"), word_reduce = word("__reduce__"), word_reduce_ex = word("__reduce_ex__"), word_function = word("entry_of"), word_choose = word("choose");
    entry_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&entry_spec));
    if (!entry_type) throw nb::python_error();
    m.attr("Entry") = nb::borrow(reinterpret_cast<PyObject*>(entry_type));
    m.def("set_up_entries", [](nb::object late) { asked_late = late.release().ptr(); });
    m.def("choose_from_here", [](nb::object thread) { Py_XSETREF(choosing, thread.release().ptr()); });
    m.def("entry", &entry, nb::arg("function"), nb::arg("quick").none(), nb::arg("names"), nb::arg("place").none() = nb::none(),
          nb::arg("element").none() = nb::none(), nb::arg("form").none() = nb::none());
}

}  // namespace fw::tensors
