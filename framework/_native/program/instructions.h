// The instructions of elementwise programs: each computes a block, d[i] = f(a[i], b[i], c[i]).
//
// Truth values are lanes of all ones or all zeros, as wide as the numbers beside them, so `and`, `or` and
// `not` of truth values and of whole numbers are the same bitwise instructions.
#pragma once

#include <string>
#include <type_traits>

#include "program/pieces.h"
#include "program/program.h"
#include "base/simd.h"
#include "base/vecmath.h"

namespace fw {

template <class T, class F> FW_INLINE void each(T* d, const T* a, int64_t n, F f) {
    int64_t i = 0;
#pragma GCC unroll 4  // a third less where another program has the other half of the core
    for (; i + lanes<T> <= n; i += lanes<T>) store<T>(d + i, f(load_stream(a + i)));
    if (i < n) store_part<T>(d + i, f(load_part(a + i, n - i)), n - i);
}

template <class T, class F> FW_INLINE void each(T* d, const T* a, const T* b, int64_t n, F f) {
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + lanes<T> <= n; i += lanes<T>) store<T>(d + i, f(load_stream(a + i), load_stream(b + i)));
    if (i < n) store_part<T>(d + i, f(load_part(a + i, n - i), load_part(b + i, n - i)), n - i);
}

template <class T, class F> FW_INLINE void each(T* d, const T* a, const T* b, const T* c, int64_t n, F f) {
    int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>)
        store<T>(d + i, f(load(a + i), load(b + i), load(c + i)));
    if (const int64_t k = n - i; k > 0)
        store_part<T>(d + i, f(load_part(a + i, k), load_part(b + i, k), load_part(c + i, k)), k);
}

// A long function is compiled once, for whole vectors and the rest.
template <class T, class F> FW_INLINE void each_long(T* d, const T* a, int64_t n, F f) {
    for (int64_t i = 0; i < n; i += lanes<T>) {
        bool whole = i + lanes<T> <= n;
        Vec<T> r = f(whole ? load(a + i) : load_part(a + i, n - i));
        if (whole) store<T>(d + i, r);
        else store_part<T>(d + i, r, n - i);
    }
}

// Two vectors at a time, whose chains of steps the processor goes through side by side.
template <class T, class F> FW_INLINE void each_long_two(T* d, const T* a, int64_t n, F f) {
    int64_t i = 0;
    for (; i + 2 * lanes<T> <= n; i += 2 * lanes<T>) {
        const Vec<T> x = f(load(a + i)), y = f(load(a + i + lanes<T>));
        store<T>(d + i, x), store<T>(d + i + lanes<T>, y);
    }
    each_long(d + i, a + i, n - i, f);
}

template <class T, class F> FW_INLINE void each_long(T* d, const T* a, const T* b, int64_t n, F f) {
    for (int64_t i = 0; i < n; i += lanes<T>) {
        bool whole = i + lanes<T> <= n;
        Vec<T> r = whole ? f(load(a + i), load(b + i)) : f(load_part(a + i, n - i), load_part(b + i, n - i));
        if (whole) store<T>(d + i, r);
        else store_part<T>(d + i, r, n - i);
    }
}

template <class T> FW_INLINE Vec<T> as_numbers(Mask<T> m) { return bits<Vec<T>>(m); }
template <class T> FW_INLINE Mask<T> as_mask(Vec<T> v) { return bits<Mask<T>>(v); }

// Whole numbers wrap around at their limits, which C++ allows unsigned ones only.
template <class T, bool Whole> struct Unsigned { using type = T; };
template <class T> struct Unsigned<T, true> { using type = std::make_unsigned_t<T>; };
template <class T> using Bare = Vec<typename Unsigned<T, std::numeric_limits<T>::is_integer>::type>;
template <class T> FW_INLINE Bare<T> unwrapped(Vec<T> x) { return bits<Bare<T>>(x); }
template <class T> FW_INLINE Vec<T> wrapped(Bare<T> x) { return bits<Vec<T>>(x); }

