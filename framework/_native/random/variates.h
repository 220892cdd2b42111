// Numbers that are drawn under a key: each element has words of its own, of which it takes as many as it happens to need, so
// no number depends on how many there are or who makes them. The same as on GPUs, and as in framework/ops/random/variates.py.
#pragma once

#include <cstdint>

namespace fw::random {

// Uniform in [low, low + range), where range 0 stands for 2**64.
void keyed_integers(uint64_t key, int64_t* out, int64_t n, int64_t low, uint64_t range);
// The numbers 0 to n - 1, n < 2**31, in the order of n words of the key.
void keyed_permutation(uint64_t key, int64_t* out, int64_t n);

// Whether n numbers are in [low, high], and whole if that is asked for.
template <class T> bool within(const T* x, int64_t n, double low, double high, bool whole);

// T: float or double, n numbers each; `lowest` is given for what is less.
template <class T> void gamma_numbers(uint64_t key, const T* shapes, T* out, int64_t n, double lowest);
// Rows of `parts` that sum to 1.
template <class T> void dirichlet_rows(uint64_t key, const T* shapes, T* out, int64_t rows, int64_t parts, double lowest);
// These say whether all parameters are some; if not, nothing is in `out`.
template <class T> bool poisson_numbers(uint64_t key, const T* rates, T* out, int64_t n, double most);
template <class T> bool binomial_numbers(uint64_t key, const T* counts, const T* chances, T* out, int64_t n);
template <class T> bool angles(uint64_t key, const T* spreads, T* out, int64_t n);

}  // namespace fw::random
