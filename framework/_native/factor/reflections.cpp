#include "factor/reflections.h"

#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "base/scratch.h"
#include "base/simd.h"

namespace fw::reflections {
namespace {

constexpr int64_t GRAIN = 16384;  // multiplications and additions
constexpr double NEAR_ZERO = 1e-140, FAR = 1e140;  // beyond them squares lose what they are

double squares(const double* x, int64_t n) {
    constexpr int L = lanes<double>;
    Vec<double> some{};
    double sum = 0;
    int64_t i = 0;
    for (; i + L <= n; i += L) some = fma<double>(load(x + i), load(x + i), some);
    for (; i < n; ++i) sum += x[i] * x[i];
    return sum + sum_lanes<double>(some);
}

// The length of x[0 .. n).
double length(const double* x, int64_t n) {
    double sum = squares(x, n);
    if (sum > NEAR_ZERO * NEAR_ZERO && sum < FAR * FAR) return std::sqrt(sum);
    double most = 0;
    for (int64_t i = 0; i < n; ++i) most = std::max(most, std::fabs(x[i]));
    if (most == 0 || !(most < INFINITY)) return std::sqrt(sum);
    sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i] / most * (x[i] / most);
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

// H times C columns of n numbers, `apart`, for v = (1, v[1], ...).
template <int C> FW_INLINE void reflect_some(const double* v, double tau, double* c, int64_t n, int64_t apart) {
    constexpr int L = lanes<double>;
    Vec<double> some[C] = {};
    double sums[C];
    for (int k = 0; k < C; ++k) sums[k] = c[k * apart];
    int64_t r = 1;
    for (; r + L <= n; r += L)
        for (int k = 0; k < C; ++k) some[k] = fma<double>(load(v + r), load(c + k * apart + r), some[k]);
    for (; r < n; ++r)
        for (int k = 0; k < C; ++k) sums[k] += v[r] * c[k * apart + r];
    for (int k = 0; k < C; ++k) sums[k] = tau * (sums[k] + sum_lanes<double>(some[k])), c[k * apart] -= sums[k];
    for (r = 1; r + L <= n; r += L)
        for (int k = 0; k < C; ++k)
            store(c + k * apart + r, load(c + k * apart + r) - load(v + r) * splat(sums[k]));
    for (; r < n; ++r)
        for (int k = 0; k < C; ++k) c[k * apart + r] -= v[r] * sums[k];
}

void reflect_columns(const double* v, double tau, double* c, int64_t n, int64_t p, int64_t apart) {
    constexpr int SOME = 4;  // columns that are multiplied by what is loaded of v
    if (tau == 0) return;
    for (; p >= SOME; p -= SOME, c += SOME * apart) reflect_some<SOME>(v, tau, c, n, apart);
    for (; p > 0; --p, c += apart) reflect_some<1>(v, tau, c, n, apart);
}

// Of m x n numbers, column by column.
void factor_columns(double* a, int64_t m, int64_t n, double* tau) {
    for (int64_t i = 0; i < std::min(m, n); ++i) {
        double* top = a + i * m + i;
        const double alpha = *top, rest = length(top + 1, m - i - 1);
        tau[i] = 0;
        if (rest == 0) continue;
        const double beta = -std::copysign(std::hypot(alpha, rest), alpha), scale = alpha - beta;
        tau[i] = -scale / beta;
        for (int64_t r = 1; r < m - i; ++r) top[r] /= scale;
        reflect_columns(top, tau[i], top + m, m - i, n - i - 1, m);
        *top = beta;
    }
}

// The first p columns of the product of k reflections of m numbers.
void product_columns(const double* packed, const double* tau, int64_t m, int64_t k, double* q, int64_t p) {
    std::fill(q, q + m * p, 0.0);
    for (int64_t j = 0; j < std::min(m, p); ++j) q[j * m + j] = 1;
    for (int64_t i = k - 1; i >= 0; --i)  // the columns before have nothing there yet
        reflect_columns(packed + i * m + i, tau[i], q + i * m + i, m - i, p - i, m);
}

template <class From, class To> void turn(const From* from, int64_t rows, int64_t columns, To* to) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = To(from[r * columns + c]);
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
        double *columns = scratch<double>(1, size), *factors = scratch<double>(2, k);
        turn(a + i * size, m, n, columns);
        factor_columns(columns, m, n, factors);
        turn(columns, n, m, packed + i * size);
        std::copy(factors, factors + k, tau + i * k);
    });
}

template <class T> void qr(const T* a, int64_t count, int64_t m, int64_t n, T* q, int64_t p, T* r) {
    const int64_t k = std::min(m, n), size = m * n;
    each(count, 4 * m * (n + p) * k, [&](int64_t i) {
        double *columns = scratch<double>(1, size), *factors = scratch<double>(2, k), *own = scratch<double>(3, m * p);
        turn(a + i * size, m, n, columns);
        factor_columns(columns, m, n, factors);
        product_columns(columns, factors, m, k, own, p);
        turn(own, p, m, q + i * m * p);
        for (int64_t row = 0; row < p; ++row)
            for (int64_t j = 0; j < n; ++j) r[(i * p + row) * n + j] = j < row ? T(0) : T(columns[j * m + row]);
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
