// Results of functions in the memory that `out=` names: a record's kernel makes its result there where it may.
#include <algorithm>

#include "bind/array_layout.h"
#include "bind/tensors/placed.h"

namespace fw::tensors {

thread_local Targets* targets = nullptr;

namespace {

thread_local Placing* placing = nullptr;  // of the kernel that runs

PyObject *check_result = nullptr, *plain_compute;  // of `public.py`, for what is unusual
PyObject* word_kinds_written;

bool share(PyArrayObject* a, PyArrayObject* b) {
    const auto x = ArrayLayout::extent(a), y = ArrayLayout::extent(b);
    return x.first < y.second && y.first < x.second;
}

// Whether the memory is NumPy's own: what is mapped, or another library's, may be seen at other addresses, too.
bool is_of_numpy(PyArrayObject* a) {
    while (PyArray_BASE(a)) {
        if (!PyArray_Check(PyArray_BASE(a))) return false;
        a = reinterpret_cast<PyArrayObject*>(PyArray_BASE(a));
    }
    return PyArray_CHKFLAGS(a, NPY_ARRAY_OWNDATA);
}

}  // namespace

// Whether results may be made in these arrays: each in rows and apart from the others, and the function is given nothing but tensors
// that lie elsewhere and are in no graph, and plain settings.
bool Targets::take_out(PyObject* out) {
    const Held a = memory_of(out);
    if (count == MOST || !a || !PyArray_ISCARRAY(a.a) || !is_of_numpy(a.a)) return false;
    for (int i = 0; i < count; ++i)
        if (share(a, arrays[i])) return false;
    arrays[count++] = a;
    return true;
}

bool Targets::take_input(PyObject* x, int depth) {
    if (PyArrayObject* a = array_of(x)) {
        if (is_followed(x)) return false;
        const char kind = PyArray_DESCR(a)->kind;
        const bool narrow = PyArray_ITEMSIZE(a) == 2 && (kind == 'f' || kind == 'V');  // a kernel makes them float32 first
        for (int i = 0; i < count; ++i)
            if (share(a, arrays[i]) || (narrow && PyArray_TYPE(arrays[i].a) == NPY_FLOAT)) return false;
        if (inputs < MOST_INPUTS) given[inputs++] = reinterpret_cast<PyObject*>(a);
        return true;
    }
    if ((PyTuple_CheckExact(x) || PyList_CheckExact(x)) && depth < 2) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(x); ++i)
            if (!take_input(PySequence_Fast_GET_ITEM(x, i), depth + 1)) return false;
        return true;
    }
    return x == Py_None || PyBool_Check(x) || PyLong_CheckExact(x) || PyFloat_CheckExact(x) || PyUnicode_CheckExact(x) ||
           PyComplex_CheckExact(x);
}

// The first kernel of the function's record is offered the arrays, where it is given an input of the function's: what else runs
// meanwhile (a handler of a signal, a finalizer) has results of its own.
Placing::Placing(PyObject* record, PyObject* const* inputs, Py_ssize_t n) {
    if (!targets || !targets->count || targets->record != record) return;
    PyObject** end = targets->given + targets->inputs;
    if (std::none_of(inputs, inputs + n, [&](PyObject* x) { return std::find(targets->given, end, x) != end; })) return;
    to = targets;
    to->record = nullptr;
    for (int i = 0; i < to->count; ++i)
        offer.arrays[offer.count++] = to->taken[i] ? nullptr : nb::object(to->arrays[i].owner).release().ptr();
    before = offered_now(&offer), outer = std::exchange(placing, this);
}

void Placing::close() {
    offered_now(before), placing = outer;
    for (int i = 0; i < to->count; ++i) {
        if (to->taken[i]) continue;
        to->taken[i] = offer.arrays[i] == nullptr;
        Py_XDECREF(offer.arrays[i]);
    }
}

