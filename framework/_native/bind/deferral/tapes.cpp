// What a thread has put off, as Python sees it.
#include <algorithm>
#include <structmember.h>

#include "bind/deferral/leaves.h"

namespace fw::deferral {
namespace {

int watching = 0;  // tapes at work, in all threads

Tape* tape(PyObject* o) { return reinterpret_cast<Tape*>(o); }

PyObject* tape_new(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject *root, *record, *force, *state, *conditions, *plain, *accumulate, *missing;
    if (!PyArg_ParseTuple(args, "OOOOOOOO", &root, &record, &force, &state, &conditions, &plain, &accumulate, &missing))
        return nullptr;
    auto* t = tape(type->tp_alloc(type, 0));
    if (!t) return nullptr;
    Py_INCREF(root), Py_INCREF(record), Py_INCREF(force), Py_INCREF(state);
    Py_INCREF(plain), Py_INCREF(accumulate), Py_INCREF(missing);
    t->plain = plain, t->accumulate = accumulate, t->missing = missing;
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
    Py_DECREF(t->plain), Py_DECREF(t->accumulate), Py_DECREF(t->missing);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* none() { Py_RETURN_NONE; }

PyObject* tape_enter(PyObject* self, PyObject*) {
    enter(tape(self));
    return none();
}

PyObject* tape_leave(PyObject* self, PyObject*) {
    leave(tape(self));
    return none();
}

PyObject* tape_finish(PyObject* self, PyObject*) { return finish(tape(self)) ? nullptr : none(); }

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
    const bool several = PyTuple_Check(result) || PyList_CheckExact(result);
    const char container = PyTuple_Check(result) ? 't' : several ? 'l' : 0;
    PyObject* named = container == 't' && !PyTuple_CheckExact(result) ? reinterpret_cast<PyObject*>(Py_TYPE(result)) : nullptr;
    const Py_ssize_t n = several ? Py_SIZE(result) : 1;
    auto item = [&](Py_ssize_t i) {
        return !several ? result : container == 't' ? PyTuple_GET_ITEM(result, i) : PyList_GET_ITEM(result, i);
    };
    for (Py_ssize_t i = 0; i < n; ++i) {  // of this call's own
        PyObject* x = item(i);
        if (c->in_place) break;
        if (Py_TYPE(x) != tensor_type || promise_of(t, x) || seen(t, x) >= 0) Py_RETURN_FALSE;
        for (Py_ssize_t j = 0; j < i; ++j)
            if (item(j) == x) Py_RETURN_FALSE;
    }
    auto& children = *t->cursor->children;
    if (std::find(children.begin(), children.end(), c) == children.end()) {
        if (several && !n) Py_RETURN_FALSE;
        c->container = container;
        c->results = n;
        Py_XINCREF(named);
        Py_XSETREF(c->named, named);
        Py_INCREF(c);
        children.push_back(c);
    } else if (c->container != container || c->named != named || (several && c->results != n)) {
        Py_RETURN_FALSE;
    }
    t->values->resize(size_t(c->first + n));
    for (Py_ssize_t i = 0; i < n; ++i)
        if (!(c->in_place ? changed_in_place(t, c, item(i)) : promised(t, item(i), c->first + i))) return nullptr;
    t->path->push_back(c);
    t->settled = t->path->size();
    t->cursor = c;
    Py_RETURN_TRUE;
}

// refuse(call): what was recorded here cannot be put off, which is not found out again.
PyObject* tape_refuse(PyObject* self, PyObject* call) {
    auto* c = reinterpret_cast<Call*>(call);
    auto& children = *tape(self)->cursor->children;
    c->refused = true;
    if (c->parent == tape(self)->cursor && std::find(children.begin(), children.end(), c) == children.end()) {
        Py_INCREF(c);
        children.push_back(c);
    }
    return none();
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
    return settle((*tape(self)->values)[i], array, node) ? none() : nullptr;
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
        if (e.taken) continue;
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

// alone(tensor): whether it was handed in and nobody else has its memory, which no graph and no view knows.
PyObject* tape_alone(PyObject* self, PyObject* tensor) {
    const Tape* t = tape(self);
    const Py_ssize_t i = is_tensor(tensor) ? seen(t, tensor) : -1;
    return PyBool_FromLong(i >= 0 && alone((*t->externals)[size_t(i)]));
}

// drop(): what the call that is no part of the path was handed in; gives how many are left.
PyObject* tape_drop(PyObject* self, PyObject*) {
    Tape* t = tape(self);
    const Py_ssize_t left = t->cursor->externals;
    if (size_t(left) < t->externals->size()) t->externals->resize(size_t(left));
    return PyLong_FromSsize_t(left);
}

// takes_none(args, settings): see tape.h
PyObject* tape_takes_none(PyObject* self, PyObject* args) {
    PyObject *given, *keywords;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &given, &PyDict_Type, &keywords)) return nullptr;
    return PyBool_FromLong(takes_none(tape(self), given, keywords));
}

// is_taken(tensor): whether its memory, which is from outside, is to be written.
PyObject* tape_is_taken(PyObject* self, PyObject* tensor) {
    const Tape* t = tape(self);
    const Py_ssize_t i = seen(t, tensor);
    return PyBool_FromLong(i >= 0 && (*t->externals)[size_t(i)].taken);
}

// give_back(): the memory of what was to be written, back in its tensors.
PyObject* tape_give_back(PyObject* self, PyObject*) {
    give_back(tape(self));
    return none();
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

// are_free(numbers): whether these externals are leaves that nothing is hooked to, each once.
PyObject* tape_are_free(PyObject* self, PyObject* numbers) { return PyBool_FromLong(are_free(tape(self), numbers)); }

// hand_out(numbers, arrays, at): see leaves.h
PyObject* tape_hand_out(PyObject* self, PyObject* args) {
    PyObject *numbers, *arrays;
    Py_ssize_t at;
    if (!PyArg_ParseTuple(args, "O!O!n", &PyTuple_Type, &numbers, &PyTuple_Type, &arrays, &at)) return nullptr;
    if (PyTuple_GET_SIZE(arrays) != at + PyTuple_GET_SIZE(numbers)) {
        PyErr_SetString(PyExc_ValueError, "as many gradients as leaves");
        return nullptr;
    }
    return hand_out(tape(self), numbers, arrays, at);
}

PyMethodDef tape_methods[] = {{"enter", tape_enter, METH_NOARGS, nullptr},
                              {"leave", tape_leave, METH_NOARGS, nullptr},
                              {"finish", tape_finish, METH_NOARGS, nullptr},
                              {"flush", tape_flush, METH_O, nullptr},
                              {"find", tape_find, METH_VARARGS, nullptr},
                              {"extend", tape_extend, METH_VARARGS, nullptr},
                              {"advance", tape_advance, METH_VARARGS, nullptr},
                              {"refuse", tape_refuse, METH_O, nullptr},
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
                              {"alone", tape_alone, METH_O, nullptr},
                              {"drop", tape_drop, METH_NOARGS, nullptr},
                              {"takes_none", tape_takes_none, METH_VARARGS, nullptr},
                              {"is_taken", tape_is_taken, METH_O, nullptr},
                              {"give_back", tape_give_back, METH_NOARGS, nullptr},
                              {"demand", tape_demand, METH_VARARGS, nullptr},
                              {"are_free", tape_are_free, METH_O, nullptr},
                              {"hand_out", tape_hand_out, METH_VARARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

PyObject* tape_cursor(PyObject* self, void*) {
    PyObject* c = reinterpret_cast<PyObject*>(tape(self)->cursor);
    Py_INCREF(c);
    return c;
}
PyObject* tape_settled_count(PyObject* self, void*) { return PyLong_FromSize_t(tape(self)->settled); }
PyMemberDef tape_members[] = {{"recording", T_BOOL, offsetof(Tape, recording), 0, nullptr},
                              {"busy", T_BOOL, offsetof(Tape, busy), 0, nullptr},
                              {"quick", T_LONGLONG, offsetof(Tape, quick), 0, nullptr},
                              {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef tape_getset[] = {{"cursor", tape_cursor, nullptr, nullptr, nullptr},
                             {"settled", tape_settled_count, nullptr, nullptr, nullptr},
                             {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot tape_slots[] = {{Py_tp_dealloc, any(tape_free)}, {Py_tp_new, any(tape_new)},
                       {Py_tp_methods, tape_methods}, {Py_tp_members, tape_members},
                       {Py_tp_getset, tape_getset}, {0, nullptr}};

}  // namespace

void enter(Tape* t) {
    t->outer = current;
    t->thread = PyThread_get_thread_ident();
    current = t;
    if (!watching++) tensor_type->tp_getattro = getattr_or_run;
}

void leave(Tape* t) {  // nothing is put off any more, also where that failed
    forget(t);
    current = t->outer;
    t->outer = nullptr;
    if (!--watching) tensor_type->tp_getattro = plain_getattr;
}

int finish(Tape* t) {
    const int failed = run_pending(t, "the function returns");
    if (failed == 0) forget(t);
    return failed;
}

PyType_Spec tape_spec = {"framework._native.Tape", sizeof(Tape), 0, Py_TPFLAGS_DEFAULT, tape_slots};

}  // namespace fw::deferral
