// Elementwise programs: one pass over memory, block by block through registers that stay in the L1 cache.
//
// A `Kernel` is called with arrays and numbers like the NumPy formula it stands for. Arguments broadcast;
// what it does not take (mixed dtypes, odd objects) goes to that formula, its fallback.
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "array.h"
#include <structmember.h>
#include "instructions.h"
#include "layout.h"
#include "pool.h"

namespace fw {
namespace {

constexpr int MOST_SLOTS = 64;            // arguments, constants, registers and the result of a program
constexpr int64_t L1_BYTES = 24 << 10;    // what the registers of a block may take
constexpr int64_t LEAST_BLOCK = 128, MOST_BLOCK = 2048;
constexpr int64_t SCRATCH_BYTES = std::max<int64_t>(L1_BYTES, (MOST_SLOTS + 2) * LEAST_BLOCK * 8);
constexpr int64_t STREAM_BYTES = 16 << 20;  // results as large as this go past the caches
constexpr int64_t PIECE_COST = 1 << 16;   // additions that are worth a thread's attention

int64_t grain(int cost) { return std::max<int64_t>(PIECE_COST / cost, 4096) / 64 * 64; }

struct Step {
    std::string name;
    int d, a, b, c;
};

template <class T> struct Compiled {
    std::vector<std::pair<Instruction<T>, Step>> steps;
    std::vector<T> constants;
    int cost = 0;
    bool fits = false;
};

// Slots are numbered: arguments, constants, registers, and last the result.
struct Program {
    int arguments = 0, registers = 0;
    std::vector<double> constants;
    std::vector<Step> steps;
    std::vector<bool> truth;  // which arguments are truth values
    bool truth_result = false;
    Compiled<float> f32;
    Compiled<double> f64;
    Compiled<int32_t> i32;
    Compiled<int64_t> i64;

    int first_register() const { return arguments + int(constants.size()); }
    int result() const { return first_register() + registers; }

    template <class T> void compile(Compiled<T>& made) const {
        const auto& known = instructions<T>();
        for (double c : constants) {
            T value = T(c);
            if (std::numeric_limits<T>::is_integer && !(double(value) == c)) return;
            made.constants.push_back(value);
        }
        for (const Step& s : steps) {
            auto found = known.find(s.name);
            if (found == known.end()) return;
            made.steps.push_back({found->second.run, s});
            made.cost += found->second.cost;
        }
        made.fits = true;
    }

    void compile() {
        compile(f32);
        compile(f64);
        compile(i32);
        compile(i64);
    }
};

// -- running -----------------------------------------------------------------------------------

// Truth values between lanes of ones or zeros and NumPy's bytes, which are 1 or 0.
template <class T> void narrow(const T* lane_values, char* to, int64_t n) {
    typedef Int<T> __attribute__((may_alias)) Lane;
    const Lane* from = reinterpret_cast<const Lane*>(lane_values);
    for (int64_t i = 0; i < n; ++i) to[i] = char(from[i] & 1);
}

template <class T> void widen(const char* from, T* lane_values, int64_t n) {
    typedef Int<T> __attribute__((may_alias)) Lane;
    Lane* to = reinterpret_cast<Lane*>(lane_values);
    for (int64_t i = 0; i < n; ++i) to[i] = Lane(-Lane(from[i]));
}

template <class T> struct Run {
    const Program& program;
    const Compiled<T>& compiled;
    const Layout& layout;                 // of the result and the array arguments
    const std::vector<Operand>& operands;  // one for each argument; a number has stride 0 everywhere
    char* result;
    bool stream;
    const Operand* target = nullptr;  // where results go that do not lie in the order of their numbers

    int64_t block() const {
        int64_t buffers = program.registers + int64_t(program.constants.size()) + 2;
        for (const Operand& o : operands) buffers += !o.flat;
        int64_t n = L1_BYTES / int64_t(sizeof(T)) / buffers / 64 * 64;
        return std::min(std::max(n, LEAST_BLOCK), MOST_BLOCK);
    }

    void operator()(int64_t begin, int64_t end) const {
        if (program.truth_result) {
            blocks(begin, end, false, [&](const T* values, int64_t at, int64_t n) {
                narrow(values, result + at, n);
            });
        } else if (target) {
            blocks(begin, end, false, [&](const T* values, int64_t at, int64_t n) {
                layout.each_run(*target, at, n, [&](const char* p, int64_t stride, int64_t count, int64_t offset) {
                    char* to = const_cast<char*>(p);
                    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * stride, values + offset + i, sizeof(T));
                });
            });
        } else if (stream) {
            blocks(begin, end, false, [&](const T* values, int64_t at, int64_t n) {
                copy_past_caches(reinterpret_cast<T*>(result) + at, values, n);
            });
        } else {
            blocks(begin, end, true, [](const T*, int64_t, int64_t) {});
        }
    }

