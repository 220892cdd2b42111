// Doors in front of functions, and what is in front of every kernel meanwhile.
#include <structmember.h>

#include "bind/deferral/tape.h"

namespace fw::deferral {
namespace {

PyObject* about(const Door* d, PyObject* args, PyObject* keywords) {
    if (PyTuple_GET_SIZE(args) != 1 || (keywords && PyDict_GET_SIZE(keywords))) return nullptr;
    PyObject* tensor = PyTuple_GET_ITEM(args, 0);
    if (Py_TYPE(tensor) != tensor_type || slot(tensor, offsets[0])) return nullptr;
    auto* p = reinterpret_cast<Promise*>(slot(tensor, at_promise));
    if (!p || p->tape != current) return nullptr;
    for (Call* c : *p->tape->path)
        if (c->first <= p->index && p->index < c->first + (c->container ? c->results : 1)) {
            PyObject* found = PyDict_GetItemWithError(PyTuple_GET_ITEM(c->metas, p->index - c->first), d->name);
            Py_XINCREF(found);
            return found;
        }
    return nullptr;
}

bool is_number(PyObject* x) { return PyLong_CheckExact(x) || PyFloat_CheckExact(x) || PyBool_Check(x) || x == Py_None; }

// Whether a call in place changes a tensor that nothing here knows, nor anybody else, by numbers and tensors that are there:
// then what is put off may wait.
bool apart(const Tape* t, PyObject* args, PyObject* keywords) {
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject* target = n ? PyTuple_GET_ITEM(args, 0) : nullptr;
    if (!target || Py_TYPE(target) != tensor_type || promise_of(t, target) || seen(t, target) >= 0) return false;
    PyArrayObject* a = array_of(target);
    if (!a || Py_REFCNT(a) != 1 || PyArray_BASE(a) || is_one(slot(target, offsets[1])) || is_one(slot(target, offsets[3])))
        return false;
    const bool enabled = enabled_of(t) != Py_False;
    auto fits = [&](PyObject* x) {
        if (!is_tensor(x)) return is_number(x);
        return array_of(x) && !promise_of(t, x) && !(enabled && is_one(slot(x, offsets[1])));
    };
    bool good = true;
    for (Py_ssize_t i = 1; i < n; ++i) good = good && fits(PyTuple_GET_ITEM(args, i));
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (keywords && PyDict_Next(keywords, &at, &key, &value)) good = good && fits(value);
    return good;
}

bool takes_none_in(const Tape* t, PyObject* x, bool enabled) {
    if (is_tensor(x)) return array_of(x) && !promise_of(t, x) && !(enabled && is_one(slot(x, offsets[1])));
    if (!PyTuple_Check(x) && !PyList_CheckExact(x)) return true;
    bool good = true;
    for (Py_ssize_t i = 0; i < Py_SIZE(x); ++i)
        good = good && takes_none_in(t, PyList_CheckExact(x) ? PyList_GET_ITEM(x, i) : PyTuple_GET_ITEM(x, i), enabled);
    return good;
}

PyObject* call_at_once(Tape* t, const Door* d, PyObject* args, PyObject* keywords) {
    t->busy = true;
    t->busy_thread = PyThread_get_thread_ident();
    Py_INCREF(t);
    PyObject* made = PyObject_Call(d->original, args, keywords);
    t->busy = false;
    Py_DECREF(t);
    return made;
}

// Whether "inplace" is True among the arguments of a function that has it.
bool is_in_place(const Door* d, PyObject* args, PyObject* keywords) {
    if (PyTuple_GET_SIZE(args) > d->twin_at) return PyTuple_GET_ITEM(args, d->twin_at) == Py_True;
    return keywords && PyDict_GetItemWithError(keywords, word_inplace) == Py_True;
}

// The call by the door of its form in place, which does not take that argument.
PyObject* by_twin(const Door* d, PyObject* args, PyObject* keywords) {
    nb::object positional = nb::borrow(args), named = nb::steal(keywords ? PyDict_Copy(keywords) : PyDict_New());
    if (!named.is_valid()) return nullptr;
    if (PyTuple_GET_SIZE(args) == d->twin_at + 1) {
        positional = nb::steal(PyTuple_GetSlice(args, 0, d->twin_at));
    } else if (PyTuple_GET_SIZE(args) > d->twin_at || PyDict_DelItem(named.ptr(), word_inplace) < 0) {
        PyErr_Clear();
        return PyObject_Call(d->original, args, keywords);
    }
    if (!positional.is_valid()) return nullptr;
    PyObject* given[] = {positional.ptr(), named.ptr()};
    return door_call(d->twin, given, 2, nullptr);
}

// Whether the tensor that a call in place changes is as it was when the call was recorded: put off, or nobody else's.
bool may_change(const Tape* t, const Call* c, PyObject* target) {
    const Spec& s = c->specs->front();
    if (s.kind == Spec::VALUE) return !slot(target, offsets[0]);
    return s.kind == Spec::EXTERNAL && size_t(s.index) < t->externals->size() && alone((*t->externals)[size_t(s.index)]);
}

// Whether memory that others have is among what was handed in: a view of it shows what they write.
bool shares(const Tape* t) {
    for (const External& e : *t->externals)
        if (e.copy.is_valid()) return true;
    return false;
}

void door_free(PyObject* self) {
    auto* d = reinterpret_cast<Door*>(self);
    Py_XDECREF(d->original);
    Py_XDECREF(d->name);
    Py_XDECREF(d->functional);
    Py_XDECREF(d->twin);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

void runner_free(PyObject* self) {
    Py_XDECREF(reinterpret_cast<Runner*>(self)->plain);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyMemberDef door_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Door, call), READONLY, nullptr},
                              {"original", T_OBJECT, offsetof(Door, original), READONLY, nullptr},
                              {"name", T_OBJECT, offsetof(Door, name), READONLY, nullptr},
                              {"functional", T_OBJECT, offsetof(Door, functional), READONLY, nullptr},
                              {"kind", T_CHAR, offsetof(Door, kind), READONLY, nullptr},
                              {"twin", T_OBJECT, offsetof(Door, twin), 0, nullptr},
                              {"twin_at", T_PYSSIZET, offsetof(Door, twin_at), 0, nullptr},
                              {"used", T_BOOL, offsetof(Door, used), READONLY, nullptr},
                              {nullptr, 0, 0, 0, nullptr}};
PyMemberDef runner_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Runner, call), READONLY, nullptr},
                                {nullptr, 0, 0, 0, nullptr}};
