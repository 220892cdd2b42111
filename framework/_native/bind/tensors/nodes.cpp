// Nodes of the graph: what `Op.node` of Python makes of a call, and the node itself.
#include "bind/tensors/tensors.h"

#include <algorithm>

namespace fw::tensors {

PyTypeObject *node_type = nullptr, *plain_type = nullptr;

namespace {

PyTypeObject* pick_type = nullptr;
Py_ssize_t at_pick[4];  // edges, index, hooks, seq

PyObject *next_seq = nullptr, *node_init, *plain_init, *word_init, *word_node, *op_node, *elementwise_node;
PyObject *plain_op_node, *plain_elementwise_node;  // Python's
PyObject *word_shape, *word_dtype, *word_out, *word_in;
enum { OP, EDGES, KEPT, VERSIONS, SETTINGS, SHAPES, SEQ, HOOKS, PARTS };
Py_ssize_t at_parts[PARTS], at_plain_op, at_plain_edges, at_plain_seq, at_plain_hooks;
Py_ssize_t at_keeps_nothing, at_wanted, at_joint, at_variadic;

// Whether nodes are made as ever: while somebody listens, their class has another `__init__`.
bool usual(PyTypeObject* type, PyObject* init) {
    return next_seq && asked(reinterpret_cast<PyObject*>(type), word_init).ptr() == init;
}

void put(PyObject* node, Py_ssize_t at, PyObject* value) {
    Py_INCREF(value);
    slot(node, at) = value;
}

}  // namespace

nb::object make_node(PyObject* op, PyObject* edges, PyObject* kept, PyObject* versions, PyObject* settings,
                     PyObject* shapes, PyTypeObject* type) {
    PyObject* args[] = {op, edges, kept, versions, settings, shapes};
    if (!type) type = node_type;
    if (!usual(type, node_init)) return taken(PyObject_Vectorcall(reinterpret_cast<PyObject*>(type), args, 6, nullptr));
    nb::object node = taken(type->tp_alloc(type, 0)), seq = taken(PyObject_CallNoArgs(next_seq));
    for (int i = OP; i <= SHAPES; ++i) put(node.ptr(), at_parts[i], args[i]);
    put(node.ptr(), at_parts[SEQ], seq.ptr());
    put(node.ptr(), at_parts[HOOKS], Py_None);
    return node;
}

nb::object make_plain_node(PyObject* op, PyObject* edges) {
    PyObject* args[] = {op, edges};
    if (!usual(plain_type, plain_init))
        return taken(PyObject_Vectorcall(reinterpret_cast<PyObject*>(plain_type), args, 2, nullptr));
    nb::object node = taken(plain_type->tp_alloc(plain_type, 0)), seq = taken(PyObject_CallNoArgs(next_seq));
    put(node.ptr(), at_plain_op, op);
    put(node.ptr(), at_plain_edges, edges);
    put(node.ptr(), at_plain_seq, seq.ptr());
    put(node.ptr(), at_plain_hooks, Py_None);
    return node;
}

nb::object counter_of(PyObject* x) {
    PyObject*& counter = slot(x, at_counter);
    if (!counter || counter == Py_None) {
        nb::object made = taken(PyList_New(2));
        PyList_SET_ITEM(made.ptr(), 0, taken(PyLong_FromLong(0)).release().ptr());
        PyList_SET_ITEM(made.ptr(), 1, none());
        Py_XSETREF(counter, made.release().ptr());
    }
    return nb::borrow(counter);
}

namespace {

// A tensor's array among what is kept, with its version.
void keep(PyObject* kept, nb::object& versions, PyObject* name, PyObject* x) {
    if (!array_of(x)) {
        if (PyDict_SetItem(kept, name, x) < 0) throw nb::python_error();
        return;
    }
    if (PyDict_SetItem(kept, name, slot(x, at_array)) < 0) throw nb::python_error();
    nb::object counter = counter_of(x);
    nb::object stamp = taken(PyTuple_Pack(2, counter.ptr(), PyList_GET_ITEM(counter.ptr(), 0)));
    if (PyList_Append(versions.ptr(), stamp.ptr()) < 0) throw nb::python_error();
}

bool is(PyObject* kind, PyObject* word) { return kind == word || PyUnicode_Compare(kind, word) == 0; }

}  // namespace

nb::object make_pick(PyObject* edges, Py_ssize_t index) {
    nb::object pick = taken(pick_type->tp_alloc(pick_type, 0)), seq = taken(PyObject_CallNoArgs(next_seq)), at = taken(PyLong_FromSsize_t(index));
    put(pick.ptr(), at_pick[0], edges), put(pick.ptr(), at_pick[1], at.ptr());
    put(pick.ptr(), at_pick[2], Py_None), put(pick.ptr(), at_pick[3], seq.ptr());
    return pick;
}

PyObject* kept_of(PyObject* node) {
    PyObject* kept = Py_TYPE(node) == node_type ? slot(node, at_parts[KEPT]) : nullptr;
    return kept && PyDict_CheckExact(kept) ? kept : nullptr;
}

bool is_left_alone(PyObject* node) {
    if (node == Py_None) return true;
    if (Py_TYPE(node) == node_type) return slot(node, at_parts[HOOKS]) == Py_None;
    return Py_TYPE(node) == plain_type && slot(node, at_plain_hooks) == Py_None;
}

bool wants(PyObject* op, bool out, Py_ssize_t place, PyObject* inputs) {
    PyObject* wanted = slot(op, at_wanted);
    if (slot(op, at_joint) != Py_None || slot(op, at_variadic) != Py_False || !wanted || !PyList_CheckExact(wanted))
        return slot(op, at_keeps_nothing) != Py_True;
    const Py_ssize_t n = std::min(PyList_GET_SIZE(wanted), PyTuple_GET_SIZE(inputs));
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject *input = PyTuple_GET_ITEM(inputs, i), *sources = PyList_GET_ITEM(wanted, i);
        if (!array_of(input) || !has_node(input)) continue;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(sources); ++k) {
            PyObject* source = PyTuple_GET_ITEM(sources, k);
            if (is(PyTuple_GET_ITEM(source, 1), out ? word_out : word_in) && PyLong_AsSsize_t(PyTuple_GET_ITEM(source, 2)) == place)
                return true;
        }
    }
    return false;
}