    // The sum of elements [begin, end), in the same order whoever asks.
    double sum(int64_t begin, int64_t end) const {
        double total = 0;
        blocks(begin, end, false, [&](const T* values, int64_t, int64_t n) {
            Vec<T> lane_sums[4] = {};
            int64_t i = 0;
            for (; i + 4 * lanes<T> <= n; i += 4 * lanes<T>)
                for (int k = 0; k < 4; ++k) lane_sums[k] += load(values + i + k * lanes<T>);
            for (; i < n; i += lanes<T>)
                lane_sums[0] += i + lanes<T> <= n ? load(values + i) : load_part(values + i, n - i);
            total += sum_lanes<T>((lane_sums[0] + lane_sums[1]) + (lane_sums[2] + lane_sums[3]));
        });
        return total;
    }

    // Computes the elements [begin, end) block by block: into the result, or where `use` then finds them.
    template <class F> void blocks(int64_t begin, int64_t end, bool direct, F&& use) const {
        alignas(64) static thread_local unsigned char memory[SCRATCH_BYTES];
        const int64_t size = std::min(block(), (end - begin + 63) / 64 * 64);
        T* free = reinterpret_cast<T*>(memory);
        T* slots[MOST_SLOTS];
        bool filled[MOST_SLOTS] = {};
        int slot = 0;
        for (const Operand& o : operands) {
            slots[slot] = o.flat && !program.truth[slot] ? nullptr : free;
            free += slots[slot++] ? size : 0;
        }
        for (T c : compiled.constants) {
            std::fill(free, free + size, c);
            slots[slot++] = free;
            free += size;
        }
        for (int i = 0; i < program.registers; ++i, free += size) slots[slot++] = free;
        for (int64_t at = begin; at < end; at += size) {
            const int64_t n = std::min(size, end - at);
            const T* inputs[MOST_SLOTS];
            for (int i = 0; i < program.arguments; ++i)
                inputs[i] = argument(operands[i], program.truth[i], slots[i], filled[i], at, n, size);
            slots[slot] = direct ? reinterpret_cast<T*>(result) + at : free;
            auto in = [&](int s) { return s < program.arguments ? inputs[s] : slots[s]; };
            for (const auto& step : compiled.steps)
                step.first(slots[step.second.d], in(step.second.a), in(step.second.b), in(step.second.c), n);
            use(slots[slot], at, n);
        }
    }