template <class T> FW_INLINE Vec<T> magnitude(Vec<T> x) {
    if constexpr (std::numeric_limits<T>::is_integer) return x < Vec<T>{} ? wrapped<T>(-unwrapped<T>(x)) : x;
    else return abs<T>(x);
}

// Numbers that are neither inf nor nan: their difference with themselves is 0.
template <class T> FW_INLINE Mask<T> finite(Vec<T> v) { return (v - v) == Vec<T>{}; }

#define FW_UNARY(name, expression)                                                  \
    template <class T> void i_##name(T* d, const T* a, const T*, const T*, int64_t n) { \
        each(d, a, n, [](Vec<T> x) -> Vec<T> { return expression; });               \
    }
#define FW_BINARY(name, expression)                                                        \
    template <class T> void i_##name(T* d, const T* a, const T* b, const T*, int64_t n) {  \
        each(d, a, b, n, [](Vec<T> x, Vec<T> y) -> Vec<T> { return expression; });         \
    }
#define FW_TERNARY(name, expression)                                                        \
    template <class T> void i_##name(T* d, const T* a, const T* b, const T* c, int64_t n) { \
        each(d, a, b, c, n, [](Vec<T> x, Vec<T> y, Vec<T> z) -> Vec<T> { return expression; }); \
    }
#define FW_LONG(name)                                                               \
    template <class T> void i_##name(T* d, const T* a, const T*, const T*, int64_t n) { \
        each_long(d, a, n, [](Vec<T> x) -> Vec<T> { return math::name(x); });       \
    }
#define FW_LONG2(name)                                                                    \
    template <class T> void i_##name(T* d, const T* a, const T* b, const T*, int64_t n) { \
        each_long(d, a, b, n, [](Vec<T> x, Vec<T> y) -> Vec<T> { return math::name(x, y); }); \
    }

FW_UNARY(copy, x)
FW_UNARY(neg, wrapped<T>(-unwrapped<T>(x)))
FW_UNARY(abs, (magnitude<T>(x)))
FW_UNARY(not, as_numbers<T>(~as_mask<T>(x)))
FW_BINARY(add, wrapped<T>(unwrapped<T>(x) + unwrapped<T>(y)))
FW_BINARY(heaviside, x == Vec<T>{} ? y : x > Vec<T>{} ? splat<T>(1) : Vec<T>{})
FW_BINARY(sub, wrapped<T>(unwrapped<T>(x) - unwrapped<T>(y)))
template <class T> void i_mul(T* d, const T* a, const T* b, const T*, int64_t n) {
    if (a == b) each(d, a, n, [](Vec<T> x) -> Vec<T> { return wrapped<T>(unwrapped<T>(x) * unwrapped<T>(x)); });  // squares
    else each(d, a, b, n, [](Vec<T> x, Vec<T> y) -> Vec<T> { return wrapped<T>(unwrapped<T>(x) * unwrapped<T>(y)); });
}
// two steps in one, each rounded: less to store and to read again
FW_TERNARY(mul_add, wrapped<T>(unwrapped<T>(x) * unwrapped<T>(y) + unwrapped<T>(z)))
FW_TERNARY(sub_mul, wrapped<T>(unwrapped<T>(z) - unwrapped<T>(x) * unwrapped<T>(y)))
FW_TERNARY(mul_mul, wrapped<T>(unwrapped<T>(x) * unwrapped<T>(y) * unwrapped<T>(z)))
FW_TERNARY(limit, (minimum<T>(maximum<T>(x, y), z)))
FW_TERNARY(sub_limit, wrapped<T>(unwrapped<T>(x) - unwrapped<T>(minimum<T>(maximum<T>(x, y), z))))
FW_TERNARY(lerp, wrapped<T>(unwrapped<T>(y) * (unwrapped<T>(z) - unwrapped<T>(x)) + unwrapped<T>(x)))
FW_TERNARY(where_positive, x > Vec<T>{} ? y : z)
FW_TERNARY(where_nan, x != x ? y : z)
FW_TERNARY(above, (x <= y ? Vec<T>{} : z))
FW_TERNARY(shrink, (magnitude<T>(x) <= y ? Vec<T>{} : z))
FW_TERNARY(outside, as_numbers<T>((x <= y) | (x >= z)))
FW_TERNARY(raised, x <= y ? z : x)
template <class T> FW_INLINE Vec<T> finite_or(Vec<T> x, Vec<T> high, Vec<T> low) {
    return x == splat<T>(math::inf<T>) ? high : x == splat<T>(-math::inf<T>) ? low : x;
}
FW_TERNARY(finite_or, (finite_or<T>(x, y, z)))
FW_BINARY(leaky, x > Vec<T>{} ? x : wrapped<T>(unwrapped<T>(y) * unwrapped<T>(x)))
FW_BINARY(div, x / y)
FW_BINARY(maximum, (maximum<T>(x, y)))
FW_BINARY(minimum, (minimum<T>(x, y)))
FW_BINARY(lt, as_numbers<T>(x < y))
FW_BINARY(le, as_numbers<T>(x <= y))
FW_BINARY(gt, as_numbers<T>(x > y))
FW_BINARY(ge, as_numbers<T>(x >= y))
FW_BINARY(eq, as_numbers<T>(x == y))
FW_BINARY(ne, as_numbers<T>(x != y))
FW_BINARY(and, as_numbers<T>(as_mask<T>(x) & as_mask<T>(y)))
FW_BINARY(or, as_numbers<T>(as_mask<T>(x) | as_mask<T>(y)))
FW_BINARY(xor, as_numbers<T>(as_mask<T>(x) ^ as_mask<T>(y)))

