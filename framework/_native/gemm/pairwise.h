// Distances of all rows of one matrix to all rows of another, and both gradients, without a table of the differences:
// framework/ops/linalg/distances.py. Matrices row by row without gaps. No Python, no exceptions but bad_alloc.
#pragma once

#include <cstdint>

namespace fw::pairs {

// x is (batch, m, k), y (batch, n, k), the distances (batch, m, n).
struct PairsShape {
    int64_t batch = 1, m = 0, n = 0, k = 0;
};

// The roots of the sums of squares, or the sums of absolute values.
template <class T> void distances(const PairsShape& s, bool squares, const T* x, const T* y, T* out);

// From g, the gradient of the distances `out`: gx (as x) and gy (as y); nullptr where it is not wanted.
template <class T>
void distances_grad(const PairsShape& s, bool squares, const T* g, const T* x, const T* y, const T* out, T* gx, T* gy);

// Of the n rows of x to those after them, in order, n (n - 1) / 2 of them, and the gradient gx (as x).
template <class T> void distances_within(int64_t n, int64_t k, bool squares, const T* x, T* out);
template <class T>
void distances_within_grad(int64_t n, int64_t k, bool squares, const T* g, const T* x, const T* out, T* gx);

}  // namespace fw::pairs
