#include "gemm/reflections.h"

#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "base/scratch.h"

namespace fw::reflections {
namespace {

constexpr int64_t GRAIN = 16384;  // multiplications and additions
constexpr double NEAR_ZERO = 1e-140, FAR = 1e140;  // beyond them squares lose what they are

// The length of x[0], x[step], ...
template <class T> double length(const T* x, int64_t n, int64_t step) {
    double sum = 0, most = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double v = double(x[i * step]);
        sum += v * v, most = std::max(most, std::fabs(v));
    }
    if (most == 0 || (most > NEAR_ZERO && most < FAR)) return std::sqrt(sum);
    sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double v = double(x[i * step]) / most;
        sum += v * v;
    }
    return most * std::sqrt(sum);
}

// H times c (n x p, `row` apart) for v = (1, v[0], v[step], ...) of n numbers; sums: room for p.
template <class T>
void reflect(const T* v, int64_t step, T tau, T* c, int64_t n, int64_t p, int64_t row, T* sums) {
    if (tau == 0 || !p) return;
    std::copy(c, c + p, sums);
    for (int64_t r = 1; r < n; ++r)
        for (int64_t j = 0; j < p; ++j) sums[j] += v[(r - 1) * step] * c[r * row + j];
    for (int64_t j = 0; j < p; ++j) sums[j] *= tau, c[j] -= sums[j];
    for (int64_t r = 1; r < n; ++r)
        for (int64_t j = 0; j < p; ++j) c[r * row + j] -= v[(r - 1) * step] * sums[j];
}

template <class T> void factor_one(T* a, int64_t m, int64_t n, T* tau, T* sums) {
    for (int64_t i = 0; i < std::min(m, n); ++i) {
        T* top = a + i * n + i;
        const double alpha = double(*top), rest = length(top + n, m - i - 1, n);
        tau[i] = 0;
        if (rest == 0) continue;
        const double beta = -std::copysign(std::hypot(alpha, rest), alpha), scale = alpha - beta;
        tau[i] = T(-scale / beta);
        for (int64_t r = 1; r < m - i; ++r) top[r * n] = T(double(top[r * n]) / scale);
        reflect(top + n, n, tau[i], top + 1, m - i, n - i - 1, n, sums);
        *top = T(beta);
    }
}

template <class F> void each(int64_t count, int64_t cost, F&& f) {
    parallel(count, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, cost)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) f(i);
    });
}

template <class T>
void apply_one(const T* packed, const T* tau, int64_t m, int64_t n, int64_t k, bool transposed, T* c, int64_t p, T* sums) {
    for (int64_t step = 0; step < k; ++step) {
        const int64_t i = transposed ? step : k - 1 - step;
        reflect(packed + (i + 1) * n + i, n, tau[i], c + i * p, m - i, p, p, sums);
    }
}

template <class T>
void product_one(const T* packed, const T* tau, int64_t m, int64_t n, int64_t k, T* q, int64_t p, T* sums) {
    std::fill(q, q + m * p, T(0));
    for (int64_t j = 0; j < std::min(m, p); ++j) q[j * p + j] = 1;
    apply_one(packed, tau, m, n, k, false, q, p, sums);
}

}  // namespace

template <class T> void factor(const T* a, int64_t count, int64_t m, int64_t n, T* packed, T* tau) {
    const int64_t k = std::min(m, n), size = m * n;
    each(count, 2 * size * k, [&](int64_t i) {
        double *wide = scratch<double>(1, size), *factors = scratch<double>(2, k);
        std::copy(a + i * size, a + (i + 1) * size, wide);
        factor_one(wide, m, n, factors, scratch<double>(0, n));
        std::copy(wide, wide + size, packed + i * size);
        std::copy(factors, factors + k, tau + i * k);
    });
}

template <class T> void qr(const T* a, int64_t count, int64_t m, int64_t n, T* q, int64_t p, T* r) {
    const int64_t k = std::min(m, n), size = m * n;
    each(count, 4 * m * (n + p) * k, [&](int64_t i) {
        double *wide = scratch<double>(1, size), *factors = scratch<double>(2, k), *own = scratch<double>(3, m * p);
        double* sums = scratch<double>(0, std::max(n, p));
        std::copy(a + i * size, a + (i + 1) * size, wide);
        factor_one(wide, m, n, factors, sums);
        product_one(wide, factors, m, n, k, own, p, sums);
        std::copy(own, own + m * p, q + i * m * p);
        for (int64_t row = 0; row < p; ++row)
            for (int64_t j = 0; j < n; ++j) r[(i * p + row) * n + j] = j < row ? T(0) : T(wide[row * n + j]);
    });
}

template <class T>
void apply(const T* packed, const T* tau, int64_t count, int64_t m, int64_t n, int64_t k, bool transposed, T* c, int64_t p) {
    each(count, 4 * m * p * k, [&](int64_t i) {
        apply_one(packed + i * m * n, tau + i * k, m, n, k, transposed, c + i * m * p, p, scratch<T>(0, p));
    });
}

template <class T>
void product(const T* packed, const T* tau, int64_t count, int64_t m, int64_t n, int64_t k, T* q, int64_t p) {
    each(count, 4 * m * p * k, [&](int64_t i) {
        product_one(packed + i * m * n, tau + i * k, m, n, k, q + i * m * p, p, scratch<T>(0, p));
    });
}

#define FW_REFLECTIONS(T)                                                                                           \
    template void factor(const T*, int64_t, int64_t, int64_t, T*, T*);                                              \
    template void apply(const T*, const T*, int64_t, int64_t, int64_t, int64_t, bool, T*, int64_t);                  \
    template void product(const T*, const T*, int64_t, int64_t, int64_t, int64_t, T*, int64_t);                      \
    template void qr(const T*, int64_t, int64_t, int64_t, T*, int64_t, T*);
FW_REFLECTIONS(float)
FW_REFLECTIONS(double)

}  // namespace fw::reflections