// x * y and x / y in rules of derivatives: 0 where x is 0, whatever y is
template <class T> FW_INLINE Vec<T> masked(Vec<T> x, Vec<T> r) {
    return ((x == Vec<T>{}) & ~finite<T>(r)) ? Vec<T>{} : r;
}
FW_BINARY(gate, (masked<T>(x, x * y)))
FW_BINARY(over, (masked<T>(x, x / y)))
// With AVX-512 the divider works beside the multipliers: one of several vectors goes by its instruction.
template <class T, int64_t SOME, class D, class F> FW_INLINE void each_beside(T* d, const T* a, int64_t n, [[maybe_unused]] D divider, F f) {
    int64_t i = 0;
#if defined(FW_AVX512)
    constexpr int64_t L = lanes<T>;
    for (; i + SOME * L <= n; i += SOME * L) {
        store<T>(d + i, divider(load(a + i)));
#pragma GCC unroll 3
        for (int64_t k = 1; k < SOME; ++k) store<T>(d + i + k * L, f(load(a + i + k * L)));
    }
#endif
    each(d + i, a + i, n - i, f);
}
template <class T> void i_sqrt(T* d, const T* a, const T*, const T*, int64_t n) {
    each_beside<T, sizeof(T) == 4 ? 3 : 4>(d, a, n, [](Vec<T> x) -> Vec<T> { return fw::sqrt(x); },
                                           [](Vec<T> x) -> Vec<T> { return math::root<Vec<T>>(x); });
}
template <class T> void i_reciprocal(T* d, const T* a, const T*, const T*, int64_t n) {
    const auto divided = [](Vec<T> x) -> Vec<T> { return splat<T>(1) / x; };
    if constexpr (sizeof(T) != 4) each(d, a, n, divided);
    else each_beside<T, 2>(d, a, n, divided, [](Vec<T> x) -> Vec<T> { return math::reciprocal<Vec<T>>(x); });
}
FW_UNARY(floor, (math::floor<Vec<T>>(x)))
FW_UNARY(ceil, (math::ceil<Vec<T>>(x)))
FW_UNARY(trunc, (math::trunc<Vec<T>>(x)))
FW_UNARY(rint, (math::rint<Vec<T>>(x)))
FW_UNARY(frac, (x - math::trunc<Vec<T>>(x)))
FW_UNARY(hard_gate, (hard_gate<T>(x)))
FW_UNARY(hardswish, (x * hard_gate<T>(x)))
FW_UNARY(hardswish_slope, (x <= splat<T>(-3) ? Vec<T>{} : x < splat<T>(3) ? divided<T>(x, 3) + splat<T>(0.5) : splat<T>(1)))
FW_TERNARY(lerp_near, (lerp_near<T>(x, y, z)))
FW_TERNARY(smooth, (smooth<T>(x - y, z)))
FW_TERNARY(huber, (huber<T>(x - y, z)))
FW_UNARY(isfinite, as_numbers<T>(finite<T>(x)))
FW_UNARY(isnan, as_numbers<T>(x != x))
FW_UNARY(isinf, as_numbers<T>((x == x) & ~finite<T>(x)))
FW_UNARY(sign, (x > Vec<T>{} ? splat<T>(1) : x < Vec<T>{} ? splat<T>(-1) : x - x + (x == x ? Vec<T>{} : x)))

