// Special functions of float32, a vector of doubles at a time: what is lost where large numbers cancel lies below the
// last digit of the result.
#pragma once

#include <cstdint>

namespace fw::special {

void lgamma_of_floats(const float* x, int64_t n, float* to);
void digamma_of_floats(const float* x, int64_t n, float* to);
void erfinv_of_floats(const float* x, int64_t n, float* to);
void ndtri_of_floats(const float* x, int64_t n, float* to);

}  // namespace fw::special
