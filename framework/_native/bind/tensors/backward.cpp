// Backward's walk over the graph (`autograd/engine.py`) and what a record's `pull` does on the way (`ops/record/op.py`):
// the same steps, and Python's functions where anything is out of the ordinary.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bind/tensors/tensors.h"

namespace fw::tensors::backward {
namespace {

constexpr npy_intp WORTH_REUSING = 1 << 17;  // numbers of gradients, as the engine's LARGE
using Objects = std::vector<nb::object>;

PyTypeObject *leaf_class = nullptr, *pick_class, *op_class, *rule_class, *expression_class;
PyObject *pull_of_op, *pull_of_elementwise, *masked_walks, *thread_state;
PyObject *plus, *add_into, *own_array, *lies_alone, *call_hooks, *accumulate, *takes_over, *mended;  // Python's
PyObject *word_pull, *word_pull_new, *word_on, *word_passes, *word_base, *word_array, *word_key, *word_needs, *word_walk, *word_variable;
PyObject *word_differentiable, *word_among_inputs, *word_among_outputs, *word_g;

// The slots of the classes that stand in a graph; those of other classes are asked for by name.
enum Part { EDGES, SEQ, HOOKS, OP, KEPT, VERSIONS, SETTINGS, SHAPES, PARTS };
PyObject* part_names[PARTS];
Py_ssize_t of_node[PARTS], of_plain[PARTS], of_leaf[PARTS], of_pick[PARTS];
Py_ssize_t at_leaf_grad, at_leaf_after, at_leaf_home, at_pick_index;
Py_ssize_t at_op_joint, at_rules, at_op_wanted, at_masks, at_op_variadic, at_op_keeps_nothing, at_moves, at_rounded, at_part;
Py_ssize_t at_function, at_rule_names, at_text, at_expression_names, at_on_arrays, at_on_tensors;

nb::object part(PyObject* node, Part which) {
    PyTypeObject* type = Py_TYPE(node);
    const Py_ssize_t at = type == node_type ? of_node[which] : type == plain_type ? of_plain[which]
                        : type == leaf_class ? of_leaf[which] : type == pick_class ? of_pick[which] : 0;
    if (at && slot(node, at)) return nb::borrow(slot(node, at));
    return asked(node, part_names[which]);
}

// Nodes that are made afterwards in another's place (`jit/deferral.py`) have fractions.
double age(PyObject* node) {
    const double seq = PyFloat_AsDouble(part(node, SEQ).ptr());
    if (seq == -1 && PyErr_Occurred()) throw nb::python_error();
    return seq;
}

nb::object edges_of(PyObject* node) {
    nb::object edges = part(node, EDGES);
    if (!PyTuple_Check(edges.ptr())) throw nb::type_error("backward: the edges of a node are a tuple");
    return edges;
}

bool contains(const nb::object& set, PyObject* x) {
    const int found = PySet_Contains(set.ptr(), x);
    if (found < 0) throw nb::python_error();
    return found;
}

bool is_true(PyObject* x) {
    const int truth = PyObject_IsTrue(x);
    if (truth < 0) throw nb::python_error();
    return truth;
}

// Of a dict; null where it is not in it.
nb::object looked_up(PyObject* dict, PyObject* name) {
    if (!PyDict_Check(dict)) return nb::object();
    PyObject* found = PyDict_GetItemWithError(dict, name);
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return nb::borrow(found);
}

template <class... Args> nb::object called(PyObject* f, const Args&... args) {
    PyObject* given[] = {args.ptr()...};
    return taken(PyObject_Vectorcall(f, given, sizeof...(args), nullptr));
}

bool same_word(PyObject* a, PyObject* b) { return a == b || (PyUnicode_Check(a) && PyUnicode_Compare(a, b) == 0); }
nb::object truth(bool value) { return nb::borrow(value ? Py_True : Py_False); }

struct Waiting {
    nb::object node, g;
    bool owned = false;  // whether g is an array that nobody else has
};

struct Walk {
    bool retain, live, limited;                // limited: to what is needed for the targets
    nb::object needed, targets, caught, here;  // here: the engine's own, which ops with `masks` are noted for
    nb::object given;                          // what its `given` is
    std::unordered_map<PyObject*, Waiting> pending;
    std::vector<std::pair<double, PyObject*>> heap{};           // the newest first
    std::vector<std::pair<nb::object, nb::object>> late{};       // leaves that take an array which others may still read
    nb::object node{}, g{};  // in a chain the next node is known, and needs no turn on the heap
    PyArray_Descr* widened = nullptr;  // float32 where a rule runs on numbers of 16 bits as on that
    bool mine = false;       // whether nobody else has g