FW_TERNARY(where, as_mask<T>(x) ? y : z)

FW_LONG(exp) FW_LONG(exp2) FW_LONG(expm1) FW_LONG(log) FW_LONG(log2) FW_LONG(log10) FW_LONG(log1p)
FW_LONG(softplus_rest) FW_LONG(tanh) FW_LONG(sigmoid) FW_LONG(erf) FW_LONG(erfc) FW_LONG(ndtr) FW_LONG(gelu_slope)
FW_LONG(silu_slope)
FW_LONG(sin) FW_LONG(cos) FW_LONG(tan) FW_LONG(asin) FW_LONG(acos) FW_LONG(atan) FW_LONG(sinh) FW_LONG(cosh)
FW_LONG(asinh) FW_LONG(acosh) FW_LONG(atanh) FW_LONG(rsqrt)
FW_LONG2(pow) FW_LONG2(atan2) FW_LONG2(hypot) FW_LONG2(fmod) FW_LONG2(remainder)
FW_LONG2(copysign)

// Numbers of one sign lie in the order of their bits.
template <class T> FW_INLINE Vec<T> next_after(Vec<T> x, Vec<T> y) {
    using Bits = Vec<Int<T>>;
    const Bits b = bits<Bits>(x), away = bits<Bits>((x < y) == (x > Vec<T>{}));  // -1 where it grows
    const Vec<T> least = bits<Vec<T>>(Bits{} + 1), next = bits<Vec<T>>(b - (away | 1));
    const Vec<T> moved = x == Vec<T>{} ? math::copysign(least, y) : next;
    return (x != x) | (y != y) ? x + y : x == y ? y : moved;
}
template <class T> void i_nextafter(T* d, const T* a, const T* b, const T*, int64_t n) {
    each(d, a, b, n, [](Vec<T> x, Vec<T> y) -> Vec<T> { return next_after<T>(x, y); });
}

// The same where f changes what is rare only, which is asked of some vectors together.
template <class T, class R, class F> FW_INLINE void each_but_rare(T* d, const T* a, int64_t n, R rare, F f) {
    constexpr int64_t L = lanes<T>, SOME = 4;
    int64_t i = 0;
    for (; i + SOME * L <= n; i += SOME * L) {
        Vec<T> x[SOME];
        Mask<T> found{};
#pragma GCC unroll 4
        for (int64_t k = 0; k < SOME; ++k) x[k] = load(a + i + k * L), found |= rare(x[k]);
        if (math::any(found))
#pragma GCC unroll 4
            for (int64_t k = 0; k < SOME; ++k) x[k] = f(x[k]);
#pragma GCC unroll 4
        for (int64_t k = 0; k < SOME; ++k) store<T>(d + i + k * L, x[k]);
    }
    each(d + i, a + i, n - i, f);
}

// Some of them where operands are the same number throughout, which is not loaded again: the second, or the third, too.
// What is nan is left to the others. Limits: a number that is not less (greater), or is nan, is taken as it is, which is one
// instruction of the processor unless the limit is 0, whose sign counts.
template <class T> FW_INLINE Vec<T> at_least(Vec<T> x, Vec<T> y) { return x <= y ? y : x; }
template <class T> FW_INLINE Vec<T> at_most(Vec<T> x, Vec<T> y) { return x >= y ? y : x; }

