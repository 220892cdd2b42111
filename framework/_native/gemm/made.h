// Matrices made of others: all products of their elements, powers; the sum of a diagonal. No Python.
#pragma once

#include <cstdint>

namespace fw {

// The product of every element of x with the whole of y, as blocks, of arrays of `ndim` dimensions.
template <class T> void kronecker(const T* x, const int64_t* x_shape, const T* y, const int64_t* y_shape, int ndim, T* out);
// Powers 0 to count - 1 of each of n numbers, or the last one first.
template <class T> void powers(const T* x, int64_t n, int64_t count, bool falling, T* out);
template <class T> T trace(const T* a, int64_t m, int64_t n);

}  // namespace fw