    void wait(PyObject* next, const nb::object& with, bool fresh) {
        pending[next] = {nb::borrow(next), with, fresh};
        heap.emplace_back(age(next), next);
        std::push_heap(heap.begin(), heap.end());
    }
    void add(PyObject* next, const nb::object& with, bool fresh);
    void add_part(PyObject* source, nb::object index);
    void pick_next();
    nb::object on_the_way(const nb::object& edges);
    void arrive();
    bool pulled(PyObject* op, const nb::object& edges, Objects& grads);
    bool by_rules(PyObject* op, const nb::object& edges, Objects& grads);
    bool by_rules_in_float32(PyObject* op, const nb::object& edges, Objects& grads);
    bool apply(PyObject* op, Py_ssize_t i, PyObject* rule, const nb::object& kept, const nb::object& edges,
               PyObject* shape, nb::object& grad);
    bool argument(PyObject* op, Py_ssize_t i, PyObject* name, const nb::object& kept, nb::object& value);
    bool is_handed_through(PyObject* grad) const;
    bool added_to_part(PyObject* op, const nb::object& edges);
    void hand_on(PyObject* op, const nb::object& edges, const Objects& grads, bool fresh);
    void step();
    void go();
};

void Walk::add(PyObject* next, const nb::object& with, bool fresh) {
    const auto found = pending.find(next);
    if (found == pending.end()) {
        if (Py_TYPE(next) == node_type && PyLong_AsLong(asked(part(next, OP).ptr(), word_differentiable).ptr()) > 1) {
            PyErr_SetString(PyExc_AssertionError, "a node of several outputs is reached through its picks");
            throw nb::python_error();
        }
        return wait(next, with, fresh);
    }
    Waiting& waiting = found->second;
    if (waiting.owned && PyArray_Check(waiting.g.ptr()) && PyArray_Check(with.ptr()))
        called(add_into, waiting.g, with);
    else
        waiting.g = called(plus, waiting.g, with), waiting.owned = true;
}

// Of a node with several outputs: a list of their gradients.
void Walk::add_part(PyObject* source, nb::object index) {
    auto found = pending.find(source);
    if (found == pending.end()) {
        const Py_ssize_t count = PyLong_AsSsize_t(asked(part(source, OP).ptr(), word_differentiable).ptr());
        if (count < 0) throw nb::python_error();
        nb::object parts = taken(PyList_New(count));
        for (Py_ssize_t i = 0; i < count; ++i) PyList_SET_ITEM(parts.ptr(), i, none());
        wait(source, parts, false);
        found = pending.find(source);
    }
    const nb::object parts = found->second.g, before = taken(PyObject_GetItem(parts.ptr(), index.ptr()));
    const nb::object sum = before.is_none() ? g : called(plus, before, g);
    if (PyObject_SetItem(parts.ptr(), index.ptr(), sum.ptr()) < 0) throw nb::python_error();
}

void Walk::pick_next() {
    std::pop_heap(heap.begin(), heap.end());
    const auto found = pending.find(heap.back().second);
    heap.pop_back();
    node = found->second.node, g = found->second.g, mine = found->second.owned;
    pending.erase(found);
}

// The edges that lead to a target; none if the walk ends here, so that the node keeps what it has.
nb::object Walk::on_the_way(const nb::object& edges) {
    if (contains(targets, node.ptr())) {
        if (PyDict_SetItem(caught.ptr(), node.ptr(), g.ptr()) < 0) throw nb::python_error();
        mine = false;
    }
    const Py_ssize_t n = PyTuple_GET_SIZE(edges.ptr());
    nb::object left = taken(PyTuple_New(n));
    bool all = true, any = false;
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* edge = PyTuple_GET_ITEM(edges.ptr(), i);
        const bool leads = contains(needed, edge);
        all &= leads, any |= leads && edge != Py_None;
        PyTuple_SET_ITEM(left.ptr(), i, nb::borrow(leads ? edge : Py_None).release().ptr());
    }
    return all ? edges : any ? left : taken(PyTuple_New(0));
}

void Walk::arrive() {
    const bool first = Py_TYPE(node.ptr()) == leaf_class && !live && PyArray_CheckExact(g.ptr()) &&
                       slot(node.ptr(), at_leaf_grad) == Py_None && slot(node.ptr(), at_leaf_after) == Py_None;
    if (first)
        Py_SETREF(slot(node.ptr(), at_leaf_grad), tensor_over(g).release().ptr());
    else
        called(accumulate, node, g, truth(live));
}

// The argument of a rule that is called so, as it was kept or as the call was set; as a tensor at its place in the graph
// where gradients are live. False where Python is to find it.
bool Walk::argument(PyObject* op, Py_ssize_t i, PyObject* name, const nb::object& kept, nb::object& value) {
    value = looked_up(kept.ptr(), name);
    if (!value) {
        value = looked_up(part(node.ptr(), SETTINGS).ptr(), name);
        return bool(value);
    }
    if (!live) return true;
    PyObject* wanted = slot(op, at_op_wanted);
    if (!wanted || !PyList_CheckExact(wanted) || i >= PyList_GET_SIZE(wanted)) return false;
    const nb::object of_rule = nb::borrow(PyList_GET_ITEM(wanted, i));
    PyObject* sources = of_rule.ptr();
    if (!PyTuple_Check(sources)) return false;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(sources); ++k) {
        PyObject* source = PyTuple_GET_ITEM(sources, k);  // its name among the rule's arguments, what it is, of which one
        if (!PyTuple_Check(source) || PyTuple_GET_SIZE(source) != 3) return false;
        PyObject* kind = PyTuple_GET_ITEM(source, 1);
        if (!same_word(PyTuple_GET_ITEM(source, 0), name)) continue;
        const bool input = same_word(kind, word_among_inputs), output = same_word(kind, word_among_outputs);
        if (!input && !output) return true;
        if (!PyArray_CheckExact(value.ptr())) return PyFloat_CheckExact(value.ptr()) || PyLong_CheckExact(value.ptr());
        const Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(source, 2));
        if (at == -1 && PyErr_Occurred()) throw nb::python_error();
        const nb::object edges = edges_of(node.ptr());
        if (at < 0 || at >= (input ? PyTuple_GET_SIZE(edges.ptr()) : 1)) return false;
        value = tensor_over(value, input ? nb::borrow(PyTuple_GET_ITEM(edges.ptr(), at)) : node);
        return true;
    }
    return true;
}

