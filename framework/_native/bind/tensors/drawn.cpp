// Random numbers drawn straight into the memory of a tensor outside the graph, and the change counted. Each function answers
// NotImplemented, and has drawn nothing, where Python is to go the whole way.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/bf16.h"
#include "base/half.h"
#include "bind/array_layout.h"
#include "bind/bf16_array.h"
#include "bind/move/copy.h"
#include "bind/random/state.h"
#include "bind/tensors/tensors.h"
#include "random/variates.h"

#define NO_IMPORT_UFUNC  // nothing of it is called, only looked at
#include <numpy/ufuncobject.h>

namespace fw::tensors {
namespace {

constexpr npy_intp FEW_DRAWN = 1 << 18;  // numbers; formulas of more go by threads

// The memory of a tensor, to be drawn into; where its elements do not lie in a row, there is room for them that do.
struct Target {
    Held held;
    bool good;
    NewArray room;
    explicit Target(nb::handle x) : held(memory_of(x.ptr())), good(held.a) {
        good = good && PyArray_ISBEHAVED(held.a) && PyArray_SIZE(held.a) && PyArray_SIZE(held.a) < FEW_DRAWN && nobody_looks();
        if (good && !PyArray_IS_C_CONTIGUOUS(held.a)) {
            good = moving::item_bytes(Array{held.a}) > 0;
            if (good) room = like(Array{held.a});
        }
    }
    void* data() const { return room.p ? room.data<void>() : PyArray_DATA(held.a); }
    void settle() const {
        if (room.p && !moving::copy_over(room, Array{held.a}) && PyArray_CopyInto(held.a, room.p) < 0) throw nb::python_error();
    }
    int type() const { return PyArray_TYPE(held.a); }
    bool narrow() const { return type() == NPY_HALF || is_bf16(PyArray_DESCR(held.a)); }
    bool half() const { return type() == NPY_HALF; }
};

// draw(words, elements, their number)
template <class T, class F> nb::object drawn_into(Target& target, State& state, nb::handle x, nb::handle name, F&& draw) {
    const int64_t n = PyArray_SIZE(target.held.a);
    {
        Release release(n * int64_t(sizeof(T)), Writes::memory);
        draw(state.words, static_cast<T*>(target.data()), n);
    }
    state.store();
    target.settle();
    bump(x.ptr(), name.ptr());
    return nb::borrow(x);
}

// The number of 16 bits nearest to x, and the one before it on the way down.
float rounded(float x, bool half) { return half ? widen(narrow_half(x)) : widen(narrow(x)); }
float below(float x, bool half) {
    const uint16_t bits = half ? narrow_half(x).bits : narrow(x).bits;
    const uint16_t less = bits & 0x8000 ? bits + 1 : bits ? bits - 1 : 0x8001;
    return half ? widen(Half{less}) : widen(Bf16{less});
}

// draw(words, floats, their number), of numbers of 16 bits
template <class F> nb::object drawn_narrow(Target& target, State& state, nb::handle x, nb::handle name, F&& draw) {
    const bool half = target.half();
    std::vector<float> wide(size_t(PyArray_SIZE(target.held.a)), 0.0f);
    return drawn_into<uint16_t>(target, state, x, name, [&](uint64_t* words, uint16_t* out, int64_t n) {
        draw(words, wide.data(), n);
        if (half) narrow(reinterpret_cast<Half*>(out), wide.data(), n);
        else narrow(reinterpret_cast<Bf16*>(out), wide.data(), n);
    });
}

template <class F> nb::object of_floats(Target& target, Array words, nb::handle x, nb::handle name, F&& draw) {
    State state(words);
    if (!target.good || !state.usable) return not_implemented();
    if (target.type() == NPY_FLOAT) return drawn_into<float>(target, state, x, name, draw);
    if (target.type() == NPY_DOUBLE) return drawn_into<double>(target, state, x, name, draw);
    return not_implemented();
}

constexpr double BEYOND = 1e30;  // beyond, results may be inf

// Uniform in [low, high).
nb::object into_uniform(Array words, nb::handle x, double low, double high, nb::handle name) {
    if (!(-BEYOND < low && low <= high && high < BEYOND)) return not_implemented();
    Target target(x);
    if (target.good && target.narrow()) {  // by integers of 11 bits: a float32 might be rounded to 1
        State state(words);
        if (!state.usable || (target.half() && high - low > 65504)) return not_implemented();
        const bool half = target.half();
        const float from = rounded(float(low), half), to = rounded(float(high), half), last = from < to ? below(to, half) : to;
        return drawn_narrow(target, state, x, name, [=](uint64_t* state_words, float* out, int64_t n) {
            std::vector<int64_t> whole(size_t(n), 0);
            random::draw_integers(state_words, whole.data(), n, 0, 2048);
            for (int64_t i = 0; i < n; ++i) out[i] = float(whole[size_t(i)]) * 0x1p-11f;
            if (!half) {  // float16 holds them
                std::vector<Bf16> some(size_t(n), Bf16{0});
                fw::narrow(some.data(), out, n);
                fw::widen(out, some.data(), n);
            }
            for (int64_t i = 0; i < n; ++i) out[i] = std::min(out[i] * float(high - low) + float(low), last);
        });
    }
    return of_floats(target, words, x, name, [=](uint64_t* state, auto* out, int64_t n) {
        using T = std::remove_pointer_t<decltype(out)>;
        random::draw_between<T>(state, out, n, low, high);
    });
}

nb::object into_normal(Array words, nb::handle x, double mean, double deviation, nb::handle name) {
    if (!(std::fabs(mean) < BEYOND && deviation >= 0 && deviation < BEYOND)) return not_implemented();
    Target target(x);
    if (target.good && target.narrow()) {
        State state(words);
        if (!state.usable) return not_implemented();
        return drawn_narrow(target, state, x, name, [=](uint64_t* state_words, float* out, int64_t n) {
            random::draw_spread<float>(state_words, out, n, mean, deviation);
        });
    }
    return of_floats(target, words, x, name, [=](uint64_t* state, auto* out, int64_t n) {
        using T = std::remove_pointer_t<decltype(out)>;
        random::draw_spread<T>(state, out, n, mean, deviation);
    });
}

// 1 with this probability, else 0: by draws of 32 bits, whatever the dtype.
nb::object into_coins(Array words, nb::handle x, double chance, nb::handle name) {
    Target target(x);
    State state(words);
    if (!target.good || !state.usable || !(chance >= 0 && chance <= 1)) return not_implemented();
    const auto toss = [=](uint64_t* state_words, float* out, int64_t n) {
        random::draw_coins<float>(state_words, float(chance), out, n);
    };
    const auto by_floats = [&](auto* of) {
        using T = std::remove_pointer_t<decltype(of)>;
        std::vector<float> coins(size_t(PyArray_SIZE(target.held.a)), 0.0f);
        return drawn_into<T>(target, state, x, name, [&](uint64_t* state_words, T* out, int64_t n) {
            toss(state_words, coins.data(), n);
            for (int64_t i = 0; i < n; ++i) out[i] = T(coins[size_t(i)]);
        });
    };
    if (target.type() == NPY_FLOAT) return drawn_into<float>(target, state, x, name, toss);
    if (target.type() == NPY_DOUBLE) return by_floats(static_cast<double*>(nullptr));
    if (target.type() == NPY_INT64) return by_floats(static_cast<int64_t*>(nullptr));
    return target.narrow() ? drawn_narrow(target, state, x, name, toss) : not_implemented();
}

template <class T> nb::object chances_into(Target& target, State& state, nb::handle x, const Held& chances, nb::handle name) {
    const InRows rows(Array{chances.a});
    if (!random::within(rows.data<T>(), PyArray_SIZE(chances.a), 0.0, 1.0, false)) return not_implemented();
    return drawn_into<T>(target, state, x, name, [&](uint64_t* words, T* out, int64_t n) { random::draw_coins(words, rows.data<T>(), out, n); });
}

// 1 with the probability that another tensor has at this place, else 0.
nb::object into_chances(Array words, nb::handle x, nb::handle p, nb::handle name) {
    const Held chances = array_of(p.ptr());
    Target target(x);
    State state(words);
    if (!target.good || !state.usable || target.room.p || !chances || PyArray_DESCR(chances) != PyArray_DESCR(target.held) ||
        !PyArray_SAMESHAPE(chances.a, target.held.a))
        return not_implemented();
    const auto own = ArrayLayout::extent(target.held), other = ArrayLayout::extent(chances);
    if (own.first < other.second && other.first < own.second) return not_implemented();
    if (target.type() == NPY_FLOAT) return chances_into<float>(target, state, x, chances, name);
    return target.type() == NPY_DOUBLE ? chances_into<double>(target, state, x, chances, name) : not_implemented();
}

// Integers uniform in [low, low + range), by one word of the state.
nb::object into_integers(Array words, nb::handle x, int64_t low, uint64_t range, nb::handle name) {
    Target target(x);
    State state(words);
    if (!target.good || !state.usable) return not_implemented();
    auto draw = [=](uint64_t* words, auto* out, int64_t n) {
        using T = std::remove_pointer_t<decltype(out)>;
        const uint64_t key = random::draw_word(words);
        if constexpr (std::is_same_v<T, int64_t>) {
            random::keyed_integers(key, out, n, low, range);
        } else {
            std::vector<int64_t> whole(size_t(n), 0);
            random::keyed_integers(key, whole.data(), n, low, range);
            for (int64_t i = 0; i < n; ++i) out[i] = T(whole[size_t(i)]);
        }
    };
    if (target.type() == NPY_INT64) return drawn_into<int64_t>(target, state, x, name, draw);
    if (target.narrow()) return drawn_narrow(target, state, x, name, draw);
    if (target.type() == NPY_FLOAT) return drawn_into<float>(target, state, x, name, draw);
    if (target.type() == NPY_DOUBLE) return drawn_into<double>(target, state, x, name, draw);
    return not_implemented();
}

// Whole numbers at least `low` and below `high`; of one number alone, of 0 and that; without any, all that the dtype holds exactly.
nb::object into_random(Array words, nb::handle x, nb::handle low, nb::handle high, nb::handle name) {
    PyArrayObject* a = array_of(x.ptr());
    if (!a) return not_implemented();
    const int type = PyArray_TYPE(a), digits = type == NPY_FLOAT ? 24 : type == NPY_DOUBLE ? 53 : type == NPY_HALF ? 11 : is_bf16(PyArray_DESCR(a)) ? 8 : 0;
    if (!digits && type != NPY_INT64) return not_implemented();
    const uint64_t exact = uint64_t(1) << (digits ? digits : 63);
    const auto number = [exact](nb::handle given, int64_t& to) {
        int over = 0;
        if (!PyLong_CheckExact(given.ptr())) return false;
        to = PyLong_AsLongLongAndOverflow(given.ptr(), &over);
        return !over && (exact >> 63 || (to >= -int64_t(exact) && to <= int64_t(exact)));
    };
    int64_t from = 0, to = 0;
    if (low.is_none()) return into_integers(words, x, 0, exact, name);
    if (high.is_none()) return number(low, to) && to > 0 ? into_integers(words, x, 0, uint64_t(to), name) : not_implemented();
    if (!number(low, from) || !number(high, to) || from >= to) return not_implemented();
    return into_integers(words, x, from, uint64_t(to) - uint64_t(from), name);
}

// Numbers whose formulas have a function of NumPy in them, of which a seed keeps its numbers; all around it is rounded correctly, so
// that it is the same here and there.
enum Wanted { EXPONENTIAL, CAUCHY, LOG_NORMAL, GEOMETRIC };

template <class T> void before_function(Wanted kind, T* t, int64_t n, T a, T b) {
    const T least = std::numeric_limits<T>::epsilon() / 4;  // a draw of 0 would give 0, whose log users then take
    for (int64_t i = 0; i < n; ++i) {
        if (kind == EXPONENTIAL) t[i] = -(t[i] < least ? least : t[i]);
        else if (kind == CAUCHY) t[i] = T(3.141592653589793) * (t[i] - T(0.5));
        else if (kind == LOG_NORMAL) t[i] = t[i] * b + a;
        else t[i] = -t[i];
    }
}

template <class T> void after_function(Wanted kind, T* t, int64_t n, T a, T b) {
    for (int64_t i = 0; i < n; ++i) {
        if (kind == EXPONENTIAL) t[i] = -t[i] / a;
        else if (kind == CAUCHY) t[i] = a + b * t[i];
        else if (kind == GEOMETRIC) t[i] = std::max(std::ceil(t[i] / a), T(1));
    }
}

// A function of NumPy, and its loops over numbers of both types, if it has them: the first ones, which it takes itself.
struct Function {
    PyObject* of;
    PyUFuncGenericFunction loops[2] = {nullptr, nullptr};
    void* data[2] = {nullptr, nullptr};
    explicit Function(const char* name) {
        nb::module_ numpy = nb::module_::import_("numpy");
        of = nb::object(numpy.attr(name)).release().ptr();
        if (Py_TYPE(of) != reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr("ufunc")).ptr())) return;
        const auto* f = reinterpret_cast<PyUFuncObject*>(of);
        for (int i = 0; i < f->ntypes && f->nin == 1 && f->nout == 1; ++i)
            for (int which : {0, 1}) {
                const char type = which ? NPY_DOUBLE : NPY_FLOAT;
                if (!loops[which] && f->types[2 * i] == type && f->types[2 * i + 1] == type) loops[which] = f->functions[i], data[which] = f->data ? f->data[i] : nullptr;
            }
    }
    // Of few numbers at once, of many with what NumPy has around a call.
    template <class T> void operator()(const nb::object& array, T* t, npy_intp n) const {
        constexpr npy_intp FEW = 4096;
        constexpr int which = sizeof(T) == 8;
        if (n <= FEW && loops[which]) {
            char* places[] = {reinterpret_cast<char*>(t), reinterpret_cast<char*>(t)};
            const npy_intp steps[] = {sizeof(T), sizeof(T)};
            return loops[which](places, &n, steps, data[which]);
        }
        static PyObject* const names = taken(PyTuple_Pack(1, word("out"))).release().ptr();
        const nb::object runner = here_of(quiet, word_run);
        PyObject* given[] = {of, array.ptr(), array.ptr()};
        taken(PyObject_Vectorcall(runner.ptr(), given, 2, names));
    }
};