    const T* argument(const Operand& o, bool truth, T* buffer, bool& filled, int64_t at, int64_t n,
                      int64_t size) const {
        if (!buffer) return reinterpret_cast<const T*>(o.data) + at;
        if (o.constant) {
            if (!filled) {
                T value;
                if (truth) value = bits<T>(Int<T>(-(*o.data != 0)));
                else std::memcpy(&value, o.data, sizeof value);
                std::fill(buffer, buffer + size, value);
                filled = true;
            }
            return buffer;
        }
        if (truth) {
            auto put = [&](const char* from, int64_t stride, int64_t count, int64_t offset) {
                if (stride == 1) widen(from, buffer + offset, count);
                else for (int64_t i = 0; i < count; ++i) widen(from + i * stride, buffer + offset + i, 1);
            };
            if (o.flat) put(o.data + at, 1, n, 0);
            else layout.each_run(o, at, n, put);
            return buffer;
        }
        return layout.template gather<T>(o, buffer, at, n);
    }
};

template <class T>
PyObject* execute(const Program& program, const Compiled<T>& compiled, Layout& layout,
                  std::vector<Operand>& operands, Array prototype) {
    Array out = layout.result(prototype, program.truth_result ? NPY_BOOL : type_number<T>);
    const int64_t n = layout.size, bytes = n * int64_t(sizeof(T));
    if (n) {
        layout.settle(operands);
        const bool stream = bytes >= STREAM_BYTES && !program.truth_result;
        Run<T> run{program, compiled, layout, operands, out.data<char>(), stream};
        Release release(bytes * compiled.cost);
        if (n <= grain(compiled.cost)) run(0, n);
        else parallel(n, grain(compiled.cost), run);
    }
    return reinterpret_cast<PyObject*>(out.p);
}

// The same, written into `target`, which is returned.
template <class T>
PyObject* execute_into(const Program& program, const Compiled<T>& compiled, Layout& layout,
                       std::vector<Operand>& operands, PyArrayObject* target) {
    Array out;
    out.p = target;
    layout.no_result(out);
    if (const int64_t n = layout.size) {
        operands.push_back(Operand::of(target));
        layout.settle(operands);
        const Operand place = operands.back();
        operands.pop_back();
        const bool straight = place.flat || place.constant;
        Run<T> run{program, compiled, layout, operands, out.data<char>(), false, straight ? nullptr : &place};
        Release release(n * int64_t(sizeof(T)) * compiled.cost);
        parallel(n, grain(compiled.cost), run);
    }
    Py_INCREF(target);
    return reinterpret_cast<PyObject*>(target);
}

// The sum of all elements of the result, which is not stored; chunks make it the same for any number of threads.
template <class T>
PyObject* execute_sum(const Program& program, const Compiled<T>& compiled, Layout& layout,
                      std::vector<Operand>& operands, Array prototype) {
    layout.no_result(prototype);
    double total = 0;
    if (const int64_t n = layout.size) {
        layout.settle(operands);
        Run<T> run{program, compiled, layout, operands, nullptr, false};
        Release release(n * int64_t(sizeof(T)) * compiled.cost);
        const int64_t chunk = grain(compiled.cost), count = (n + chunk - 1) / chunk;
        std::vector<double> sums(static_cast<size_t>(count));
        parallel(count, 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) sums[size_t(i)] = run.sum(i * chunk, std::min(n, (i + 1) * chunk));
        });
        for (double s : sums) total += s;
    }
    return PyFloat_FromDouble(total);
}

// -- the Python object -------------------------------------------------------------------------

struct Kernel {
    PyObject_HEAD
    vectorcallfunc call;
    Program* program;
    PyObject* fallback;
    PyObject* names;  // of the arguments, for those given by keyword
};

// The arguments in order, those by keyword included; false if they do not fit.
bool arrange(const Kernel* k, PyObject* const* args, size_t given, PyObject* keywords, PyObject** ordered) {
    const size_t wanted = size_t(k->program->arguments), named = keywords ? size_t(PyTuple_GET_SIZE(keywords)) : 0;
    if (given + named != wanted) return false;
    std::copy(args, args + given, ordered);
    std::fill(ordered + given, ordered + wanted, nullptr);
    for (size_t i = 0; i < named; ++i) {
        PyObject* name = PyTuple_GET_ITEM(keywords, i);
        size_t at = given;
        while (at < wanted && PyTuple_GET_ITEM(k->names, at) != name) ++at;
        if (at == wanted) {
            at = given;
            while (at < wanted && PyUnicode_Compare(PyTuple_GET_ITEM(k->names, at), name) != 0) ++at;
        }
        if (at == wanted || ordered[at]) return false;
        ordered[at] = args[given + i];
    }
    return true;
}

// What is wanted other than a new array: the sum of the elements, or that they go into `out`.
struct Wish {
    bool sum = false;
    PyArrayObject* out = nullptr;
};

struct Numbers {
    std::array<std::array<char, 8>, MOST_SLOTS> memory;
    int used = 0;
    template <class T> const char* add(T value) {
        std::memcpy(memory[used].data(), &value, sizeof value);
        return memory[used++].data();
    }
};