// The gradient by a record's rule number i, of an operand of this shape where one was broadcast.
bool Walk::apply(PyObject* op, Py_ssize_t i, PyObject* rule, const nb::object& kept, const nb::object& edges,
                 PyObject* shape, nb::object& grad) {
    const bool expression = Py_TYPE(rule) == expression_class, plain = Py_TYPE(rule) == rule_class;
    if (shape && expression && same_word(slot(rule, at_text), word_g)) {
        grad = summed(g, shape);
        return true;
    }
    PyObject* names = expression ? slot(rule, at_expression_names) : plain ? slot(rule, at_rule_names) : nullptr;
    if (!names || !PyTuple_Check(names)) return false;
    Objects held;
    std::vector<PyObject*> given{g.ptr()};
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); ++k) {
        PyObject* name = PyTuple_GET_ITEM(names, k);
        nb::object value;
        if (same_word(name, word_needs)) {
            const Py_ssize_t n = PyTuple_GET_SIZE(edges.ptr());
            value = taken(PyTuple_New(n));
            for (Py_ssize_t e = 0; e < n; ++e)
                PyTuple_SET_ITEM(value.ptr(), e, truth(PyTuple_GET_ITEM(edges.ptr(), e) != Py_None).release().ptr());
        } else if (!argument(op, i, name, kept, value)) {
            return false;
        }
        if (widened && !widen_for_rule(value, widened)) return false;
        given.push_back(value.ptr());
        held.push_back(std::move(value));
    }
    PyObject* known = plain ? slot(rule, at_function) : slot(rule, live ? at_on_tensors : at_on_arrays);
    nb::object f = known && known != Py_None ? nb::borrow(known) : called(asked(rule, word_on).ptr(), g);
    if (shape && is_broadcast(reinterpret_cast<PyArrayObject*>(g.ptr()), shape)) {
        grad = folded(f, shape, given.data(), given.size());
        if (grad.is(not_implemented())) grad = taken(PyObject_Vectorcall(f.ptr(), given.data(), given.size(), nullptr));
        grad = summed(std::move(grad), shape);
        return true;
    }
    grad = taken(PyObject_Vectorcall(f.ptr(), given.data(), given.size(), nullptr));
    return true;
}

