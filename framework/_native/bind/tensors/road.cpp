// The road of a call (`ops/record/road.py`) for records on plain tensors: the same steps, and Python's functions where
// anything is out of the ordinary.
#include <algorithm>
#include <cstring>
#include <vector>

#include "bind/tensors/placed.h"

namespace fw::tensors {
namespace {

constexpr int MOST = 24;              // inputs and settings of a call
constexpr Py_ssize_t MOST_NAMES = 256;
PyObject* in_place_names;  // of functions
PyTypeObject* record_type;
PyObject *plain_run, *plain_call, *after, *finish_many, *as_array, *row_major, *track, *link_view, *declined,
    *plain_elementwise, *resumed, *pick, *word_differentiable;
PyObject *dtypes, *word_default, *word_numpy;  // `dtypes`, whose `_default` is what whole numbers become
PyObject *word_kinds, *word_result, *word_node, *word_in_graph, *word_kernel_for, *word_array_type, *word_writes, *word_name;
PyObject* cuda;  // `backends.cuda`, which knows the class of a GPU's arrays once there is one
Py_ssize_t at_view, at_bare, at_has_vjp, at_outputs, at_keeps_nothing, at_loose_from, at_moves, at_cpu, at_narrow;

bool is_number(PyObject* x) {
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || x == Py_None || PyBool_Check(x) || PyComplex_CheckExact(x);
}

bool is_bfloat16(PyArrayObject* a) { return PyArray_DESCR(a)->kind == 'V'; }

struct Call {
    PyObject* op;
    PyObject* const* inputs;
    Py_ssize_t n, count;     // inputs, settings
    PyObject* names;         // of the settings, whose values stand behind the inputs
    PyObject* arrays[MOST];  // kernel, arrays and settings, as they are handed on
    Py_ssize_t held = 0;     // of the inputs' arrays: a thread may give a tensor another one while the kernel runs
    bool recorded = false, narrow = false;  // narrow: bfloat16 is among them
    PyArray_Descr* into = nullptr;           // what arrays are converted to first; they are in no graph then

    Call(PyObject* op, PyObject* const* inputs, Py_ssize_t n, Py_ssize_t count, PyObject* names)
        : op(op), inputs(inputs), n(n), count(count), names(names) {}
    Call(const Call&) = delete;
    ~Call() {
        while (held) Py_DECREF(arrays[held--]);
    }
    void hold(PyObject* x) {
        Py_INCREF(x);
        arrays[++held] = x;
    }
    void hold_converted(PyArrayObject* a) { arrays[++held] = converted(a, into).release().ptr(); }

    nb::object given_inputs() const { return tuple_of(inputs, n); }
    nb::object given_arrays() const { return tuple_of(arrays + 1, n); }
    nb::object settings() const {
        nb::object made = taken(PyDict_New());
        for (Py_ssize_t i = 0; i < count; ++i)
            if (PyDict_SetItem(made.ptr(), PyTuple_GET_ITEM(names, i), inputs[n + i]) < 0) throw nb::python_error();
        return made;
    }
};

nb::object call(PyObject* f, std::initializer_list<PyObject*> args) {
    return taken(PyObject_Vectorcall(f, args.begin(), args.size(), nullptr));
}

// What the kernel's failure means: another result, or an error that says it.
nb::object recovered(PyObject* op, nb::object inputs, nb::object arrays, nb::object settings) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) throw nb::python_error();
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    nb::object error = nb::steal(value), kind = nb::steal(type), lines = nb::steal(trace);
    return call(after, {error.ptr(), op, inputs.ptr(), arrays.ptr(), settings.ptr()});
}

// Hang a node for the call on its result, if the thread records.
void note(PyObject* op, PyObject* const* given, PyObject* const* theirs, Py_ssize_t n, nb::object settings,
          nb::object& result) {
    const nb::object mode = here_of(modes, word_enabled);
    if (mode.ptr() == Py_False) return;
    if (mode.ptr() == Py_True) {
        PyObject* results[] = {result.ptr()};
        nb::object node = node_of(op, given, theirs, n, results, 1, settings.ptr());
        if (node.is_valid()) {
            Py_SETREF(slot(result.ptr(), at_node), node.release().ptr());
            return;
        }
    }
    PyObject* only[] = {result.ptr()};
    nb::object results = tuple_of(only, 1), inputs = tuple_of(given, n), arrays = tuple_of(theirs, n);
    PyObject* args[] = {op, inputs.ptr(), arrays.ptr(), results.ptr(), settings.ptr()};
    if (mode.ptr() == Py_True) {
        nb::object node = taken(PyObject_VectorcallMethod(word_node, args, 5, nullptr));
        Py_SETREF(slot(result.ptr(), at_node), node.release().ptr());
    } else {
        taken(PyObject_Vectorcall(track, args, 5, nullptr));
    }
}