#define FW_SECOND(name, expression)                                                         \
    template <class T> void f_##name(T* d, const T* a, const T* b, const T*, int64_t n) {   \
        const Vec<T> y = splat<T>(*b);                                                      \
        each(d, a, n, [y](Vec<T> x) -> Vec<T> { return expression; });                      \
    }
#define FW_LIMIT(name, of_zero, expression)                                                 \
    template <class T> void f_##name(T* d, const T* a, const T* b, const T* c, int64_t n) { \
        if (*b != *b || *c != *c) return i_##name<T>(d, a, b, c, n);                        \
        const Vec<T> y = splat<T>(*b), z = splat<T>(*c);                                    \
        if (*b == 0 || *c == 0) each(d, a, n, [y, z](Vec<T> x) -> Vec<T> { return of_zero; });   \
        else each(d, a, n, [y, z](Vec<T> x) -> Vec<T> { return expression; });              \
    }
FW_LIMIT(limit, (at_most<T>(at_least<T>(x, y), z)), (less_of<T>(greater_of<T>(x, y), z)))
FW_LIMIT(sub_limit, wrapped<T>(unwrapped<T>(x) - unwrapped<T>(at_most<T>(at_least<T>(x, y), z))),
         wrapped<T>(unwrapped<T>(x) - unwrapped<T>(less_of<T>(greater_of<T>(x, y), z))))
template <class T> void f_maximum(T* d, const T* a, const T* b, const T* c, int64_t n) {
    const Vec<T> y = splat<T>(*b);
    if (*b != *b) i_maximum<T>(d, a, b, c, n);
    else if (*b == 0) each(d, a, n, [y](Vec<T> x) -> Vec<T> { return at_least<T>(x, y); });
    else each(d, a, n, [y](Vec<T> x) -> Vec<T> { return greater_of<T>(x, y); });
}
template <class T> void f_minimum(T* d, const T* a, const T* b, const T* c, int64_t n) {
    const Vec<T> y = splat<T>(*b);
    if (*b != *b) i_minimum<T>(d, a, b, c, n);
    else if (*b == 0) each(d, a, n, [y](Vec<T> x) -> Vec<T> { return at_most<T>(x, y); });
    else each(d, a, n, [y](Vec<T> x) -> Vec<T> { return less_of<T>(x, y); });
}
FW_SECOND(leaky, x > Vec<T>{} ? x : wrapped<T>(unwrapped<T>(y) * unwrapped<T>(x)))
FW_SECOND(mul, wrapped<T>(unwrapped<T>(x) * unwrapped<T>(y)))
FW_SECOND(add, wrapped<T>(unwrapped<T>(x) + unwrapped<T>(y)))
FW_SECOND(sub, wrapped<T>(unwrapped<T>(x) - unwrapped<T>(y)))
FW_SECOND(div, x / y)
FW_SECOND(sub_from, wrapped<T>(unwrapped<T>(y) - unwrapped<T>(x)))
FW_SECOND(divide_by, y / x)
#define FW_SECOND_OF_THREE(name, expression)                                                    \
    template <class T> void f_##name(T* d, const T* a, const T* b, const T* c, int64_t n) {     \
        const Vec<T> y = splat<T>(*b);                                                          \
        each(d, a, c, n, [y](Vec<T> x, Vec<T> z) -> Vec<T> { return expression; });             \
    }