void append_all(PyObject* many, Objects& to) {
    const nb::object items = taken(PySequence_Fast(many, "a rule gives a gradient for each input"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i)
        to.push_back(nb::borrow(PySequence_Fast_GET_ITEM(items.ptr(), i)));
}

// `Op.pull` where what was kept is as it was; false where Python is to do it, or to say what is wrong.
bool Walk::by_rules(PyObject* op, const nb::object& edges, Objects& grads) {
    const nb::object kept = part(node.ptr(), KEPT), versions = part(node.ptr(), VERSIONS);
    if (versions.is_none() || !is_true(versions.ptr())) {
        if (kept.is_none() && slot(op, at_op_keeps_nothing) != Py_True) return false;
    } else if (PyList_Check(versions.ptr())) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(versions.ptr()); ++i) {
            PyObject* stamp = PyList_GET_ITEM(versions.ptr(), i);
            PyObject* counter = PyTuple_Check(stamp) && PyTuple_GET_SIZE(stamp) == 2 ? PyTuple_GET_ITEM(stamp, 0) : nullptr;
            if (!counter || !PyList_Check(counter) || PyList_GET_SIZE(counter) == 0) return false;
            PyObject *now = PyList_GET_ITEM(counter, 0), *then = PyTuple_GET_ITEM(stamp, 1);
            if (now != then && (!PyLong_CheckExact(now) || !PyLong_CheckExact(then) ||
                                PyObject_RichCompareBool(now, then, Py_EQ) != 1))
                return false;
        }
    } else {
        return false;
    }
    const nb::object joint = nb::borrow(slot(op, at_op_joint)), rules = nb::borrow(slot(op, at_rules));
    if (!joint.is_valid() || slot(op, at_op_variadic) != Py_False) return false;
    if (!joint.is_none()) {
        nb::object many;
        if (!apply(op, 0, joint.ptr(), kept, edges, nullptr, many)) return false;
        append_all(many.ptr(), grads);
        return true;
    }
    const Py_ssize_t n = PyTuple_GET_SIZE(edges.ptr());
    const nb::object shapes = part(node.ptr(), SHAPES);
    const bool shaped = !shapes.is_none();
    if (!rules.is_valid() || !PyList_CheckExact(rules.ptr())) return false;
    if (shaped && (!PyTuple_CheckExact(shapes.ptr()) || PyTuple_GET_SIZE(shapes.ptr()) != n)) return false;
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (PyList_GET_SIZE(rules.ptr()) != n) return false;
        nb::object rule = nb::borrow(PyList_GET_ITEM(rules.ptr(), i)), grad = nb::none();
        PyObject* shape = shaped ? PyTuple_GET_ITEM(shapes.ptr(), i) : nullptr;
        const bool leads = PyTuple_GET_ITEM(edges.ptr(), i) != Py_None && !rule.is_none();
        if (leads && (shape == Py_None || !apply(op, i, rule.ptr(), kept, edges, shape, grad))) return false;
        grads.push_back(std::move(grad));
    }
    return true;
}

// The same for a gradient of 16 bits where the rules are of float32: on what was kept as that, and rounded once.
bool Walk::by_rules_in_float32(PyObject* op, const nb::object& edges, Objects& grads) {
    const nb::object given = g;
    const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(g.ptr()))));
    const nb::object wide = nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_FLOAT)));
    widened = reinterpret_cast<PyArray_Descr*>(wide.ptr());
    g = in_dtype(g.ptr(), widened);
    const bool done = by_rules(op, edges, grads);
    widened = nullptr;
    g = given;
    if (done)
        for (nb::object& grad : grads) grad = given_back(std::move(grad), NPY_FLOAT, reinterpret_cast<PyArray_Descr*>(type.ptr()));
    return done;
}

