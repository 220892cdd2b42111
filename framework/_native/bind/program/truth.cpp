// Logic of truth values, of which NumPy makes bytes: any but 0 is true. Comparisons of bytes.
#include "base/vecmath.h"
#include "bind/move/alike.h"
#include "bind/move/copy.h"

namespace fw {
namespace {

struct And {
    template <class V> FW_INLINE V operator()(V x, V y) const { return (x != 0) & (y != 0); }
};
struct Or {
    template <class V> FW_INLINE V operator()(V x, V y) const { return (x | y) != 0; }
};
struct Xor {
    template <class V> FW_INLINE V operator()(V x, V y) const { return (x != 0) ^ (y != 0); }
};
struct Not {
    template <class V> FW_INLINE V operator()(V x, V) const { return x == 0; }
};

template <class F, class T = int8_t> void each(const T* x, const T* y, int64_t n, int8_t* to, Writes into = Writes::results) {
    const F f;
    Release release(n, into);
    parallel(n, moving::grain_of(2), [=](int64_t begin, int64_t end) {
        int64_t i = begin;
#pragma GCC unroll 4
        for (; i + lanes<T> <= end; i += lanes<T>) store<int8_t>(to + i, Vec<int8_t>(f(load(x + i), load(y + i))) & 1);
        for (; i < end; ++i) to[i] = int8_t(f(int(x[i]), int(y[i])) & 1);
    });
}

// Whether an operand may be read where the result is written: element by element, or not at all.
bool is_apart(const Array& x, const Array& out) {
    const char *own = x.data<char>(), *other = out.data<char>();
    return own == other || own + x.size() <= other || other + out.size() <= own;
}

// In memory that is there, rows all of them.
template <class F> nb::object logic_into(const Array& x, const Array& y, nb::handle given) {
    const Array out = nb::cast<Array>(given);
    if (!out.usable() || out.type() != NPY_BOOL || !PyArray_ISWRITEABLE(out.p)) return not_implemented();
    for (const Array* a : {&x, &y})
        if (!a->same_shape(out) || !a->contiguous() || !is_apart(*a, out)) return not_implemented();
    if (!out.contiguous()) return not_implemented();
    each<F>(x.data<int8_t>(), y.data<int8_t>(), out.size(), const_cast<int8_t*>(out.data<int8_t>()), Writes::memory);
    return nb::borrow(given);
}

template <class F> nb::object logic(Array x, Array y, nb::handle given) {
    if (!x.usable() || !y.usable() || x.type() != NPY_BOOL || y.type() != NPY_BOOL) return not_implemented();
    if (!given.is_none()) return logic_into<F>(x, y, given);
    if (x.contiguous() && y.contiguous() && x.same_shape(y)) {
        NewArray out = like(x);
        nb::object result = give(out);
        each<F>(x.data<int8_t>(), y.data<int8_t>(), x.size(), out.data<int8_t>());
        return result;
    }
    const moving::Alike both(x, y);
    if (!both.fits) return not_implemented();
    NewArray out = both.result(NPY_BOOL);
    nb::object result = give(out);
    each<F>(both.x.data<int8_t>(), both.y.data<int8_t>(), out.size(), out.data<int8_t>());
    return result;
}

// -- comparisons ----------------------------------------------------------------------------------

#define FW_COMPARE(Name, sign)                                             \
    struct Name {                                                          \
        template <class V> FW_INLINE auto operator()(V x, V y) const { return x sign y; } \
    };
FW_COMPARE(Equal, ==)
FW_COMPARE(Unequal, !=)
FW_COMPARE(Less, <)
FW_COMPARE(LessEqual, <=)
FW_COMPARE(Greater, >)
FW_COMPARE(GreaterEqual, >=)
#undef FW_COMPARE

template <class F> nb::object compared(Array x, Array y, nb::handle given) {
    if (!given.is_none() || !x.usable() || !y.usable() || x.type() != y.type() || !(x.is<uint8_t>() || x.is<int8_t>())) return not_implemented();
    const auto compare = [&](const Array& a, const Array& b, NewArray out) {
        auto* to = reinterpret_cast<int8_t*>(out.data<bool>());
        nb::object result = give(out);
        if (a.is<uint8_t>()) each<F>(a.data<uint8_t>(), b.data<uint8_t>(), a.size(), to);
        else each<F>(a.data<int8_t>(), b.data<int8_t>(), a.size(), to);
        return result;
    };
    if (x.contiguous() && y.contiguous() && x.same_shape(y)) return compare(x, y, new_array(x.ndim(), x.shape(), NPY_BOOL));
    const moving::Alike both(x, y);
    return both.fits ? compare(both.x, both.y, both.result(NPY_BOOL)) : not_implemented();
}

nb::object logical_not(Array x, nb::handle out) { return logic<Not>(x, x, out); }

}  // namespace

FW_BIND(m) {
    const auto both = [&](const char* name, auto f) { m.def(name, f, nb::arg("x"), nb::arg("y"), nb::arg("out").none() = nb::none()); };
    both("logical_and", &logic<And>);
    both("logical_or", &logic<Or>);
    both("logical_xor", &logic<Xor>);
    both("compare_eq", &compared<Equal>);
    both("compare_ne", &compared<Unequal>);
    both("compare_lt", &compared<Less>);
    both("compare_le", &compared<LessEqual>);
    both("compare_gt", &compared<Greater>);
    both("compare_ge", &compared<GreaterEqual>);
    m.def("logical_not", &logical_not, nb::arg("x"), nb::arg("out").none() = nb::none());
}

}  // namespace fw