PyType_Slot door_slots[] = {{Py_tp_dealloc, any(door_free)}, {Py_tp_members, door_members},
                            {Py_tp_call, any(PyVectorcall_Call)}, {0, nullptr}};
PyType_Slot runner_slots[] = {{Py_tp_dealloc, any(runner_free)}, {Py_tp_members, runner_members},
                              {Py_tp_call, any(PyVectorcall_Call)}, {0, nullptr}};

}  // namespace

PyType_Spec door_spec = {"framework._native.Door", sizeof(Door), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                         door_slots};
PyType_Spec runner_spec = {"framework._native.Runner", sizeof(Runner), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, runner_slots};

namespace {

PyObject* word_code = nullptr;
int inside = 0;        // compiled functions at work, in all threads
bool closing = false;  // what opens meanwhile, from a hook of Python's audit, finds its functions without doors

}  // namespace

void open_doors(nb::list rows, nb::dict armed) {
    ++inside;
    if (!word_code) word_code = PyUnicode_InternFromString("__code__");
    for (nb::handle row : rows) {
        PyObject *function = PyTuple_GET_ITEM(row.ptr(), 0), *own = PyTuple_GET_ITEM(row.ptr(), 2);
        if (closing || PyFunction_GET_CODE(function) != own) continue;
        if (PyDict_SetItem(armed.ptr(), function, row.ptr()) < 0 ||
            PyObject_SetAttr(function, word_code, PyTuple_GET_ITEM(row.ptr(), 3)) < 0)
            throw nb::python_error();
    }
}

void close_doors(nb::dict armed) {
    if (--inside) return;
    PyObject *function, *row;
    Py_ssize_t at = 0;
    closing = true;
    bool good = true;
    while (PyDict_Next(armed.ptr(), &at, &function, &row))
        if (PyFunction_GET_CODE(function) == PyTuple_GET_ITEM(row, 3))
            good = PyObject_SetAttr(function, word_code, PyTuple_GET_ITEM(row, 2)) == 0 && good;
    closing = false;
    PyDict_Clear(armed.ptr());
    if (!good) throw nb::python_error();
}

bool takes_none(const Tape* t, PyObject* args, PyObject* keywords) {
    const bool enabled = enabled_of(t) != Py_False;
    bool good = takes_none_in(t, args, enabled);
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (keywords && PyDict_Next(keywords, &at, &key, &value)) good = good && takes_none_in(t, value, enabled);
    return good;
}

