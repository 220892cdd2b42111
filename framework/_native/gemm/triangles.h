// LU factors with row exchanges, and triangular systems, of matrices of any size: blocks of columns one after the other,
// what lies beside a block by products. `count` matrices, row by row without gaps. No Python, no exceptions but bad_alloc.
#pragma once

#include <cstdint>

namespace fw::triangles {

// Of m x n matrices with k = min(m, n): L (below the diagonal) and U in `packed`, as a; the row, from 1, that each of the k
// steps exchanged with its own; the order of the m rows that this gives.
template <class T>
void lu_factors(const T* a, int64_t count, int64_t m, int64_t n, bool pivot, T* packed, int32_t* pivots, int64_t* order);

// x (n x k) with a x = b for the upper or lower triangle of a (n x n); unit: whose diagonal counts as ones. False where
// one of the triangles is singular: x is undefined then.
template <class T>
bool solve_triangles(const T* a, const T* b, int64_t count, int64_t n, int64_t k, bool upper, bool unit, T* x);

}  // namespace fw::triangles