// Whether the second operand has the first one's shape, or is a number.
bool alike(PyObject* const* arrays) {
    if (!PyArray_CheckExact(arrays[1])) return true;
    auto *a = reinterpret_cast<PyArrayObject*>(arrays[0]), *b = reinterpret_cast<PyArrayObject*>(arrays[1]);
    return PyArray_SAMESHAPE(a, b);
}

// Several results of a call; null where Python is to wrap them.
nb::object several(const Call& c, nb::handle out) {
    if (!PyTuple_CheckExact(out.ptr())) return nb::object();
    const nb::object mode = c.recorded && slot(c.op, at_has_vjp) == Py_True ? here_of(modes, word_enabled) : nb::none();
    if (!mode.is_none() && mode.ptr() != Py_True && mode.ptr() != Py_False) return nb::object();
    const Py_ssize_t n = PyTuple_GET_SIZE(out.ptr());
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* a = PyTuple_GET_ITEM(out.ptr(), i);
        if (!PyArray_CheckExact(a) || !PyArray_IS_C_CONTIGUOUS(reinterpret_cast<PyArrayObject*>(a))) return nb::object();
    }
    nb::object made = taken(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i)
        PyTuple_SET_ITEM(made.ptr(), i, tensor_over(nb::borrow(PyTuple_GET_ITEM(out.ptr(), i))).release().ptr());
    if (mode.ptr() != Py_True) return made;
    const nb::object settings = c.settings();
    nb::object node = node_of(c.op, c.inputs, c.arrays + 1, c.n, PySequence_Fast_ITEMS(made.ptr()), n, settings.ptr());
    if (!node.is_valid()) return nb::object();
    const Py_ssize_t carrying = PyLong_AsSsize_t(asked(c.op, word_differentiable).ptr());  // of gradients
    for (Py_ssize_t i = 0; i < std::min(n, carrying); ++i) {
        nb::object place = carrying > 1 ? call(pick, {node.ptr(), taken(PyLong_FromSsize_t(i)).ptr()}) : node;
        Py_SETREF(slot(PyTuple_GET_ITEM(made.ptr(), i), at_node), place.release().ptr());
    }
    return made;
}

// The call; null where Python is to go the whole way.
nb::object run(Call& c) {
    for (Py_ssize_t i = 0; i < c.n; ++i) {
        PyObject* x = c.inputs[i];
        if (PyArrayObject* a = array_of(x)) {
            c.narrow = c.narrow || is_bfloat16(a);
            c.recorded = c.recorded || has_node(x);
            if (c.into) c.hold_converted(a);
            else c.hold(reinterpret_cast<PyObject*>(a));
        } else if (is_number(x)) {
            c.hold(x);
        } else {
            return nb::object();
        }
    }
    nb::object runner = here_of(quiet, word_run);
    if (runner.is_none()) return nb::object();
    for (Py_ssize_t i = 0; i < c.count; ++i) c.arrays[c.n + 1 + i] = c.inputs[c.n + i];
    nb::object kernel = kernel_of(c.op, c.narrow);
    c.arrays[0] = kernel.ptr();
    nb::object out;
    {
        const Placing placing(c.op, c.arrays + 1, c.n);
        out = nb::steal(PyObject_Vectorcall(runner.ptr(), c.arrays, size_t(c.n + 1), c.names));
    }
    if (!out.is_valid()) out = recovered(c.op, c.given_inputs(), c.given_arrays(), c.settings());
    if (!PyArray_CheckExact(out.ptr())) {
        if (PyTuple_GET_SIZE(slot(c.op, at_outputs)) > 1) {
            nb::object wrapped = several(c, out);
            if (wrapped.is_valid()) return wrapped;
            return call(finish_many, {c.op, c.given_inputs().ptr(), c.given_arrays().ptr(), out.ptr(), c.settings().ptr(),
                                      c.recorded ? Py_True : Py_False});
        }
        if (out.ptr() == Py_NotImplemented) {
            PyErr_SetNone(declined);
            throw nb::python_error();
        }
        out = call(as_array, {out.ptr()});
        if (!PyArray_CheckExact(out.ptr()))  // another device's
            return call(resumed, {c.op, c.given_inputs().ptr(), c.given_arrays().ptr(), out.ptr(), c.settings().ptr(),
                                  c.recorded ? Py_True : Py_False});
    }
    const bool bare = slot(c.op, at_bare) == Py_True;
    auto* array = reinterpret_cast<PyArrayObject*>(out.ptr());
    if (!bare && !PyArray_IS_C_CONTIGUOUS(array)) {
        if (PyArray_NDIM(array) >= PyLong_AsLong(slot(c.op, at_loose_from))) out = call(row_major, {out.ptr()});
    }
    const char kind = PyArray_DESCR(reinterpret_cast<PyArrayObject*>(out.ptr()))->kind;
    nb::object result = tensor_over(std::move(out));
    if (c.recorded && (kind == 'f' || kind == 'c' || kind == 'V') && slot(c.op, at_has_vjp) == Py_True)
        note(c.op, c.inputs, c.arrays + 1, c.n, c.settings(), result);
    if (!bare && slot(c.op, at_view) != Py_False)
        call(link_view, {c.inputs[0], result.ptr(), c.op, c.settings().ptr()});
    return result;
}

