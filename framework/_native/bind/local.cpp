// What each thread has of its own: `threading.local`, which takes 30 ns to be asked, in a third of that.
//
// Values of a class are those at the time when a thread first asks. Each instance has a number, each thread a list with the dictionary of each number. The list belongs to Python's dictionary of
// the thread; where it lies is noted beside, with the thread for which that holds.
#include <cstdint>

#include "bind/guarded.h"
#include "bind/local.h"

namespace fw {
namespace {

struct Local {
    PyObject_HEAD
    Py_ssize_t number;
    PyObject *args, *settings;  // of `__init__`, which every thread calls
};

struct Here {
    uint64_t thread = 0;  // Python's number of it, which no other one gets
    PyObject* list = nullptr;
};
thread_local Here here;

Py_ssize_t count = 0;
PyObject *word_of_dict = nullptr, *key = nullptr;
PyTypeObject* local_type = nullptr;

uint64_t this_thread() { return PyThreadState_GetID(PyThreadState_Get()); }

// The thread ends: nobody looks at the list from here on.
void end(PyObject* capsule) {
    auto* list = static_cast<PyObject*>(PyCapsule_GetPointer(capsule, nullptr));
    if (here.list == list) here = Here();
    Py_XDECREF(list);
}

// The thread's list, or null with an error set.
PyObject* list_of_thread() {
    PyObject* of_thread = PyThreadState_GetDict();
    if (!of_thread) return PyErr_Format(PyExc_RuntimeError, "this thread has no state of Python's");
    PyObject* capsule = PyDict_GetItemWithError(of_thread, key);
    if (!capsule) {
        if (PyErr_Occurred()) return nullptr;
        PyObject* list = PyList_New(0);
        capsule = list ? PyCapsule_New(list, nullptr, end) : nullptr;
        if (!capsule) return Py_XDECREF(list), nullptr;
        const bool kept = PyDict_SetItem(of_thread, key, capsule) == 0;
        Py_DECREF(capsule);
        if (!kept) return nullptr;
    }
    here = {this_thread(), static_cast<PyObject*>(PyCapsule_GetPointer(capsule, nullptr))};
    return here.list;
}

// What the classes have for every thread, but methods and the like: found in the thread's own dictionary it is found sooner.
bool take_values(PyTypeObject* type, PyObject* own) {
    for (; type && type != local_type; type = type->tp_base) {
        PyObject *name, *value;
        Py_ssize_t at = 0;
        while (PyDict_Next(type->tp_dict, &at, &name, &value)) {
            if (!PyUnicode_Check(name)) continue;
            const bool hidden = PyUnicode_GET_LENGTH(name) > 1 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_';
            if (!hidden && !Py_TYPE(value)->tp_descr_get && !PyDict_SetDefault(own, name, value)) return false;
        }
    }
    return true;
}

// A new dictionary of this thread, which is borrowed.
PyObject* made(Local* self) {
    PyObject* list = list_of_thread();
    while (list && PyList_GET_SIZE(list) <= self->number)
        if (PyList_Append(list, Py_None) < 0) return nullptr;
    if (!list) return nullptr;
    PyObject* own = PyList_GET_ITEM(list, self->number);
    if (own != Py_None) return own;
    own = PyDict_New();
    if (!own || !take_values(Py_TYPE(self), own)) return Py_XDECREF(own), nullptr;
    return PyList_SetItem(list, self->number, own) == 0 ? own : nullptr;
}

PyObject* found(Local* self) {
    const Here& h = here;
    if (h.thread != this_thread() || PyList_GET_SIZE(h.list) <= self->number) return nullptr;
    PyObject* own = PyList_GET_ITEM(h.list, self->number);
    return own == Py_None ? nullptr : own;
}

// The dictionary of this thread, which is borrowed; null with an error set.
PyObject* own_of(Local* self) {
    if (PyObject* own = found(self)) return own;
    PyObject* own = made(self);
    if (!own || Py_TYPE(self)->tp_init == PyBaseObject_Type.tp_init) return own;
    if (Py_TYPE(self)->tp_init(reinterpret_cast<PyObject*>(self), self->args, self->settings) == 0) return own;
    PyList_SetItem(here.list, self->number, Py_NewRef(Py_None));
    return nullptr;
}

Local* local_of(PyObject* self) { return reinterpret_cast<Local*>(self); }

PyObject* local_new(PyTypeObject* type, PyObject* args, PyObject* settings) {
    const bool given = (args && PyTuple_GET_SIZE(args)) || (settings && PyDict_GET_SIZE(settings));
    if (given && type->tp_init == PyBaseObject_Type.tp_init) return PyErr_Format(PyExc_TypeError, "%.200s takes no arguments", type->tp_name);
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    Local* local = local_of(self);
    local->number = count++, local->args = Py_XNewRef(args), local->settings = Py_XNewRef(settings);
    if (made(local)) return self;
    Py_DECREF(self);
    return nullptr;
}

void local_free(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    Py_XDECREF(local_of(self)->args), Py_XDECREF(local_of(self)->settings);
    type->tp_free(self);
    Py_DECREF(type);
}

bool is_name(PyObject* name) {
    if (!PyUnicode_Check(name)) PyErr_Format(PyExc_TypeError, "attribute name must be string, not %.200s", Py_TYPE(name)->tp_name);
    return PyUnicode_Check(name);
}

PyObject* local_get(PyObject* self, PyObject* name) {
    PyObject* own = is_name(name) ? own_of(local_of(self)) : nullptr;
    if (!own) return nullptr;
    if (PyObject* value = PyDict_GetItemWithError(own, name)) return Py_NewRef(value);
    if (PyErr_Occurred()) return nullptr;
    return PyUnicode_Compare(name, word_of_dict) == 0 ? Py_NewRef(own) : PyObject_GenericGetAttr(self, name);
}

int local_set(PyObject* self, PyObject* name, PyObject* value) {
    PyObject* own = is_name(name) ? own_of(local_of(self)) : nullptr;
    if (!own) return -1;
    if (PyUnicode_Compare(name, word_of_dict) == 0) {
        PyErr_Format(PyExc_AttributeError, "%.200s: __dict__ cannot be replaced", Py_TYPE(self)->tp_name);
        return -1;
    }
    PyObject* known = _PyType_Lookup(Py_TYPE(self), name);
    if (known && Py_TYPE(known)->tp_descr_set) return PyObject_GenericSetAttr(self, name, value);
    if (value) return PyDict_SetItem(own, name, value);
    if (PyDict_DelItem(own, name) == 0) return 0;
    if (PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Format(PyExc_AttributeError, "%.200s has no attribute '%U' of its own", Py_TYPE(self)->tp_name, name);
    return -1;
}

template <class F> void* slot_of(F f) { return reinterpret_cast<void*>(f); }
PyType_Slot local_slots[] = {{Py_tp_new, slot_of(local_new)},         {Py_tp_dealloc, slot_of(local_free)}, {Py_tp_getattro, slot_of(local_get)},
                             {Py_tp_setattro, slot_of(local_set)}, {0, nullptr}};
PyType_Spec local_spec = {"framework._native.Local", sizeof(Local), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, local_slots};

}  // namespace

PyObject* values_here(PyObject* local) {
    return Py_TYPE(local)->tp_getattro == local_get ? own_of(local_of(local)) : PyErr_Format(PyExc_TypeError, "wanted a Local, got %R", local);
}

FW_BIND(m) {
    word_of_dict = PyUnicode_InternFromString("__dict__"), key = PyUnicode_InternFromString("framework._native.Local");
    local_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&local_spec));
    if (!local_type || !key) throw nb::python_error();
    m.attr("Local") = nb::borrow(reinterpret_cast<PyObject*>(local_type));
}

}  // namespace fw
