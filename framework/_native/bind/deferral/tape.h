// Calls put off inside compiled functions: matched against recorded ones, and answered with tensors whose
// slots are empty until somebody reads them. See framework/jit/README.md.
//
// A `Door` stands in front of a function. A `Tape` is what a thread has put off; it goes along a tree of `Call`s,
// each a function with the kinds of its arguments. A tensor that was put off has a `Promise` in a slot of its own,
// which tells the tape when the tensor dies, and leads back to the tape when one of the other slots is read.
#pragma once

#include "bind/array.h"

namespace fw::deferral {

constexpr int SLOTS = 4;  // _array, _node, _counter, _more
constexpr size_t MOST_CHILDREN = 8, MOST_BEGINNINGS = 64;

// What the tensors' class is, and where its slots lie.
extern PyTypeObject *tensor_type, *parameter_type, *leaf_type;
extern PyTypeObject* drawn_type;  // of keys that are another one in each call
extern PyObject* word_array;
extern std::vector<PyTypeObject*> single_types;  // of constants that are there once: dtypes, devices, memory formats
extern PyTypeObject *promise_type, *call_type, *tape_type, *door_type, *runner_type;
extern Py_ssize_t offsets[SLOTS], at_promise;
extern PyObject *slot_names[SLOTS], *word_enabled, *word_inplace;
extern getattrofunc plain_getattr;
extern int64_t deferred_calls;
extern PyType_Spec promise_spec, call_spec, tape_spec, door_spec, runner_spec;

inline PyObject*& slot(PyObject* o, Py_ssize_t offset) {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + offset);
}
inline bool is_one(PyObject* x) { return x && x != Py_None; }
inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || Py_TYPE(o) == parameter_type; }

struct Tape;
extern thread_local Tape* current;

struct Spec {
    enum Kind : char { VALUE, EXTERNAL, CONSTANT, TUPLE, SLICE, LIST, DICT, DRAWN };
    Kind kind = CONSTANT;
    Py_ssize_t index = 0;        // of a value or external
    nb::object object;           // the constant; the type of a tuple; the keys of a dict
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
    PyObject* named;  // the class of a tuple of results whose places have names
    std::vector<Spec>* specs;
    std::vector<Call*>* children;
    std::vector<Range>* ranges;
    Call* parent;  // which has this one
    Py_ssize_t first, results, externals, depth;
    char container;  // 0: one tensor, 't' or 'l'
    char ready;      // whether it may be put off
    char refused;    // whether it is known that it may not
    char pure;       // of one that was refused: whether it does nothing but give its result
    char views;      // whether a result is a view of what it takes
    char in_place;   // whether the first argument is what it gives, changed
};

struct Door {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *original, *name, *functional;
    PyObject* twin;       // the door that is asked where argument `twin_at`, "inplace", is True
    Py_ssize_t twin_at;
    char kind;  // 'd': put off, 'v': that where its tensor is, 'i': in place, 'm': about a tensor, 'b': backward, 'n': makes a tensor of none
    char used;  // whether it ever answered itself
};

struct Promise {
    PyObject_HEAD
    Tape* tape;
    Py_ssize_t index;
    PyObject* tensor;  // which has this in a slot
    // of one that is to be changed in place: how often, by what, and of one from outside its memory and counter
    Py_ssize_t changes;
    PyObject *changed_by, *home, *counter;
};

struct Value {
    Promise* promise = nullptr;  // nullptr: the tensor is dead
    nb::object tensor;           // during a flush
};

struct External {
    nb::object tensor, array, node, copy;  // of a key that was drawn, `tensor` is the key
    long version = 0;
    bool taken = false;  // its memory is to be written: nobody else has it
};

struct Condition {
    nb::object dict, key, expected;  // no object: the key is absent, or None
};

struct Tape {
    PyObject_HEAD
    Call *root, *cursor;
    PyObject *record, *force, *state;
    PyObject *plain, *accumulate, *missing;  // runs a segment; adds to a gradient; says that a plan does not fit
    int64_t quick;                           // plans that ran without Python
    std::vector<Call*>* path;
    std::vector<Value>* values;
    std::vector<External>* externals;
    std::vector<Condition>* conditions;
    size_t settled;  // calls of the path whose results are there
    unsigned long thread, busy_thread;
    Tape* outer;
    bool busy, recording;
};