// Python's function in place of this one, with the arguments as they came.
// `Op.run`
PyObject* op_run(PyObject* op, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return guarded([&]() -> PyObject* {
        const Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
        if (n && n + count < MOST) {
            Call c(op, args, n, count, names);
            nb::object result = run(c);
            if (result.is_valid()) return result.release().ptr();
        }
        return by_python(plain_run, op, args, n, names);
    });
}

// `Op.__call__`: what rules call, on plain arrays only the kernel.
PyObject* op_call(PyObject* op, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return guarded([&]() -> PyObject* {
        bool plain = n > 0, narrow = false;
        for (Py_ssize_t i = 0; i < n; ++i) {
            if (array_of(args[i])) {
                const nb::object run = asked(reinterpret_cast<PyObject*>(Py_TYPE(op)), word_run);
                return by_python(run.ptr(), op, args, n, names);
            }
            const bool array = PyArray_CheckExact(args[i]);
            narrow = narrow || (array && is_bfloat16(reinterpret_cast<PyArrayObject*>(args[i])));
            plain = plain && (array || is_number(args[i]));
        }
        if (plain) return PyObject_Vectorcall(kernel_of(op, narrow).ptr(), args, size_t(n), names);
        return by_python(plain_call, op, args, n, names);
    });
}

// What the operands of a call are: tensors of one dtype, and numbers.
struct Operands {
    PyArray_Descr* dtype = nullptr;
    bool fit = true, large = false, floats = false, wholes = false;  // Python's numbers among them
    bool held = true;                                                // by 64 bits, if they are whole

    Operands(PyObject* const* args, Py_ssize_t begin, Py_ssize_t end) {
        for (Py_ssize_t i = begin; i < end && fit; ++i) {
            if (PyArrayObject* a = array_of(args[i])) {
                fit = (!dtype || PyArray_DESCR(a) == dtype);
                large = large || PyArray_SIZE(a) >= LARGE;
                dtype = PyArray_DESCR(a);
            } else {
                fit = PyFloat_CheckExact(args[i]) || PyLong_CheckExact(args[i]);
                (PyFloat_CheckExact(args[i]) ? floats : wholes) = true;
                int over = 0;
                if (wholes && PyLong_CheckExact(args[i])) PyLong_AsLongLongAndOverflow(args[i], &over);
                held = held && !over;
            }
        }
        fit = fit && dtype;
    }
    char kind() const { return dtype->kind == 'V' ? 'f' : dtype->kind; }  // bfloat16 is a floating one
    // Whether the numbers are of the tensors' kind: those that 64 bits hold beside floating ones, whole ones beside those of 64 bits.
    bool has_numbers_of_its_kind() const {
        return !(floats || wholes) || (kind() == 'f' && held) || (dtype->type_num == NPY_INT64 && !floats && held);
    }
};

bool is(const nb::object& text, const char* what) { return PyUnicode_CompareWithASCIIString(text.ptr(), what) == 0; }

