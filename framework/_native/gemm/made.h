// Matrices made of others: all products of their elements, powers; the sum of a diagonal. No Python.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fw {

// The product of every element of x with the whole of y, as blocks, of arrays of `ndim` dimensions.
template <class T> void kronecker(const T* x, const int64_t* x_shape, const T* y, const int64_t* y_shape, int ndim, T* out);
// Powers 0 to count - 1 of each of n numbers, or the last one first.
template <class T> void powers(const T* x, int64_t n, int64_t count, bool falling, T* out);
template <class T> T trace(const T* a, int64_t m, int64_t n);

// How many columns of a row of a matrix stand in its triangle, which begins with column 0 if it is the lower one, else ends with
// the last one.
inline int64_t in_triangle(int64_t row, int64_t columns, int64_t offset, bool lower) {
    const int64_t cut = row + offset + (lower ? 1 : 0);
    return lower ? std::clamp<int64_t>(cut, 0, columns) : columns - std::clamp<int64_t>(cut, 0, columns);
}
// The rows and columns of the elements in a triangle.
void triangle_places(int64_t rows, int64_t columns, int64_t offset, bool lower, int64_t* row, int64_t* column);
// All choices of r of the numbers below n, some of them perhaps more than once, in order: (how many there are, r).
void choices(int64_t n, int64_t r, bool repeated, int64_t count, int64_t* out);

}  // namespace fw
