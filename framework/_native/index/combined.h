// Slices combined into others. No Python.
#pragma once

#include <cstdint>
#include <vector>

namespace fw {

enum class Way { product, mean, largest, smallest };

// out (outer, n, inner) = x with the slices of source (outer, places, inner) combined in order into those at the places, each
// in [0, n). own: whether what was there takes part.
template <class T>
void combine_slices(Way way, const T* x, const T* source, int64_t outer, int64_t n, int64_t inner,
                    const std::vector<int64_t>& places, bool own, T* out);

}  // namespace fw
