// Special functions of one number: the logarithm of gamma and its derivatives, the inverses of erf and of the normal
// distribution, Bessel functions, scaled normal tails, sinc and its derivatives.
#include "program/special.h"

#include <cmath>

#include "base/pool.h"
#include "program/special_numbers.h"

namespace fw::special {
namespace {

constexpr int ORDER = 8;  // of Bessel functions of the first and second kind and derivatives of sinc

template <double (*F)(double)> double alone(double x, int) { return F(x); }

template <double (*F)(double, int), class T> void each(const T* x, int64_t n, T* to, int order) {
    parallel(n, 512, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = T(F(double(x[i]), order));
    });
}

// With Quick where the order is at most `most_quick`, or its negative.
template <double (*F)(double, int), Floats Quick, int most_quick>
void of_floats(const float* x, int64_t n, float* to, int order) {
    if (size_of(order) > most_quick) return each<F, float>(x, n, to, order);
    parallel(n, 2048, [&](int64_t begin, int64_t end) { Quick(x + begin, end - begin, to + begin, order, F); });
}

// With Quick for float32.
template <double (*F)(double, int), Floats Quick, int least = 0, int most = 0, int most_quick = 0>
Function fast(const char* name) {
    return {name, least, most, most_quick, of_floats<F, Quick, most_quick>, each<F, double>};
}

}  // namespace

std::vector<Function> functions() {
    return {
        fast<alone<log_gamma>, lgamma_of_floats>("special_lgamma"),
        fast<polygamma, polygamma_of_floats, 0, MOST, 8>("special_polygamma"),
        fast<alone<erfinv>, erfinv_of_floats>("special_erfinv"),
        fast<alone<ndtri>, ndtri_of_floats>("special_ndtri"),
        fast<bessel_ie, bessel_ie_of_floats, -3, 3, 1>("special_bessel_ie"),
        fast<bessel_i, bessel_i_of_floats, -3, 3, 1>("special_bessel_i"),
        fast<bessel_j, bessel_j_of_floats, -ORDER, ORDER, 1>("special_bessel_j"),
        fast<bessel_y, bessel_y_of_floats, -ORDER, ORDER, 1>("special_bessel_y"),
        fast<bessel_k, bessel_k_of_floats, -ORDER, ORDER, 1>("special_bessel_k"),
        fast<bessel_ke, bessel_ke_of_floats, -ORDER, ORDER, 1>("special_bessel_ke"),
        fast<alone<erfcx>, erfcx_of_floats>("special_erfcx"),
        fast<alone<log_ndtr>, log_ndtr_of_floats>("special_log_ndtr"),
        fast<sinc, sinc_of_floats, 0, ORDER, 1>("special_sinc"),
    };
}

}  // namespace fw::special
