// Symmetric matrices as L D L.T with 1 x 1 and 2 x 2 blocks in D (Bunch and Kaufman, as LAPACK packs them: the exchanges
// of a step are not made in the columns before it), their systems, and the order of rows that exchanges give. In double
// precision whatever comes, a matrix a thread. `count` matrices, row by row without gaps. No Python, no exceptions but bad_alloc.
#pragma once

#include <cstdint>

namespace fw::symmetric {

// Of n x n matrices, whose lower triangles are read: the factors, as a; the exchanges (n of each); which step, from 1, met a
// column of 0 (one of each; 0: none).
template <class T> void ldl_factors(const T* a, int64_t count, int64_t n, T* factors, int32_t* pivots, int32_t* info);

// x (n x m) with a x = b for these factors of a. False where a block of D is singular or the pivots are none: x is undefined.
template <class T>
bool solve_ldl(const T* factors, const int32_t* pivots, const T* b, int64_t count, int64_t n, int64_t m, T* x);

// The orders of n rows that k <= n exchanges (from 1) each give: row i was exchanged with row pivots[i] - 1 in step i. False
// where one is no row.
bool row_orders(const int32_t* pivots, int64_t count, int64_t k, int64_t n, int64_t* orders);

}  // namespace fw::symmetric
