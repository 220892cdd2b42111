// How samples of distributions move with their parameters.
#include "random/slopes.h"

#include "base/pool.h"
#include "random/slope_numbers.h"

namespace fw::random {
namespace {

constexpr int64_t SLOPES_GRAIN = 128;
template <class T> constexpr double REST = sizeof(T) == 4 ? 1e-10 : slopes::doubles;

}  // namespace

template <class T> void gamma_slopes(const T* a, const T* z, T* out, int64_t n) {
    parallel(n, SLOPES_GRAIN, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = T(slopes::gamma_slope_of(double(a[i]), double(z[i]), REST<T>));
    });
}

template <class T> void dirichlet_slopes(const T* x, const T* a, const T* total, T* out, int64_t rows, int64_t parts) {
    parallel(rows * parts, SLOPES_GRAIN, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            out[i] = T(slopes::dirichlet_slope_of(double(x[i]), double(a[i]), double(total[i / parts]), REST<T>));
    });
}

template void gamma_slopes(const float*, const float*, float*, int64_t);
template void gamma_slopes(const double*, const double*, double*, int64_t);
template void dirichlet_slopes(const float*, const float*, const float*, float*, int64_t, int64_t);
template void dirichlet_slopes(const double*, const double*, const double*, double*, int64_t, int64_t);

}  // namespace fw::random
