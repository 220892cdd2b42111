// Special functions of float32, a vector of doubles at a time: what is lost where large numbers cancel lies below the
// last digit of the result.
#pragma once

#include <cstdint>

namespace fw::special {

// Of n numbers, of this order; `exact` is asked for those that the formula is not for.
using Floats = void (*)(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));

void lgamma_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void polygamma_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void erfinv_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void ndtri_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void bessel_i_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void bessel_ie_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void bessel_k_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void bessel_ke_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void sinc_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));

}  // namespace fw::special
