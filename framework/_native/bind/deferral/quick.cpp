// What Python does for what goes by a plan, without Python: a backward, and what was put off before a tensor is read.
#include "bind/deferral/leaves.h"

namespace fw::deferral {
namespace {

PyObject *word_backward = nullptr, *word_forward = nullptr, *word_ready = nullptr, *word_served = nullptr,
         *word_hang = nullptr, *word_recording = nullptr;

// A plan, what it says it is ready with, and the values that somebody has.
struct QuickPlan {
    nb::object plan, ready;
    std::vector<size_t> alive;

    nb::object part(Py_ssize_t i) const { return nb::borrow(PyTuple_GET_ITEM(ready.ptr(), i)); }
};

// The plan among `plans` for what is alive now, and for this root if it is one; false where none is ready.
bool find_plan(const Tape* t, PyObject* plans, Py_ssize_t root, Py_ssize_t parts, QuickPlan& found) {
    Call* last = t->path->back();
    if (!last->data) return false;
    nb::object known = nb::steal(PyObject_GetAttr(last->data, plans));
    if (!known.is_valid() || !PyDict_CheckExact(known.ptr()) || !PyDict_GET_SIZE(known.ptr())) return false;
    found.alive.clear();
    for (size_t i = 0; i < t->values->size(); ++i)
        if ((*t->values)[i].promise) found.alive.push_back(i);
    const Py_ssize_t rooted = root >= 0;
    nb::object key = nb::steal(PyTuple_New(Py_ssize_t(found.alive.size()) + rooted));
    if (!key.is_valid()) return false;
    if (rooted) PyTuple_SET_ITEM(key.ptr(), 0, PyLong_FromSsize_t(root));
    for (size_t i = 0; i < found.alive.size(); ++i)
        PyTuple_SET_ITEM(key.ptr(), Py_ssize_t(i) + rooted, PyLong_FromSize_t(found.alive[i]));
    PyObject* plan = PyDict_GetItemWithError(known.ptr(), key.ptr());
    if (!plan || PyUnicode_CheckExact(plan)) return false;
    found.plan = nb::borrow(plan);
    found.ready = nb::steal(PyObject_GetAttr(plan, word_ready));
    return found.ready.is_valid() && PyTuple_CheckExact(found.ready.ptr()) &&
           PyTuple_GET_SIZE(found.ready.ptr()) == parts;
}

bool as_handed_in(const Tape* t) {
    for (const External& e : *t->externals) {
        if (e.taken) continue;
        PyObject *tensor = e.tensor.ptr(), *node = slot(tensor, offsets[1]);
        if (slot(tensor, offsets[0]) != e.array.ptr() || (e.node.is_valid() ? node != e.node.ptr() : is_one(node)) ||
            version_of(tensor) != e.version || !unchanged(e))
            return false;
    }
    return true;
}

// Recording is off while this lives; it is on outside.
struct Unrecorded {
    PyObject* state;
    explicit Unrecorded(PyObject* state) : state(state) { put(Py_False); }
    ~Unrecorded() {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        put(Py_True);
        PyErr_Restore(type, value, trace);
    }
    void put(PyObject* word) const {
        PyDict_SetItem(state, word_recording, word);
        PyDict_SetItem(state, word_enabled, word);
    }
};

// What the segment gives for the arrays that were handed in: a tuple of `count`; not valid with an error.
nb::object outputs_of(const Tape* t, const nb::object& segment, Py_ssize_t count) {
    nb::list arrays;
    for (const External& e : *t->externals) arrays.append(e.array);
    PyObject* given[] = {nullptr, segment.ptr(), arrays.ptr()};
    nb::object found = nb::steal(PyObject_Vectorcall(t->plain, given + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (found.is_valid() && (!PyTuple_CheckExact(found.ptr()) || PyTuple_GET_SIZE(found.ptr()) != count)) {
        PyErr_SetString(PyExc_RuntimeError, "compile: a plan gave another number of arrays than it was made for");
        return {};
    }
    return found;
}

}  // namespace

int quick_forward(Tape* t) {
    if (t->recording || t->settled) return 0;
    QuickPlan plan;
    if (!find_plan(t, word_forward, -1, 1, plan) || plan.alive.empty()) {
        PyErr_Clear();
        return 0;
    }
    if (!as_handed_in(t)) return 0;
    nb::object served = nb::steal(PyObject_GetAttr(plan.plan.ptr(), word_served));
    nb::object more = served.is_valid() ? nb::steal(PyLong_FromLongLong(PyLong_AsLongLong(served.ptr()) + 1)) : nb::object();
    if (!more.is_valid() || PyObject_SetAttr(plan.plan.ptr(), word_served, more.ptr()) < 0) return -1;
    nb::object found = outputs_of(t, plan.part(0), Py_ssize_t(plan.alive.size()));
    if (!found.is_valid()) return -1;
    for (size_t at = 0; at < plan.alive.size(); ++at)
        if (!settle((*t->values)[plan.alive[at]], PyTuple_GET_ITEM(found.ptr(), Py_ssize_t(at)), Py_None)) return -1;
    t->settled = t->path->size();
    ++t->quick;
    return 1;
}

int quick_backward(Tape* t, PyObject* args, PyObject* keywords) {
    if (!pending(t) || t->recording || PyTuple_GET_SIZE(args) != 1 || (keywords && PyDict_GET_SIZE(keywords))) return 0;
    PyObject* root = PyTuple_GET_ITEM(args, 0);
    Promise* promise = Py_TYPE(root) == tensor_type ? promise_of(t, root) : nullptr;
    PyObject* recording = PyDict_GetItemWithError(t->state, word_recording);
    if (!promise || enabled_of(t) != Py_True || (recording && recording != Py_True)) return 0;
    QuickPlan plan;
    if (!find_plan(t, word_backward, promise->index, 4, plan)) {
        PyErr_Clear();
        return 0;
    }
    const nb::object leaves = plan.part(1), ends_at = plan.part(2);
    if (!as_handed_in(t) || !are_free(t, ends_at.ptr())) return 0;
    const auto alive = Py_ssize_t(plan.alive.size());
    nb::object found;
    {
        Unrecorded off(t->state);
        found = outputs_of(t, plan.part(0), alive + PyTuple_GET_SIZE(leaves.ptr()));
    }
    if (!found.is_valid()) {
        if (!PyErr_ExceptionMatches(t->missing)) return -1;
        PyErr_Clear();
        return 0;
    }
    nb::object left = nb::steal(hand_out(t, leaves.ptr(), found.ptr(), alive));
    if (!left.is_valid()) return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(left.ptr()); ++i) {
        PyObject* pair = PyList_GET_ITEM(left.ptr(), i);
        nb::object done = nb::steal(PyObject_CallFunctionObjArgs(t->accumulate, PyTuple_GET_ITEM(pair, 0),
                                                                PyTuple_GET_ITEM(pair, 1), Py_False, nullptr));
        if (!done.is_valid()) return -1;
    }
    const Py_ssize_t edges = plan.part(3).ptr() == Py_True ? PyTuple_GET_SIZE(ends_at.ptr()) : 0;
    nb::object ends = nb::steal(PyTuple_New(edges));
    if (!ends.is_valid()) return -1;
    for (Py_ssize_t i = 0; i < edges; ++i) {
        const auto k = size_t(PyLong_AsSsize_t(PyTuple_GET_ITEM(ends_at.ptr(), i)));
        PyObject* tensor = (*t->externals)[k].tensor.ptr();
        PyObject* node = Py_TYPE(tensor) == drawn_type ? tensor : slot(tensor, offsets[1]);
        Py_INCREF(node);
        PyTuple_SET_ITEM(ends.ptr(), i, node);
    }
    nb::object nodes = nb::steal(PyObject_CallMethodObjArgs(plan.plan.ptr(), word_hang, ends.ptr(), nullptr));
    if (!nodes.is_valid() || !PyList_CheckExact(nodes.ptr()) || PyList_GET_SIZE(nodes.ptr()) != alive) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "compile: a node for each result is wanted");
        return -1;
    }
    for (Py_ssize_t at = 0; at < alive; ++at)
        if (!settle((*t->values)[plan.alive[size_t(at)]], PyTuple_GET_ITEM(found.ptr(), at),
                    PyList_GET_ITEM(nodes.ptr(), at)))
            return -1;
    ++t->quick;
    return 1;
}

}  // namespace fw::deferral

namespace fw {

FW_BIND() {
    using namespace deferral;
    word_backward = PyUnicode_InternFromString("backward");
    word_forward = PyUnicode_InternFromString("forward");
    word_served = PyUnicode_InternFromString("served");
    word_ready = PyUnicode_InternFromString("ready");
    word_hang = PyUnicode_InternFromString("hang");
    word_recording = PyUnicode_InternFromString("recording");
}

}  // namespace fw