// The `pull` of records over plain arrays, and over tensors where gradients are live.
bool Walk::pulled(PyObject* op, const nb::object& edges, Objects& grads) {
    if (!PyObject_TypeCheck(op, op_class)) return false;
    const nb::object own = asked(reinterpret_cast<PyObject*>(Py_TYPE(op)), word_pull);
    const bool elementwise = own.ptr() == pull_of_elementwise;
    if ((!elementwise && own.ptr() != pull_of_op) || (Py_TYPE(node.ptr()) != node_type && Py_TYPE(node.ptr()) != plain_type))
        return false;
    const bool shaped = elementwise && !part(node.ptr(), SHAPES).is_none();
    if (elementwise && !shaped && asked(op, word_passes).is(truth(true))) {
        grads.assign(size_t(PyTuple_GET_SIZE(edges.ptr())), g);
        return true;
    }
    if (!live && !PyArray_CheckExact(g.ptr())) return false;
    auto* array = live ? array_of(g.ptr()) : reinterpret_cast<PyArrayObject*>(g.ptr());
    if (!array || (shaped && (live || slot(op, at_op_joint) != Py_None))) return false;
    const bool rounded = !live && is_narrow(PyArray_DESCR(array));
    if (!rounded && PyArray_DESCR(array)->kind != 'f') return false;
    const bool masks = slot(op, at_masks) == Py_True;
    if (masks && !here.is_none() && PySet_Add(masked_walks, here.ptr()) < 0) throw nb::python_error();
    const bool mending = elementwise && !here.is_none() && (masks || contains(nb::borrow(masked_walks), here.ptr()));
    if (shaped && (mending || rounded)) return false;
    const bool wide = rounded && slot(op, at_moves) != Py_True && slot(op, at_rounded) == Py_None;
    if (!(wide ? by_rules_in_float32(op, edges, grads) : by_rules(op, edges, grads))) return false;
    for (nb::object& grad : grads)
        if (mending && !grad.is_none()) grad = called(mended, grad, g);
    return true;
}

// The engine's `_is_handed_through`.
bool Walk::is_handed_through(PyObject* grad) const {
    if (given.is_none() || !PyArray_CheckExact(grad)) return false;
    auto* a = reinterpret_cast<PyArrayObject*>(grad);
    bool repeats = false;
    for (int d = 0; d < PyArray_NDIM(a); ++d) repeats = repeats || (PyArray_DIM(a, d) > 1 && PyArray_STRIDE(a, d) == 0);
    if (!PyArray_ISCARRAY(a) && !repeats) return false;
    nb::object owner = nb::borrow(grad);
    while (PyArray_Check(owner.ptr()) && PyArray_BASE(reinterpret_cast<PyArrayObject*>(owner.ptr())))
        owner = nb::borrow(PyArray_BASE(reinterpret_cast<PyArrayObject*>(owner.ptr())));
    return contains(given, taken(PyLong_FromVoidPtr(owner.ptr())).ptr());
}

// Whether an array, and its memory, is known by so many references of the walk's own and by nobody else.
bool is_alone(const nb::object& grad, Py_ssize_t references) {
    auto* a = reinterpret_cast<PyArrayObject*>(grad.ptr());
    return PyArray_CheckExact(grad.ptr()) && Py_REFCNT(grad.ptr()) == references && !PyArray_BASE(a) &&
           PyArray_CHKFLAGS(a, NPY_ARRAY_OWNDATA) && PyArray_ISWRITEABLE(a);
}

// Whether a leaf may have an array as it is: `hand_on` alone knows it (by what it was handed, the rule's gradients, and one more), and
// a copy would lie alike.
bool is_left(PyObject* leaf, const nb::object& grad) {
    if (!is_alone(grad, 3) || !PyArray_IS_C_CONTIGUOUS(reinterpret_cast<PyArrayObject*>(grad.ptr()))) return false;
    PyArrayObject* a = array_of(asked(leaf, word_variable).ptr());
    return a && PyArray_IS_C_CONTIGUOUS(a);
}

// The same of a view that shows all of what was handed on, in order, where that is known by `hand_on` and the view alone.
bool is_left_seen(PyObject* leaf, const nb::object& grad, const nb::object& handed) {
    if (!PyArray_CheckExact(grad.ptr()) || !PyArray_CheckExact(handed.ptr()) || Py_REFCNT(grad.ptr()) != 2 || !is_alone(handed, 2)) return false;
    auto *a = reinterpret_cast<PyArrayObject*>(grad.ptr()), *whole = reinterpret_cast<PyArrayObject*>(handed.ptr());
    if (PyArray_BASE(a) != handed.ptr() || PyArray_NBYTES(a) != PyArray_NBYTES(whole) || !PyArray_ISCARRAY(a)) return false;
    PyArrayObject* own = array_of(asked(leaf, word_variable).ptr());
    return own && PyArray_IS_C_CONTIGUOUS(own);
}

