// Kernels: objects that are called with arrays and numbers like the NumPy formula they stand for.
//
// Arguments broadcast; what the engine does not take (mixed dtypes, odd objects) goes to that formula, the
// kernel's fallback.
#include <cstddef>

#include "bind/array_layout.h"
#include "bind/collected.h"
#include "bind/guarded.h"
#include <structmember.h>
#include "bind/program/program_bf16.h"
#include "bind/program/program_fold.h"

namespace fw {

namespace {

template <class T>
PyObject* execute(const Program& program, const Compiled<T>& compiled, ArrayLayout& layout,
                  OperandList& operands, Array prototype) {
    NewArray out = layout.result(prototype, program.truth_result ? NPY_BOOL : type_number<T>);
    const int64_t n = layout.size, bytes = n * int64_t(sizeof(T));
    if (n) {
        layout.settle(operands);
        Run<T> run{program, compiled, layout, operands, out.data<char>()};
        Release release(bytes * compiled.cost);
        if (n <= grain(compiled.cost, sizeof(T))) run(0, n);
        else parallel(n, grain(compiled.cost, sizeof(T)), run);
    }
    return give(out).release().ptr();
}

// The same, written into `target`, which is returned.
template <class T>
PyObject* execute_into(const Program& program, const Compiled<T>& compiled, ArrayLayout& layout,
                       OperandList& operands, PyArrayObject* target) {
    Array out;
    out.p = target;
    layout.goes_into(target);
    if (const int64_t n = layout.size) {
        operands.push_back(ArrayLayout::operand(target));
        layout.settle(operands);
        const Operand place = operands.back();
        operands.pop_back();
        const bool straight = place.flat || place.constant;
        Run<T> run{program, compiled, layout, operands, out.data<char>(), straight ? nullptr : &place};
        Release release(n * int64_t(sizeof(T)) * compiled.cost, Writes::memory);
        parallel(n, grain(compiled.cost, sizeof(T)), run);
    }
    Py_INCREF(target);
    return reinterpret_cast<PyObject*>(target);
}

// -- the Python object -------------------------------------------------------------------------

struct Kernel {
    PyObject_HEAD
    vectorcallfunc call;
    Program* program;
    PyObject* fallback;
    PyObject* names;  // of the arguments, for those given by keyword
    void close() { delete program; }
};

// The place of `out` among the keywords; -1 without one.
Py_ssize_t place_of_out(PyObject* keywords) {
    for (Py_ssize_t i = keywords ? PyTuple_GET_SIZE(keywords) : 0; i-- > 0;)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, i), "out") == 0) return i;
    return -1;
}

