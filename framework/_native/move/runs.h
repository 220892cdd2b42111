// Runs of equal elements, and elements repeated. No Python.
#pragma once

#include <cstdint>

namespace fw::moving {

// How many elements differ from the one before them, the first one among them; nan differs from everything. n > 0.
template <class T> int64_t count_runs(const T* x, int64_t n);
// Those, of which there were `most`, which is what may be written should others change x meanwhile.
template <class T> void take_runs(const T* x, int64_t n, T* to, int64_t most);
// Each of n elements of so many bytes `times` times.
void repeat_elements(const char* from, int64_t n, int bytes, int64_t times, char* to);

}  // namespace fw::moving
