// Calls that were recorded, as Python sees them.
#include <structmember.h>

#include "bind/deferral/tape.h"

namespace fw::deferral {
namespace {

// What a program may know of a spec: ("v", i), ("e", i), ("c", constant), or a list of such.
nb::object told(const Spec& s) {
    switch (s.kind) {
    case Spec::VALUE: return nb::make_tuple("v", s.index);
    case Spec::EXTERNAL:
    case Spec::DRAWN: return nb::make_tuple("e", s.index);
    case Spec::CONSTANT: return nb::make_tuple("c", s.object);
    default: {
        nb::list all;
        for (const Spec& i : s.items) all.append(told(i));
        return all;
    }
    }
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
    Py_XDECREF(c->door), Py_XDECREF(c->data), Py_XDECREF(c->metas), Py_XDECREF(c->enabled), Py_XDECREF(c->keys), Py_XDECREF(c->named);
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
                              {"refused", T_BOOL, offsetof(Call, refused), READONLY, nullptr},
                              {"pure", T_BOOL, offsetof(Call, pure), 0, nullptr},
                              {"views", T_BOOL, offsetof(Call, views), 0, nullptr},
                              {"in_place", T_BOOL, offsetof(Call, in_place), 0, nullptr},
                              {"depth", T_PYSSIZET, offsetof(Call, depth), READONLY, nullptr},
                              {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef call_getset[] = {{"specs", call_specs, nullptr, nullptr, nullptr},
                             {"children", call_children, nullptr, nullptr, nullptr},
                             {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot call_slots[] = {{Py_tp_dealloc, any(call_free)}, {Py_tp_members, call_members},
                       {Py_tp_getset, call_getset}, {0, nullptr}};

}  // namespace

PyType_Spec call_spec = {"framework._native.Call", sizeof(Call), 0, Py_TPFLAGS_DEFAULT, call_slots};

nb::object rebuilt(const Tape* t, const Spec& s) {
    switch (s.kind) {
    case Spec::VALUE: return (*t->values)[s.index].tensor;
    case Spec::EXTERNAL:
    case Spec::DRAWN: return (*t->externals)[s.index].tensor;
    case Spec::DICT: {
        nb::dict all;
        for (size_t i = 0; i < s.items.size(); ++i) all[nb::handle(PyTuple_GET_ITEM(s.object.ptr(), Py_ssize_t(i)))] = rebuilt(t, s.items[i]);
        return all;
    }
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
        nb::object given = nb::steal(PyTuple_Pack(1, plain.ptr()));  // of named ones, whose class wants its items one by one
        return nb::steal(PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(s.object.ptr()), given.ptr(), nullptr));
    }
    case Spec::SLICE:
        return nb::steal(PySlice_New(s.items[0].object.ptr(), s.items[1].object.ptr(), s.items[2].object.ptr()));
    }
    return nb::none();
}

PyObject* new_call(Call* parent) {
    auto* c = PyObject_New(Call, call_type);
    if (!c) return nullptr;
    c->door = c->data = c->metas = c->enabled = c->keys = c->named = nullptr;
    c->specs = new std::vector<Spec>;
    c->children = new std::vector<Call*>;
    c->ranges = new std::vector<Range>;
    c->parent = parent;
    c->first = parent ? parent->first + (parent->container ? parent->results : parent->parent ? 1 : 0) : 0;
    c->results = c->externals = 0;
    c->depth = parent ? parent->depth + 1 : 0;
    c->container = c->ready = c->refused = c->views = c->in_place = c->pure = 0;
    return reinterpret_cast<PyObject*>(c);
}

}  // namespace fw::deferral
