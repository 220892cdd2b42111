#include "program/program_bf16.h"

#include "bind/bf16_array.h"
#include "base/half.h"

namespace fw {
namespace {

template <class H> bool is_of(PyArrayObject* a) {
    if constexpr (std::is_same<H, Half>::value) return PyArray_TYPE(a) == NPY_HALF;
    else return is_bf16(PyArray_DESCR(a));
}

constexpr int64_t PIECE = 2048;  // elements that are computed at a time
constexpr int MOST = 8;          // arguments

struct Arguments {
    std::array<PyArrayObject*, MOST> arrays{};  // as many elements as the result; the others are numbers
    std::array<float, MOST> numbers{};
    std::array<char, MOST> truths{};
    PyArrayObject* first = nullptr;
};

bool repeated(PyArrayObject* a) {  // one number, expanded
    for (int d = 0; d < PyArray_NDIM(a); ++d)
        if (PyArray_STRIDE(a, d) != 0 && PyArray_DIM(a, d) > 1) return false;
    return true;
}

bool same_shape(PyArrayObject* a, PyArrayObject* b) { return PyArray_SAMESHAPE(a, b); }

// Whether an array fits; the first one that is no repeated number tells the shape.
template <class H>
bool take(PyArrayObject* a, bool truth, int i, Arguments& given, std::vector<PyArrayObject*>& small) {
    if (!PyArray_ISBEHAVED_RO(a) || !PyArray_SIZE(a)) return false;
    if (truth ? PyArray_TYPE(a) != NPY_BOOL : !is_of<H>(a)) return false;
    if (repeated(a)) {
        small.push_back(a);
        if (truth) given.truths[i] = *PyArray_BYTES(a);
        else given.numbers[i] = widen(*reinterpret_cast<const H*>(PyArray_BYTES(a)));
        return true;
    }
    if (!PyArray_IS_C_CONTIGUOUS(a) || (given.first && !same_shape(a, given.first))) return false;
    given.arrays[i] = given.first = a;
    return true;
}

bool take_number(PyObject* o, bool truth, int i, Arguments& given) {
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

// Numbers that are repeated must not make the result larger.
bool fits(PyArrayObject* a, PyArrayObject* first) {
    const int missing = PyArray_NDIM(first) - PyArray_NDIM(a);
    if (missing < 0) return false;
    for (int d = 0; d < PyArray_NDIM(a); ++d)
        if (PyArray_DIM(a, d) != 1 && PyArray_DIM(a, d) != PyArray_DIM(first, d + missing)) return false;
    return true;
}

template <class H> struct HalfPieces {
    const Program& program;
    const Arguments& given;
    char* to;

    void operator()(int64_t begin, int64_t end) const {
        alignas(64) static thread_local float memory[(MOST + 1) * PIECE];
        const Layout layout{};
        std::vector<Operand> operands(size_t(program.arguments));
        for (int i = 0; i < program.arguments; ++i) {
            Operand& o = operands[size_t(i)];
            o.flat = given.arrays[i] != nullptr;
            o.constant = !o.flat;
            o.data = program.truth[i] ? &given.truths[i] : reinterpret_cast<const char*>(&given.numbers[i]);
        }
        float* result = memory + MOST * PIECE;
        for (int64_t at = begin; at < end; at += PIECE) {
            const int64_t n = std::min(PIECE, end - at);
            for (int i = 0; i < program.arguments; ++i) {
                if (!given.arrays[i]) continue;
                const char* from = PyArray_BYTES(given.arrays[i]);
                Operand& o = operands[size_t(i)];
                if (program.truth[i]) {
                    o.data = from + at;
                } else {
                    widen(memory + i * PIECE, reinterpret_cast<const H*>(from) + at, n);
                    o.data = reinterpret_cast<const char*>(memory + i * PIECE);
                }
            }
            Run<float> run{program, program.f32, layout, operands, to + at};
            if (program.truth_result) {
                run(0, n);
            } else {
                run.compute(0, n, result);
                narrow(reinterpret_cast<H*>(to) + at, result, n);
            }
        }
    }
};

template <class H> PyObject* call_narrow(const Program& program, PyObject* const* args) {
    if (!program.f32.fits || program.arguments > MOST) return nullptr;
    Arguments given;
    std::vector<PyArrayObject*> small;
    for (int i = 0; i < program.arguments; ++i) {
        const bool array = PyArray_CheckExact(args[i]);
        auto* a = reinterpret_cast<PyArrayObject*>(args[i]);
        if (!(array ? take<H>(a, program.truth[i], i, given, small) : take_number(args[i], program.truth[i], i, given)))
            return nullptr;
    }
    if (!given.first) return nullptr;
    for (PyArrayObject* a : small)
        if (!fits(a, given.first)) return nullptr;
    Array like;
    like.p = given.first;
    int type = NPY_BOOL;
    for (PyArrayObject* a : given.arrays)
        if (a && !program.truth_result && PyArray_TYPE(a) != NPY_BOOL) type = PyArray_TYPE(a);
    for (PyArrayObject* a : small)
        if (!program.truth_result && PyArray_TYPE(a) != NPY_BOOL) type = PyArray_TYPE(a);
    if (!program.truth_result && type == NPY_BOOL) return nullptr;
    NewArray out = new_array(like.ndim(), like.shape(), type);
    const int64_t n = like.size();
    {
        Release release(n * 2 * program.f32.cost);
        parallel(n, std::max<int64_t>(grain(program.f32.cost) / PIECE, 1) * PIECE,
                 HalfPieces<H>{program, given, out.data<char>()});
    }
    return give(out).release().ptr();
}

}  // namespace

PyObject* call_bf16(const Program& program, PyObject* const* args) { return call_narrow<Bf16>(program, args); }
PyObject* call_half(const Program& program, PyObject* const* args) { return call_narrow<Half>(program, args); }

}  // namespace fw