// The arguments in order, those by keyword included but for the one at `left_out`; false if they do not fit.
bool arrange(const Kernel* k, PyObject* const* args, size_t given, PyObject* keywords, Py_ssize_t left_out,
             PyObject** ordered) {
    const size_t wanted = size_t(k->program->arguments), named = keywords ? size_t(PyTuple_GET_SIZE(keywords)) : 0;
    if (given + named - (left_out >= 0) != wanted) return false;
    std::copy(args, args + given, ordered);
    std::fill(ordered + given, ordered + wanted, nullptr);
    for (size_t i = 0; i < named; ++i) {
        if (Py_ssize_t(i) == left_out) continue;
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

// What is wanted other than a new array: a fold of the elements, or that they go into `out`.
struct Wish {
    const Folding* fold = nullptr;
    PyArrayObject* out = nullptr;
    Py_ssize_t place = -1;  // of `out` among the keywords
};

struct GivenNumbers {
    std::array<std::array<char, 8>, MOST_SLOTS> memory;
    int used = 0;
    template <class T> const char* add(T value) {
        std::memcpy(memory[used].data(), &value, sizeof value);
        return memory[used++].data();
    }
};

template <class T> bool is_scalar(PyObject* o) {
    if (std::is_same<T, float>::value) return PyArray_IsScalar(o, Float);
    if (std::is_same<T, double>::value) return PyArray_IsScalar(o, Double);
    return false;
}

// A Python number, or NumPy's scalar of the same type, as T; false where it has no such value.
template <class T> bool number(PyObject* o, GivenNumbers& numbers, Operand& operand) {
    T value;
    if (PyFloat_CheckExact(o)) {
        if (std::numeric_limits<T>::is_integer) return false;
        value = T(PyFloat_AS_DOUBLE(o));
    } else if (PyLong_CheckExact(o) || PyBool_Check(o)) {
        int overflow = 0;
        long long whole = PyLong_AsLongLongAndOverflow(o, &overflow);
        value = T(whole);
        if (overflow || (std::numeric_limits<T>::is_integer && (long long)(value) != whole)) return false;
    } else if (is_scalar<T>(o)) {  // what NumPy makes of arrays without dimensions
        PyArray_ScalarAsCtype(o, &value);
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
    GivenNumbers numbers;
    ArrayLayout layout;
    OperandList operands(size_t(program.arguments));  // where it is written comes last
    Array prototype;
    for (int i = 0; i < program.arguments; ++i) {
        auto* a = reinterpret_cast<PyArrayObject*>(args[i]);
        if (PyArray_CheckExact(args[i])) {
            if (PyArray_TYPE(a) != (program.truth[i] ? NPY_BOOL : type_number<T>) || !PyArray_ISBEHAVED_RO(a))
                return nullptr;
            operands[i] = ArrayLayout::operand(a);
            if (!layout.broadcast(a)) return nullptr;
            if (!prototype.p || PyArray_NDIM(a) > prototype.ndim() ||
                (PyArray_NDIM(a) == prototype.ndim() && ArrayLayout::repeats(prototype.p)))
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
        if (!prototype.p && !layout.broadcast(wish.out)) return nullptr;  // numbers only
        if (PyArray_TYPE(wish.out) != type_number<T> || !layout.takes(wish.out, operands)) return nullptr;
        return execute_into<T>(program, compiled, layout, operands, wish.out);
    }
    if constexpr (!std::numeric_limits<T>::is_integer) {
        if (wish.fold) {
            if (!layout.countable()) return nullptr;
            layout.no_result(prototype);
            layout.settle(operands);
            return execute_fold<T>(Run<T>{program, compiled, layout, operands, nullptr}, *wish.fold);
        }
    }
    return execute<T>(program, compiled, layout, operands, prototype);
}

// The result, or nullptr without an error where the fallback is to do it.
PyObject* call_native(const Kernel* k, PyObject** args, const Wish& wish) {
    int type = NPY_NOTYPE;
    for (int i = 0; i < k->program->arguments && type == NPY_NOTYPE; ++i)
        if (!k->program->truth[i] && PyArray_CheckExact(args[i]))
            type = PyArray_TYPE(reinterpret_cast<PyArrayObject*>(args[i]));
    if (type == NPY_NOTYPE && wish.out) type = PyArray_TYPE(wish.out);
    const Program& p = *k->program;
    if ((wish.fold || wish.out) && p.truth_result) return nullptr;
    if (type == NPY_FLOAT) return call_as<float>(k, p.f32, args, wish);
    if (type == NPY_DOUBLE) return call_as<double>(k, p.f64, args, wish);
    if (wish.fold) return nullptr;
    if (type == NPY_INT64 || type == NPY_LONGLONG) return call_as<int64_t>(k, p.i64, args, wish);
    if (type == NPY_INT32) return call_as<int32_t>(k, p.i32, args, wish);
    if (type == NPY_HALF) return call_half(p, args, wish.out);
    return type >= NPY_USERDEF ? call_bf16(p, args, wish.out) : nullptr;
}

// nullptr without an error: not for the engine
PyObject* try_native(const Kernel* k, PyObject* const* args, size_t given, PyObject* keywords, const Wish& wish) {
    PyObject* ordered[MOST_SLOTS];
    if (!arrange(k, args, given, keywords, wish.place, ordered)) return nullptr;
    return guarded([&] { return call_native(k, ordered, wish); });
}

PyObject* kernel_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords) {
    auto* k = reinterpret_cast<Kernel*>(self);
    const size_t given = size_t(PyVectorcall_NARGS(flags));
    PyObject* result = nullptr;
    if (const Py_ssize_t place = place_of_out(keywords); place >= 0) {
        PyObject* given_out = args[given + size_t(place)];
        auto* out = reinterpret_cast<PyArrayObject*>(given_out);
        if (PyArray_CheckExact(given_out) && PyArray_ISBEHAVED(out))
            result = try_native(k, args, given, keywords, {nullptr, out, place});
    } else {
        result = try_native(k, args, given, keywords, {});
    }
    if (result || PyErr_Occurred()) return result;
    return PyObject_Vectorcall(k->fallback, args, flags, keywords);
}

bool reduction_of(const char* name, Reduction& kind) {
    constexpr std::pair<const char*, Reduction> known[] = {{"sum", Reduction::sum}, {"mean", Reduction::mean},
                                                           {"amax", Reduction::amax}, {"amin", Reduction::amin},
                                                           {"var", Reduction::var}};
    for (const auto& [word, reduction] : known)
        if (std::strcmp(name, word) == 0) return kind = reduction, true;
    return false;
}

// fold(name, dims, keepdim, correction, *arguments): "sum", "mean", "amax", "amin" or "var" of the result over
// `dims`, a tuple; the correction is the variance's. NotImplemented for what the engine does not take.
PyObject* kernel_fold(PyObject* self, PyObject* const* args, Py_ssize_t given, PyObject* keywords) {
    auto* k = reinterpret_cast<Kernel*>(self);
    Folding folding;
    const char* name = given > 3 && PyUnicode_Check(args[0]) ? PyUnicode_AsUTF8(args[0]) : nullptr;
    if (!name || !PyTuple_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "fold: wanted a name, a tuple of dimensions, keepdim, a correction, and so on");
        return nullptr;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); ++i)
        folding.dims |= 1u << (PyLong_AsUnsignedLong(PyTuple_GET_ITEM(args[1], i)) & 31);
    folding.keepdim = args[2] == Py_True;
    folding.correction = PyFloat_AsDouble(args[3]);
    if (PyErr_Occurred()) return nullptr;
    PyObject* result = nullptr;
    if (reduction_of(name, folding.kind)) result = try_native(k, args + 4, size_t(given - 4), keywords, {&folding, nullptr});
    if (result || PyErr_Occurred()) return result;
    Py_RETURN_NOTIMPLEMENTED;
}

using Owned = Collected<Kernel, &Kernel::fallback, &Kernel::names>;

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Kernel, call), READONLY, nullptr},
    {"fallback", T_OBJECT, offsetof(Kernel, fallback), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyMethodDef methods[] = {
    {"fold", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(kernel_fold)), METH_FASTCALL | METH_KEYWORDS,
     "fold(name, dims, keepdim, correction, *arguments): a reduction of the result, which is not stored."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_traverse, reinterpret_cast<void*>(Owned::traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(Owned::clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(Owned::free)},
                       {Py_tp_members, members},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

PyType_Spec spec = {"framework._native.Kernel", sizeof(Kernel), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

PyTypeObject* kernel_type = nullptr;

// steps: (name, d, a, b, c), slots numbered as in `Program`.
nb::object make_kernel(nb::tuple names, nb::tuple truth, nb::tuple constants, int registers, nb::tuple steps,
                       int once, bool truth_result, nb::object fallback) {
    auto program = std::make_unique<Program>();
    program->arguments = int(names.size());
    program->registers = registers;
    program->once = once;
    program->truth_result = truth_result;
    for (nb::handle t : truth) program->truth.push_back(nb::cast<bool>(t));
    for (nb::handle c : constants) program->constants.push_back(nb::cast<double>(c));
    for (nb::handle s : steps) {
        auto t = nb::cast<nb::tuple>(s);
        if (t.size() != 5) throw nb::value_error("a step is a name and four slots");
        Step step{nb::cast<std::string>(t[0]), nb::cast<int>(t[1]), nb::cast<int>(t[2]), nb::cast<int>(t[3]),
                  nb::cast<int>(t[4])};
        program->steps.push_back(step);
    }
    if (const char* why = program->wrong()) throw nb::value_error(why);
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
    for (const char* name : instruction_names_of_all()) names.append(name);
    return names;
}

}  // namespace

FW_BIND(m) {
    kernel_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!kernel_type) throw nb::python_error();
    m.def("make_kernel", &make_kernel, nb::arg("names"), nb::arg("truth"), nb::arg("constants"), nb::arg("registers"),
          nb::arg("steps"), nb::arg("once"), nb::arg("truth_result"), nb::arg("fallback"));
    m.def("instructions", &instruction_names);
}

}  // namespace fw
