// What a compiled function calls for elementwise programs that go together: an object that is called with arrays.
#include <cstddef>
#include <memory>

#include "bind/array_layout.h"
#include "bind/guarded.h"
#include <structmember.h>
#include "program/fused.h"

namespace fw {
namespace {

struct Fused {
    PyObject_HEAD
    vectorcallfunc call;
    Program* program;  // its slots: arguments, constants, registers, results
    int results;
};

// nullptr without an error: this is not for one pass
template <class T>
PyObject* run(const Fused* f, const Compiled<T>& compiled, PyObject* const* args) {
    const Program& p = *f->program;
    if (!compiled.fits) return nullptr;
    ArrayLayout layout;
    OperandList operands(size_t(p.arguments));
    for (int i = 0; i < p.arguments; ++i) {
        auto* a = reinterpret_cast<PyArrayObject*>(args[i]);
        if (!PyArray_CheckExact(args[i]) || PyArray_TYPE(a) != type_number<T> || !PyArray_ISBEHAVED_RO(a)) return nullptr;
        operands[i] = ArrayLayout::operand(a);
        if (!layout.broadcast(a)) return nullptr;
    }
    for (int i = 0; i < p.arguments; ++i) {  // one that says in which order results lie: the programs one by one
        Array a;
        a.p = reinterpret_cast<PyArrayObject*>(args[i]);
        if (layout.ndim > 1 && !a.contiguous() && layout.whole(*a.p) && !ArrayLayout::repeats(a.p)) return nullptr;
    }
    NewArray made[MOST_RESULTS];
    T* results[MOST_RESULTS];
    for (int i = 0; i < f->results; ++i) {
        made[i] = new_array(layout.ndim, layout.sizes_of_result(), type_number<T>);
        results[i] = made[i].template data<T>();
    }
    for (int d = 0; d < layout.ndim; ++d) layout.size *= layout.shape[d];
    layout.follow(*made[0].p);
    if (const int64_t n = layout.size) {
        layout.settle(operands);
        FusedRun<T> body{p, compiled, layout, operands, results, f->results};
        Release release(n * int64_t(sizeof(T)) * compiled.cost);
        if (n <= grain(compiled.cost, sizeof(T))) body(0, n);
        else parallel(n, grain(compiled.cost, sizeof(T)), body);
    }
    PyObject* tuple = PyTuple_New(f->results);
    if (!tuple) return nullptr;
    for (int i = 0; i < f->results; ++i) PyTuple_SET_ITEM(tuple, i, give(made[i]).release().ptr());
    return tuple;
}

PyObject* fused_call(PyObject* self, PyObject* const* args, size_t flags, PyObject*) {
    auto* f = reinterpret_cast<Fused*>(self);
    if (PyVectorcall_NARGS(flags) != f->program->arguments) {
        PyErr_SetString(PyExc_TypeError, "wrong number of arrays");
        return nullptr;
    }
    PyObject* result = guarded([&]() -> PyObject* {
        if (!PyArray_CheckExact(args[0])) return nullptr;
        const int type = PyArray_TYPE(reinterpret_cast<PyArrayObject*>(args[0]));
        if (type == NPY_FLOAT) return run<float>(f, f->program->f32, args);
        return type == NPY_DOUBLE ? run<double>(f, f->program->f64, args) : nullptr;
    });
    if (result || PyErr_Occurred()) return result;
    Py_RETURN_NONE;
}

void fused_free(PyObject* self) {
    delete reinterpret_cast<Fused*>(self)->program;
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyMemberDef fused_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Fused, call), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot fused_slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(fused_free)},
                       {Py_tp_members, fused_members},
                       {0, nullptr}};
PyType_Spec fused_spec = {"framework._native.Fused", sizeof(Fused), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, fused_slots};
PyTypeObject* fused_type = nullptr;

// steps: (name, d, a, b, c), slots numbered as in `Program`, the results last.
nb::object make_fused(int arguments, nb::tuple constants, int registers, int results, nb::tuple steps) {
    const int slots = arguments + int(constants.size()) + registers + results;
    if (arguments < 1 || registers < 0 || results < 1 || results > MOST_RESULTS || slots > MOST_SLOTS)
        throw nb::value_error("a program has at most 64 slots");
    auto program = std::make_unique<Program>();
    program->arguments = arguments;
    program->registers = registers;
    program->truth.assign(size_t(arguments), false);
    for (nb::handle c : constants) program->constants.push_back(nb::cast<double>(c));
    for (nb::handle s : steps) {
        auto t = nb::cast<nb::tuple>(s);
        Step step{nb::cast<std::string>(t[0]), nb::cast<int>(t[1]), nb::cast<int>(t[2]), nb::cast<int>(t[3]),
                  nb::cast<int>(t[4])};
        for (int slot : {step.d, step.a, step.b, step.c})
            if (slot < 0 || slot >= slots) throw nb::value_error("no such slot");
        if (step.d < program->first_register()) throw nb::value_error("arguments and constants are read only");
        program->steps.push_back(step);
    }
    program->compile();
    auto* f = PyObject_New(Fused, fused_type);
    if (!f) throw nb::python_error();
    f->call = fused_call;
    f->program = program.release();
    f->results = results;
    return nb::steal(reinterpret_cast<PyObject*>(f));
}

}  // namespace

FW_BIND(m) {
    fused_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&fused_spec));
    if (!fused_type) throw nb::python_error();
    m.def("make_fused", &make_fused);
}

}  // namespace fw
