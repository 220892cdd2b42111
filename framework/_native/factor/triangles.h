// LU factors with row exchanges, and triangular systems, of matrices of any size: blocks of columns one after the other,
// what lies beside a block by products. `count` matrices, row by row without gaps. No Python, no exceptions but bad_alloc.
#pragma once

#include <cstdint>

namespace fw::triangles {

// Of m x n matrices with k = min(m, n): L (below the diagonal) and U in `packed`, as a; the row, from 1, that each of the k
// steps exchanged with its own; the order of the m rows that this gives.
template <class T>
void lu_factors(const T* a, int64_t count, int64_t m, int64_t n, bool pivot, T* packed, int32_t* pivots, int64_t* order);

// What such factors are made of, k = min(m, n): L (m x k), ones on its diagonal, U (k x n) and, where there is an order of the
// rows, the matrix P (m x m) with which P L U is the matrix that was factored.
template <class T>
void lu_parts(const T* packed, const int64_t* order, int64_t count, int64_t m, int64_t n, T* P, T* L, T* U);
// The first place, from 1, at which the diagonal of each matrix is 0; 0 where none is.
template <class T> void zero_pivots(const T* packed, int64_t count, int64_t m, int64_t n, int32_t* places);

// x (n x k) with a x = b for the upper or lower triangle of a (n x n); unit: whose diagonal counts as ones. False where
// one of the triangles is singular: x is undefined then.
template <class T>
bool solve_triangles(const T* a, const T* b, int64_t count, int64_t n, int64_t k, bool upper, bool unit, T* x);

}  // namespace fw::triangles