bool is_awaited() {
    bool taken = false;
    for (int i = 0; placing && i < placing->offer.count; ++i) taken = taken || !placing->offer.arrays[i];
    return taken;
}

namespace {

// Gathers what is needed to know whether results may be made in the memory of `out`.
bool gather(Targets& to, const PlacedCall& call, PyObject* const* outs, Py_ssize_t n) {
    if (is_watched()) return false;  // what is put off is computed later
    for (Py_ssize_t i = 0; i < n; ++i)
        if (!to.take_out(outs[i])) return false;
    for (Py_ssize_t i = 0; i < call.count(); ++i)
        if (!to.take_input(call.args[i], 1)) return false;
    return to.inputs > 0;
}

// A result that lies in memory that is about to be overwritten by another one gets its own.
void set_apart(PyObject* result, PyObject* out, const Targets& to) {
    PyArrayObject *b = array_of(result), *own = array_of(out);
    for (int i = 0; b && b != own && i < to.count; ++i) {
        if (!to.taken[i] || !share(b, to.arrays[i].a)) continue;
        PyObject* copied = taken(PyArray_NewCopy(b, NPY_KEEPORDER)).release().ptr();
        Py_SETREF(slot(result, at_array), copied);
        return;
    }
}

// Whether `out` has the elements of a result of its dtype and shape.
bool has_arrived(PyObject* out, PyObject* result, PyObject* name) {
    const Held a = memory_of(out), b = array_of(result);
    if (!a || !b || is_followed(result)) return false;
    if (a.a != b.a) {
        if (PyArray_DESCR(a) != PyArray_DESCR(b) || !PyArray_SAMESHAPE(a, b) || !nobody_looks()) return false;
        take_over(a, b);
    }
    bump(out, name);
    return true;
}

}  // namespace

nb::object put_into(PyObject* out, PyObject* result, PyObject* name) {
    if (has_arrived(out, result, name)) return nb::borrow(out);
    return taken(PyObject_CallFunctionObjArgs(check_result, out, result, name, Py_False, nullptr));
}

namespace {

// Several results; null where Python is to look at them.
nb::object arrived(PyObject* outs, PyObject* results, PyObject* name, const Targets& to) {
    const Py_ssize_t n = PyTuple_Check(results) ? PyTuple_GET_SIZE(results) : -1;
    if (n != PyTuple_GET_SIZE(outs)) return nb::object();
    PyObject* const* own = PySequence_Fast_ITEMS(outs);
    for (Py_ssize_t i = 0; i < n; ++i) set_apart(PyTuple_GET_ITEM(results, i), own[i], to);
    for (Py_ssize_t i = 0; i < n; ++i)
        if (!has_arrived(own[i], PyTuple_GET_ITEM(results, i), name)) return nb::object();
    PyTypeObject* type = Py_TYPE(results);  // of named results
    return type == &PyTuple_Type ? nb::borrow(outs) : taken(PyTuple_Type.tp_new(type, taken(PyTuple_Pack(1, outs)).ptr(), nullptr));
}

// They have been written to, whatever came of it.
void count(const Targets& to, PyObject* const* outs, PyObject* name) {
    for (int i = 0; i < to.count; ++i)
        if (to.taken[i]) bump(outs[i], name);
}

}  // namespace

