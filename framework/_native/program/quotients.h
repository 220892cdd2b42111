// Quotients and remainders of whole numbers. No Python.
#pragma once

#include <cstdint>

namespace fw::whole {

// Rounded towards 0, or down; what is left then, with the sign of x, or of y as Python's %.
enum class Quotient { truncated, floored, rest, remainder };

// to[i] of x[i] and y[i], where a step of 0 stays at the first number. By 0 it is 0, and the least number by -1 is itself.
template <class T> void divide(Quotient what, const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t n, T* to);

}  // namespace fw::whole