// door(args, settings): what the function's code calls.
PyObject* door_call(PyObject* self, PyObject* const* given, size_t, PyObject*) {
    auto* d = reinterpret_cast<Door*>(self);
    PyObject *args = given[0], *keywords = given[1];
    Tape* t = current;
    if (t && t->busy && t->busy_thread != PyThread_get_thread_ident()) wait_for(t);
    if (!t || t->busy) return PyObject_Call(d->original, args, keywords);
    if (d->twin && is_in_place(d, args, keywords)) return by_twin(d, args, keywords);
    if (d->kind == 'm') {
        if (!t->path->empty()) d->used = true;
        if (pending(t))
            if (PyObject* found = about(d, args, keywords)) return found;
        return PyObject_Call(d->original, args, keywords);
    }
    if (d->kind == 'n') {  // it reads no tensor and changes none: what is put off may wait
        bool plain = true;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) plain = plain && is_number(PyTuple_GET_ITEM(args, i));
        Py_ssize_t at = 0;
        PyObject *key, *value;
        while (PyDict_Next(keywords, &at, &key, &value))
            plain = plain && (is_number(value) || !PyUnicode_CompareWithASCIIString(key, "dtype") ||
                              !PyUnicode_CompareWithASCIIString(key, "device"));
        if (!plain || t->path->empty()) return PyObject_Call(d->original, args, keywords);
        d->used = true;
        return call_at_once(t, d, args, keywords);
    }
    if (d->kind == 'v') {
        PyObject* x = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : nullptr;
        const Promise* p = x && is_tensor(x) ? promise_of(t, x) : nullptr;
        if (!p) return call_at_once(t, d, args, keywords);
        if (p->changes) {  // which is counted with it
            if (run_pending(t, "what is seen of it was changed") < 0) return nullptr;
            forget(t);
            return PyObject_Call(d->original, args, keywords);
        }
    }
    if ((d->kind == 'b' || d->kind == 'i') && t->path->empty()) return PyObject_Call(d->original, args, keywords);
    if (!usual(t)) {
        if (run_pending(t, "a mode of its own") < 0) return nullptr;
        forget(t);
        return PyObject_Call(d->original, args, keywords);
    }
    if (d->kind == 'i' && apart(t, args, keywords)) {
        d->used = true;
        return call_at_once(t, d, args, keywords);
    }
    if (d->kind != 'i') d->used = true;
    if (!t->recording && d->kind != 'b') {
        Call* c = child_for(t, self, args, keywords);
        if (c && c->ready) {
            bool good = !c->views || !shares(t);
            for (const Range& r : *c->ranges) good = good && in_range(t, r);
            PyObject* target = c->in_place ? PyTuple_GET_ITEM(args, 0) : nullptr;
            if (good && !target) return answer(t, c);
            if (good && may_change(t, c, target)) return answer_in_place(t, c, target);
        }
        if (c) t->externals->resize(size_t(c->parent->externals));
        if (c && c->refused) {  // what was put off before it is not new
            if (c->pure) return call_at_once(t, d, args, keywords);
            if (run_pending(t, "an operation that is not put off") < 0) return nullptr;
            forget(t);
            return PyObject_Call(d->original, args, keywords);
        }
    }
    t->busy = true;
    t->busy_thread = PyThread_get_thread_ident();
    Py_INCREF(t);
    if (d->kind == 'b') {
        const int done = quick_backward(t, args, keywords);
        if (done != 0) {
            t->busy = false;
            if (done > 0) forget(t);
            Py_DECREF(t);
            if (done < 0) return nullptr;
            Py_RETURN_NONE;
        }
    }
    PyObject* result = PyObject_CallFunctionObjArgs(t->record, t, self, args, keywords, nullptr);
    t->busy = false;
    Py_DECREF(t);
    return result;
}

PyObject* runner_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords) {
    Tape* t = current;
    if (t) {
        wait_for(t);
        if (!t->busy && !t->path->empty()) {
            if (run_pending(t, "another operation runs") < 0) return nullptr;
            forget(t);
        }
    }
    return PyObject_Vectorcall(reinterpret_cast<Runner*>(self)->plain, args, flags, keywords);
}

}  // namespace fw::deferral

namespace fw {

FW_BIND(m) {
    m.def("open_doors", &deferral::open_doors);
    m.def("close_doors", &deferral::close_doors);
}

}  // namespace fw