nb::object call_into(const PlacedCall& call) {
    PyObject *out = call.out, *name = call.name;
    const bool many = PyTuple_Check(out) || PyList_Check(out);
    const nb::object outs = many ? taken(PySequence_Tuple(out)) : nb::object();  // a list may be changed meanwhile
    PyObject* const* own = many ? PySequence_Fast_ITEMS(outs.ptr()) : &out;
    Targets to;
    const bool open = call.record != Py_None && gather(to, call, own, many ? PyTuple_GET_SIZE(outs.ptr()) : 1);
    to.record = call.record;
    nb::object result;
    {
        Targets* before = std::exchange(targets, open ? &to : nullptr);
        result = nb::steal(PyObject_Vectorcall(call.function, call.args, size_t(call.n), call.keywords));
        targets = before;
    }
    if (!result.is_valid()) {
        nb::python_error error;
        count(to, own, name);
        throw error;
    }
    if (many) {
        nb::object all = arrived(outs.ptr(), result.ptr(), name, to);
        if (all.is_valid()) return all;
    } else {
        if (to.count) set_apart(result.ptr(), out, to);
        if (has_arrived(out, result.ptr(), name)) return nb::borrow(out);
    }
    const nb::object given = !many ? nb::borrow(out) : PyList_Check(out) ? taken(PySequence_List(outs.ptr())) : outs;
    nb::object looked = nb::steal(PyObject_CallFunctionObjArgs(check_result, given.ptr(), result.ptr(), name, call.exact, nullptr));
    if (looked.is_valid()) return looked;
    nb::python_error error;
    count(to, own, name);
    throw error;
}

namespace {

// What a function gives, in `out`: (function, inputs, settings, out, name, exact, record).
nb::object run_into(PyObject* const* args) {
    PyObject *inputs = args[1], *settings = args[2];
    if (!PyTuple_CheckExact(inputs) || !PyDict_CheckExact(settings)) throw nb::type_error("wanted a tuple and a dictionary");
    const Py_ssize_t n = PyTuple_GET_SIZE(inputs), more = PyDict_GET_SIZE(settings);
    Arguments given(PySequence_Fast_ITEMS(inputs), n, more);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (more && PyDict_Next(settings, &at, &key, &value)) {
        if (!PyUnicode_Check(key)) throw nb::type_error("keywords must be strings");
        given.add(key, value);
    }
    return call_into({args[0], given.items(), n, given.names(), args[3], args[4], args[5], args[6]});
}

}  // namespace

nb::object compute_into(PyObject* const* args) {
    PyObject *record = args[0], *inputs = args[1], *settings = args[2], *out = args[3], *name = args[4];
    if (array_of(out) && !has_node(out)) {
        const nb::object kinds = asked(record, word_kinds_written);
        PyObject* way[] = {record, out, inputs, settings, kinds.ptr(), name};
        nb::object written = write_call(way);
        if (written.is_valid()) return written;
        PyArrayObject *a = array_of(out), *b = PyTuple_CheckExact(inputs) && PyTuple_GET_SIZE(inputs) ? array_of(PyTuple_GET_ITEM(inputs, 0)) : nullptr;
        if (b && PyArray_TYPE(a) == NPY_BOOL && PyArray_TYPE(b) != NPY_BOOL) {  // of a comparison
            const nb::object run = asked(record, word_run);
            PyObject* call[] = {run.ptr(), inputs, settings, out, name, Py_False, record};
            return run_into(call);
        }
    }
    return taken(PyObject_Vectorcall(plain_compute, args, 5, nullptr));
}

namespace {

template <nb::object (*F)(PyObject* const*), int ARGS> PyObject* called_into(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (n != ARGS) return PyErr_Format(PyExc_TypeError, "wanted %d arguments, got %zd", ARGS, n);
    return guarded([&] { return F(args).release().ptr(); });
}

template <nb::object (*F)(PyObject* const*), int ARGS> PyMethodDef method_into(const char* name) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&called_into<F, ARGS>)), METH_FASTCALL, nullptr};
}
PyMethodDef placed_methods[] = {method_into<run_into, 7>("run_into"), method_into<compute_into, 5>("compute_into"),
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace

FW_BIND(m) {
    word_kinds_written = word("writes");
    if (PyModule_AddFunctions(m.ptr(), placed_methods) < 0) throw nb::python_error();
    m.def("set_up_placed", [](nb::object check, nb::object compute) {
        check_result = check.release().ptr(), plain_compute = compute.release().ptr();
    });
}

}  // namespace fw::tensors
