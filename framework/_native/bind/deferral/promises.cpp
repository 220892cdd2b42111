// Tensors that were put off: what they are told, and what happens when one is read.
#include <chrono>
#include <thread>

#include "bind/deferral/tape.h"

namespace fw::deferral {
namespace {

void promise_free(PyObject* self) {
    auto* p = reinterpret_cast<Promise*>(self);
    if (p->tape) (*p->tape->values)[p->index].promise = nullptr;
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyType_Slot promise_slots[] = {{Py_tp_dealloc, any(promise_free)}, {0, nullptr}};

}  // namespace

PyType_Spec promise_spec = {"framework._native.Promise", sizeof(Promise), 0, Py_TPFLAGS_DEFAULT, promise_slots};

bool promised(Tape* t, PyObject* tensor, Py_ssize_t index) {
    auto* p = PyObject_New(Promise, promise_type);
    if (!p) return false;
    p->tape = t;
    p->index = index;
    p->tensor = tensor;
    (*t->values)[index].promise = p;
    PyObject* before = slot(tensor, at_promise);
    slot(tensor, at_promise) = reinterpret_cast<PyObject*>(p);
    Py_XDECREF(before);
    return true;
}

void wait_for(const Tape* t) {  // another thread runs what this tape has put off
    while (t->busy && t->busy_thread != PyThread_get_thread_ident()) {
        Py_BEGIN_ALLOW_THREADS;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        Py_END_ALLOW_THREADS;
    }
}

// Runs what is put off. 0, or -1 with an error.
int run_pending(Tape* t, const char* why) {
    wait_for(t);
    if (!pending(t) || t->busy) return 0;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    t->busy = true;
    t->busy_thread = PyThread_get_thread_ident();
    Py_INCREF(t);
    int done = quick_forward(t);
    if (done == 0) {
        PyObject* forced = PyObject_CallFunction(t->force, "Os", t, why);
        done = forced ? 1 : -1;
        Py_XDECREF(forced);
    }
    t->busy = false;
    Py_DECREF(t);
    if (done < 0) {
        Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
        return -1;
    }
    PyErr_Restore(type, value, trace);
    return 0;
}

PyObject* getattr_or_run(PyObject* self, PyObject* name) {
    PyObject* found = plain_getattr(self, name);
    if (found || Py_TYPE(self) != tensor_type) return found;
    auto* p = reinterpret_cast<Promise*>(slot(self, at_promise));
    if (!p || !p->tape) return nullptr;
    bool own = false;
    for (PyObject* known : slot_names) own = own || known == name;
    if (!own || slot(self, offsets[0]) || !PyErr_ExceptionMatches(PyExc_AttributeError)) return nullptr;
    PyErr_Clear();
    Tape* t = p->tape;
    if (run_pending(t, "a tensor is read") < 0) return nullptr;
    if (!t->busy) forget(t);
    return plain_getattr(self, name);
}

void forget(Tape* t) {
    for (Value& v : *t->values) {
        if (v.promise) v.promise->tape = nullptr;
        v.promise = nullptr;
    }
    auto values = std::move(*t->values);
    auto externals = std::move(*t->externals);  // what they let go may run Python
    t->values->clear();
    t->externals->clear();
    t->path->clear();
    t->settled = 0;
    t->cursor = t->root;
    t->recording = false;
}

PyObject* answer(Tape* t, Call* c) {
    const Py_ssize_t n = c->container ? c->results : 1;
    PyObject* box = !c->container ? nullptr : c->container == 't' ? PyTuple_New(n) : PyList_New(n);
    if (c->container && !box) return nullptr;
    t->values->resize(size_t(c->first + n));
    PyObject* made = nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) {
        made = tensor_type->tp_alloc(tensor_type, 0);
        if (!made || !promised(t, made, c->first + i)) {
            Py_XDECREF(box);
            return nullptr;
        }
        if (c->container == 't') PyTuple_SET_ITEM(box, i, made);
        else if (c->container) PyList_SET_ITEM(box, i, made);
    }
    t->path->push_back(c);
    t->cursor = c;
    ++deferred_calls;
    return box ? box : made;
}

}  // namespace fw::deferral