bool has(const nb::object& kinds, char kind) {
    return PyUnicode_FindChar(kinds.ptr(), Py_UCS4(kind), 0, PyUnicode_GetLength(kinds.ptr()), 1) >= 0;
}

// Two tensors of different dtypes at the end of the inputs, of which one is converted to the other's; null where Python is to look.
nb::object run_jointly(PyObject* op, PyObject* const* args, Py_ssize_t n, Py_ssize_t count, PyObject* names,
                       const nb::object& kinds, const nb::object& result) {
    PyArrayObject *x = array_of(args[n - 2]), *y = array_of(args[n - 1]);
    PyArray_Descr* into = joint(x, y);
    if (!into) return nb::object();
    const char kind = into->kind == 'V' ? 'f' : into->kind;  // bfloat16 is a floating one
    if (!has(kinds, kind) || (kind != 'f' && is(result, "float"))) return nb::object();
    const Py_ssize_t other = PyArray_DESCR(x) == into ? n - 1 : n - 2;
    if (has_node(args[other])) return nb::object();  // the conversion is part of the graph
    const nb::object instead = tensor_over(converted(other == n - 1 ? y : x, into));
    PyObject* operands[MOST];
    std::copy(args, args + n + count, operands);
    operands[other] = instead.ptr();
    Call c(op, operands, n, count, names);
    return run(c);
}

}  // namespace

// `Elementwise.run`: where nothing is to be promoted, that is for tensors of one dtype that the record computes in, and
// Python's floats among floating ones, whole numbers among those of 64 bits; or where whole numbers become the default
// floating ones.
PyObject* elementwise_run(PyObject* op, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return guarded([&]() -> PyObject* {
        const Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
        if (n && n + count < MOST) {
            nb::object result = asked(op, word_result), kinds = asked(op, word_kinds);
            const bool chooses = n == 3 && is(result, "select");
            const Operands given(args, chooses && array_of(args[0]), n);  // a condition takes no part
            Call c(op, args, n, count, names);
            bool ready = given.fit && has(kinds, given.kind()) && given.has_numbers_of_its_kind();
            nb::object default_dtype;
            if (!ready && given.fit && given.held && !given.large && has(kinds, 'f') && std::strchr("iub", given.kind()) &&
                (given.floats || is(result, "float"))) {
                default_dtype = asked(asked(dtypes, word_default).ptr(), word_numpy);
                c.into = reinterpret_cast<PyArray_Descr*>(default_dtype.ptr());
                ready = c.into->kind == 'f';
            } else if (!ready && given.fit && !given.large && given.kind() == 'b' && given.wholes && !given.floats && given.held &&
                       has(kinds, 'i') && !is(result, "integer")) {
                default_dtype = nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_INT64)));
                c.into = reinterpret_cast<PyArray_Descr*>(default_dtype.ptr()), ready = true;
            } else if (!given.fit && n == 2 + chooses && array_of(args[n - 2]) && array_of(args[n - 1])) {
                nb::object made = run_jointly(op, args, n, count, names, kinds, result);
                if (made.is_valid()) return made.release().ptr();
            }
            if (ready) {
                nb::object made = run(c);
                if (made.is_valid()) return made.release().ptr();
            }
        }
        return by_python(plain_elementwise, op, args, n, names);
    });
}

namespace {

PyMethodDef elementwise_run_method = {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&elementwise_run)),
                                      METH_FASTCALL | METH_KEYWORDS, "``Op.run``, which promotes the inputs first."};

PyMethodDef run_method = {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&op_run)),
                          METH_FASTCALL | METH_KEYWORDS,
                          "On tensors and numbers: compute, wrap, and record if an input requires grad."};

PyMethodDef call_method = {"__call__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&op_call)),
                           METH_FASTCALL | METH_KEYWORDS,
                           "For rules: on tensors the recorded road, on arrays only the kernel."};

}  // namespace

