// How samples of distributions move with their parameters.
#include "random/slopes.h"

#include "base/pool.h"
#include "random/slope_numbers.h"

namespace fw::random {
namespace {

using slopes::V;

constexpr int64_t SLOPES_GRAIN = 128;
template <class T> constexpr double REST = sizeof(T) == 4 ? 1e-10 : slopes::doubles;

// Samples that wait for others that go the same way.
template <class T, bool SERIES> struct Pack {
    double a[lanes<double>], z[lanes<double>];
    int64_t at[lanes<double>];
    int count = 0;

    void add(double shape, double sample, int64_t i, T* out) {
        a[count] = shape, z[count] = sample, at[count++] = i;
        if (count == lanes<double>) give(out);
    }
    void give(T* out) {
        if (!count) return;
        for (int k = count; k < lanes<double>; ++k) a[k] = a[0], z[k] = z[0];
        const V shapes = load(a), samples = load(z);
        const slopes::Dual<V> part = SERIES ? slopes::gamma_series(shapes, samples, REST<T>) : slopes::gamma_fraction(shapes, samples, REST<T>);
        for (int k = 0; k < count; ++k) out[at[k]] = T(slopes::gamma_slope_from(a[k], z[k], slopes::Dual<double>{part.v[k], part.d[k]}));
        count = 0;
    }
};

}  // namespace

template <class T> void gamma_slopes(const T* a, const T* z, T* out, int64_t n) {
    parallel(n, SLOPES_GRAIN, [=](int64_t begin, int64_t end) {
        Pack<T, true> low;
        Pack<T, false> high;
        for (int64_t i = begin; i < end; ++i) {
            const double shape = double(a[i]), sample = double(z[i]);
            if (!slopes::near_enough(shape, sample)) out[i] = T(slopes::gamma_slope_far(shape, sample));
            else if (slopes::by_series(shape, sample)) low.add(shape, sample, i, out);
            else high.add(shape, sample, i, out);
        }
        low.give(out), high.give(out);
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
