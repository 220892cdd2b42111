// Several elementwise programs as one pass over memory, with several results: what a compiled function makes of
// calls that follow each other. Each step rounds as in the program that it comes from, so the bits are the same.
#include <memory>

#include "base/scratch.h"
#include "bind/array_layout.h"
#include <structmember.h>
#include "program/program.h"

namespace fw {
namespace {

constexpr int MOST_RESULTS = 24;
constexpr int64_t NEAR_BYTES = 4 << 20;  // operands and results that do not come from memory: asking costs a twentieth
constexpr int LONG_COST = 8;               // a step that computes for so long that memory can come meanwhile

struct Fused {
    PyObject_HEAD
    vectorcallfunc call;
    Program* program;  // its slots: arguments, constants, registers, results
    int results;
};

template <class T> struct FusedRun {
    const Program& program;
    const Compiled<T>& compiled;
    const Layout& layout;
    const std::vector<Operand>& operands;
    T* const* results;
    int count;

    // Operands that lie in memory in order and which step asks for their part in the next block: a pass that computes
    // much between what it reads and what it writes would wait for memory, and let it wait.
    struct Ahead { size_t step; const char* data; };
    std::vector<Ahead> ahead() const {
        std::vector<size_t> steps;
        std::vector<Ahead> all;
        if (layout.size * int64_t(sizeof(T)) * int64_t(operands.size() + size_t(count)) <= NEAR_BYTES) return all;
        for (size_t i = 0; i < compiled.costs.size(); ++i)
            if (compiled.costs[i] >= LONG_COST) steps.push_back(i);
        if (steps.empty()) return all;
        for (const Operand& o : operands)
            if (o.flat) all.push_back({0, o.data});
        for (size_t i = 0; i < all.size(); ++i) all[i].step = steps[i * steps.size() / all.size()];
        return all;
    }

    static void ask_for(const char* from, int64_t n) {
        for (int64_t i = 0; i < n * int64_t(sizeof(T)); i += 64) __builtin_prefetch(from + i);
    }

    int64_t block() const {
        int64_t buffers = program.registers + int64_t(program.constants.size()) + 1, line = 0;
        bool flat = true;
        for (const Operand& o : operands) {
            buffers += !o.flat;
            flat = flat && (o.flat || o.constant);
        }
        line = flat ? 0 : layout.line();
        const int64_t fit = L1_BYTES / int64_t(sizeof(T)) / buffers / 64 * 64;
        const int64_t most = std::min(std::max(fit, LEAST_BLOCK), STEPS_BLOCK);
        if (line < LEAST_BLOCK) return most;
        if (line <= most) return most / line * line;
        const int64_t parts = (line + most - 1) / most;
        return line % parts == 0 ? line / parts : most;
    }

    void operator()(int64_t begin, int64_t end) const {
        alignas(64) static thread_local unsigned char memory[SCRATCH_BYTES];
        const int64_t whole = block(), size = (std::min(whole, end - begin) + 63) / 64 * 64;
        T* free = reinterpret_cast<T*>(asked_once(memory));
        T* slots[MOST_SLOTS];
        int slot = 0;
        for (const Operand& o : operands) {
            slots[slot] = o.flat ? nullptr : free;
            free += slots[slot] ? size : 0;
            if (o.constant) {
                T value;
                std::memcpy(&value, o.data, sizeof value);
                std::fill(slots[slot], slots[slot] + size, value);
            }
            ++slot;
        }
        for (T c : compiled.constants) {
            std::fill(free, free + size, c);
            slots[slot++] = free;
            free += size;
        }
        for (int i = 0; i < program.registers; ++i, free += size) slots[slot++] = free;
        const std::vector<Ahead> later = ahead();
        for (int64_t at = begin, n; at < end; at += n) {
            n = std::min(whole - at % whole, end - at);
            const T* inputs[MOST_SLOTS];
            for (int i = 0; i < program.arguments; ++i) {
                const Operand& o = operands[i];
                inputs[i] = o.flat ? reinterpret_cast<const T*>(o.data) + at
                                   : o.constant ? slots[i] : layout.template gather<T>(o, slots[i], at, n);
            }
            for (int i = 0; i < count; ++i) slots[slot + i] = results[i] + at;
            auto in = [&](int s) { return s < program.arguments ? inputs[s] : slots[s]; };
            if (!later.empty())  // the results' lines come while the first steps compute
                for (int i = 0; i < count; ++i)
                    for (int64_t k = 0; k < n; k += 64 / int64_t(sizeof(T))) __builtin_prefetch(results[i] + at + k, 1);
            size_t asked = 0;
            for (size_t i = 0; i < compiled.steps.size(); ++i) {
                for (; asked < later.size() && later[asked].step == i; ++asked)
                    ask_for(later[asked].data + (at + n) * int64_t(sizeof(T)), std::min(whole, end - at - n));
                const auto& [instruction, step] = compiled.steps[i];
                instruction(slots[step.d], in(step.a), in(step.b), in(step.c), n);
            }
        }
    }
};

// nullptr without an error: this is not for one pass
template <class T>
PyObject* run(const Fused* f, const Compiled<T>& compiled, PyObject* const* args) {
    const Program& p = *f->program;
    if (!compiled.fits) return nullptr;
    ArrayLayout layout;
    std::vector<Operand> operands(size_t(p.arguments));
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
        if (n <= grain(compiled.cost)) body(0, n);
        else parallel(n, grain(compiled.cost), body);
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
    PyObject* result = nullptr;
    try {
        if (PyArray_CheckExact(args[0])) {
            const int type = PyArray_TYPE(reinterpret_cast<PyArrayObject*>(args[0]));
            if (type == NPY_FLOAT) result = run<float>(f, f->program->f32, args);
            else if (type == NPY_DOUBLE) result = run<double>(f, f->program->f64, args);
        }
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const Interrupted&) {  // the error is set
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
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
PyType_Spec fused_spec = {"framework._native.Fused", sizeof(Fused), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, fused_slots};
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