PyObject* elementwise(PyObject* plain, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        const Py_ssize_t operands = (n - 2) / 2;  // op, operands, their arrays, whether it is recorded
        if ((n != 4 && n != 6) || !PyObject_TypeCheck(args[0], record_type))
            return PyObject_Vectorcall(plain, args, size_t(n), nullptr);  // which says what is wrong
        PyObject *op = args[0], *const *inputs = args + 1, *const *arrays = inputs + operands;
        nb::object runner = here_of(quiet, word_run), elsewhere;
        bool usual = !runner.is_none(), plain_arrays = usual, narrow = false;
        for (Py_ssize_t i = 0; i < operands && usual; ++i) {
            PyObject* a = arrays[i];
            if (i > 0 && is_number(a)) continue;
            const bool here = PyArray_CheckExact(a);
            plain_arrays = plain_arrays && here;
            if (here) {
                usual = plain_arrays;
                narrow = narrow || is_bfloat16(reinterpret_cast<PyArrayObject*>(a));
            } else {
                if (!elsewhere.is_valid()) elsewhere = asked(cuda, word_array_type);
                usual = reinterpret_cast<PyObject*>(Py_TYPE(a)) == elsewhere.ptr();
            }
        }
        if (!usual) return PyObject_Vectorcall(plain, args, size_t(n), nullptr);
        nb::object kernel, out;
        if (plain_arrays) {
            kernel = kernel_of(op, narrow);
        } else {
            PyObject* record_and_arrays[] = {op, tuple_of(arrays, operands).release().ptr()};
            kernel = nb::steal(PyObject_VectorcallMethod(word_kernel_for, record_and_arrays, 2, nullptr));
            Py_DECREF(record_and_arrays[1]);
        }
        if (kernel.is_valid()) {
            PyObject* given[] = {kernel.ptr(), arrays[0], operands > 1 ? arrays[1] : nullptr};
            const Placing placing(op, arrays, operands);
            out = nb::steal(PyObject_Vectorcall(runner.ptr(), given, size_t(operands + 1), nullptr));
        }
        if (!out.is_valid())
            out = recovered(op, tuple_of(inputs, operands), tuple_of(arrays, operands), taken(PyDict_New()));
        const bool array = PyArray_CheckExact(out.ptr()) ||
                           (!plain_arrays && reinterpret_cast<PyObject*>(Py_TYPE(out.ptr())) == elsewhere.ptr());
        if (!array) out = call(as_array, {out.ptr()});
        nb::object result = tensor_over(std::move(out));
        if (args[n - 1] != Py_True || slot(op, at_has_vjp) != Py_True) return result.release().ptr();
        const nb::object mode = here_of(modes, word_enabled);
        if (plain_arrays && mode.ptr() == Py_True && operands == 2 && slot(op, at_keeps_nothing) == Py_True && alike(arrays)) {
            const bool two = arrays[1] != inputs[1];
            nb::object first = asked(inputs[0], word_in_graph), second = two ? asked(inputs[1], word_in_graph) : nb::none();
            nb::object edges = taken(PyTuple_Pack(2, first.ptr(), second.ptr()));
            Py_SETREF(slot(result.ptr(), at_node), make_plain_node(op, edges.ptr()).release().ptr());
        } else {
            note(op, inputs, arrays, operands, taken(PyDict_New()), result);
        }
        return result.release().ptr();
    });
}

namespace {

PyMethodDef elementwise_method = {"elementwise", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&elementwise)),
                                  METH_FASTCALL, nullptr};

// The name of the in-place form of a function, of which there are few.
nb::object in_place_name(PyObject* own) {
    PyObject* known = PyUnicode_CheckExact(own) ? PyDict_GetItemWithError(in_place_names, own) : nullptr;
    if (known) return nb::borrow(known);
    if (PyErr_Occurred()) throw nb::python_error();
    nb::object made = taken(PyUnicode_FromFormat("%S_", own));
    if (PyUnicode_CheckExact(own) && PyDict_GET_SIZE(in_place_names) < MOST_NAMES && PyDict_SetItem(in_place_names, own, made.ptr()) < 0)
        throw nb::python_error();
    return made;
}

// (record, x, whether in place, name, **settings): a function of one tensor whose settings are numbers; Python is asked for all else.
PyObject* applied(PyObject* plain, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return guarded([&]() -> PyObject* {
        const Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
        bool usual = n > 1 && count < MOST - 1 && PyObject_TypeCheck(args[0], record_type) && array_of(args[1]);
        for (Py_ssize_t i = 0; i < count; ++i) usual = usual && is_number(args[n + i]);
        if (usual && (n == 2 || args[2] == Py_False)) {
            PyObject* given[MOST] = {args[1]};
            std::copy(args + n, args + n + count, given + 1);
            return elementwise_run(args[0], given, 1, names);
        }
        if (usual && args[2] == Py_True) {
            const Call c(args[0], args + n - 1, 1, count, names);
            const nb::object inputs = tuple_of(args + 1, 1), settings = c.settings(), writes = asked(args[0], word_writes);
            const nb::object own = n > 3 && PyObject_IsTrue(args[3]) == 1 ? nb::borrow(args[3]) : asked(args[0], word_name);
            const nb::object name = in_place_name(own.ptr());
            PyObject* way[] = {args[0], args[1], inputs.ptr(), settings.ptr(), writes.ptr(), name.ptr()};
            nb::object written = write_form(way);
            if (written.is_valid()) return written.release().ptr();
        }
        return PyObject_Vectorcall(plain, args, size_t(n), names);
    });
}

