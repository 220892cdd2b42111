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
template <double (*F)(double, int), class T, Many<T> Quick, int most_quick>
void many(const T* x, int64_t n, T* to, int order) {
    if (size_of(order) > most_quick) return each<F, T>(x, n, to, order);
    parallel(n, 2048, [&](int64_t begin, int64_t end) { Quick(x + begin, end - begin, to + begin, order, F); });
}

template <double (*F)(double, int), Many<float> Floats, Many<double> Doubles, int least = 0, int most = 0, int most_quick = 0>
Function fast(const char* name) {
    return {name, least, most, most_quick, many<F, float, Floats, most_quick>, many<F, double, Doubles, most_quick>};
}

}  // namespace

std::vector<Function> functions() {
    return {
        fast<alone<log_gamma>, many_lgamma<float>, many_lgamma<double>>("special_lgamma"),
        fast<polygamma, many_polygamma<float>, many_polygamma<double>, 0, MOST, 8>("special_polygamma"),
        fast<alone<erfinv>, many_erfinv<float>, many_erfinv<double>>("special_erfinv"),
        fast<alone<ndtri>, many_ndtri<float>, many_ndtri<double>>("special_ndtri"),
        fast<bessel_ie, many_bessel_ie<float>, many_bessel_ie<double>, -3, 3, 1>("special_bessel_ie"),
        fast<bessel_i, many_bessel_i<float>, many_bessel_i<double>, -3, 3, 1>("special_bessel_i"),
        fast<bessel_j, many_bessel_j<float>, many_bessel_j<double>, -ORDER, ORDER, 1>("special_bessel_j"),
        fast<bessel_y, many_bessel_y<float>, many_bessel_y<double>, -ORDER, ORDER, 1>("special_bessel_y"),
        fast<bessel_k, many_bessel_k<float>, many_bessel_k<double>, -ORDER, ORDER, 1>("special_bessel_k"),
        fast<bessel_ke, many_bessel_ke<float>, many_bessel_ke<double>, -ORDER, ORDER, 1>("special_bessel_ke"),
        fast<alone<erfcx>, many_erfcx<float>, many_erfcx<double>>("special_erfcx"),
        fast<alone<log_ndtr>, many_log_ndtr<float>, many_log_ndtr<double>>("special_log_ndtr"),
        fast<sinc, many_sinc<float>, many_sinc<double>, 0, ORDER, 1>("special_sinc"),
    };
}

}  // namespace fw::special
