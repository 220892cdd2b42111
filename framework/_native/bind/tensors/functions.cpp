// Calls of a user's Function (`autograd/function.py`) that gives one tensor, where nothing is unusual.
#include <cstring>
#include <vector>

#include "bind/tensors/tensors.h"

namespace fw::functions {

using namespace tensors;

namespace {

enum { FUNCTION, NAME, CTX, KEEPS_NOTHING, DIFFERENTIABLE, INPUTS, OUTPUTS, RAW, CALL_PARTS };
enum { OP, EDGES, KEPT, VERSIONS, SETTINGS, SHAPES };
Py_ssize_t at_call[CALL_PARTS];
PyTypeObject *context_type = nullptr, *call_type, *saved_type, *kind_type, *dual_type, *pick_type, *function_node;
PyObject *finish, *set_recording, *base_setup, *base_forward, *cpu;
PyObject *word_stack, *word_levels, *word_batches, *word_opened, *word_recording, *word_hooks, *word_setup, *word_forward, *word_needs,
    *word_tensors, *word_edges, *word_dtype_of, *word_class_name, *word_saved, *word_dirty,
    *word_plain, *word_for_forward;

bool is_empty(const nb::object& o) { return PyTuple_CheckExact(o.ptr()) && !PyTuple_GET_SIZE(o.ptr()); }

// Whether a thread's modes leave a call as it is written.
bool usual_modes() {
    if (is_watched() || !is_empty(here_of(quiet, word_stack))) return false;
    for (PyObject* name : {word_levels, word_batches, word_opened, word_hooks})
        if (!is_empty(here_of(modes, name))) return false;
    return true;
}

// The arguments' places in the graph, and whether a gradient flows through each.
struct Places {
    nb::object edges, needs;
    bool usual = true, any = false;

    Places(PyObject* const* args, Py_ssize_t n) : edges(taken(PyTuple_New(n))), needs(taken(PyTuple_New(n))) {
        for (Py_ssize_t i = 0; i < n; ++i) {
            PyObject* node = Py_None;
            if (array_of(args[i])) node = slot(args[i], at_node);
            else if (PyObject_TypeCheck(args[i], tensor_type)) usual = false;
            usual = usual && Py_TYPE(node) != dual_type && (Py_TYPE(node) != pick_type || leads_on(node));
            const bool need = node != Py_None;
            any = any || need;
            PyTuple_SET_ITEM(edges.ptr(), i, Py_NewRef(node));
            PyTuple_SET_ITEM(needs.ptr(), i, Py_NewRef(need ? Py_True : Py_False));
        }
    }

  private:
    static bool leads_on(PyObject* pick) {
        const nb::object from = asked(pick, word_edges);
        return PyTuple_CheckExact(from.ptr()) && PyTuple_GET_SIZE(from.ptr()) && PyTuple_GET_ITEM(from.ptr(), 0) != Py_None &&
               Py_TYPE(PyTuple_GET_ITEM(from.ptr(), 0)) != dual_type;
    }
};

// While this lives the thread records nothing, as in `no_grad`.
class Unrecorded {
  public:
    Unrecorded()
        : values(nb::borrow(values_here(modes))), recording(here_of(modes, word_recording)), enabled(here_of(modes, word_enabled)),
          levels(here_of(modes, word_levels)) {
        set(Py_False, Py_False);
    }
    Unrecorded(const Unrecorded&) = delete;
    ~Unrecorded() {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        bool done = PyDict_SetItem(values.ptr(), word_levels, levels.ptr()) == 0;
        if (PyObject* opened = PyDict_GetItemWithError(values.ptr(), word_opened); opened && PyTuple_CheckExact(opened) && !PyTuple_GET_SIZE(opened)) {
            done = done && PyDict_SetItem(values.ptr(), word_recording, recording.ptr()) == 0 && PyDict_SetItem(values.ptr(), word_enabled, enabled.ptr()) == 0;
        } else {  // a dual level was opened, and left so
            PyObject* set_back = PyObject_CallOneArg(set_recording, recording.ptr());
            done = done && set_back;
            Py_XDECREF(set_back);
        }
        if (!done) PyErr_WriteUnraisable(nullptr);
        PyErr_Restore(type, value, trace);
    }
    bool was() const { return recording.ptr() == Py_True; }

