// Linear algebra of many small matrices: elimination with row exchanges and what follows from it, and Cholesky's
// factors, in double precision whatever comes. `count` matrices of n <= MOST rows, row by row without gaps. No Python.
#pragma once

#include <cstdint>

namespace fw::small {

constexpr int64_t MOST = 32;
constexpr int64_t NARROW = 4;  // up to where a vector of matrices is computed at once

// What gives whether there is a result does so of all matrices together; without one, the results are undefined.

// The inverses.
template <class T> bool inverses(const T* a, int64_t count, int64_t n, T* out);

// x (n x k, k <= MOST) with a x = b.
template <class T> bool solutions(const T* a, const T* b, int64_t count, int64_t n, int64_t k, T* x);

// A number of each: the determinants; or their signs, and the logarithms of their absolute values.
template <class T> void determinants(const T* a, int64_t count, int64_t n, T* out);
template <class T> void log_determinants(const T* a, int64_t count, int64_t n, T* log, T* sign);

// The lower triangles L with a = L L.T; of a the lower triangle is read.
template <class T> bool cholesky_factors(const T* a, int64_t count, int64_t n, T* out);

}  // namespace fw::small
