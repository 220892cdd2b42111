// Tensors that were put off: what they are told, and what happens when one is read.
#include <chrono>
#include <thread>
#include <utility>

#include "bind/deferral/tape.h"

namespace fw::deferral {
namespace {

void promise_free(PyObject* self) {
    auto* p = reinterpret_cast<Promise*>(self);
    if (p->tape) (*p->tape->values)[p->index].promise = nullptr;
    Py_XDECREF(p->changed_by), Py_XDECREF(p->home), Py_XDECREF(p->counter);
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
    p->changes = 0;
    p->changed_by = p->home = p->counter = nullptr;
    (*t->values)[index].promise = p;
    PyObject* before = slot(tensor, at_promise);
    slot(tensor, at_promise) = reinterpret_cast<PyObject*>(p);
    Py_XDECREF(before);
    return true;
}

namespace {

void put(PyObject* tensor, PyObject* array, PyObject* node, PyObject* counter) {
    PyObject* parts[SLOTS] = {array, node, counter, Py_None};
    for (int k = 0; k < SLOTS; ++k) {
        Py_INCREF(parts[k]);
        Py_XSETREF(slot(tensor, offsets[k]), parts[k]);
    }
}

// The counter of what was changed, which counts that: [changes, the last of them].
nb::object counted(const Promise* p) {
    nb::list all;
    if (p->counter && PyList_CheckExact(p->counter) && PyList_GET_SIZE(p->counter) == 2) {
        all = nb::borrow<nb::list>(p->counter);
    } else {
        all.append(nb::int_(0));
        all.append(nb::none());
    }
    PyObject* before = PyList_GET_ITEM(all.ptr(), 0);
    all[0] = nb::int_((PyLong_Check(before) ? PyLong_AsLong(before) : 0) + p->changes);
    all[1] = nb::handle(p->changed_by);
    return all;
}

// The memory back in the tensor that it is of.
void bring_home(Promise* p, bool changed) {
    nb::object home = nb::steal(p->home), counter = nb::none();
    p->home = nullptr;
    if (changed) counter = counted(p);
    else if (p->counter) counter = nb::borrow(p->counter);
    put(p->tensor, home.ptr(), Py_None, counter.ptr());
}

}  // namespace

bool settle(const Value& v, PyObject* array, PyObject* node) {
    Promise* p = v.promise;
    if (!p) return true;
    if (!p->home) {
        nb::object counter = p->changes ? counted(p) : nb::none();
        put(p->tensor, array, node, counter.ptr());
        return true;
    }
    if (PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(p->home), reinterpret_cast<PyArrayObject*>(array)) < 0)
        return false;
    bring_home(p, true);
    return true;
}

bool alone(const External& e) {
    PyObject *tensor = e.tensor.ptr(), *node = slot(tensor, offsets[1]), *more = slot(tensor, offsets[3]);
    auto* a = reinterpret_cast<PyArrayObject*>(e.array.ptr());
    return Py_TYPE(tensor) == tensor_type && slot(tensor, offsets[0]) == e.array.ptr() && !e.copy.is_valid() &&
           !is_one(node) && !is_one(more) && Py_REFCNT(a) == 2 && !PyArray_BASE(a) && PyArray_ISWRITEABLE(a);
}

bool changed_in_place(Tape* t, Call* c, PyObject* tensor) {
    Promise* p = promise_of(t, tensor);
    t->values->resize(size_t(c->first + 1));
    if (p) {
        (*t->values)[p->index].promise = nullptr;
        p->index = c->first;
        (*t->values)[c->first].promise = p;
    } else {
        if (!promised(t, tensor, c->first)) return false;
        p = (*t->values)[c->first].promise;
        for (External& e : *t->externals)
            if (e.tensor.ptr() == tensor) e.taken = true;
    }
    Py_INCREF(reinterpret_cast<Door*>(c->door)->name);
    Py_XSETREF(p->changed_by, reinterpret_cast<Door*>(c->door)->name);
    return true;
}

PyObject* answer_in_place(Tape* t, Call* c, PyObject* tensor) {
    const bool outside = !promise_of(t, tensor);
    if (!changed_in_place(t, c, tensor)) return nullptr;
    Promise* p = promise_of(t, tensor);
    ++p->changes;
    if (outside) {
        p->home = std::exchange(slot(tensor, offsets[0]), nullptr);
        p->counter = std::exchange(slot(tensor, offsets[2]), nullptr);
        Py_CLEAR(slot(tensor, offsets[1]));
        Py_CLEAR(slot(tensor, offsets[3]));
    }
    t->path->push_back(c);
    t->cursor = c;
    ++deferred_calls;
    Py_INCREF(tensor);
    return tensor;
}

void give_back(Tape* t) {
    for (Value& v : *t->values)
        if (v.promise && v.promise->home) bring_home(v.promise, false);
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
    give_back(t);
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
    struct Uncollected {  // a finalizer could read what is put off in the middle of this
        const int before = PyGC_Disable();
        ~Uncollected() {
            if (before) PyGC_Enable();
        }
    } uncollected;
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
    if (!c->named) return box ? box : made;
    nb::object all = nb::steal(PyTuple_Pack(1, box));
    Py_DECREF(box);
    return all.is_valid() ? PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(c->named), all.ptr(), nullptr) : nullptr;
}

}  // namespace fw::deferral