  private:
    void set(PyObject* first, PyObject* second) {
        if (PyDict_SetItem(values.ptr(), word_recording, first) < 0 || PyDict_SetItem(values.ptr(), word_enabled, second) < 0)
            throw nb::python_error();
    }
    nb::object values, recording, enabled, levels;
};

nb::object of_type(PyTypeObject* type, std::initializer_list<PyObject*> parts) {
    nb::object tuple = taken(PyTuple_New(Py_ssize_t(parts.size()))), args = taken(PyTuple_New(1));
    Py_ssize_t i = 0;
    for (PyObject* part : parts) PyTuple_SET_ITEM(tuple.ptr(), i++, Py_NewRef(part));
    PyTuple_SET_ITEM(args.ptr(), 0, tuple.release().ptr());
    return taken(PyTuple_Type.tp_new(type, args.ptr(), nullptr));
}

// What a gradient must look like.
nb::object kind_of(PyObject* x) {
    PyArrayObject* a = array_of(x);
    if (!a) return nb::none();
    nb::object shape = taken(PyTuple_New(PyArray_NDIM(a)));
    for (int d = 0; d < PyArray_NDIM(a); ++d) PyTuple_SET_ITEM(shape.ptr(), d, taken(PyLong_FromSsize_t(PyArray_DIM(a, d))).release().ptr());
    return of_type(kind_type, {shape.ptr(), asked(x, word_dtype_of).ptr(), cpu});
}

struct Kept {
    nb::object saved = taken(PyList_New(0)), versions = taken(PyList_New(0));

    // Of the tensors that the context was given; false for others than plain ones.
    bool take(PyObject* tensors, PyObject* output, PyObject* result) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i) {
            PyObject* t = PyTuple_GET_ITEM(tensors, i);
            nb::object entry = nb::none();
            if (t != Py_None) {
                const bool own = t == output;
                if (own) t = result;
                const Held a = array_of(t);
                if (!a) return false;
                const nb::object counter = counter_of(t), index = own ? taken(PyLong_FromLong(0)) : nb::none();
                entry = of_type(saved_type, {a.owner.ptr(), own ? Py_None : slot(t, at_node), index.ptr()});
                const nb::object stamp = taken(PyTuple_Pack(2, counter.ptr(), PyList_GET_ITEM(counter.ptr(), 0)));
                if (PyList_Append(versions.ptr(), stamp.ptr()) < 0) throw nb::python_error();
            }
            if (PyList_Append(saved.ptr(), entry.ptr()) < 0) throw nb::python_error();
        }
        return true;
    }
};

// The record's face of this call.
nb::object call_of(PyObject* cls, PyObject* ctx, PyObject* const* args, Py_ssize_t n, PyObject* output, bool keeps) {
    nb::object inputs = taken(PyList_New(n)), outputs = taken(PyList_New(1)), raw = taken(PyList_New(1));
    for (Py_ssize_t i = 0; i < n; ++i) PyList_SET_ITEM(inputs.ptr(), i, kind_of(args[i]).release().ptr());
    PyList_SET_ITEM(outputs.ptr(), 0, kind_of(output).release().ptr());
    PyList_SET_ITEM(raw.ptr(), 0, taken(PyWeakref_NewRef(output, nullptr)).release().ptr());
    const nb::object name = asked(cls, word_class_name), one = taken(PyLong_FromLong(1));
    PyObject* parts[CALL_PARTS] = {cls, name.ptr(), ctx, keeps ? Py_False : Py_True, one.ptr(), inputs.ptr(), outputs.ptr(), raw.ptr()};
    nb::object call = taken(call_type->tp_alloc(call_type, 0));
    for (int i = 0; i < CALL_PARTS; ++i) slot(call.ptr(), at_call[i]) = Py_NewRef(parts[i]);
    return call;
}

// The tensor to give out for the one that `forward` gave, as `_finish` makes it; null where that is to.
nb::object finished(PyObject* cls, const nb::object& ctx, PyObject* const* args, Py_ssize_t n, const Places& places, PyObject* output, bool recording) {
    const Held a = array_of(output);
    PyObject* more = a ? slot(output, at_more) : nullptr;
    if (!a || Py_TYPE(output) != tensor_type || has_node(output) || (more && more != Py_None) || !std::strchr("fcV", PyArray_DESCR(a)->kind)) return nb::object();
    const nb::object own = taken(PyObject_GenericGetDict(ctx.ptr(), nullptr));
    PyObject* tensors = PyDict_GetItemWithError(own.ptr(), word_tensors);
    for (PyObject* special : {word_dirty, word_plain, word_for_forward})
        if (PyDict_GetItemWithError(own.ptr(), special)) return nb::object();
    if (PyDict_GetItemWithError(own.ptr(), word_needs) != places.needs.ptr()) return nb::object();
    if (PyErr_Occurred() || (tensors && !PyTuple_CheckExact(tensors))) return nb::object();
    nb::object result = tensor_over(a.owner);
    Py_XSETREF(slot(result.ptr(), at_counter), counter_of(output).release().ptr());
    if (recording && places.any) {
        Kept kept;
        const bool keeps = tensors && PyTuple_GET_SIZE(tensors);
        if (keeps && !kept.take(tensors, output, result.ptr())) return nb::object();
        const nb::object call = call_of(cls, ctx.ptr(), args, n, output, keeps), settings = taken(PyDict_New());
        nb::object all = nb::none();
        if (keeps) {
            all = taken(PyDict_New());
            if (PyDict_SetItem(all.ptr(), word_saved, kept.saved.ptr()) < 0) throw nb::python_error();
        }
        PyObject* parts[] = {call.ptr(), places.edges.ptr(), all.ptr(), keeps ? kept.versions.ptr() : Py_None, settings.ptr(), Py_None};
        nb::object node = make_node(parts[OP], parts[EDGES], parts[KEPT], parts[VERSIONS], parts[SETTINGS], parts[SHAPES], function_node);
        Py_SETREF(slot(result.ptr(), at_node), node.release().ptr());
    }
    if (tensors && PyDict_DelItem(own.ptr(), word_tensors) < 0) throw nb::python_error();
    return result;
}

