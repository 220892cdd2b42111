#include "bind/program/program_bf16.h"

#include "base/half.h"
#include "bind/array_layout.h"
#include "bind/bf16_array.h"
#include "program/program_bf16.h"

namespace fw {
namespace {

template <class H> bool is_of(PyArrayObject* a) {
    if constexpr (std::is_same<H, Half>::value) return PyArray_TYPE(a) == NPY_HALF;
    else return is_bf16(PyArray_DESCR(a));
}

bool take_number(PyObject* o, bool truth, int i, HalfNumbers& given) {
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

template <class H> PyObject* call_narrow(const Program& program, PyObject* const* args, PyArrayObject* target) {
    if (!program.f32.fits || program.arguments > MOST_HALF_ARGUMENTS) return nullptr;
    HalfNumbers numbers;
    ArrayLayout layout;
    OperandList operands(size_t(program.arguments));
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
        layout.goes_into(target);
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
        const bool straight = !target || place.flat || place.constant;
        Release release(n * 2 * program.f32.cost, target ? Writes::memory : Writes::results);
        run_narrow<H>(program, layout, operands, numbers, out.data<char>(), straight ? nullptr : &place);
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