FW_SECOND_OF_THREE(above, (x <= y ? Vec<T>{} : z))
FW_SECOND_OF_THREE(mul_add, wrapped<T>(unwrapped<T>(x) * unwrapped<T>(y) + unwrapped<T>(z)))
FW_SECOND_OF_THREE(lerp, wrapped<T>(unwrapped<T>(y) * (unwrapped<T>(z) - unwrapped<T>(x)) + unwrapped<T>(x)))
template <class T> void f_lerp_near(T* d, const T* a, const T* b, const T* c, int64_t n) {
    const T rest = 1 - *b;
    if (std::abs(*b) < T(0.5)) f_lerp<T>(d, a, b, c, n);
    else f_lerp<T>(d, c, &rest, a, n);
}
// Powers that are few multiplications, a quotient or a root.
template <class T> void f_pow(T* d, const T* a, const T* b, const T* c, int64_t n) {
    const T y = *b;
    if (y == 0) each(d, a, n, [](Vec<T>) -> Vec<T> { return splat<T>(1); });
    else if (y == 1) i_copy<T>(d, a, b, c, n);
    else if (y == 2) each(d, a, n, [](Vec<T> x) -> Vec<T> { return x * x; });
    else if (y == 3) each(d, a, n, [](Vec<T> x) -> Vec<T> { return x * x * x; });
    else if (y == 4) each(d, a, n, [](Vec<T> x) -> Vec<T> { return (x * x) * (x * x); });
    else if (y == T(0.5)) i_sqrt<T>(d, a, b, c, n);
    else if (y == T(-0.5)) i_rsqrt<T>(d, a, b, c, n);
    else if (y == -1) i_reciprocal<T>(d, a, b, c, n);
    else if (y == -2) each(d, a, n, [](Vec<T> x) -> Vec<T> { return splat<T>(1) / (x * x); });
    else each_long(d, a, n, [y](Vec<T> x) -> Vec<T> { return math::pow<Vec<T>>(x, splat<T>(y)); });
}
template <class T> void f_outside(T* d, const T* a, const T* b, const T* c, int64_t n) {
    const Vec<T> y = splat<T>(*b), z = splat<T>(*c);
    each(d, a, n, [y, z](Vec<T> x) -> Vec<T> { return as_numbers<T>((x <= y) | (x >= z)); });
}
template <class T> void f_raised(T* d, const T* a, const T* b, const T* c, int64_t n) {
    const Vec<T> y = splat<T>(*b), z = splat<T>(*c);
    each(d, a, n, [y, z](Vec<T> x) -> Vec<T> { return x <= y ? z : x; });
}
template <class T> void f_finite_or(T* d, const T* a, const T* b, const T* c, int64_t n) {
    const Vec<T> y = splat<T>(*b), z = splat<T>(*c);
    each_but_rare(d, a, n, [](Vec<T> x) { return abs<T>(x) == splat<T>(math::inf<T>); },
                  [y, z](Vec<T> x) -> Vec<T> { return finite_or<T>(x, y, z); });
}
template <class T> void f_where_nan(T* d, const T* a, const T* b, const T* c, int64_t n) {
    const Vec<T> y = splat<T>(*b);
    if (a == c) each_but_rare(d, a, n, [](Vec<T> x) { return x != x; }, [y](Vec<T> x) -> Vec<T> { return x != x ? y : x; });
    else each(d, a, c, n, [y](Vec<T> x, Vec<T> z) -> Vec<T> { return x != x ? y : z; });
}
template <class T> void f_shrink(T* d, const T* a, const T* b, const T* c, int64_t n) {
    const Vec<T> y = splat<T>(*b);
    auto kept = [y](Vec<T> x, Vec<T> z) -> Vec<T> { return magnitude<T>(x) <= y ? Vec<T>{} : z; };
    if (a == c) each(d, a, n, [kept](Vec<T> x) -> Vec<T> { return kept(x, x); });
    else each(d, a, c, n, kept);
}
#undef FW_SECOND
#undef FW_SECOND_OF_THREE
#undef FW_LIMIT