// A Python number as T; false where it has no such value.
template <class T> bool number(PyObject* o, Numbers& numbers, Operand& operand) {
    T value;
    if (PyFloat_CheckExact(o)) {
        if (std::numeric_limits<T>::is_integer) return false;
        value = T(PyFloat_AS_DOUBLE(o));
    } else if (PyLong_CheckExact(o) || PyBool_Check(o)) {
        int overflow = 0;
        long long whole = PyLong_AsLongLongAndOverflow(o, &overflow);
        value = T(whole);
        if (overflow || (std::numeric_limits<T>::is_integer && (long long)(value) != whole)) return false;
    } else {
        return false;
    }
    operand = Operand::single(numbers.add(value));
    return true;
}

template <class T>
PyObject* call_as(const Kernel* k, const Compiled<T>& compiled, PyObject** args, const Wish& wish) {
    const Program& program = *k->program;
    if (!compiled.fits) return nullptr;
    Numbers numbers;
    Layout layout;
    std::vector<Operand> operands(size_t(program.arguments));
    Array prototype;
    for (int i = 0; i < program.arguments; ++i) {
        auto* a = reinterpret_cast<PyArrayObject*>(args[i]);
        if (PyArray_CheckExact(args[i])) {
            if (PyArray_TYPE(a) != (program.truth[i] ? NPY_BOOL : type_number<T>) || !PyArray_ISBEHAVED_RO(a))
                return nullptr;
            operands[i] = Operand::of(a);
            if (!layout.broadcast(a)) return nullptr;
            if (!prototype.p || PyArray_NDIM(a) > prototype.ndim() ||
                (PyArray_NDIM(a) == prototype.ndim() && Layout::repeats(prototype.p)))
                prototype.p = a;
        } else if (program.truth[i] ? !PyBool_Check(args[i]) : false) {
            return nullptr;
        } else if (program.truth[i]) {
            operands[i] = Operand::single(numbers.add(char(args[i] == Py_True)));
        } else if (!number<T>(args[i], numbers, operands[i])) {
            return nullptr;
        }
    }
    if (wish.out) {
        if (PyArray_TYPE(wish.out) != type_number<T> || !layout.takes(wish.out, operands)) return nullptr;
        return execute_into<T>(program, compiled, layout, operands, wish.out);
    }
    return (wish.sum ? execute_sum<T> : execute<T>)(program, compiled, layout, operands, prototype);
}

// The result, or nullptr without an error where the fallback is to do it.
PyObject* call_native(const Kernel* k, PyObject** args, const Wish& wish) {
    int type = NPY_NOTYPE;
    for (int i = 0; i < k->program->arguments && type == NPY_NOTYPE; ++i)
        if (!k->program->truth[i] && PyArray_CheckExact(args[i]))
            type = PyArray_TYPE(reinterpret_cast<PyArrayObject*>(args[i]));
    const Program& p = *k->program;
    if ((wish.sum || wish.out) && p.truth_result) return nullptr;
    if (type == NPY_FLOAT) return call_as<float>(k, p.f32, args, wish);
    if (type == NPY_DOUBLE) return call_as<double>(k, p.f64, args, wish);
    if (wish.sum) return nullptr;  // whole numbers, and truth below, have sums of their own
    if (type == NPY_INT64 || type == NPY_LONGLONG) return call_as<int64_t>(k, p.i64, args, wish);
    if (type == NPY_INT32) return call_as<int32_t>(k, p.i32, args, wish);
    return nullptr;
}

// nullptr without an error: not for the engine
PyObject* try_native(const Kernel* k, PyObject* const* args, size_t given, PyObject* keywords, const Wish& wish) {
    PyObject* ordered[MOST_SLOTS];
    if (!arrange(k, args, given, keywords, ordered)) return nullptr;
    try {
        return call_native(k, ordered, wish);
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
}

PyObject* kernel_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords) {
    auto* k = reinterpret_cast<Kernel*>(self);
    const size_t given = size_t(PyVectorcall_NARGS(flags));
    PyObject* result = nullptr;
    if (keywords && PyTuple_GET_SIZE(keywords) == 1 &&
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, 0), "out") == 0) {
        auto* out = reinterpret_cast<PyArrayObject*>(args[given]);
        if (PyArray_CheckExact(args[given]) && PyArray_ISBEHAVED(out))
            result = try_native(k, args, given, nullptr, {false, out});
    } else {
        result = try_native(k, args, given, keywords, {});
    }
    if (result || PyErr_Occurred()) return result;
    return PyObject_Vectorcall(k->fallback, args, flags, keywords);
}

