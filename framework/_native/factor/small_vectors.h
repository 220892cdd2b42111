// Singular values and vectors, eigenvectors and exponentials of many small matrices, whose shorter side is at most NARROW, a vector
// of matrices at once in double precision. Each gives false where its method does not do: numbers that are not finite, say.
#pragma once

#include <cstdint>

namespace fw::small {

// The singular values of m x n matrices, the largest first, where the longer side is at most MOST; with their vectors also
// u and vh, of a = u diag(s) vh: thin, or `full` where both sides are at most NARROW.
template <class T> bool singular_values(const T* a, int64_t count, int64_t m, int64_t n, T* s);
template <class T>
bool singular_vectors(const T* a, int64_t count, int64_t m, int64_t n, bool full, T* u, T* s, T* vh);

// The eigenvalues of symmetric matrices, the smallest first, and their vectors as columns, if they are wanted; of a the lower
// triangle is read, or the upper one.
template <class T> bool eigen_vectors(const T* a, int64_t count, int64_t n, bool lower, T* values, T* vectors);

// exp(a) by Taylor's polynomial and squares.
template <class T> bool exponentials(const T* a, int64_t count, int64_t n, T* out);

}  // namespace fw::small