// Other numbers for nan, inf and -inf, or for nan and what is beyond limits.
template <class T> void b_mended(T* d, const T* const* p, int64_t n) {
    const Vec<T> high = splat<T>(*p[1]), low = splat<T>(*p[2]), other = splat<T>(*p[4]);
    each(d, p[0], n, [=](Vec<T> x) -> Vec<T> { return x != x ? other : finite_or<T>(x, high, low); });
}
template <class T> void b_limited(T* d, const T* const* p, int64_t n) {
    const Vec<T> low = splat<T>(*p[1]), high = splat<T>(*p[2]), other = splat<T>(*p[4]);
    const bool zero = *p[1] == 0 || *p[2] == 0;
    if (zero) each(d, p[0], n, [=](Vec<T> x) -> Vec<T> { return x != x ? other : at_most<T>(at_least<T>(x, low), high); });
    else each(d, p[0], n, [=](Vec<T> x) -> Vec<T> { return x != x ? other : less_of<T>(greater_of<T>(x, low), high); });
}
// x + y * z * number, x + y / z * number
template <class T> void b_plus_product(T* d, const T* const* p, int64_t n) {
    const Bare<T> by = unwrapped<T>(splat<T>(*p[2]));
    each(d, p[0], p[1], p[3], n, [by](Vec<T> y, Vec<T> z, Vec<T> x) -> Vec<T> {
        return wrapped<T>(unwrapped<T>(x) + unwrapped<T>(y) * unwrapped<T>(z) * by);
    });
}
template <class T> void b_plus_quotient(T* d, const T* const* p, int64_t n) {
    const Vec<T> by = splat<T>(*p[4]);
    each(d, p[0], p[1], p[5], n, [by](Vec<T> y, Vec<T> z, Vec<T> x) -> Vec<T> { return y / z * by + x; });
}

// x ndtr(x), g gelu_slope(x), y sigmoid(x), g silu_slope(x)
template <class T> void b_gelu(T* d, const T* const* p, int64_t n) {
    each_long_two(d, p[0], n, [](Vec<T> x) -> Vec<T> { return x * math::ndtr(x); });
}
template <class T> void b_gated(T* d, const T* const* p, int64_t n) {
    each_long(d, p[0], p[3], n, [](Vec<T> x, Vec<T> y) -> Vec<T> { return y * math::sigmoid(x); });
}
template <class T> void b_silu_back(T* d, const T* const* p, int64_t n) {
    each_long(d, p[0], p[3], n, [](Vec<T> x, Vec<T> g) -> Vec<T> { return g * math::silu_slope(x); });
}
template <class T> void b_gelu_back(T* d, const T* const* p, int64_t n) {
    each_long(d, p[0], p[3], n, [](Vec<T> x, Vec<T> g) -> Vec<T> { return g * math::gelu_slope(x); });
}

#undef FW_UNARY
#undef FW_BINARY
#undef FW_TERNARY
#undef FW_LONG
#undef FW_LONG2

template <class T> struct Entry {
    const char* name;
    Instruction<T> run;
    int cost;  // in additions, for dividing work among threads
    Fixed<T> fixed = {};
};

// Those of all types of numbers, then those of whole ones, which cannot fail, or those of the others.
#define I(name, cost) {#name, i_##name<T>, cost}
#define I2(name, cost) {#name, i_##name<T>, cost, {f_##name<T>, false}}
#define I2_WHOLE(name, cost) {#name, i_##name<T>, cost, {f_##name<T>, false, nullptr, true}}
#define IT(name, cost, turned) {#name, i_##name<T>, cost, {f_##name<T>, false, f_##turned<T>}}
#define I3(name, cost) {#name, i_##name<T>, cost, {f_##name<T>, true}}
#define FW_FOR_ALL                                                                                                    \
    I(copy, 1), I(neg, 1), I(abs, 1), I(not, 1), IT(add, 1, add), IT(sub, 1, sub_from), IT(mul, 1, mul), IT(maximum, 1, maximum), IT(minimum, 1, minimum),    \
        I(lt, 1), I(le, 1), I(gt, 1), I(ge, 1), I(eq, 1), I(ne, 1), I(and, 1), I(or, 1), I(xor, 1), I(where, 1),      \
        I2_WHOLE(mul_add, 2), I(sub_mul, 2), I(mul_mul, 2), I3(limit, 2), I3(sub_limit, 3), I2_WHOLE(lerp, 3), I(where_positive, 2), \
        I2_WHOLE(where_nan, 2), I2_WHOLE(above, 2), I2_WHOLE(shrink, 3), I3(outside, 3), I3(raised, 2), I2(leaky, 3), I(sign, 3), I(heaviside, 3)

