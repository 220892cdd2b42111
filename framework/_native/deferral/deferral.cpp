// Calls put off inside compiled functions: matched against recorded ones, and answered with tensors whose
// slots are empty until somebody reads them. See framework/jit/README.md.
//
// A `Door` stands in front of a function. A `Tape` is what a thread has put off; it goes along a tree of `Call`s,
// each a function with the kinds of its arguments. A tensor that was put off has a `Promise` in a slot of its own,
// which tells the tape when the tensor dies, and leads back to the tape when one of the other slots is read.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "bind/array.h"
#include <structmember.h>

namespace fw {
namespace {

PyTypeObject *tensor_type = nullptr, *parameter_type = nullptr, *leaf_type = nullptr;
PyTypeObject *promise_type = nullptr, *call_type = nullptr, *tape_type = nullptr, *door_type = nullptr,
             *runner_type = nullptr;
constexpr int SLOTS = 4;  // _array, _node, _counter, _more
Py_ssize_t offsets[SLOTS], at_promise = 0;
PyObject* slot_names[SLOTS];
PyObject* word_enabled = nullptr;
getattrofunc plain_getattr = nullptr;
int watching = 0;  // tapes at work, in all threads
constexpr Py_ssize_t SNAPSHOT = 1 << 16;  // bytes of shared memory that are copied, to see whether it was changed
constexpr size_t MOST_CHILDREN = 8, MOST_BEGINNINGS = 64;

PyObject*& slot(PyObject* o, Py_ssize_t offset) {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + offset);
}
bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || Py_TYPE(o) == parameter_type; }

struct Tape;
thread_local Tape* current = nullptr;

// -- what a call looks like ----------------------------------------------------------------------

struct Spec {
    enum Kind : char { VALUE, EXTERNAL, CONSTANT, TUPLE, SLICE, LIST };
    Kind kind = CONSTANT;
    Py_ssize_t index = 0;        // of a value or external
    nb::object object;           // the constant; the type of a tuple
    std::vector<Spec> items;
    // of an external where it comes first: its array and place in the graph
    bool first = false;
    PyTypeObject* type = nullptr;
    nb::object dtype;
    int ndim = 0, flags = 0;
    char place = 0;              // 0: none, 1: a leaf, 2: computed
    npy_intp dims[8], strides[8];
};

struct Range {
    Py_ssize_t external;
    int64_t low, high;
};

struct Call {
    PyObject_HEAD
    PyObject *door, *data, *metas, *enabled, *keys;
    std::vector<Spec>* specs;
    std::vector<Call*>* children;
    std::vector<Range>* ranges;
    Call* parent;  // which has this one
    Py_ssize_t first, results, externals, depth;
    char container;  // 0: one tensor, 't' or 'l'
    char ready;      // whether it may be put off
    char views;      // whether a result is a view of what it takes
};

struct Door {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *original, *name;
    char kind;  // 'd': put off, 'm': about a tensor, 'b': backward, 'n': makes a tensor of none
    char used;  // whether it ever answered itself
};

struct Promise {
    PyObject_HEAD
    Tape* tape;
    Py_ssize_t index;
    PyObject* tensor;  // which has this in a slot
};

struct Value {
    Promise* promise = nullptr;  // nullptr: the tensor is dead
    nb::object tensor;           // during a flush
};

struct External {
    nb::object tensor, array, node, copy;
    long version = 0;
};

struct Condition {
    nb::object dict, key, expected;  // no object: the key is absent, or None
};

struct Tape {
    PyObject_HEAD
    Call *root, *cursor;
    PyObject *record, *force, *state;
    std::vector<Call*>* path;
    std::vector<Value>* values;
    std::vector<External>* externals;
    std::vector<Condition>* conditions;
    size_t settled;  // calls of the path whose results are there
    unsigned long thread, busy_thread;
    Tape* outer;
    bool busy, recording;
};

int64_t deferred_calls = 0;

long version_of(PyObject* tensor) {
    PyObject* counter = slot(tensor, offsets[2]);
    if (!counter || !PyList_CheckExact(counter)) return 0;
    return PyLong_AsLong(PyList_GET_ITEM(counter, 0));
}

char place_of(PyObject* tensor) {
    PyObject* node = slot(tensor, offsets[1]);
    return !node || node == Py_None ? 0 : Py_TYPE(node) == leaf_type ? 1 : 2;
}

PyArrayObject* array_of(PyObject* tensor) {
    PyObject* a = slot(tensor, offsets[0]);
    return a && PyArray_CheckExact(a) ? reinterpret_cast<PyArrayObject*>(a) : nullptr;
}

bool same_constant(PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (Py_TYPE(a) != Py_TYPE(b)) return false;
    if (PyFloat_CheckExact(a)) {
        const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
        return std::memcmp(&x, &y, sizeof x) == 0;
    }
    if (PyLong_CheckExact(a)) {
        int over_a = 0, over_b = 0;
        const long long x = PyLong_AsLongLongAndOverflow(a, &over_a), y = PyLong_AsLongLongAndOverflow(b, &over_b);
        return !over_a && !over_b && x == y;
    }
    if (PyUnicode_CheckExact(a)) return PyUnicode_Compare(a, b) == 0;
    return false;
}

