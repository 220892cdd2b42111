// Householder reflections of matrices, as LAPACK packs them: column i of `packed` below its diagonal, 1 on it and 0 above,
// is v of H = I - tau v v.T. `count` matrices, row by row without gaps. No Python, no exceptions but bad_alloc.
#pragma once

#include <cstdint>

namespace fw::reflections {

constexpr int64_t MOST_BYTES = 1 << 20;  // of a matrix that is factored; beyond that LAPACK, which works in blocks

// Of m x n matrices, small ones in double precision whatever comes: R in the upper triangle of `packed`, and the reflections below it, of
// which tau holds min(m, n).
template <class T> void factor(const T* a, int64_t count, int64_t m, int64_t n, T* packed, T* tau);

// The product H_1 H_2 ... H_k times each matrix of c (m x p), or of its transpose; packed: m x n with k <= n.
template <class T>
void apply(const T* packed, const T* tau, int64_t count, int64_t m, int64_t n, int64_t k, bool transposed, T* c, int64_t p);

// The first p columns of that product.
template <class T>
void product(const T* packed, const T* tau, int64_t count, int64_t m, int64_t n, int64_t k, T* q, int64_t p);

// Q (m x p) and R (p x n) of m x n matrices, min(m, n) <= p <= m, likewise.
template <class T> void qr(const T* a, int64_t count, int64_t m, int64_t n, T* q, int64_t p, T* r);

}  // namespace fw::reflections
