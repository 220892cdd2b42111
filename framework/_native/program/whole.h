// Quotients and remainders, shifts, common divisors and multiples of whole numbers. No Python.
#pragma once

#include "base/vecmath_core.h"

namespace fw::whole {

// Quotients rounded towards 0, or down; what is left then, with the sign of x, or of y as Python's %; x shifted by y bits, all of them
// where y is negative or there are not so many; the larger and the smaller one; the greatest common divisor and the least common
// multiple, which are not negative; x multiplied y times, which is not negative.
enum class Of { truncated, floored, rest, remainder, left, right, larger, smaller, divisor, multiple, power };
// Whether it is known for types of less than 32 bits, too.
constexpr bool takes_narrow(Of what) { return what >= Of::left && what <= Of::smaller; }

// to[i] of x[i] and y[i], where a step of 0 stays at the first number. A quotient by 0 is 0, and of the least number by -1 itself.
template <class T> void combine(Of what, const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t n, T* to);

// Whether no number is 0, or none is below 0.
template <bool below, class T> bool has_none(const T* x, int64_t n) {
    int64_t i = 0;
    Mask<T> found{};
    for (; i + lanes<T> <= n; i += lanes<T>) found |= below ? load(x + i) < 0 : load(x + i) == 0;
    bool good = !math::any(found);
    for (; i < n; ++i) good &= below ? x[i] >= 0 : x[i] != 0;
    return good;
}

}  // namespace fw::whole