// Whether nobody but the tensor has the memory; shared memory is copied if it is small, to be compared later.
bool keep(External& e) {
    auto* a = reinterpret_cast<PyArrayObject*>(e.array.ptr());
    if (Py_REFCNT(a) == 2 && !PyArray_BASE(a)) return true;  // the tensor and `e`
    if (PyArray_NBYTES(a) > SNAPSHOT || !PyArray_IS_C_CONTIGUOUS(a)) return false;
    PyObject* copy = PyArray_NewCopy(a, NPY_CORDER);
    if (!copy) {
        PyErr_Clear();
        return false;
    }
    e.copy = nb::steal(copy);
    return true;
}

bool unchanged(const External& e) {
    if (!e.copy.is_valid()) return true;
    auto *a = reinterpret_cast<PyArrayObject*>(e.array.ptr()), *b = reinterpret_cast<PyArrayObject*>(e.copy.ptr());
    return std::memcmp(PyArray_DATA(a), PyArray_DATA(b), size_t(PyArray_NBYTES(a))) == 0;
}

bool add_external(Tape* t, PyObject* tensor) {
    External e;
    e.tensor = nb::borrow(tensor);
    e.array = nb::borrow(slot(tensor, offsets[0]));
    if (PyObject* node = slot(tensor, offsets[1]); node && node != Py_None) e.node = nb::borrow(node);
    e.version = version_of(tensor);
    if (!keep(e)) return false;
    if (e.copy.is_valid() && !t->recording)  // copies of one memory are of one moment
        for (const External& other : *t->externals)
            if (!unchanged(other)) return false;
    t->externals->push_back(std::move(e));
    return true;
}

// The number of an external that was seen; -1 for a new one.
Py_ssize_t seen(const Tape* t, PyObject* tensor) {
    const auto& all = *t->externals;
    for (size_t i = 0; i < all.size(); ++i)
        if (all[i].tensor.ptr() == tensor) return Py_ssize_t(i);
    return -1;
}

Promise* promise_of(const Tape* t, PyObject* tensor) {
    auto* p = reinterpret_cast<Promise*>(slot(tensor, at_promise));
    return p && p->tape == t ? p : nullptr;
}

// Whether it is that tensor, as it was; what a recorded call takes is what it finds.
bool is_same(const Tape* t, const External& e, PyObject* arg) {
    if (e.tensor.ptr() != arg) return false;
    if (t->recording) return true;
    PyObject* node = slot(arg, offsets[1]);
    return slot(arg, offsets[0]) == e.array.ptr() &&
           (e.node.is_valid() ? node == e.node.ptr() : !node || node == Py_None) && unchanged(e);
}

bool matches(Tape* t, const Spec& s, PyObject* arg) {
    switch (s.kind) {
    case Spec::CONSTANT: return same_constant(s.object.ptr(), arg);
    case Spec::VALUE: {
        if (Py_TYPE(arg) != tensor_type) return false;
        Promise* p = promise_of(t, arg);
        return p && p->index == s.index;
    }
    case Spec::EXTERNAL: {
        if (Py_TYPE(arg) != (s.type ? s.type : Py_TYPE(arg)) || !is_tensor(arg) || promise_of(t, arg)) return false;
        if (!s.first) return size_t(s.index) < t->externals->size() && is_same(t, (*t->externals)[s.index], arg);
        PyArrayObject* a = array_of(arg);
        if (!a || reinterpret_cast<PyObject*>(PyArray_DESCR(a)) != s.dtype.ptr() || PyArray_NDIM(a) != s.ndim ||
            place_of(arg) != s.place || (PyArray_FLAGS(a) & NPY_ARRAY_BEHAVED) != s.flags)
            return false;
        for (int d = 0; d < s.ndim; ++d)
            if (PyArray_DIM(a, d) != s.dims[d] || PyArray_STRIDE(a, d) != s.strides[d]) return false;
        return seen(t, arg) < 0 && add_external(t, arg);
    }
    case Spec::TUPLE:
    case Spec::LIST: {
        if (reinterpret_cast<PyObject*>(Py_TYPE(arg)) != s.object.ptr()) return false;
        const Py_ssize_t n = Py_SIZE(arg);
        if (n != Py_ssize_t(s.items.size())) return false;
        for (Py_ssize_t i = 0; i < n; ++i)
            if (!matches(t, s.items[i], s.kind == Spec::LIST ? PyList_GET_ITEM(arg, i) : PyTuple_GET_ITEM(arg, i)))
                return false;
        return true;
    }
    case Spec::SLICE: {
        if (!PySlice_Check(arg)) return false;
        auto* x = reinterpret_cast<PySliceObject*>(arg);
        return matches(t, s.items[0], x->start) && matches(t, s.items[1], x->stop) && matches(t, s.items[2], x->step);
    }
    }
    return false;
}

