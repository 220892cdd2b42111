// What Python does for a call that goes by a plan, without Python: a backward, and doors that open and close.
#include "deferral/leaves.h"

namespace fw::deferral {
namespace {

PyObject *word_backward = nullptr, *word_ready = nullptr, *word_hang = nullptr, *word_recording = nullptr,
         *word_code = nullptr;

// What a plan that is ready is made of: (segment, leaves, edges, whether results are in the graph).
struct Plan {
    nb::object plan, segment, leaves, edges;
    bool graph = false;
    std::vector<size_t> alive;  // the values that somebody has
};

bool find_plan(const Tape* t, Py_ssize_t root, Plan& found) {
    Call* last = t->path->back();
    if (!last->data) return false;
    nb::object plans = nb::steal(PyObject_GetAttr(last->data, word_backward));
    if (!plans.is_valid() || !PyDict_CheckExact(plans.ptr())) return false;
    std::vector<size_t> alive;
    for (size_t i = 0; i < t->values->size(); ++i)
        if ((*t->values)[i].promise) alive.push_back(i);
    nb::object key = nb::steal(PyTuple_New(Py_ssize_t(alive.size()) + 1));
    if (!key.is_valid()) return false;
    PyTuple_SET_ITEM(key.ptr(), 0, PyLong_FromSsize_t(root));
    for (size_t i = 0; i < alive.size(); ++i)
        PyTuple_SET_ITEM(key.ptr(), Py_ssize_t(i) + 1, PyLong_FromSize_t(alive[i]));
    PyObject* plan = PyDict_GetItemWithError(plans.ptr(), key.ptr());
    if (!plan || PyUnicode_CheckExact(plan)) return false;
    nb::object ready = nb::steal(PyObject_GetAttr(plan, word_ready));
    if (!ready.is_valid() || !PyTuple_CheckExact(ready.ptr()) || PyTuple_GET_SIZE(ready.ptr()) != 4) return false;
    auto part = [&](Py_ssize_t i) { return nb::borrow(PyTuple_GET_ITEM(ready.ptr(), i)); };
    found = {nb::borrow(plan), part(0), part(1), part(2), PyTuple_GET_ITEM(ready.ptr(), 3) == Py_True,
             std::move(alive)};
    return true;
}

bool as_handed_in(const Tape* t) {
    for (const External& e : *t->externals) {
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

}  // namespace

int quick_backward(Tape* t, PyObject* args, PyObject* keywords) {
    if (!pending(t) || t->recording || PyTuple_GET_SIZE(args) != 1 || (keywords && PyDict_GET_SIZE(keywords))) return 0;
    PyObject* root = PyTuple_GET_ITEM(args, 0);
    Promise* promise = Py_TYPE(root) == tensor_type ? promise_of(t, root) : nullptr;
    PyObject* recording = PyDict_GetItemWithError(t->state, word_recording);
    if (!promise || enabled_of(t) != Py_True || (recording && recording != Py_True)) return 0;
    Plan plan;
    if (!find_plan(t, promise->index, plan)) {
        PyErr_Clear();
        return 0;
    }
    if (!as_handed_in(t) || !are_free(t, plan.edges.ptr())) return 0;
    const auto alive = Py_ssize_t(plan.alive.size());
    nb::object found;
    {
        nb::list arrays;
        for (const External& e : *t->externals) arrays.append(e.array);
        Unrecorded off(t->state);
        PyObject* given[] = {nullptr, plan.segment.ptr(), arrays.ptr()};
        found = nb::steal(PyObject_Vectorcall(t->plain, given + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    }
    if (!found.is_valid()) {
        if (!PyErr_ExceptionMatches(t->missing)) return -1;
        PyErr_Clear();
        return 0;
    }
    if (!PyTuple_CheckExact(found.ptr()) ||
        PyTuple_GET_SIZE(found.ptr()) != alive + PyTuple_GET_SIZE(plan.leaves.ptr())) {
        PyErr_SetString(PyExc_RuntimeError, "compile: a plan gave another number of arrays than it was made for");
        return -1;
    }
    nb::object left = nb::steal(hand_out(t, plan.leaves.ptr(), found.ptr(), alive));
    if (!left.is_valid()) return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(left.ptr()); ++i) {
        PyObject* pair = PyList_GET_ITEM(left.ptr(), i);
        nb::object done = nb::steal(PyObject_CallFunctionObjArgs(t->accumulate, PyTuple_GET_ITEM(pair, 0),
                                                                PyTuple_GET_ITEM(pair, 1), Py_False, nullptr));
        if (!done.is_valid()) return -1;
    }
    const Py_ssize_t edges = plan.graph ? PyTuple_GET_SIZE(plan.edges.ptr()) : 0;
    nb::object ends = nb::steal(PyTuple_New(edges));
    if (!ends.is_valid()) return -1;
    for (Py_ssize_t i = 0; i < edges; ++i) {
        const auto k = size_t(PyLong_AsSsize_t(PyTuple_GET_ITEM(plan.edges.ptr(), i)));
        PyObject* node = slot((*t->externals)[k].tensor.ptr(), offsets[1]);
        Py_INCREF(node);
        PyTuple_SET_ITEM(ends.ptr(), i, node);
    }
    nb::object nodes = nb::steal(PyObject_CallMethodObjArgs(plan.plan.ptr(), word_hang, ends.ptr(), nullptr));
    if (!nodes.is_valid() || !PyList_CheckExact(nodes.ptr()) || PyList_GET_SIZE(nodes.ptr()) != alive) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "compile: a node for each result is wanted");
        return -1;
    }
    for (Py_ssize_t at = 0; at < alive; ++at) {
        const Value& v = (*t->values)[plan.alive[size_t(at)]];
        if (!v.promise) continue;  // it died just now
        PyObject* parts[SLOTS] = {PyTuple_GET_ITEM(found.ptr(), at), PyList_GET_ITEM(nodes.ptr(), at), Py_None, Py_None};
        for (int k = 0; k < SLOTS; ++k) {
            Py_INCREF(parts[k]);
            Py_XSETREF(slot(v.promise->tensor, offsets[k]), parts[k]);
        }
    }
    ++t->quick;
    return 1;
}

namespace {

// open_doors(rows, armed): functions (function, door, own code, door's code) get the door's code, and are noted.
void open_doors(nb::list rows, nb::dict armed) {
    for (nb::handle row : rows) {
        PyObject *function = PyTuple_GET_ITEM(row.ptr(), 0), *own = PyTuple_GET_ITEM(row.ptr(), 2);
        if (PyFunction_GET_CODE(function) != own) continue;
        if (PyDict_SetItem(armed.ptr(), function, row.ptr()) < 0 ||
            PyObject_SetAttr(function, word_code, PyTuple_GET_ITEM(row.ptr(), 3)) < 0)
            throw nb::python_error();
    }
}

// close_doors(armed): they get their own code back, but where others have put theirs around it meanwhile.
void close_doors(nb::dict armed) {
    PyObject *function, *row;
    Py_ssize_t at = 0;
    while (PyDict_Next(armed.ptr(), &at, &function, &row))
        if (PyFunction_GET_CODE(function) == PyTuple_GET_ITEM(row, 3) &&
            PyObject_SetAttr(function, word_code, PyTuple_GET_ITEM(row, 2)) < 0)
            throw nb::python_error();
    PyDict_Clear(armed.ptr());
}

}  // namespace
}  // namespace fw::deferral

namespace fw {

FW_BIND(m) {
    using namespace deferral;
    word_backward = PyUnicode_InternFromString("backward");
    word_ready = PyUnicode_InternFromString("ready");
    word_hang = PyUnicode_InternFromString("hang");
    word_recording = PyUnicode_InternFromString("recording");
    word_code = PyUnicode_InternFromString("__code__");
    m.def("open_doors", &open_doors);
    m.def("close_doors", &close_doors);
}

}  // namespace fw