template <class T, bool Whole> struct Instructions {
    static constexpr Entry<T> all[] = {FW_FOR_ALL, {"bit_and", i_and<T>, 1}, {"bit_or", i_or<T>, 1},
                                       {"bit_xor", i_xor<T>, 1}, {"bit_not", i_not<T>, 1}};
};
template <class T> struct Instructions<T, false> {
    static constexpr Entry<T> all[] = {
        FW_FOR_ALL, IT(div, 4, divide_by), I(gate, 2), I(over, 5), I(sqrt, 5), I(reciprocal, 4), I(isfinite, 1), I(isnan, 1), I(isinf, 1),
        I(exp, 10), I(exp2, 10), I(expm1, 16), I(log, 12), I(log2, 12), I(log10, 12), I(log1p, 16),
        I(softplus_rest, 16), I(tanh, 16), I(sigmoid, 14), I(erf, 12), I(erfc, 16), I(ndtr, 16), I(gelu_slope, 16),
        I(silu_slope, 16), I(sin, 16), I(cos, 16), I(tan, 25), I(asin, 16), I(acos, 16), I(atan, 16), I(sinh, 20),
        I(cosh, 20), I(asinh, 25), I(acosh, 25), I(atanh, 25), I(floor, 1), I(ceil, 1), I(trunc, 1), I(rint, 1), I(frac, 2),
        I(hard_gate, 7), I(hardswish, 8), I(hardswish_slope, 8), I2_WHOLE(lerp_near, 8), I(smooth, 10), I(huber, 7), I(nextafter, 6),
        I(rsqrt, 6), I2_WHOLE(pow, 50), I(atan2, 25), I(hypot, 12), I(fmod, 50), I(remainder, 50), I(copysign, 1),
        I3(finite_or, 3)};
};
#undef FW_FOR_ALL
#undef I
#undef I2
#undef I2_WHOLE
#undef IT
#undef I3

// Operands of two steps: bits 0, 1 and 2 are a, b and c of each.
constexpr int operands_of(int first, int second) { return first | second << 3; }
template <class T>
constexpr Both<T> plus_product = {"mul_mul", "add", 1, operands_of(3, 1), operands_of(4, 0), false, b_plus_product<T>};
template <class T, bool Whole> struct Boths {
    static constexpr Both<T> all[] = {plus_product<T>};
};
template <class T> struct Boths<T, false> {
    static constexpr Both<T> all[] = {
        plus_product<T>, {"div", "mul_add", 0, operands_of(3, 4), operands_of(0, 2), false, b_plus_quotient<T>},
        {"ndtr", "mul", 1, operands_of(1, 1), 0, true, b_gelu<T>}, {"gelu_slope", "mul", 1, operands_of(1, 1), 0, false, b_gelu_back<T>},
        {"sigmoid", "mul", 1, operands_of(1, 1), 0, false, b_gated<T>}, {"silu_slope", "mul", 1, operands_of(1, 1), 0, false, b_silu_back<T>},
        {"finite_or", "where_nan", 2, operands_of(1, 1), operands_of(6, 2), true, b_mended<T>},
        {"limit", "where_nan", 2, operands_of(1, 1), operands_of(6, 2), true, b_limited<T>}};
};

template <class T> constexpr auto& instructions() {
    return Instructions<T, std::numeric_limits<T>::is_integer>::all;
}

// The loop for both steps of a program, if there is one.
template <class T> const Both<T>* both_of(const std::vector<Step>& steps, int result) {
    if (steps.size() != 2 || steps[1].d != result || steps[0].d == result) return nullptr;
    const Step &one = steps[0], &two = steps[1];
    const int operands[] = {two.a, two.b, two.c};
    for (const Both<T>& b : Boths<T, std::numeric_limits<T>::is_integer>::all)
        if (one.name == b.first && two.name == b.second && operands[b.through] == one.d && (!b.same || one.a == two.a)) return &b;
    return nullptr;
}

// By name, as programs write them; nullptr for a name that numbers of this type do not have.
template <class T> const Entry<T>* instruction(const std::string& name) {
    for (const Entry<T>& e : instructions<T>())
        if (name == e.name) return &e;
    return nullptr;
}

}  // namespace fw