void Walk::hand_on(PyObject* op, const nb::object& edges, const Objects& grads, bool fresh) {
    const nb::object handed = std::move(g);
    bool handed_mine = mine;
    node = nb::object(), g = nb::object(), mine = false;
    const size_t n = std::min(size_t(PyTuple_GET_SIZE(edges.ptr())), grads.size());
    for (size_t i = 0; i < n; ++i) {
        PyObject* edge = PyTuple_GET_ITEM(edges.ptr(), Py_ssize_t(i));
        nb::object grad = grads[i];
        if (edge == Py_None || grad.is_none()) continue;
        if (Py_TYPE(edge) == leaf_class && !live && !fresh) {
            const bool whole = grad.is(handed);
            const bool base = PyArray_CheckExact(grad.ptr())
                                  ? PyArray_BASE(reinterpret_cast<PyArrayObject*>(grad.ptr())) != nullptr
                                  : whole || !asked(grad.ptr(), word_base).is_none();
            PyObject* home = slot(edge, at_leaf_home);
            if ((whole || base) && (!home || home == Py_None || !asked(home, word_array).is(grad)) &&
                !is_handed_through(grad.ptr())) {
                const nb::object leaf = nb::borrow(edge);
                if (handed_mine && whole && !limited && is_true(called(takes_over, leaf, nb::borrow(op)).ptr())) {
                    late.emplace_back(leaf, handed);
                    handed_mine = false;
                    continue;
                }
                if (whole ? !is_left(edge, grad) : !is_left_seen(edge, grad, handed) && !is_true(called(lies_alone, leaf, grad).ptr()))
                    grad = called(own_array, leaf, grad);  // a leaf's .grad is the user's: never shared with another's
            }
        }
        if (!heap.empty()) {
            add(edge, grad, fresh);
        } else if (!node) {
            node = nb::borrow(edge), g = grad;
        } else {
            add(node.ptr(), g, fresh);
            add(edge, grad, fresh);
            node = nb::object(), g = nb::object();
        }
    }
    mine = node && fresh;
}

// A gradient of a part of what another one waits for, which nobody else has, is added to that part of it: no zeros are made around
// it, so that a loop over the steps of a sequence costs as much as the sequence is long.
bool Walk::added_to_part(PyObject* op, const nb::object& edges) {
    if (live || !PyObject_TypeCheck(op, op_class) || slot(op, at_part) != Py_True || PyTuple_GET_SIZE(edges.ptr()) != 1) return false;
    const auto found = pending.find(PyTuple_GET_ITEM(edges.ptr(), 0));
    if (found == pending.end() || !found->second.owned || !PyArray_CheckExact(found->second.g.ptr()) || !PyArray_CheckExact(g.ptr())) return false;
    auto *whole = reinterpret_cast<PyArrayObject*>(found->second.g.ptr()), *own = reinterpret_cast<PyArrayObject*>(g.ptr());
    const int type = PyArray_TYPE(own);
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || PyArray_TYPE(whole) != type || !PyArray_ISWRITEABLE(whole)) return false;
    nb::object key = looked_up(part(node.ptr(), SETTINGS).ptr(), word_key);
    if (!key.is_valid() || !PyTuple_CheckExact(key.ptr())) return false;
    bool open = false;  // with an ellipsis a single number is an array, too
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key.ptr()); ++i) open = open || PyTuple_GET_ITEM(key.ptr(), i) == Py_Ellipsis;
    if (!open) key = taken(PySequence_Concat(key.ptr(), nb::make_tuple(nb::ellipsis()).ptr()));
    const nb::object seen = taken(PyObject_GetItem(found->second.g.ptr(), key.ptr()));
    if (!PyArray_CheckExact(seen.ptr())) return false;
    auto* to = reinterpret_cast<PyArrayObject*>(seen.ptr());
    if (PyArray_NDIM(to) != PyArray_NDIM(own) || !PyArray_CompareLists(PyArray_DIMS(to), PyArray_DIMS(own), PyArray_NDIM(to))) return false;
    if (slot(op, at_masks) == Py_True && !here.is_none() && PySet_Add(masked_walks, here.ptr()) < 0) throw nb::python_error();
    called(add_into, seen, g);
    node = nb::object(), g = nb::object(), mine = false;
    return true;
}

// Whether no rule of a record is to hand its gradient on.
bool passes_nothing(const nb::object& op) {
    nb::object passes = nb::steal(PyObject_GetAttr(op.ptr(), word_passes));
    if (!passes) PyErr_Clear();
    return passes.is(nb::handle(Py_False));
}