nb::object node_of(PyObject* op, PyObject* const* inputs, PyObject* const* arrays, Py_ssize_t n, PyObject* const* results,
                   Py_ssize_t count, PyObject* settings) {
    if (!next_seq || !std::all_of(results, results + count, array_of)) return nb::object();
    const nb::object own = asked(reinterpret_cast<PyObject*>(Py_TYPE(op)), word_node);
    const bool elementwise = own.ptr() == elementwise_node;
    if ((!elementwise && own.ptr() != op_node) || slot(op, at_variadic) != Py_False) return nb::object();
    nb::object edges = taken(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
        const bool tensor = array_of(inputs[i]) != nullptr;
        if (!tensor && (PyArray_Check(arrays[i]) || PyObject_TypeCheck(inputs[i], tensor_type)))
            return nb::object();  // a tensor of another kind, or on a GPU
        PyTuple_SET_ITEM(edges.ptr(), i, nb::borrow(tensor ? slot(inputs[i], at_node) : Py_None).release().ptr());
    }
    nb::object shapes = nb::none();
    if (elementwise && n > 1) {
        auto* out = reinterpret_cast<PyArrayObject*>(slot(results[0], at_array));
        bool same = true;
        for (Py_ssize_t i = 0; i < n && same; ++i)
            if (PyArray_Check(arrays[i])) same = PyArray_SAMESHAPE(reinterpret_cast<PyArrayObject*>(arrays[i]), out);
        if (!same) {
            shapes = taken(PyTuple_New(n));
            for (Py_ssize_t i = 0; i < n; ++i) {
                nb::object shape = PyArray_Check(arrays[i]) ? asked(arrays[i], word_shape) : nb::none();
                PyTuple_SET_ITEM(shapes.ptr(), i, shape.release().ptr());
            }
        }
    }
    if (slot(op, at_keeps_nothing) == Py_True) return make_node(op, edges.ptr(), Py_None, Py_None, settings, shapes.ptr());
    nb::object kept = taken(PyDict_New()), versions = taken(PyList_New(0));
    const bool joint = slot(op, at_joint) != Py_None;
    PyObject* wanted = slot(op, at_wanted);
    if (!wanted || !PyList_CheckExact(wanted)) return nb::object();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(wanted); ++i) {
        if (!joint && (i >= n || PyTuple_GET_ITEM(edges.ptr(), i) == Py_None)) continue;
        PyObject* sources = PyList_GET_ITEM(wanted, i);
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(sources); ++k) {
            PyObject *source = PyTuple_GET_ITEM(sources, k), *name = PyTuple_GET_ITEM(source, 0);
            PyObject* kind = PyTuple_GET_ITEM(source, 1);
            const Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(source, 2));
            const int known = PyDict_Contains(kept.ptr(), name);
            if (known < 0 || (at == -1 && PyErr_Occurred())) throw nb::python_error();
            if (known) continue;
            const bool out = is(kind, word_out);
            if (at < 0 || at >= (out ? count : n)) return nb::object();
            if (out) {
                keep(kept.ptr(), versions, name, results[at]);
            } else if (is(kind, word_in)) {
                keep(kept.ptr(), versions, name, inputs[at]);
            } else {
                const bool shape = is(kind, word_shape);
                nb::object part = shape ? taken(PyTuple_New(0)) : nb::none();
                if (PyArray_Check(arrays[at])) part = asked(arrays[at], shape ? word_shape : word_dtype);
                if (PyDict_SetItem(kept.ptr(), name, part.ptr()) < 0) throw nb::python_error();
            }
        }
    }
    return make_node(op, edges.ptr(), kept.ptr(), versions.ptr(), settings, shapes.ptr());
}

