#include "program/program_bf16.h"

#include "base/half.h"
#include "base/scratch.h"
#include "bind/array_layout.h"
#include "bind/bf16_array.h"

namespace fw {
namespace {

constexpr int64_t PIECE = 1024;  // elements that are computed at a time, in the first cache
constexpr int MOST = 8;          // arguments

template <class H> bool is_of(PyArrayObject* a) {
    if constexpr (std::is_same<H, Half>::value) return PyArray_TYPE(a) == NPY_HALF;
    else return is_bf16(PyArray_DESCR(a));
}

// What stands for an argument that is one number throughout.
struct Numbers {
    std::array<float, MOST> numbers{};
    std::array<char, MOST> truths{};
};

bool take_number(PyObject* o, bool truth, int i, Numbers& given) {
    if (truth) {
        given.truths[i] = o == Py_True;
        return PyBool_Check(o);
    }
    if (PyFloat_CheckExact(o)) {
        given.numbers[i] = float(PyFloat_AS_DOUBLE(o));
    } else if (PyLong_CheckExact(o) || PyBool_Check(o)) {
        int overflow = 0;
        given.numbers[i] = float(PyLong_AsLongLongAndOverflow(o, &overflow));
        return !overflow;
    } else {
        return false;
    }
    return true;
}

// The elements of a result, piece by piece through float32.
template <class H> struct HalfPieces {
    const Program& program;
    const Layout& layout;                  // of the result and the array arguments
    const std::vector<Operand>& operands;  // arrays of H or of truth values, and numbers
    const Numbers& numbers;
    char* result;
    const Operand* target;  // where results go that do not lie in the order of their numbers

    // A thread's own memory for a piece.
    struct Own {
        alignas(64) float wide[MOST][PIECE], values[PIECE];
        alignas(64) H some[PIECE];
        alignas(64) char truths[MOST][PIECE];
    };

    const char* number(int i) const {
        return program.truth[i] ? &numbers.truths[i] : reinterpret_cast<const char*>(&numbers.numbers[i]);
    }

    // Where the elements [at, at + n) of an argument lie in a row.
    template <class T> const T* in_row(const Operand& o, T* buffer, int64_t at, int64_t n) const {
        return o.flat ? reinterpret_cast<const T*>(o.data) + at : layout.template gather<T>(o, buffer, at, n);
    }

    void put(const float* values, int64_t at, int64_t n, H* some) const {
        if (!target) return narrow(reinterpret_cast<H*>(result) + at, values, n);
        narrow(some, values, n);
        layout.each_run(*target, at, n, [&](const char* p, int64_t stride, int64_t count, int64_t offset) {
            char* to = const_cast<char*>(p);
            for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * stride, some + offset + i, sizeof(H));
        });
    }

    void operator()(int64_t begin, int64_t end) const {
        alignas(64) static thread_local Own mine;
        Own& own = *asked_once(&mine);
        const Layout row{};
        std::vector<Operand> wide(operands.size());
        for (int i = 0; i < program.arguments; ++i) {
            wide[size_t(i)].constant = operands[size_t(i)].constant;
            wide[size_t(i)].flat = !operands[size_t(i)].constant;
            wide[size_t(i)].data = number(i);
        }
        for (int64_t at = begin; at < end; at += PIECE) {
            const int64_t n = std::min(PIECE, end - at);
            for (int i = 0; i < program.arguments; ++i) {
                const Operand& o = operands[size_t(i)];
                if (o.constant) continue;
                if (program.truth[i]) {
                    wide[size_t(i)].data = in_row<char>(o, own.truths[i], at, n);
                } else {
                    widen(own.wide[i], in_row<H>(o, own.some, at, n), n);
                    wide[size_t(i)].data = reinterpret_cast<const char*>(own.wide[i]);
                }
            }
            Run<float> run{program, program.f32, row, wide, result + at};
            if (program.truth_result) {
                run(0, n);
            } else {
                run.compute(0, n, own.values);
                put(own.values, at, n, own.some);
            }
        }
    }
};

// An argument of a single element as a number.
template <class H> void settle_number(const Operand& o, bool truth, int i, Numbers& numbers) {
    if (!o.array || !o.constant) return;
    if (truth) numbers.truths[i] = *o.data;
    else numbers.numbers[i] = widen(*reinterpret_cast<const H*>(o.data));
}

template <class H> PyObject* call_narrow(const Program& program, PyObject* const* args, PyArrayObject* target) {
    if (!program.f32.fits || program.arguments > MOST) return nullptr;
    Numbers numbers;
    ArrayLayout layout;
    std::vector<Operand> operands(size_t(program.arguments));
    Array prototype;
    int type = program.truth_result ? NPY_BOOL : NPY_NOTYPE;
    for (int i = 0; i < program.arguments; ++i) {
        auto* a = reinterpret_cast<PyArrayObject*>(args[i]);
        if (PyArray_CheckExact(args[i])) {
            const bool fits = program.truth[i] ? PyArray_TYPE(a) == NPY_BOOL : is_of<H>(a);
            if (!fits || !PyArray_ISBEHAVED_RO(a) || !layout.broadcast(a)) return nullptr;
            operands[size_t(i)] = ArrayLayout::operand(a);
            if (type == NPY_NOTYPE && !program.truth[i]) type = PyArray_TYPE(a);
            if (!prototype.p || PyArray_NDIM(a) > prototype.ndim() ||
                (PyArray_NDIM(a) == prototype.ndim() && ArrayLayout::repeats(prototype.p)))
                prototype.p = a;
        } else if (take_number(args[i], program.truth[i], i, numbers)) {
            operands[size_t(i)] = Operand::single(nullptr);
        } else {
            return nullptr;
        }
    }
    NewArray made;
    Array out;
    if (target) {
        if (!is_of<H>(target) || (!prototype.p && !layout.broadcast(target))) return nullptr;
        if (!layout.takes(target, operands)) return nullptr;
        out.p = target;
        layout.no_result(out);
        operands.push_back(ArrayLayout::operand(target));
    } else {
        if (!prototype.p || type == NPY_NOTYPE) return nullptr;
        made = layout.result(prototype, type);
        out.p = made.p;
    }
    if (const int64_t n = layout.size) {
        layout.settle(operands);
        Operand place;
        if (target) {
            place = operands.back();
            operands.pop_back();
        }
        for (int i = 0; i < program.arguments; ++i)
            settle_number<H>(operands[size_t(i)], program.truth[i], i, numbers);
        const bool straight = !target || place.flat || place.constant;
        const HalfPieces<H> run{program, layout, operands, numbers, out.data<char>(), straight ? nullptr : &place};
        const int cost = program.f32.cost;
        Release release(n * 2 * cost, target ? Writes::memory : Writes::results);
        parallel(n, std::max<int64_t>(grain(cost) / PIECE, 1) * PIECE, run);
    }
    if (!target) return give(made).release().ptr();
    Py_INCREF(target);
    return reinterpret_cast<PyObject*>(target);
}

}  // namespace

PyObject* call_bf16(const Program& program, PyObject* const* args, PyArrayObject* target) {
    return call_narrow<Bf16>(program, args, target);
}
PyObject* call_half(const Program& program, PyObject* const* args, PyArrayObject* target) {
    return call_narrow<Half>(program, args, target);
}

}  // namespace fw