void Walk::step() {
    if (!part(node.ptr(), HOOKS).is_none()) {
        g = called(call_hooks, node, g, truth(live));
        mine = false;
    }
    nb::object edges = edges_of(node.ptr());
    if (limited) edges = on_the_way(edges);
    const bool pick = Py_TYPE(node.ptr()) == pick_class;
    if (pick || PyTuple_GET_SIZE(edges.ptr()) == 0) {
        if (PyTuple_GET_SIZE(edges.ptr())) {
            PyObject *source = PyTuple_GET_ITEM(edges.ptr(), 0), *index = slot(node.ptr(), at_pick_index);
            if (source != Py_None && index) add_part(source, nb::borrow(index));
        } else if (Py_TYPE(node.ptr()) == leaf_class && !limited) {
            arrive();
        }
        node = nb::object(), g = nb::object();
        return;
    }
    const nb::object op = part(node.ptr(), OP), versions = part(node.ptr(), VERSIONS);
    if (added_to_part(op.ptr(), edges)) return;
    const bool kept = !versions.is_none() && is_true(versions.ptr());
    Objects grads;
    bool fresh = false;
    nb::object pull_new;
    const bool alone = mine || is_alone(g, 1);
    if ((kept || (alone && passes_nothing(op))) && PyArray_CheckExact(g.ptr()) && PyArray_SIZE(reinterpret_cast<PyArrayObject*>(g.ptr())) >= WORTH_REUSING) {
        pull_new = nb::steal(PyObject_GetAttr(op.ptr(), word_pull_new));
        if (!pull_new) PyErr_Clear();
    }
    if (pull_new) {
        const nb::object both = called(pull_new.ptr(), node, g, edges, truth(alone));
        Objects parts;
        append_all(both.ptr(), parts);
        if (parts.size() != 2) throw nb::type_error("backward: pull_new gives gradients and whether they are new");
        append_all(parts[0].ptr(), grads);
        fresh = kept && is_true(parts[1].ptr());
        if (!kept) g = nb::object();  // what was written into its memory goes on as what has memory of its own does
    } else if (!pulled(op.ptr(), edges, grads)) {
        grads.clear();
        append_all(called(asked(op.ptr(), word_pull).ptr(), node, g, edges, truth(live)).ptr(), grads);
    }
    if (kept && !retain)
        for (Part freed : {KEPT, VERSIONS})
            if (PyObject_SetAttr(node.ptr(), part_names[freed], Py_None) < 0) throw nb::python_error();
    hand_on(op.ptr(), edges, grads, fresh);
}

void Walk::go() {
    while (node || !heap.empty()) {
        if (PyErr_CheckSignals() < 0) throw nb::python_error();
        if (!node) pick_next();
        step();
    }
    for (auto& [leaf, array] : late) called(accumulate, leaf, array, truth(live));
}

// The engine's `_run_plainly` where nobody watches, all is on the CPU and the walk does not end at its targets.
void walk_back(nb::dict pending, bool retain, bool live, nb::object needed, nb::set targets, nb::dict caught) {
    if (!leaf_class) throw nb::type_error("walk_back: the classes of the graph are not known yet");
    if (!needed.is_none() && !PyAnySet_Check(needed.ptr())) throw nb::type_error("walk_back: needed is a set, or None");
    const nb::object here = asked(thread_state, word_walk);
    static PyObject* const word_given = word("given");
    const nb::object own = here.is_none() ? nb::none() : asked(here.ptr(), word_given);
    Walk walk{retain, live, !needed.is_none(), needed, targets, caught, here, own, {}};
    for (auto [node, g] : pending) walk.wait(node.ptr(), nb::borrow(g), false);
    pending.clear();
    walk.go();
}