// The spec of an argument, whose externals are noted; false for what cannot be told apart from others.
bool describe(Tape* t, PyObject* arg, Spec& s) {
    if (is_tensor(arg)) {
        if (Promise* p = promise_of(t, arg)) {
            s.kind = Spec::VALUE;
            s.index = p->index;
            return Py_TYPE(arg) == tensor_type;
        }
        PyArrayObject* a = array_of(arg);
        if (!a || PyArray_NDIM(a) > 8 || PyTypeNum_ISUSERDEF(PyArray_TYPE(a))) return false;
        s.kind = Spec::EXTERNAL;
        s.index = seen(t, arg);
        s.type = Py_TYPE(arg);
        if (s.index >= 0) return true;
        s.index = Py_ssize_t(t->externals->size());
        s.first = true;
        s.dtype = nb::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(a)));
        s.ndim = PyArray_NDIM(a);
        s.flags = PyArray_FLAGS(a) & NPY_ARRAY_BEHAVED;
        s.place = place_of(arg);
        std::copy(PyArray_DIMS(a), PyArray_DIMS(a) + s.ndim, s.dims);
        std::copy(PyArray_STRIDES(a), PyArray_STRIDES(a) + s.ndim, s.strides);
        return add_external(t, arg);
    }
    if (PyTuple_Check(arg) || PyList_CheckExact(arg)) {
        s.kind = PyTuple_Check(arg) ? Spec::TUPLE : Spec::LIST;
        s.object = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(arg)));
        for (Py_ssize_t i = 0; i < Py_SIZE(arg); ++i) {
            s.items.emplace_back();
            PyObject* item = s.kind == Spec::LIST ? PyList_GET_ITEM(arg, i) : PyTuple_GET_ITEM(arg, i);
            if (!describe(t, item, s.items.back())) return false;
        }
        return true;
    }
    if (PySlice_Check(arg)) {
        auto* x = reinterpret_cast<PySliceObject*>(arg);
        s.kind = Spec::SLICE;
        for (PyObject* part : {x->start, x->stop, x->step}) {
            s.items.emplace_back();
            if (!describe(t, part, s.items.back()) || s.items.back().kind != Spec::CONSTANT) return false;
        }
        return true;
    }
    s.object = nb::borrow(arg);
    return arg == Py_None || arg == Py_Ellipsis || PyBool_Check(arg) || PyFloat_CheckExact(arg) ||
           PyLong_CheckExact(arg) || PyUnicode_CheckExact(arg);
}

nb::object rebuilt(const Tape* t, const Spec& s) {
    switch (s.kind) {
    case Spec::VALUE: return (*t->values)[s.index].tensor;
    case Spec::EXTERNAL: return (*t->externals)[s.index].tensor;
    case Spec::CONSTANT: return s.object;
    case Spec::LIST: {
        nb::list all;
        for (const Spec& i : s.items) all.append(rebuilt(t, i));
        return all;
    }
    case Spec::TUPLE: {
        nb::list all;
        for (const Spec& i : s.items) all.append(rebuilt(t, i));
        nb::object plain = nb::steal(PyList_AsTuple(all.ptr()));
        if (s.object.ptr() == reinterpret_cast<PyObject*>(&PyTuple_Type)) return plain;
        return s.object(plain);
    }
    case Spec::SLICE:
        return nb::steal(PySlice_New(s.items[0].object.ptr(), s.items[1].object.ptr(), s.items[2].object.ptr()));
    }
    return nb::none();
}

// What a program may know of a spec: ("v", i), ("e", i), ("c", constant), or a list of such.
nb::object told(const Spec& s) {
    switch (s.kind) {
    case Spec::VALUE: return nb::make_tuple("v", s.index);
    case Spec::EXTERNAL: return nb::make_tuple("e", s.index);
    case Spec::CONSTANT: return nb::make_tuple("c", s.object);
    default: {
        nb::list all;
        for (const Spec& i : s.items) all.append(told(i));
        return all;
    }
    }
}

PyObject* enabled_of(const Tape* t) {
    PyObject* found = PyDict_GetItemWithError(t->state, word_enabled);
    return found ? found : Py_True;  // the default of the class
}

bool usual(const Tape* t) {
    for (const Condition& c : *t->conditions) {
        PyObject* now = PyDict_GetItemWithError(c.dict.ptr(), c.key.ptr());
        if (c.expected.is_valid() ? now != c.expected.ptr() : now && now != Py_None) return false;
    }
    return true;
}

bool in_range(const Tape* t, const Range& r) {
    auto* a = reinterpret_cast<PyArrayObject*>((*t->externals)[r.external].array.ptr());
    if (PyArray_TYPE(a) != NPY_INT64 || !PyArray_IS_C_CONTIGUOUS(a)) return false;
    const auto* x = static_cast<const int64_t*>(PyArray_DATA(a));
    bool good = true;
    for (npy_intp i = 0, n = PyArray_SIZE(a); i < n; ++i) good &= x[i] >= r.low && x[i] < r.high;
    return good;
}