const Function* functions;  // of what is wanted, in order

// The numbers in an array of their own.
template <class T> nb::object by_function(State& state, Wanted kind, int64_t n, double a, double b) {
    const npy_intp shape[] = {n};
    NewArray numbers = new_array(1, shape, sizeof(T) == 4 ? NPY_FLOAT : NPY_DOUBLE);
    T* t = numbers.data<T>();
    const nb::object array = give(numbers);
    if (kind == LOG_NORMAL) random::draw_normal<T>(state.words, t, n);
    else random::draw_uniform<T>(state.words, t, n);
    state.store();  // NumPy's function may let another thread draw
    before_function<T>(kind, t, n, T(a), T(b));
    functions[kind](array, t, npy_intp(n));
    after_function<T>(kind, t, n, T(a), T(b));
    return array;
}

// By a formula of two numbers, of which the one that this is must be above 0.
nb::object into_formula(Array& words, nb::handle x, Wanted which, double a, double b, double positive, nb::handle name) {
    if (!(positive > 0)) return not_implemented();
    Target target(x);
    State state(words);
    const bool fits = target.good && (target.type() == NPY_FLOAT || target.type() == NPY_DOUBLE || target.narrow() ||
                                      (which == GEOMETRIC && target.type() == NPY_INT64));
    if (!fits || !state.usable) return not_implemented();
    const bool wide = target.type() == NPY_DOUBLE || which == GEOMETRIC;
    const int64_t n = PyArray_SIZE(target.held.a);
    nb::object made = wide ? by_function<double>(state, which, n, a, b) : by_function<float>(state, which, n, a, b);
    if (PyArray_TYPE(reinterpret_cast<PyArrayObject*>(made.ptr())) != target.type())
        made = in_dtype(made.ptr(), PyArray_DESCR(target.held.a));
    auto* from = reinterpret_cast<PyArrayObject*>(made.ptr());
    std::memcpy(target.data(), PyArray_DATA(from), size_t(PyArray_NBYTES(from)));
    target.settle();
    bump(x.ptr(), name.ptr());
    return nb::borrow(x);
}

}  // namespace

