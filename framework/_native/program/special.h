// Special functions of one number. No Python.
#pragma once

#include <cstdint>
#include <vector>

namespace fw::special {

// A function of n numbers, and of an order: that of a derivative, or of the function, if there is one.
struct Function {
    const char* name;
    int least, most;  // orders
    int most_quick;   // orders up to this one, and their negatives, have a quicker formula for float32
    void (*floats)(const float* x, int64_t n, float* to, int order);
    void (*doubles)(const double* x, int64_t n, double* to, int order);

    bool takes(int order) const { return order >= least && order <= most; }
    bool quick(int order) const { return order <= most_quick && order >= -most_quick; }
};
std::vector<Function> functions();

// -- of float32, a vector of doubles at a time: what is lost where large numbers cancel lies below the last digit of the result

// Of n numbers, of this order; `exact` is asked for those that the formula is not for.
using Floats = void (*)(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));

void lgamma_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void polygamma_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void erfinv_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void ndtri_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void erfcx_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void log_ndtr_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void bessel_j_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void bessel_y_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void bessel_i_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void bessel_ie_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void bessel_k_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void bessel_ke_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));
void sinc_of_floats(const float* x, int64_t n, float* to, int order, double (*exact)(double, int));

}  // namespace fw::special
