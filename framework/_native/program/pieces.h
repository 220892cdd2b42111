// Formulas of several pieces, each of which is one instruction.
#pragma once

#include "base/simd.h"

namespace fw {

template <class T> FW_INLINE Vec<T> hard_gate(Vec<T> x) {
    return minimum<T>(maximum<T>(x + splat<T>(3), Vec<T>{}), splat<T>(6)) / splat<T>(6);
}
template <class T> FW_INLINE Vec<T> smooth(Vec<T> d, Vec<T> beta) {
    const Vec<T> half = splat<T>(0.5);
    return abs<T>(d) < beta ? d * d * (half / beta) : abs<T>(d) - half * beta;
}
template <class T> FW_INLINE Vec<T> huber(Vec<T> d, Vec<T> delta) {
    const Vec<T> half = splat<T>(0.5);
    return abs<T>(d) <= delta ? d * d * half : delta * (abs<T>(d) - half * delta);
}

}  // namespace fw