FW_BIND(m) {
    functions = new Function[4]{Function("log1p"), Function("tan"), Function("exp"), Function("log1p")};
    m.def("into_exponential", [](Array words, nb::handle x, double rate, nb::handle name) {
        return into_formula(words, x, EXPONENTIAL, rate, 0, rate, name);
    });
    m.def("into_cauchy", [](Array words, nb::handle x, double median, double sigma, nb::handle name) {
        return into_formula(words, x, CAUCHY, median, sigma, sigma, name);
    });
    m.def("into_log_normal", [](Array words, nb::handle x, double mean, double deviation, nb::handle name) {
        return into_formula(words, x, LOG_NORMAL, mean, deviation, deviation, name);
    });
    m.def("into_geometric", [](Array words, nb::handle x, double p, nb::handle name) {
        return into_formula(words, x, GEOMETRIC, p < 1 ? std::log1p(-p) : 0, 0, p < 1 ? p : 0, name);
    });
    m.def("into_uniform", &into_uniform);
    m.def("into_normal", &into_normal);
    m.def("into_coins", &into_coins);
    m.def("into_chances", &into_chances);
    m.def("into_integers", &into_integers);
    m.def("into_random", &into_random, nb::arg("words"), nb::arg("x"), nb::arg("low").none(), nb::arg("high").none(), nb::arg("name"));
}

}  // namespace fw::tensors
