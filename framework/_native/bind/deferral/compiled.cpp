// Calls of compiled functions, as far as they need no Python: those whose way is known, and of these the ones that put
// operations off in the thread that has done so before.
#include <memory>
#include <structmember.h>

#include "base/pool.h"
#include "bind/deferral/tape.h"
#include "bind/local.h"

namespace fw::deferral {
namespace {

enum class Way : char {
    ASK,      // Python's `_call` says
    STRAIGHT, // as it is, with `now` as what runs in this thread
    PUT_OFF,  // by the tape in `parts`
};

// What a call that puts operations off needs, of one thread.
struct Parts {
    nb::object owner;  // the Python tuple of what follows, which the garbage collector sees
    Tape* tape = nullptr;
    PyObject *quiet = nullptr, *modes = nullptr, *deferral = nullptr, *session = nullptr;  // dicts
    PyObject *runner = nullptr, *settled = nullptr, *armed = nullptr, *subclasses = nullptr;
    std::vector<Condition> conditions;
    uint64_t thread = 0;
};

struct CompiledCall {
    PyObject_HEAD
    PyObject *fn, *now;
    std::shared_ptr<Parts>* parts;  // a call that runs keeps its own
    int64_t served;  // calls that Python did not see
    Way way;
};

PyObject *state_of_threads = nullptr, *word_compiled = nullptr, *word_call = nullptr,
         *word_run = nullptr, *word_plain = nullptr, *word_settle = nullptr, *word_stack = nullptr, *word_inside = nullptr,
         *word_wanted = nullptr, *word_segments = nullptr, *word_planned = nullptr;

void put(PyObject* dict, PyObject* key, PyObject* value) {
    if (PyDict_SetItem(dict, key, value) < 0) throw nb::python_error();
}

// An error that waits while this lives.
struct Aside {
    PyObject *type, *value, *trace;
    Aside() { PyErr_Fetch(&type, &value, &trace); }
    ~Aside() {
        if (type) PyErr_Restore(type, value, trace);
    }
};

// fn(...), with `now` as what runs in this thread.
struct Running {
    PyObject* modes;
    Running(PyObject* modes, PyObject* now) : modes(modes) { put(modes, word_compiled, now); }
    ~Running() {
        Aside error;
        if (PyDict_SetItem(modes, word_compiled, Py_None) < 0) PyErr_Clear();
    }
};

bool holds(const Parts& p) {
    for (const Condition& c : p.conditions) {
        PyObject* now = PyDict_GetItemWithError(c.dict.ptr(), c.key.ptr());
        if (c.expected.is_valid() ? now != c.expected.ptr() : now && now != Py_None) return false;
    }
    PyObject* enabled = PyDict_GetItemWithError(p.modes, word_enabled);
    return PyList_GET_SIZE(p.subclasses) == 0 && (!enabled || PyBool_Check(enabled));
}

void count(PyObject* dict, PyObject* key, int64_t more) {
    PyObject* now = PyDict_GetItemWithError(dict, key);
    nb::object sum = nb::steal(PyLong_FromLongLong((now ? PyLong_AsLongLong(now) : 0) + more));
    if (sum.is_valid()) put(dict, key, sum.ptr());
}

// Doors are open and operations are put off while this lives.
struct Deferring {
    const Parts& p;
    nb::object plain;
    explicit Deferring(const Parts& p) : p(p), plain(nb::borrow(PyDict_GetItemWithError(p.quiet, word_plain))) {
        PyObject* wanted = PyDict_GetItemWithError(p.deferral, word_wanted);
        put(p.session, word_inside, Py_True);
        put(p.quiet, word_plain, p.runner);
        put(p.quiet, word_run, p.runner);
        put(p.quiet, word_settle, p.settled);
        open_doors(nb::borrow<nb::list>(wanted), nb::borrow<nb::dict>(p.armed));
        enter(p.tape);
    }
    void end() const {
        leave(p.tape);
        close_doors(nb::borrow<nb::dict>(p.armed));
        if (const int64_t quick = p.tape->quick) {
            count(p.deferral, word_segments, quick);
            count(p.deferral, word_planned, quick);
            p.tape->quick = 0;
        }
        PyObject* stack = PyDict_GetItemWithError(p.quiet, word_stack);
        put(p.quiet, word_plain, plain.ptr());
        put(p.quiet, word_run, stack && PyObject_IsTrue(stack) == 1 ? Py_None : plain.ptr());
        put(p.quiet, word_settle, Py_None);
        put(p.session, word_inside, Py_False);
    }
};

// What was put off runs; the error that is set, or that comes up, is what is left.
void finish_after_error(Tape* t) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    if (finish(t) == 0) return PyErr_Restore(type, value, trace);
    PyObject *type2, *value2, *trace2;
    PyErr_Fetch(&type2, &value2, &trace2);
    PyErr_NormalizeException(&type2, &value2, &trace2);
    Py_XDECREF(type), Py_XDECREF(trace);
    if (value != value2) PyException_SetContext(value2, value);
    else Py_XDECREF(value);
    PyErr_Restore(type2, value2, trace2);
}

PyObject* put_off(const Parts& p, PyObject* fn, PyObject* args, PyObject* keywords) {
    Deferring on(p);
    const Brisk brisk;
    PyObject* result = PyObject_Call(fn, args, keywords);
    if (result && finish(p.tape) < 0) Py_CLEAR(result);
    if (!result) finish_after_error(p.tape);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    try {
        on.end();
    } catch (...) {
        Py_XDECREF(result), Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
        throw;
    }
    PyErr_Restore(type, value, trace);
    return result;
}

PyObject* compiled_call(PyObject* self, PyObject* args, PyObject* keywords) {
    auto* c = reinterpret_cast<CompiledCall*>(self);
    if (c->way != Way::ASK) {
        PyObject* modes = values_here(state_of_threads);
        if (!modes) return nullptr;
        const nb::object fn = nb::borrow(c->fn), now = nb::borrow(c->now);
        PyObject* outer = PyDict_GetItemWithError(modes, word_compiled);
        if (is_one(outer)) return PyObject_Call(fn.ptr(), args, keywords);  // inside another one, whose plans serve
        try {
            if (c->way == Way::STRAIGHT) {
                ++c->served;
                Running running(modes, now.ptr());
                return PyObject_Call(fn.ptr(), args, keywords);
            }
            const std::shared_ptr<Parts> parts = *c->parts;
            if (parts->thread == PyThreadState_GetID(PyThreadState_Get()) && holds(*parts)) {
                ++c->served;
                Running running(modes, now.ptr());
                return put_off(*parts, fn.ptr(), args, keywords);
            }
        } catch (nb::python_error& error) {
            error.restore();
            return nullptr;
        } catch (const std::bad_alloc&) {
            return PyErr_NoMemory();
        }
    }
    nb::object call = nb::steal(PyObject_GetAttr(self, word_call));
    return call.is_valid() ? PyObject_Call(call.ptr(), args, keywords) : nullptr;
}

// _straight(now): calls go as they are from here on, with `now` as what runs.
PyObject* compiled_straight(PyObject* self, PyObject* now) {
    auto* c = reinterpret_cast<CompiledCall*>(self);
    Py_INCREF(now);
    Py_XSETREF(c->now, now);
    c->way = Way::STRAIGHT;
    Py_RETURN_NONE;
}

// _put_off(now, parts): calls of this thread put operations off from here on.
PyObject* compiled_put_off(PyObject* self, PyObject* args) {
    auto* c = reinterpret_cast<CompiledCall*>(self);
    PyObject *now, *given, *tape, *conditions;
    if (!PyArg_ParseTuple(args, "OO!", &now, &PyTuple_Type, &given)) return nullptr;
    auto parts = std::make_unique<std::shared_ptr<Parts>>(std::make_shared<Parts>());
    Parts& p = **parts;
    if (!PyArg_ParseTuple(given, "O!O!O!O!O!OOO!O!O!", tape_type, &tape, &PyDict_Type, &p.quiet, &PyDict_Type, &p.modes,
                          &PyDict_Type, &p.deferral, &PyDict_Type, &p.session, &p.runner, &p.settled, &PyDict_Type, &p.armed,
                          &PyList_Type, &p.subclasses, &PyTuple_Type, &conditions))
        return nullptr;
    p.owner = nb::borrow(given);
    p.tape = reinterpret_cast<Tape*>(tape);
    p.thread = PyThreadState_GetID(PyThreadState_Get());
    try {
        for (nb::handle h : nb::borrow<nb::tuple>(conditions)) {
            auto one = nb::borrow<nb::tuple>(h);
            p.conditions.push_back({one[0], one[1], nb::object(one[2]).is_none() ? nb::object() : nb::object(one[2])});
        }
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
    Py_INCREF(now);
    Py_XSETREF(c->now, now);
    std::unique_ptr<std::shared_ptr<Parts>> before(c->parts);
    c->parts = parts.release();
    c->way = Way::PUT_OFF;
    Py_RETURN_NONE;
}

int compiled_traverse(PyObject* self, visitproc visit, void* arg) {
    auto* c = reinterpret_cast<CompiledCall*>(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(c->fn);
    Py_VISIT(c->now);
    if (c->parts) Py_VISIT((*c->parts)->owner.ptr());
    return 0;
}

int compiled_clear(PyObject* self) {
    auto* c = reinterpret_cast<CompiledCall*>(self);
    c->way = Way::ASK;
    std::unique_ptr<std::shared_ptr<Parts>> parts(c->parts);
    c->parts = nullptr;
    Py_CLEAR(c->fn);
    Py_CLEAR(c->now);
    return 0;
}

void compiled_free(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PyTypeObject* type = Py_TYPE(self);
    compiled_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMemberDef compiled_members[] = {{"_fn", T_OBJECT, offsetof(CompiledCall, fn), 0, nullptr},
                                  {"_served", T_LONGLONG, offsetof(CompiledCall, served), READONLY, nullptr},
                                  {nullptr, 0, 0, 0, nullptr}};
PyMethodDef compiled_methods[] = {{"_straight", compiled_straight, METH_O, nullptr},
                                  {"_put_off", compiled_put_off, METH_VARARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
PyType_Slot compiled_slots[] = {{Py_tp_call, any(compiled_call)}, {Py_tp_traverse, any(compiled_traverse)},
                                {Py_tp_clear, any(compiled_clear)}, {Py_tp_dealloc, any(compiled_free)},
                                {Py_tp_new, any(PyType_GenericNew)}, {Py_tp_members, compiled_members},
                                {Py_tp_methods, compiled_methods}, {0, nullptr}};
PyType_Spec compiled_spec = {"framework._native.CompiledCall", sizeof(CompiledCall), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, compiled_slots};

// set_up_compiled(state): where the modes of threads are.
void set_up_compiled(nb::object state) { state_of_threads = state.release().ptr(); }

}  // namespace
}  // namespace fw::deferral

namespace fw {

FW_BIND(m) {
    using namespace deferral;
    PyObject** words[] = {&word_compiled, &word_call, &word_run, &word_plain, &word_settle, &word_stack,
                          &word_inside, &word_wanted, &word_segments, &word_planned};
    const char* texts[] = {"compiled", "_call", "run", "plain", "settle", "stack",
                           "inside", "wanted", "segments", "planned"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) *words[i] = PyUnicode_InternFromString(texts[i]);
    nb::object type = nb::steal(PyType_FromSpec(&compiled_spec));
    if (!type.is_valid()) throw nb::python_error();
    m.attr("CompiledCall") = type;
    m.def("set_up_compiled", &set_up_compiled);
}

}  // namespace fw