// The nodes on a path from `starts` to a target, and None, which edges to no node are.
nb::set needed_nodes(nb::list starts, nb::set targets) {
    if (!leaf_class) throw nb::type_error("needed_nodes: the classes of the graph are not known yet");
    double oldest = 0;
    bool any = false;
    for (nb::handle target : targets) {
        const double seq = age(target.ptr());
        oldest = any ? std::min(oldest, seq) : seq, any = true;
    }
    std::unordered_set<PyObject*> seen;
    std::vector<std::pair<double, nb::object>> found;
    for (nb::handle start : starts)
        if (seen.insert(start.ptr()).second) found.emplace_back(age(start.ptr()), nb::borrow(start));
    for (size_t i = 0; i < found.size(); ++i) {
        const nb::object edges = edges_of(found[i].second.ptr());
        for (Py_ssize_t e = 0; e < PyTuple_GET_SIZE(edges.ptr()); ++e) {
            PyObject* edge = PyTuple_GET_ITEM(edges.ptr(), e);
            if (edge == Py_None || Py_TYPE(edge) == leaf_class || seen.count(edge)) continue;
            const double seq = age(edge);
            if (seq < oldest || PyTuple_GET_SIZE(edges_of(edge).ptr()) == 0) continue;
            seen.insert(edge);
            found.emplace_back(seq, nb::borrow(edge));
        }
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    nb::set needed(targets);
    for (const auto& [seq, node] : found) {
        const nb::object edges = edges_of(node.ptr());
        for (Py_ssize_t e = 0; e < PyTuple_GET_SIZE(edges.ptr()); ++e)
            if (contains(needed, PyTuple_GET_ITEM(edges.ptr(), e))) {
                if (PySet_Add(needed.ptr(), node.ptr()) < 0) throw nb::python_error();
                break;
            }
    }
    if (PySet_Add(needed.ptr(), Py_None) < 0) throw nb::python_error();  // last: a path leads to a node
    return needed;
}

PyTypeObject* class_of(nb::handle module, const char* name) {
    return reinterpret_cast<PyTypeObject*>(asked(module.ptr(), word(name)).release().ptr());
}

// The engine's module and the classes of records and rules; before it Python walks.
void set_up_backward(nb::object engine, nb::object op, nb::object elementwise, nb::object rule, nb::object expression,
                     nb::object mend) {
    const char* parts[PARTS] = {"edges", "seq", "hooks", "op", "kept", "versions", "settings", "shapes"};
    PyTypeObject *leaf = class_of(engine, "Leaf"), *pick = class_of(engine, "Pick");
    for (int i = 0; i < PARTS; ++i) {
        part_names[i] = word(parts[i]);
        of_node[i] = place_of(node_type, parts[i]);
    }
    for (Part p : {EDGES, SEQ, HOOKS, OP}) of_plain[p] = place_of(plain_type, parts[p]);
    for (Part p : {SEQ, HOOKS}) of_leaf[p] = place_of(leaf, parts[p]);
    for (Part p : {EDGES, SEQ, HOOKS}) of_pick[p] = place_of(pick, parts[p]);
    at_leaf_grad = place_of(leaf, "grad"), at_leaf_after = place_of(leaf, "after"), at_leaf_home = place_of(leaf, "home");
    at_pick_index = place_of(pick, "index");
    auto* record = reinterpret_cast<PyTypeObject*>(op.ptr());
    at_op_joint = place_of(record, "joint"), at_rules = place_of(record, "rules"), at_op_wanted = place_of(record, "wanted");
    at_masks = place_of(record, "masks"), at_op_variadic = place_of(record, "variadic");
    at_op_keeps_nothing = place_of(record, "keeps_nothing"), at_moves = place_of(record, "moves");
    at_rounded = place_of(record, "rounded"), at_part = place_of(record, "part");
    rule_class = reinterpret_cast<PyTypeObject*>(rule.ptr());
    expression_class = reinterpret_cast<PyTypeObject*>(expression.ptr());
    at_function = place_of(rule_class, "function"), at_rule_names = place_of(rule_class, "names");
    at_expression_names = place_of(expression_class, "names"), at_text = place_of(expression_class, "text");
    word_g = word("g");
    at_on_arrays = place_of(expression_class, "_numpy"), at_on_tensors = place_of(expression_class, "_ops");
    word_pull = word("pull"), word_pull_new = word("pull_new"), word_on = word("on"), word_passes = word("_passes");
    word_base = word("base"), word_array = word("array"), word_key = word("key"), word_needs = word("needs"), word_walk = word("walk"), word_variable = word("variable");
    word_differentiable = word("differentiable"), word_among_inputs = word("in"), word_among_outputs = word("out");
    const auto of = [&](const char* name) { return asked(engine.ptr(), word(name)).release().ptr(); };
    plus = of("plus"), add_into = of("_add_into"), own_array = of("_own_array");
    lies_alone = of("_lies_alone"), call_hooks = of("_call_hooks");
    accumulate = of("accumulate"), takes_over = of("takes_over"), masked_walks = of("masked_walks"), thread_state = of("state");
    op_class = record;
    op.inc_ref();
    pull_of_op = asked(op.ptr(), word_pull).release().ptr();
    pull_of_elementwise = asked(elementwise.ptr(), word_pull).release().ptr();
    rule.release(), expression.release();
    mended = mend.release().ptr();
    pick_class = pick, leaf_class = leaf;
}

}  // namespace

FW_BIND(m) {
    m.def("set_up_backward", &set_up_backward);
    m.def("walk_back", &walk_back, nb::arg("pending"), nb::arg("retain"), nb::arg("live"), nb::arg("needed").none(),
          nb::arg("targets"), nb::arg("caught"));
    m.def("needed_nodes", &needed_nodes);
}

}  // namespace fw::tensors::backward