namespace {

// `Op.node` and `Elementwise.node`: (inputs, arrays, results, settings)
PyObject* node_or(PyObject* plain, PyObject* op, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        const bool known = n == 4 && PyTuple_CheckExact(args[0]) && (PyTuple_CheckExact(args[1]) || PyList_CheckExact(args[1])) &&
                           PyTuple_CheckExact(args[2]) && PyTuple_GET_SIZE(args[2]) > 0 &&
                           PySequence_Fast_GET_SIZE(args[1]) == PyTuple_GET_SIZE(args[0]);
        if (known) {
            nb::object node = node_of(op, PySequence_Fast_ITEMS(args[0]), PySequence_Fast_ITEMS(args[1]),
                                      PyTuple_GET_SIZE(args[0]), PySequence_Fast_ITEMS(args[2]),
                                      PyTuple_GET_SIZE(args[2]), args[3]);
            if (node.is_valid()) return node.release().ptr();
        }
        return by_python(plain, op, args, n, nullptr);
    });
}
PyObject* op_node_or(PyObject* op, PyObject* const* args, Py_ssize_t n) { return node_or(plain_op_node, op, args, n); }
PyObject* elementwise_node_or(PyObject* op, PyObject* const* args, Py_ssize_t n) {
    return node_or(plain_elementwise_node, op, args, n);
}
#define FW_METHOD(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&f))
PyMethodDef node_methods[] = {
    {"node", FW_METHOD(op_node_or), METH_FASTCALL, "The node of a call, with what the rules of its inputs want kept."},
    {"node", FW_METHOD(elementwise_node_or), METH_FASTCALL, "``Op.node``, with the shapes where operands were broadcast."}};

// `node` of a class of records becomes ours; Python's is kept.
PyObject* replace_node(nb::object& type, PyMethodDef& method, PyObject*& plain) {
    plain = asked(type.ptr(), word_node).release().ptr();
    nb::object made = taken(PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &method));
    nb::setattr(type, "node", made);
    return made.release().ptr();
}

// How nodes are numbered, and the classes of the records that make them; before it Python makes them.
void set_up(nb::object seq, nb::object op, nb::object elementwise) {
    const char* parts[PARTS] = {"op", "edges", "kept", "versions", "settings", "shapes", "seq", "hooks"};
    for (int i = 0; i < PARTS; ++i) at_parts[i] = place_of(node_type, parts[i]);
    at_plain_op = place_of(plain_type, "op"), at_plain_edges = place_of(plain_type, "edges");
    at_plain_seq = place_of(plain_type, "seq"), at_plain_hooks = place_of(plain_type, "hooks");
    auto* type = reinterpret_cast<PyTypeObject*>(op.ptr());
    at_keeps_nothing = place_of(type, "keeps_nothing"), at_wanted = place_of(type, "wanted");
    at_joint = place_of(type, "joint"), at_variadic = place_of(type, "variadic");
    word_init = word("__init__"), word_node = word("node");
    word_shape = word("shape"), word_dtype = word("dtype"), word_out = word("out"), word_in = word("in");
    node_init = asked(reinterpret_cast<PyObject*>(node_type), word_init).release().ptr();
    plain_init = asked(reinterpret_cast<PyObject*>(plain_type), word_init).release().ptr();
    op_node = replace_node(op, node_methods[0], plain_op_node);
    elementwise_node = replace_node(elementwise, node_methods[1], plain_elementwise_node);
    next_seq = seq.release().ptr();
}

}  // namespace

FW_BIND(m) {
    m.def("set_up_nodes", &set_up);
    m.def("set_up_picks", [](nb::object kind) {
        pick_type = reinterpret_cast<PyTypeObject*>(kind.release().ptr());
        const char* parts[] = {"edges", "index", "hooks", "seq"};
        for (int i = 0; i < 4; ++i) at_pick[i] = place_of(pick_type, parts[i]);
    });
}

}  // namespace fw::tensors