// (class, arguments): `Function.apply`; `plain` is Python's.
PyObject* apply(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    return guarded([&]() -> PyObject* {
        PyObject* cls = n ? args[0] : nullptr;
        if (!cls || !context_type || (keywords && PyTuple_GET_SIZE(keywords)) || !PyType_Check(cls) || !usual_modes() ||
            asked(cls, word_setup).ptr() != base_setup)
            return PyObject_Vectorcall(plain, args, size_t(n), keywords);
        const nb::object forward = asked(cls, word_forward);
        const Places places(args + 1, n - 1);
        if (forward.ptr() == base_forward || !places.usual) return PyObject_Vectorcall(plain, args, size_t(n), keywords);
        const nb::object ctx = taken(context_type->tp_alloc(context_type, 0));
        if (PyObject_SetAttr(ctx.ptr(), word_needs, places.needs.ptr()) < 0) throw nb::python_error();
        std::vector<PyObject*> given(args, args + n);
        given[0] = ctx.ptr();
        nb::object output;
        bool recording;
        {
            const Unrecorded here;
            recording = here.was();
            output = taken(PyObject_Vectorcall(forward.ptr(), given.data(), size_t(n), nullptr));
        }
        nb::object result = finished(cls, ctx, args + 1, n - 1, places, output.ptr(), recording);
        if (result.is_valid()) return result.release().ptr();
        const nb::object inputs = tuple_of(args + 1, n - 1);
        PyObject* rest[] = {cls, ctx.ptr(), inputs.ptr(), places.edges.ptr(), output.ptr(), recording ? Py_True : Py_False};
        return PyObject_Vectorcall(finish, rest, 6, nullptr);
    });
}

PyMethodDef apply_method = {"apply", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&apply)), METH_FASTCALL | METH_KEYWORDS,
                            "apply(cls, *args, **kwargs)\n--\n\nRun ``forward`` and record the call if an argument requires grad."};

PyTypeObject* type_of(nb::object o) { return reinterpret_cast<PyTypeObject*>(o.release().ptr()); }

void set_up(nb::tuple types, nb::object rest, nb::object recording, nb::object setup, nb::object forward, nb::object home) {
    const std::pair<PyObject**, const char*> words[] = {
        {&word_stack, "stack"}, {&word_levels, "levels"}, {&word_batches, "batches"}, {&word_opened, "opened"}, {&word_recording, "recording"},
        {&word_hooks, "saved_hooks"}, {&word_setup, "setup_context"}, {&word_forward, "forward"}, {&word_needs, "needs_input_grad"},
        {&word_tensors, "_tensors"}, {&word_edges, "edges"}, {&word_dtype_of, "dtype"}, {&word_class_name, "__name__"}, {&word_saved, "saved"},
        {&word_dirty, "_dirty"}, {&word_plain, "_plain"}, {&word_for_forward, "_for_forward"}};
    for (auto [place, text] : words) *place = word(text);
    PyTypeObject** places[] = {&call_type, &saved_type, &kind_type, &dual_type, &pick_type, &function_node};
    for (size_t i = 0; i < std::size(places); ++i) *places[i] = type_of(types[i + 1]);
    const char* names[] = {"function", "name", "ctx", "keeps_nothing", "differentiable", "inputs", "outputs", "raw"};
    for (int i = 0; i < CALL_PARTS; ++i) at_call[i] = place_of(call_type, names[i]);
    finish = rest.release().ptr(), set_recording = recording.release().ptr();
    base_setup = setup.release().ptr(), base_forward = forward.release().ptr(), cpu = home.release().ptr();
    context_type = type_of(types[0]);
}

}  // namespace

FW_BIND(m) {
    m.def("set_up_functions", &set_up);
    m.def("applying", [](nb::object plain) { return taken(PyCFunction_NewEx(&apply_method, plain.ptr(), nullptr)); });
}

}  // namespace fw::functions
