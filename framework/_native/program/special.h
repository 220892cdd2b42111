// Special functions of one number. No Python.
#pragma once

#include <cstdint>
#include <vector>

namespace fw::special {

// A function of n numbers, and of an order: that of a derivative, or of the function, if there is one.
struct Function {
    const char* name;
    int least, most;  // orders
    int most_quick;   // orders up to this one, and their negatives, have a quicker formula
    void (*floats)(const float* x, int64_t n, float* to, int order);
    void (*doubles)(const double* x, int64_t n, double* to, int order);

    bool takes(int order) const { return order >= least && order <= most; }
    bool quick(int order) const { return order <= most_quick && order >= -most_quick; }
};
std::vector<Function> functions();

// -- several numbers at a time, float32 as doubles: what is lost where large numbers cancel lies below the last digit of the result

// Of n numbers of one type, of this order; `exact` is asked for those that the formula is not for.
template <class T> using Many = void (*)(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));

template <class T> void many_lgamma(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));
template <class T> void many_polygamma(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));
template <class T> void many_erfinv(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));
template <class T> void many_ndtri(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));
template <class T> void many_erfcx(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));
template <class T> void many_log_ndtr(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));
template <class T> void many_bessel_j(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));
template <class T> void many_bessel_y(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));
template <class T> void many_bessel_i(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));
template <class T> void many_bessel_ie(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));
template <class T> void many_bessel_k(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));
template <class T> void many_bessel_ke(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));
template <class T> void many_sinc(const T* x, int64_t n, T* to, int order, double (*exact)(double, int));

}  // namespace fw::special
