// Eigenvalues and eigenvectors of small real matrices that need not be symmetric, in double precision whatever comes, a matrix a
// thread. `count` matrices, row by row without gaps. No Python, no exceptions but bad_alloc.
#pragma once

#include <complex>
#include <cstdint>

namespace fw::unsymmetric {

// Larger ones are LAPACK's, which takes several columns at a time.
constexpr int64_t MOST = 32;

// Of n x n matrices: n values each, those of a pair the one with the positive imaginary part first, and if they are wanted n columns
// of length 1 each, of which the largest part of complex ones is real. False where a matrix is not decomposed, or holds numbers beyond
// 1e-100 and 1e100: what is written is undefined.
template <class T> bool eigen(const T* a, int64_t count, int64_t n, std::complex<T>* values, std::complex<T>* vectors);

}  // namespace fw::unsymmetric