bool call_matches(Tape* t, const Call* c, PyObject* door, PyObject* args, PyObject* keywords, PyObject* enabled) {
    if (c->door != door || c->enabled != enabled) return false;
    const Py_ssize_t n = PyTuple_GET_SIZE(args), named = keywords ? PyDict_GET_SIZE(keywords) : 0;
    if (n + named != Py_ssize_t(c->specs->size()) || PyTuple_GET_SIZE(c->keys) != named) return false;
    const size_t before = t->externals->size();
    bool good = true;
    for (Py_ssize_t i = 0; i < n && good; ++i) good = matches(t, (*c->specs)[i], PyTuple_GET_ITEM(args, i));
    if (named && good) {
        Py_ssize_t at = 0, i = 0;
        PyObject *key, *value;
        while (good && PyDict_Next(keywords, &at, &key, &value)) {
            good = PyUnicode_Compare(PyTuple_GET_ITEM(c->keys, i), key) == 0 && matches(t, (*c->specs)[n + i], value);
            ++i;
        }
    }
    if (!good) t->externals->resize(before);
    return good;
}

Call* child_for(Tape* t, PyObject* door, PyObject* args, PyObject* keywords) {
    PyObject* enabled = enabled_of(t);
    for (Call* c : *t->cursor->children)
        if (call_matches(t, c, door, args, keywords, enabled)) return c;
    return nullptr;
}

// -- promises ------------------------------------------------------------------------------------

void promise_free(PyObject* self) {
    auto* p = reinterpret_cast<Promise*>(self);
    if (p->tape) (*p->tape->values)[p->index].promise = nullptr;
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

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

bool pending(const Tape* t) { return t->path->size() > t->settled; }

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
    PyObject* done = PyObject_CallFunction(t->force, "Os", t, why);
    t->busy = false;
    Py_DECREF(t);
    if (!done) {
        Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
        return -1;
    }
    Py_DECREF(done);
    PyErr_Restore(type, value, trace);
    return 0;
}

void forget(Tape* t);

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

// -- doors ---------------------------------------------------------------------------------------

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

// Whether memory that others have is among what was handed in: a view of it shows what they write.
bool shares(const Tape* t) {
    for (const External& e : *t->externals)
        if (e.copy.is_valid()) return true;
    return false;
}

// door(args, settings): what the function's code calls.
PyObject* door_call(PyObject* self, PyObject* const* given, size_t, PyObject*) {
    auto* d = reinterpret_cast<Door*>(self);
    PyObject *args = given[0], *keywords = given[1];
    Tape* t = current;
    if (t && t->busy && t->busy_thread != PyThread_get_thread_ident()) wait_for(t);
    if (!t || t->busy) return PyObject_Call(d->original, args, keywords);
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
        t->busy = true;
        t->busy_thread = PyThread_get_thread_ident();
        PyObject* made = PyObject_Call(d->original, args, keywords);
        t->busy = false;
        return made;
    }
    if (d->kind == 'b' && t->path->empty()) return PyObject_Call(d->original, args, keywords);
    if (!usual(t)) {
        if (run_pending(t, "a mode of its own") < 0) return nullptr;
        forget(t);
        return PyObject_Call(d->original, args, keywords);
    }
    d->used = true;
    if (!t->recording && d->kind == 'd') {
        Call* c = child_for(t, self, args, keywords);
        if (c && c->ready) {
            bool good = !c->views || !shares(t);
            for (const Range& r : *c->ranges) good = good && in_range(t, r);
            if (good) return answer(t, c);
        }
        if (c) t->externals->resize(size_t(c->parent->externals));
    }
    t->busy = true;
    t->busy_thread = PyThread_get_thread_ident();
    Py_INCREF(t);
    PyObject* result = PyObject_CallFunctionObjArgs(t->record, t, self, args, keywords, nullptr);
    t->busy = false;
    Py_DECREF(t);
    return result;
}

