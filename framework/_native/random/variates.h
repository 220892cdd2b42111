// Numbers that are drawn under a key: each element has words of its own, of which it takes as many as it happens to need, so
// no number depends on how many there are or who makes them. The same as on GPUs, and as in framework/philox.py.
#pragma once

#include <cstdint>

namespace fw::random {

// Uniform in [low, low + range), where range 0 stands for 2**64.
void keyed_integers(uint64_t key, int64_t* out, int64_t n, int64_t low, uint64_t range);
// The numbers 0 to n - 1, n < 2**31, in the order of n words of the key.
void keyed_permutation(uint64_t key, int64_t* out, int64_t n);

}  // namespace fw::random