PyMethodDef applied_method = {"applied", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&applied)),
                              METH_FASTCALL | METH_KEYWORDS, nullptr};

// What the road asks of Python, by name, and the class of records, whose `run` it becomes.
void set_up(nb::object op, nb::dict with) {
    auto of = [&](const char* name) { return nb::object(with[name]).release().ptr(); };
    plain_run = of("run"), after = of("after"), finish_many = of("finish_many"), as_array = of("as_array");
    row_major = of("row_major"), track = of("track"), link_view = of("link_view"), declined = of("Declined");
    resumed = of("resumed"), plain_type = reinterpret_cast<PyTypeObject*>(of("PlainNode")), pick = of("Pick");
    in_place_names = taken(PyDict_New()).release().ptr();
    word_differentiable = word("differentiable"), word_writes = word("writes"), word_name = word("name");
    word_node = word("node"), word_in_graph = word("_node");
    cuda = of("cuda"), word_kernel_for = word("kernel_for"), word_array_type = word("array_type");
    auto* type = record_type = reinterpret_cast<PyTypeObject*>(op.inc_ref().ptr());
    at_view = place_of(type, "view"), at_bare = place_of(type, "bare"), at_has_vjp = place_of(type, "has_vjp");
    at_outputs = place_of(type, "outputs"), at_keeps_nothing = place_of(type, "keeps_nothing");
    at_loose_from = place_of(type, "loose_from"), at_moves = place_of(type, "moves"), at_cpu = place_of(type, "cpu"), at_narrow = place_of(type, "narrow");
    nb::object run = taken(PyDescr_NewMethod(type, &run_method));
    plain_call = asked(op.ptr(), word("__call__")).release().ptr();
    nb::setattr(op, "__call__", taken(PyDescr_NewMethod(type, &call_method)));
    nb::setattr(op, "run", run);
    nb::setattr(op, "road", run);
}

// The class of elementwise records, likewise; its `road` stays that of the others.
void set_up_elementwise(nb::object type, nb::object types) {
    word_kinds = word("kinds"), word_result = word("result"), word_default = word("_default"), word_numpy = word("numpy");
    dtypes = types.release().ptr();
    plain_elementwise = nb::object(type.attr("run")).release().ptr();
    auto* own = reinterpret_cast<PyTypeObject*>(type.ptr());
    nb::setattr(type, "run", taken(PyDescr_NewMethod(own, &elementwise_run_method)));
}

// `single` or `pair` of `short_roads.py`, which is asked where these steps do not do.
nb::object short_road(nb::object plain) { return taken(PyCFunction_NewEx(&elementwise_method, plain.ptr(), nullptr)); }

}  // namespace

PyObject* by_python(PyObject* f, PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    const size_t count = size_t(n + (names ? PyTuple_GET_SIZE(names) : 0));
    std::vector<PyObject*> all(count + 1);
    all[0] = self;
    std::copy(args, args + count, all.begin() + 1);
    return PyObject_Vectorcall(f, all.data(), size_t(n + 1), names);
}

nb::object tuple_of(PyObject* const* items, Py_ssize_t n) {
    nb::object made = taken(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
        Py_INCREF(items[i]);
        PyTuple_SET_ITEM(made.ptr(), i, items[i]);
    }
    return made;
}

nb::object kernel_of(PyObject* op, bool narrow) {
    return nb::borrow(slot(op, narrow && slot(op, at_moves) != Py_True ? at_narrow : at_cpu));
}

FW_BIND(m) {
    m.def("set_up_road", &set_up);
    m.def("set_up_elementwise", &set_up_elementwise);
    m.def("short_road", &short_road);
    m.def("applied", [](nb::object plain) { return taken(PyCFunction_NewEx(&applied_method, plain.ptr(), nullptr)); });
}

}  // namespace fw::tensors