void door_free(PyObject* self) {
    auto* d = reinterpret_cast<Door*>(self);
    Py_XDECREF(d->original);
    Py_XDECREF(d->name);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

// In place of the road's `run`: what is put off comes first.
struct Runner {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject* plain;
};

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

void runner_free(PyObject* self) {
    Py_XDECREF(reinterpret_cast<Runner*>(self)->plain);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

// -- calls and tapes, as Python sees them --------------------------------------------------------

PyObject* new_call(Call* parent) {
    auto* c = PyObject_New(Call, call_type);
    if (!c) return nullptr;
    c->door = c->data = c->metas = c->enabled = c->keys = nullptr;
    c->specs = new std::vector<Spec>;
    c->children = new std::vector<Call*>;
    c->ranges = new std::vector<Range>;
    c->parent = parent;
    c->first = parent ? parent->first + (parent->container ? parent->results : parent->parent ? 1 : 0) : 0;
    c->results = c->externals = 0;
    c->depth = parent ? parent->depth + 1 : 0;
    c->container = c->ready = c->views = 0;
    return reinterpret_cast<PyObject*>(c);
}

void call_free(PyObject* self) {
    auto* c = reinterpret_cast<Call*>(self);
    for (Call* child : *c->children) {
        child->parent = nullptr;
        Py_DECREF(child);
    }
    delete c->specs;
    delete c->children;
    delete c->ranges;
    Py_XDECREF(c->door), Py_XDECREF(c->data), Py_XDECREF(c->metas), Py_XDECREF(c->enabled), Py_XDECREF(c->keys);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject* call_specs(PyObject* self, void*) {
    nb::list all;
    for (const Spec& s : *reinterpret_cast<Call*>(self)->specs) all.append(told(s));
    return all.release().ptr();
}

PyObject* call_children(PyObject* self, void*) {
    nb::list all;
    for (Call* c : *reinterpret_cast<Call*>(self)->children) all.append(nb::handle(reinterpret_cast<PyObject*>(c)));
    return all.release().ptr();
}

// The place of each external in the graph, in the order in which they come: 0 none, 1 a leaf, 2 computed.
PyMemberDef call_members[] = {{"door", T_OBJECT, offsetof(Call, door), READONLY, nullptr},
                              {"data", T_OBJECT, offsetof(Call, data), 0, nullptr},
                              {"metas", T_OBJECT, offsetof(Call, metas), 0, nullptr},
                              {"enabled", T_OBJECT, offsetof(Call, enabled), READONLY, nullptr},
                              {"first", T_PYSSIZET, offsetof(Call, first), READONLY, nullptr},
                              {"results", T_PYSSIZET, offsetof(Call, results), READONLY, nullptr},
                              {"externals", T_PYSSIZET, offsetof(Call, externals), READONLY, nullptr},
                              {"ready", T_BOOL, offsetof(Call, ready), 0, nullptr},
                              {"views", T_BOOL, offsetof(Call, views), 0, nullptr},
                              {"depth", T_PYSSIZET, offsetof(Call, depth), READONLY, nullptr},
                              {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef call_getset[] = {{"specs", call_specs, nullptr, nullptr, nullptr},
                             {"children", call_children, nullptr, nullptr, nullptr},
                             {nullptr, nullptr, nullptr, nullptr, nullptr}};

Tape* tape(PyObject* o) { return reinterpret_cast<Tape*>(o); }

PyObject* tape_new(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject *root, *record, *force, *state, *conditions;
    if (!PyArg_ParseTuple(args, "OOOOO", &root, &record, &force, &state, &conditions)) return nullptr;
    auto* t = tape(type->tp_alloc(type, 0));
    if (!t) return nullptr;
    Py_INCREF(root), Py_INCREF(record), Py_INCREF(force), Py_INCREF(state);
    t->root = t->cursor = reinterpret_cast<Call*>(root);
    t->record = record;
    t->force = force;
    t->state = state;
    t->path = new std::vector<Call*>;
    t->values = new std::vector<Value>;
    t->externals = new std::vector<External>;
    t->conditions = new std::vector<Condition>;
    for (nb::handle h : nb::borrow<nb::tuple>(conditions)) {
        auto c = nb::borrow<nb::tuple>(h);
        t->conditions->push_back({c[0], c[1], nb::object(c[2]).is_none() ? nb::object() : nb::object(c[2])});
    }
    return reinterpret_cast<PyObject*>(t);
}

void tape_free(PyObject* self) {
    Tape* t = tape(self);
    forget(t);
    delete t->path;
    delete t->values;
    delete t->externals;
    delete t->conditions;
    Py_DECREF(t->root), Py_DECREF(t->record), Py_DECREF(t->force), Py_DECREF(t->state);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* none() { Py_RETURN_NONE; }

PyObject* tape_enter(PyObject* self, PyObject*) {
    Tape* t = tape(self);
    t->outer = current;
    t->thread = PyThread_get_thread_ident();
    current = t;
    if (!watching++) tensor_type->tp_getattro = getattr_or_run;
    return none();
}

PyObject* tape_leave(PyObject* self, PyObject*) {
    Tape* t = tape(self);
    current = t->outer;
    t->outer = nullptr;
    if (!--watching) tensor_type->tp_getattro = plain_getattr;
    return none();
}

PyObject* tape_finish(PyObject* self, PyObject*) {  // the end of the compiled call
    Tape* t = tape(self);
    const int failed = run_pending(t, "the function returns");
    if (failed == 0) forget(t);
    return failed ? nullptr : none();
}

PyObject* tape_flush(PyObject* self, PyObject* why) {
    Tape* t = tape(self);
    if (run_pending(t, PyUnicode_AsUTF8(why)) < 0) return nullptr;
    if (!t->busy) forget(t);
    return none();
}

PyObject* tape_find(PyObject* self, PyObject* args) {
    PyObject *door, *given, *keywords;
    if (!PyArg_ParseTuple(args, "OOO", &door, &given, &keywords)) return nullptr;
    Call* c = child_for(tape(self), door, given, keywords);
    if (!c) return none();
    Py_INCREF(c);
    return reinterpret_cast<PyObject*>(c);
}

PyObject* tape_extend(PyObject* self, PyObject* args) {
    PyObject *door, *given, *keywords;
    if (!PyArg_ParseTuple(args, "OOO", &door, &given, &keywords)) return nullptr;
    Tape* t = tape(self);
    auto& children = *t->cursor->children;
    if (children.size() >= (t->cursor == t->root ? MOST_BEGINNINGS : MOST_CHILDREN)) return none();
    PyObject* enabled = enabled_of(t);
    if (!PyBool_Check(enabled)) return none();
    nb::object made = nb::steal(new_call(t->cursor));
    auto* c = reinterpret_cast<Call*>(made.ptr());
    if (!c) return nullptr;
    const size_t before = t->externals->size();
    bool good = true;
    nb::list keys;
    auto add = [&](PyObject* arg) {
        c->specs->emplace_back();
        good = good && describe(t, arg, c->specs->back());
    };
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i) add(PyTuple_GET_ITEM(given, i));
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (PyDict_Next(keywords, &at, &key, &value)) {
        keys.append(nb::handle(key));
        add(value);
    }
    if (!good) {
        t->externals->resize(before);
        return none();
    }
    c->keys = PyList_AsTuple(keys.ptr());
    Py_INCREF(door), Py_INCREF(enabled);
    c->door = door;
    c->enabled = enabled;
    c->externals = Py_ssize_t(t->externals->size());
    return made.release().ptr();
}

// advance(call, results): the call was made; its results are values of the tape from here on.
PyObject* tape_advance(PyObject* self, PyObject* args) {
    PyObject *given, *result;
    if (!PyArg_ParseTuple(args, "OO", &given, &result)) return nullptr;
    Tape* t = tape(self);
    auto* c = reinterpret_cast<Call*>(given);
    const bool several = PyTuple_CheckExact(result) || PyList_CheckExact(result);
    const char container = PyTuple_CheckExact(result) ? 't' : several ? 'l' : 0;
    const Py_ssize_t n = several ? Py_SIZE(result) : 1;
    auto item = [&](Py_ssize_t i) {
        return !several ? result : container == 't' ? PyTuple_GET_ITEM(result, i) : PyList_GET_ITEM(result, i);
    };
    for (Py_ssize_t i = 0; i < n; ++i) {  // of this call's own
        PyObject* x = item(i);
        if (Py_TYPE(x) != tensor_type || promise_of(t, x) || seen(t, x) >= 0) Py_RETURN_FALSE;
        for (Py_ssize_t j = 0; j < i; ++j)
            if (item(j) == x) Py_RETURN_FALSE;
    }
    auto& children = *t->cursor->children;
    if (std::find(children.begin(), children.end(), c) == children.end()) {
        if (several && !n) Py_RETURN_FALSE;
        c->container = container;
        c->results = n;
        Py_INCREF(c);
        children.push_back(c);
    } else if (c->container != container || (several && c->results != n)) {
        Py_RETURN_FALSE;
    }
    t->values->resize(size_t(c->first + n));
    for (Py_ssize_t i = 0; i < n; ++i)
        if (!promised(t, item(i), c->first + i)) return nullptr;
    t->path->push_back(c);
    t->settled = t->path->size();
    t->cursor = c;
    Py_RETURN_TRUE;
}

PyObject* tape_arguments(PyObject* self, PyObject* number) {
    Tape* t = tape(self);
    const Call* c = (*t->path)[PyLong_AsSsize_t(number)];
    const Py_ssize_t named = PyTuple_GET_SIZE(c->keys), n = Py_ssize_t(c->specs->size()) - named;
    nb::list args;
    nb::dict settings;
    for (Py_ssize_t i = 0; i < n; ++i) args.append(rebuilt(t, (*c->specs)[i]));
    for (Py_ssize_t i = 0; i < named; ++i)
        settings[nb::handle(PyTuple_GET_ITEM(c->keys, i))] = rebuilt(t, (*c->specs)[n + i]);
    return nb::make_tuple(nb::steal(PyList_AsTuple(args.ptr())), settings).release().ptr();
}

// adopt(i, tensor): the value i is what this tensor is; gives the tensor that was promised, or this one.
PyObject* tape_adopt(PyObject* self, PyObject* args) {
    Py_ssize_t i;
    PyObject* made;
    if (!PyArg_ParseTuple(args, "nO", &i, &made)) return nullptr;
    Value& v = (*tape(self)->values)[i];
    nb::object tensor = nb::borrow(v.promise ? v.promise->tensor : made);
    if (tensor.ptr() != made)
        for (Py_ssize_t offset : offsets) {
            PyObject* x = slot(made, offset);
            Py_XINCREF(x);
            Py_XSETREF(slot(tensor.ptr(), offset), x);
        }
    v.tensor = tensor;
    return tensor.release().ptr();
}

// settle(i, array, node): the value i has this array and place in the graph; nothing for one that is dead.
PyObject* tape_settle(PyObject* self, PyObject* args) {
    Py_ssize_t i;
    PyObject *array, *node;
    if (!PyArg_ParseTuple(args, "nOO", &i, &array, &node)) return nullptr;
    Value& v = (*tape(self)->values)[i];
    if (!v.promise) return none();
    PyObject* tensor = v.promise->tensor;
    PyObject* parts[SLOTS] = {array, node, Py_None, Py_None};
    for (int k = 0; k < SLOTS; ++k) {
        Py_INCREF(parts[k]);
        Py_XSETREF(slot(tensor, offsets[k]), parts[k]);
    }
    return none();
}

// settled(): all that was put off is there; tensors that were kept for that are let go.
PyObject* tape_settled(PyObject* self, PyObject*) {
    Tape* t = tape(self);
    t->settled = t->path->size();
    std::vector<nb::object> last;
    for (Value& v : *t->values) last.push_back(std::move(v.tensor));
    return none();
}

PyObject* tape_alive(PyObject* self, PyObject*) {
    nb::list all;
    const auto& values = *tape(self)->values;
    for (size_t i = 0; i < values.size(); ++i)
        if (values[i].promise) all.append(i);
    return all.release().ptr();
}

PyObject* tape_tensor(PyObject* self, PyObject* number) {
    const Value& v = (*tape(self)->values)[PyLong_AsSsize_t(number)];
    PyObject* found = v.promise ? v.promise->tensor : Py_None;
    Py_INCREF(found);
    return found;
}

// index(tensor): which value it is, or -1
PyObject* tape_index(PyObject* self, PyObject* tensor) {
    Promise* p = Py_TYPE(tensor) == tensor_type ? promise_of(tape(self), tensor) : nullptr;
    return PyLong_FromSsize_t(p ? p->index : -1);
}

PyObject* tape_path(PyObject* self, PyObject*) {
    nb::list all;
    for (Call* c : *tape(self)->path) all.append(nb::handle(reinterpret_cast<PyObject*>(c)));
    return all.release().ptr();
}

PyObject* tape_externals(PyObject* self, PyObject*) {
    nb::list all;
    for (const External& e : *tape(self)->externals) all.append(e.tensor);
    return all.release().ptr();
}

PyObject* tape_arrays(PyObject* self, PyObject*) {
    nb::list all;
    for (const External& e : *tape(self)->externals) all.append(e.array);
    return all.release().ptr();
}

// changed(): the externals that are not what they were when they were handed in: (number, array, node, copy).
PyObject* tape_changed(PyObject* self, PyObject*) {
    nb::list all;
    const auto& externals = *tape(self)->externals;
    for (size_t i = 0; i < externals.size(); ++i) {
        const External& e = externals[i];
        PyObject *tensor = e.tensor.ptr(), *node = slot(tensor, offsets[1]);
        bool same = slot(tensor, offsets[0]) == e.array.ptr() &&
                    (e.node.is_valid() ? node == e.node.ptr() : !node || node == Py_None) &&
                    version_of(tensor) == e.version;
        same = same && unchanged(e);
        if (!same)
            all.append(nb::make_tuple(i, e.array, e.node.is_valid() ? e.node : nb::none(),
                                      e.copy.is_valid() ? e.copy : nb::none(), e.version));
    }
    return all.release().ptr();
}

PyObject* tape_forget(PyObject* self, PyObject*) {
    forget(tape(self));
    return none();
}

// demand(call, external, low, high): the numbers of this external must be from low on and below high.
PyObject* tape_demand(PyObject*, PyObject* args) {
    PyObject* call;
    Range r;
    long long low, high;
    if (!PyArg_ParseTuple(args, "OnLL", &call, &r.external, &low, &high)) return nullptr;
    r.low = low;
    r.high = high;
    reinterpret_cast<Call*>(call)->ranges->push_back(r);
    return none();
}

PyMethodDef tape_methods[] = {{"enter", tape_enter, METH_NOARGS, nullptr},
                              {"leave", tape_leave, METH_NOARGS, nullptr},
                              {"finish", tape_finish, METH_NOARGS, nullptr},
                              {"flush", tape_flush, METH_O, nullptr},
                              {"find", tape_find, METH_VARARGS, nullptr},
                              {"extend", tape_extend, METH_VARARGS, nullptr},
                              {"advance", tape_advance, METH_VARARGS, nullptr},
                              {"arguments", tape_arguments, METH_O, nullptr},
                              {"adopt", tape_adopt, METH_VARARGS, nullptr},
                              {"settle", tape_settle, METH_VARARGS, nullptr},
                              {"all_settled", tape_settled, METH_NOARGS, nullptr},
                              {"alive", tape_alive, METH_NOARGS, nullptr},
                              {"tensor", tape_tensor, METH_O, nullptr},
                              {"index", tape_index, METH_O, nullptr},
                              {"path", tape_path, METH_NOARGS, nullptr},
                              {"externals", tape_externals, METH_NOARGS, nullptr},
                              {"arrays", tape_arrays, METH_NOARGS, nullptr},
                              {"changed", tape_changed, METH_NOARGS, nullptr},
                              {"forget", tape_forget, METH_NOARGS, nullptr},
                              {"demand", tape_demand, METH_VARARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

PyObject* tape_cursor(PyObject* self, void*) {
    PyObject* c = reinterpret_cast<PyObject*>(tape(self)->cursor);
    Py_INCREF(c);
    return c;
}
PyObject* tape_settled_count(PyObject* self, void*) { return PyLong_FromSize_t(tape(self)->settled); }
PyMemberDef tape_members[] = {{"recording", T_BOOL, offsetof(Tape, recording), 0, nullptr},
                              {"busy", T_BOOL, offsetof(Tape, busy), 0, nullptr},
                              {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef tape_getset[] = {{"cursor", tape_cursor, nullptr, nullptr, nullptr},
                             {"settled", tape_settled_count, nullptr, nullptr, nullptr},
                             {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef door_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Door, call), READONLY, nullptr},
                              {"original", T_OBJECT, offsetof(Door, original), READONLY, nullptr},
                              {"name", T_OBJECT, offsetof(Door, name), READONLY, nullptr},
                              {"used", T_BOOL, offsetof(Door, used), READONLY, nullptr},
                              {nullptr, 0, 0, 0, nullptr}};
PyMemberDef runner_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Runner, call), READONLY, nullptr},
                                {nullptr, 0, 0, 0, nullptr}};

template <class F> void* any(F* f) { return reinterpret_cast<void*>(f); }
PyType_Slot promise_slots[] = {{Py_tp_dealloc, any(promise_free)}, {0, nullptr}};
PyType_Slot call_slots[] = {{Py_tp_dealloc, any(call_free)}, {Py_tp_members, call_members},
                            {Py_tp_getset, call_getset}, {0, nullptr}};
PyType_Slot tape_slots[] = {{Py_tp_dealloc, any(tape_free)}, {Py_tp_new, any(tape_new)},
                            {Py_tp_methods, tape_methods}, {Py_tp_members, tape_members},
                            {Py_tp_getset, tape_getset}, {0, nullptr}};
PyType_Slot door_slots[] = {{Py_tp_dealloc, any(door_free)}, {Py_tp_members, door_members},
                            {Py_tp_call, any(PyVectorcall_Call)}, {0, nullptr}};
PyType_Slot runner_slots[] = {{Py_tp_dealloc, any(runner_free)}, {Py_tp_members, runner_members},
                              {Py_tp_call, any(PyVectorcall_Call)}, {0, nullptr}};
PyType_Spec specs[] = {
    {"framework._native.Promise", sizeof(Promise), 0, Py_TPFLAGS_DEFAULT, promise_slots},
    {"framework._native.Call", sizeof(Call), 0, Py_TPFLAGS_DEFAULT, call_slots},
    {"framework._native.Tape", sizeof(Tape), 0, Py_TPFLAGS_DEFAULT, tape_slots},
    {"framework._native.Door", sizeof(Door), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, door_slots},
    {"framework._native.Runner", sizeof(Runner), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, runner_slots}};

// What the tensors' class is, and where its slots lie.
void set_up(nb::object tensor, nb::object parameter, nb::object leaf) {
    if (tensor_type) return;
    auto* type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
    auto offset = [&](const char* name) {
        PyObject* descriptor = PyDict_GetItemString(type->tp_dict, name);
        if (!descriptor || Py_TYPE(descriptor) != &PyMemberDescr_Type) throw nb::type_error("no such slot");
        return reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member->offset;
    };
    const char* names[SLOTS] = {"_array", "_node", "_counter", "_more"};
    for (int i = 0; i < SLOTS; ++i) {
        offsets[i] = offset(names[i]);
        slot_names[i] = PyUnicode_InternFromString(names[i]);
    }
    at_promise = offset("_promise");
    word_enabled = PyUnicode_InternFromString("enabled");
    tensor_type = type;
    parameter_type = reinterpret_cast<PyTypeObject*>(parameter.ptr());
    leaf_type = reinterpret_cast<PyTypeObject*>(leaf.ptr());
    plain_getattr = type->tp_getattro;
    tensor.inc_ref(), parameter.inc_ref(), leaf.inc_ref();
}

nb::object make_door(nb::object original, nb::object name, const std::string& kind) {
    auto* d = PyObject_New(Door, door_type);
    if (!d) throw nb::python_error();
    d->call = door_call;
    d->original = original.release().ptr();
    d->name = name.release().ptr();
    d->kind = kind[0];
    d->used = false;
    return nb::steal(reinterpret_cast<PyObject*>(d));
}

nb::object make_runner(nb::object plain) {
    auto* r = PyObject_New(Runner, runner_type);
    if (!r) throw nb::python_error();
    r->call = runner_call;
    r->plain = plain.release().ptr();
    return nb::steal(reinterpret_cast<PyObject*>(r));
}

}  // namespace

FW_BIND(m) {
    PyTypeObject** types[] = {&promise_type, &call_type, &tape_type, &door_type, &runner_type};
    for (int i = 0; i < 5; ++i) {
        *types[i] = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&specs[i]));
        if (!*types[i]) throw nb::python_error();
    }
    m.attr("Tape") = nb::borrow(reinterpret_cast<PyObject*>(tape_type));
    m.def("set_up_tapes", &set_up);
    m.def("make_door", &make_door);
    m.def("make_runner", &make_runner);
    m.def("new_tree", [] { return nb::steal(new_call(nullptr)); });
    m.def("deferred_calls", [] { return deferred_calls; });
}

}  // namespace fw