// In place of the road's `run`: what is put off comes first.
struct Runner {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject* plain;
};

template <class F> void* any(F* f) { return reinterpret_cast<void*>(f); }

inline long version_of(PyObject* tensor) {
    PyObject* counter = slot(tensor, offsets[2]);
    if (!counter || !PyList_CheckExact(counter)) return 0;
    return PyLong_AsLong(PyList_GET_ITEM(counter, 0));
}

inline char place_of(PyObject* tensor) {
    PyObject* node = slot(tensor, offsets[1]);
    return !node || node == Py_None ? 0 : Py_TYPE(node) == leaf_type ? 1 : 2;
}

inline PyArrayObject* array_of(PyObject* tensor) {
    PyObject* a = slot(tensor, offsets[0]);
    return a && PyArray_CheckExact(a) ? reinterpret_cast<PyArrayObject*>(a) : nullptr;
}

// -- match.cpp: whether a call is one that was recorded ------------------------------------------

bool unchanged(const External& e);
// The number of an external that was seen; -1 for a new one.
Py_ssize_t seen(const Tape* t, PyObject* tensor);
Promise* promise_of(const Tape* t, PyObject* tensor);
// The spec of an argument, whose externals are noted; false for what cannot be told apart from others.
bool describe(Tape* t, PyObject* arg, Spec& s);
PyObject* enabled_of(const Tape* t);
bool usual(const Tape* t);
bool in_range(const Tape* t, const Range& r);
Call* child_for(Tape* t, PyObject* door, PyObject* args, PyObject* keywords);

// -- calls.cpp: what was recorded ----------------------------------------------------------------

PyObject* new_call(Call* parent);
nb::object rebuilt(const Tape* t, const Spec& s);

// -- promises.cpp: tensors that were put off -----------------------------------------------------

bool promised(Tape* t, PyObject* tensor, Py_ssize_t index);
// The value has this array and place in the graph, if it is not dead by now; false with an error.
bool settle(const Value& v, PyObject* array, PyObject* node);
// Whether nobody but its tensor (and `e`) has the memory of an external, which no graph and no view knows.
bool alone(const External& e);
// The tensor that a call in place changes is its result from here on; false with an error.
bool changed_in_place(Tape* t, Call* c, PyObject* tensor);
// The memory of what was to be written, back in its tensors.
void give_back(Tape* t);
inline bool pending(const Tape* t) { return t->path->size() > t->settled; }
void wait_for(const Tape* t);
// Runs what is put off. 0, or -1 with an error.
int run_pending(Tape* t, const char* why);
PyObject* getattr_or_run(PyObject* self, PyObject* name);
void forget(Tape* t);
PyObject* answer(Tape* t, Call* c);
PyObject* answer_in_place(Tape* t, Call* c, PyObject* tensor);

// -- quick.cpp: what is done for a backward that goes by a plan ------------------------------------

// Runs what was put off by its plan, without a backward; answers as the other.
int quick_forward(Tape* t);
// Runs the backward of `args` by its plan. 1: done; 0: nothing was changed, to be done by Python; -1: an error.
int quick_backward(Tape* t, PyObject* args, PyObject* keywords);

// -- tapes.cpp: a compiled call, from its beginning to its end --------------------------------------

void enter(Tape* t);
void leave(Tape* t);
// Runs what is put off when the function returns. 0, or -1 with an error.
int finish(Tape* t);

// -- doors.cpp: in front of functions ------------------------------------------------------------

// Whether a call takes nothing that is put off, and nothing that a graph knows while one is recorded.
bool takes_none(const Tape* t, PyObject* args, PyObject* keywords);
PyObject* door_call(PyObject* self, PyObject* const* given, size_t, PyObject*);
// Functions (function, door, own code, door's code) get the door's code, and are noted in `armed`, until the last one
// that opened doors closes them: then they get their own code back, but where others have put theirs around it meanwhile.
void open_doors(nb::list rows, nb::dict armed);
void close_doors(nb::dict armed);
PyObject* runner_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords);

}  // namespace fw::deferral