// The sum of the result as a float; NotImplemented for what the engine does not take, and for whole numbers.
PyObject* kernel_sum(PyObject* self, PyObject* const* args, Py_ssize_t given, PyObject* keywords) {
    auto* k = reinterpret_cast<Kernel*>(self);
    PyObject* result = try_native(k, args, size_t(given), keywords, {true, nullptr});
    if (result || PyErr_Occurred()) return result;
    Py_RETURN_NOTIMPLEMENTED;
}

int kernel_traverse(PyObject* self, visitproc visit, void* arg) {
    auto* k = reinterpret_cast<Kernel*>(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(k->fallback);
    Py_VISIT(k->names);
    return 0;
}

int kernel_clear(PyObject* self) {
    Py_CLEAR(reinterpret_cast<Kernel*>(self)->fallback);
    Py_CLEAR(reinterpret_cast<Kernel*>(self)->names);
    return 0;
}

void kernel_free(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PyTypeObject* type = Py_TYPE(self);
    kernel_clear(self);
    delete reinterpret_cast<Kernel*>(self)->program;
    type->tp_free(self);
    Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Kernel, call), READONLY, nullptr},
    {"fallback", T_OBJECT, offsetof(Kernel, fallback), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyMethodDef methods[] = {
    {"sum", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(kernel_sum)), METH_FASTCALL | METH_KEYWORDS,
     "The sum of the elements of the result, which is not stored."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_traverse, reinterpret_cast<void*>(kernel_traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(kernel_clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(kernel_free)},
                       {Py_tp_members, members},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

PyType_Spec spec = {"framework._native.Kernel", sizeof(Kernel), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

PyTypeObject* kernel_type = nullptr;

// steps: (name, d, a, b, c), slots numbered as in `Program`.
nb::object make_kernel(nb::tuple names, nb::tuple truth, nb::tuple constants, int registers, nb::tuple steps,
                       bool truth_result, nb::object fallback) {
    auto program = std::make_unique<Program>();
    program->arguments = int(names.size());
    program->registers = registers;
    program->truth_result = truth_result;
    for (nb::handle t : truth) program->truth.push_back(nb::cast<bool>(t));
    for (nb::handle c : constants) program->constants.push_back(nb::cast<double>(c));
    if (program->result() >= MOST_SLOTS || registers < 0 || program->truth.size() != names.size())
        throw nb::value_error("a program has at most 63 slots");
    for (nb::handle s : steps) {
        auto t = nb::cast<nb::tuple>(s);
        Step step{nb::cast<std::string>(t[0]), nb::cast<int>(t[1]), nb::cast<int>(t[2]), nb::cast<int>(t[3]),
                  nb::cast<int>(t[4])};
        for (int slot : {step.d, step.a, step.b, step.c})
            if (slot < 0 || slot > program->result()) throw nb::value_error("no such slot");
        if (step.d < program->first_register()) throw nb::value_error("arguments and constants are read only");
        program->steps.push_back(step);
    }
    program->compile();
    auto* k = PyObject_GC_New(Kernel, kernel_type);
    if (!k) throw nb::python_error();
    k->call = kernel_call;
    k->program = program.release();
    k->fallback = fallback.release().ptr();
    k->names = names.release().ptr();
    PyObject_GC_Track(reinterpret_cast<PyObject*>(k));
    return nb::steal(reinterpret_cast<PyObject*>(k));
}

nb::list instruction_names() {
    nb::list names;
    for (const auto& entry : instructions<float>()) names.append(entry.first.c_str());
    for (const auto& entry : instructions<int64_t>()) names.append(entry.first.c_str());
    return names;
}

}  // namespace

FW_BIND(m) {
    kernel_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!kernel_type) throw nb::python_error();
    m.def("make_kernel", &make_kernel, nb::arg("names"), nb::arg("truth"), nb::arg("constants"), nb::arg("registers"),
          nb::arg("steps"), nb::arg("truth_result"), nb::arg("fallback"));
    m.def("instructions", &instruction_names);
}

}  // namespace fw
