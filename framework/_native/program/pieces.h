// Formulas of several pieces, each of which is one instruction.
#pragma once

#include "base/vecmath_core.h"

namespace fw {

// x / n for n = 3, 6, 12, ...: what the processor's division gives, in a fifth of its time. The reciprocal, whose error is a
// quarter of its last place, gives a neighbour of the quotient at most; what is left then, which is exact, decides (P. Markstein,
// IA-64 and Elementary Functions, 2000). inf becomes nan.
template <class T> FW_INLINE Vec<T> divided(Vec<T> x, T n) {
    if constexpr (!math::has_fma) return x / splat<T>(n);
    const Vec<T> by = splat<T>(1 / n), q = x * by;
    return fma<T>(fma<T>(-q, splat<T>(n), x), by, q);
}
template <class T> FW_INLINE Vec<T> hard_gate(Vec<T> x) {
    return divided<T>(less_of<T>(greater_of<T>(x + splat<T>(3), Vec<T>{}), splat<T>(6)), 6);
}
template <class T> FW_INLINE Vec<T> smooth(Vec<T> d, Vec<T> beta) {
    const Vec<T> half = splat<T>(0.5);
    return abs<T>(d) < beta ? d * d * (half / beta) : abs<T>(d) - half * beta;
}
template <class T> FW_INLINE Vec<T> huber(Vec<T> d, Vec<T> delta) {
    const Vec<T> half = splat<T>(0.5);
    return abs<T>(d) <= delta ? d * d * half : delta * (abs<T>(d) - half * delta);
}

// Between x and z, y of the way, from the end that is nearer.
template <class T> FW_INLINE Vec<T> lerp_near(Vec<T> x, Vec<T> y, Vec<T> z) {
    return abs<T>(y) < splat<T>(0.5) ? y * (z - x) + x : (splat<T>(1) - y) * (x - z) + z;
}

}  // namespace fw
