// Quantiles of short rows. No Python.
#pragma once

#include <cstdint>

namespace fw {

enum class Between { linear, lower, higher, nearest, midpoint };

// to (rows, k) = the values of each row of n numbers at every q in [0, 1]; a row with a nan gives nan, or what is not nan is
// taken alone.
template <class T>
void quantiles(const T* x, int64_t rows, int64_t n, const T* q, int64_t k, Between how, bool ignore, T* to);

}  // namespace fw
