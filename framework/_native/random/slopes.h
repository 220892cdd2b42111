// How samples of distributions move with their parameters. No Python.
#pragma once

#include <cstdint>

namespace fw::random {

// T: float or double. Of samples z of the gamma distribution of shapes a, n of each.
template <class T> void gamma_slopes(const T* a, const T* z, T* out, int64_t n);
// Of parts x of Dirichlet samples, with their own concentrations a; `total`: the sum of those of a row. Over 1 - x.
template <class T> void dirichlet_slopes(const T* x, const T* a, const T* total, T* out, int64_t rows, int64_t parts);

}  // namespace fw::random
