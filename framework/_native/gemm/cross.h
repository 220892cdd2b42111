// Cross products in plain memory. No Python, no exceptions.
#pragma once

#include <cstdint>

namespace fw {

// out = x cross y, of arrays (outer, 3, inner) row by row
template <class T> void cross(const T* x, const T* y, int64_t outer, int64_t inner, T* out);

}  // namespace fw
