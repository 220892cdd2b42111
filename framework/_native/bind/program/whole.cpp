// What the engine has no numbers for: quotients, shifts and divisors of whole numbers, signs, numbers that follow.
#include <algorithm>
#include <cmath>

#include "base/bf16.h"
#include "base/shuffles.h"
#include "base/vecmath.h"
#include "bind/bf16_array.h"
#include "bind/move/alike.h"
#include "bind/move/copy.h"
#include "program/whole.h"

namespace fw {
namespace {

// An operand of whole numbers: an array of the type and shape of the other one, one element, or a number of Python's.
template <class T> struct Operand {
    Array a;
    T number = 0;
    bool good = false, one = false;

    Operand(nb::handle given, const Array& like) : a(nb::cast<Array>(given)) {
        if (a.usable()) {
            one = a.size() == 1 && a.ndim() <= like.ndim() && !a.same_shape(like);
            good = a.is<T>() && (one || a.same_shape(like));
        } else {
            good = one = PyLong_CheckExact(given.ptr()) && nb::try_cast(given, number);
        }
    }
    const T* data(const InRows& rows) const { return a.usable() ? rows.data<T>() : &number; }
    // Whether it may be the second one: NumPy has a word to say of a division by 0, and of a power below 0.
    bool may_follow(whole::Of what, const InRows& rows) const {
        const int64_t n = a.usable() ? a.size() : 1;
        if (what == whole::Of::power) return whole::has_none<true>(data(rows), n);
        return what > whole::Of::remainder || whole::has_none<false>(data(rows), n);
    }
    // Whether what is written to `out` is read before.
    bool may_share(const Array& out) const {
        if (!a.usable() || a.p == out.p) return true;
        const char *own = a.data<char>(), *other = out.data<char>();
        return own + a.size() * sizeof(T) <= other || other + out.size() * sizeof(T) <= own || (!one && own == other);
    }
};

// In memory that is there.
template <class T> nb::object combined_into(whole::Of what, const Operand<T>& x, const Operand<T>& y, const Array& like, nb::handle given) {
    const Array out = nb::cast<Array>(given);
    const auto in_rows = [](const Operand<T>& o) { return !o.a.usable() || o.a.contiguous(); };
    if (!out.usable() || !out.is<T>() || !out.same_shape(like) || !out.contiguous() || !PyArray_ISWRITEABLE(out.p)) return not_implemented();
    if (!in_rows(x) || !in_rows(y) || !x.may_share(out) || !y.may_share(out)) return not_implemented();
    const InRows first(x.a, false), second(y.a, false);
    if (!y.may_follow(what, second)) return not_implemented();
    whole::combine(what, x.data(first), x.one ? 0 : 1, y.data(second), y.one ? 0 : 1, like.size(), const_cast<T*>(out.data<T>()));
    return nb::borrow(given);
}

template <class T> nb::object combined_of(whole::Of what, nb::handle x_given, nb::handle y_given, const Array& like, nb::handle given) {
    const Operand<T> x(x_given, like), y(y_given, like);
    if (!x.good || !y.good) return not_implemented();
    if (!given.is_none()) return combined_into<T>(what, x, y, like, given);
    NewArray out = moving::as_laid(like);
    const auto alike = [&](const Operand<T>& o) {
        return o.one || std::equal(PyArray_STRIDES(o.a.p), PyArray_STRIDES(o.a.p) + o.a.ndim(), PyArray_STRIDES(out.p));
    };
    const bool as_they_lie = alike(x) && alike(y);
    if (!as_they_lie) out = fw::like(like);
    nb::object result = give(out);
    const InRows first(x.a, x.a.usable() && !as_they_lie), second(y.a, y.a.usable() && !as_they_lie);
    if (!y.may_follow(what, second)) return not_implemented();
    const int64_t n = like.size();
    Release release(n * 8);
    whole::combine(what, x.data(first), x.one ? 0 : 1, y.data(second), y.one ? 0 : 1, n, out.data<T>());
    return result;
}

// In memory that is there, which lies otherwise than the operands do.
nb::object moved_into(const nb::object& made, nb::handle given) {
    const Array out = nb::cast<Array>(given);
    if (made.is(not_implemented()) || !out.usable()) return not_implemented();
    const Array from = nb::cast<Array>(made);
    return from.same_shape(out) && moving::copy_over(from, out) ? nb::borrow(given) : not_implemented();
}

template <whole::Of what> nb::object combined(nb::handle x, nb::handle y, nb::handle out) {
    const Array a = nb::cast<Array>(x), b = nb::cast<Array>(y);
    if (!a.usable() && !b.usable()) return not_implemented();
    if (a.usable() && b.usable() && !a.same_shape(b) && a.size() > 1 && b.size() > 1) {  // each spread out to the shape of both
        const moving::Alike both(a, b);
        if (!both.fits) return not_implemented();
        nb::object made = combined<what>(both.x.object(), both.y.object(), nb::none());
        return out.is_none() ? made : moved_into(made, out);
    }
    const Array& like = a.usable() && (!b.usable() || a.ndim() > b.ndim() || (a.ndim() == b.ndim() && a.size() >= b.size())) ? a : b;
    if (!like.size()) return not_implemented();
    const auto combine = [&](nb::handle to) -> nb::object {
        if (like.is<int64_t>()) return combined_of<int64_t>(what, x, y, like, to);
        if (like.is<int32_t>()) return combined_of<int32_t>(what, x, y, like, to);
        if constexpr (whole::takes_narrow(what)) {
            if (like.is<uint8_t>()) return combined_of<uint8_t>(what, x, y, like, to);
            if (like.is<int8_t>()) return combined_of<int8_t>(what, x, y, like, to);
            if (like.is<int16_t>()) return combined_of<int16_t>(what, x, y, like, to);
        }
        return not_implemented();
    };
    nb::object made = combine(out);
    return out.is_none() || !made.is(not_implemented()) ? made : moved_into(combine(nb::none()), out);
}

// -- bits ------------------------------------------------------------------------------------------

// Whether the highest bit is set, which is the sign of numbers with fractions and of whole ones.
template <class Bits> void signs_of(const Array& x, const InRows& rows, bool* to) {
    const Bits* from = rows.data<Bits>();
    const int64_t n = x.size();
    Release release(n * int64_t(sizeof(Bits)));
    parallel(n, moving::grain_of(sizeof(Bits) + 1), [=](int64_t begin, int64_t end) {
        int64_t i = begin;
#if defined(FW_AVX512)
        constexpr int LANES = 64 / sizeof(Bits);
        for (; i + 64 <= end; i += 64) {
            uint64_t signs = 0;
#pragma GCC unroll 8
            for (int k = 0; k < 64; k += LANES) {
                const __m512i v = _mm512_loadu_si512(from + i + k);
                if constexpr (sizeof(Bits) == 8) signs |= uint64_t(_mm512_movepi64_mask(v)) << k;
                else if constexpr (sizeof(Bits) == 4) signs |= uint64_t(_mm512_movepi32_mask(v)) << k;
                else signs |= uint64_t(_mm512_movepi16_mask(v)) << k;
            }
            _mm512_storeu_si512(to + i, _mm512_maskz_set1_epi8(signs, 1));
        }
#endif
        for (; i < end; ++i) to[i] = from[i] < 0;
    });
}

nb::object signbit(Array x, nb::handle out_given) {
    if (!out_given.is_none() || !x.usable()) return not_implemented();
    const int type = x.type();
    const bool half = type == NPY_HALF || type == NPY_INT16 || is_bf16(x);
    if (!half && !x.is_float() && !x.is<int64_t>() && !x.is<int32_t>()) return not_implemented();
    int axes[NPY_MAXDIMS];
    axes_in_memory(x, axes);
    const bool as_it_lies = dense_in_order(x, axes);
    NewArray out = as_it_lies ? new_in_order(x.ndim(), x.shape(), NPY_BOOL, axes) : new_array(x.ndim(), x.shape(), NPY_BOOL);
    nb::object result = give(out);
    const InRows rows(x, !as_it_lies);
    if (half) signs_of<int16_t>(x, rows, out.data<bool>());
    else if (PyArray_ITEMSIZE(x.p) == 4) signs_of<int32_t>(x, rows, out.data<bool>());
    else signs_of<int64_t>(x, rows, out.data<bool>());
    return result;
}

// The next number of bfloat16 after each, towards another one: numbers of one sign lie in the order of their bits. V: int16_t, or
// vectors of them.
template <class V> FW_INLINE V next_after(V x, V y) {
    const V none{}, one = V(none + 1), sign = V(none + int16_t(-0x8000)), size = x & 0x7fff, other = y & 0x7fff;
    const V from = x < 0 ? V(-size) : size, to = y < 0 ? V(-other) : other;
    const V next = from + V(to > from ? one : none) - V(to < from ? one : none);
    const V signed_0 = x & sign, away = next < 0 ? V(V(-next) | sign) : next != 0 ? next : signed_0;
    const V beyond = size > 0x7f80 ? x : y, found = from == to ? y : away;
    return size > 0x7f80 ? V(beyond | 0x40) : other > 0x7f80 ? V(beyond | 0x40) : found;
}

nb::object nextafter_bfloat16(Array x, Array y) {
    if (!is_bf16(x) || !is_bf16(y) || !x.same_shape(y)) return not_implemented();
    typedef int16_t V __attribute__((vector_size(sizeof(Vec<float>)), aligned(2), may_alias));
    constexpr int64_t STEP = sizeof(V) / 2;
    NewArray out = like(x);
    nb::object result = give(out);
    const InRows first(x), second(y);
    const auto *a = first.data<int16_t>(), *b = second.data<int16_t>();
    auto* to = out.data<int16_t>();
    const int64_t n = x.size();
    Release release(n * 8);
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP)
        *reinterpret_cast<V*>(to + i) = next_after<V>(*reinterpret_cast<const V*>(a + i), *reinterpret_cast<const V*>(b + i));
    for (; i < n; ++i) to[i] = next_after<int16_t>(a[i], b[i]);
    return result;
}

}  // namespace

FW_BIND(m) {
    const auto both = [&](const char* name, auto f) { m.def(name, f, nb::arg("x"), nb::arg("y"), nb::arg("out").none() = nb::none()); };
    both("trunc_divide", &combined<whole::Of::truncated>);
    both("floor_divide", &combined<whole::Of::floored>);
    both("fmod", &combined<whole::Of::rest>);
    both("remainder", &combined<whole::Of::remainder>);
    both("left_shift", &combined<whole::Of::left>);
    both("right_shift", &combined<whole::Of::right>);
    both("whole_maximum", &combined<whole::Of::larger>);
    both("whole_minimum", &combined<whole::Of::smaller>);
    both("gcd", &combined<whole::Of::divisor>);
    both("lcm", &combined<whole::Of::multiple>);
    both("whole_power", &combined<whole::Of::power>);
    m.def("nextafter_bfloat16", &nextafter_bfloat16, nb::arg("x"), nb::arg("y"));
    m.def("signbit", &signbit, nb::arg("x"), nb::arg("out").none() = nb::none());
}

}  // namespace fw
