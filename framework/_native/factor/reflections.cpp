#include "factor/reflections.h"

#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "base/scratch.h"
#include "base/simd.h"

namespace fw::reflections {
namespace {

constexpr int64_t GRAIN = 16384;  // multiplications and additions
// beyond them squares lose what they are
template <class T> constexpr T NEAR_ZERO = sizeof(T) == 8 ? T(1e-140) : T(1e-15);
template <class T> constexpr T FAR = sizeof(T) == 8 ? T(1e140) : T(1e15);

template <class T> T squares(const T* x, int64_t n) {
    constexpr int L = lanes<T>;
    Vec<T> some{};
    T sum = 0;
    int64_t i = 0;
    for (; i + L <= n; i += L) some = fma<T>(load(x + i), load(x + i), some);
    for (; i < n; ++i) sum += x[i] * x[i];
    return sum + sum_lanes<T>(some);
}

// The length of x[0 .. n).
template <class T> T length(const T* x, int64_t n) {
    T sum = squares(x, n);
    if (sum > NEAR_ZERO<T> * NEAR_ZERO<T> && sum < FAR<T> * FAR<T>) return std::sqrt(sum);
    T most = 0;
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

// Columns are worked on by whole vectors: each begins `apart` numbers, a multiple of those of a vector, after the one before it, with
// zeros behind its m numbers, and so does v, with zeros before it as well.
template <class T> int64_t room_of(int64_t m) {
    const int64_t room = (m + lanes<T> - 1) / lanes<T> * lanes<T>;
    return room * sizeof(T) % 2048 ? room : room + lanes<T>;  // lines of the caches that columns would share
}

// H times C columns of n numbers for v of as many.
template <int C, class T> FW_INLINE void reflect_some(const T* v, T tau, T* c, int64_t n, int64_t apart) {
    Vec<T> some[C] = {};
    T sums[C];
    for (int64_t r = 0; r < n; r += lanes<T>) {
        const Vec<T> part = load(v + r);
        for (int k = 0; k < C; ++k) some[k] = fma<T>(part, load(c + k * apart + r), some[k]);
    }
    for (int k = 0; k < C; ++k) sums[k] = -tau * sum_lanes<T>(some[k]);
    for (int64_t r = 0; r < n; r += lanes<T>) {
        const Vec<T> part = load(v + r);
        for (int k = 0; k < C; ++k) store(c + k * apart + r, fma<T>(part, splat(sums[k]), load(c + k * apart + r)));
    }
}

template <class T> void reflect_columns(const T* v, T tau, T* c, int64_t n, int64_t p, int64_t apart) {
    constexpr int SOME = 8;  // columns that are multiplied by what is loaded of v
    if (tau == 0) return;
    for (; p >= SOME; p -= SOME, c += SOME * apart) reflect_some<SOME>(v, tau, c, n, apart);
    for (; p > 0; --p, c += apart) reflect_some<1>(v, tau, c, n, apart);
}

// Of n columns of m numbers; v: room for one more.
template <class T> void factor_columns(T* a, int64_t m, int64_t n, T* tau, T* v) {
    const int64_t apart = room_of<T>(m);
    for (int64_t i = 0; i < std::min(m, n); ++i) {
        T* column = a + i * apart;
        const T alpha = column[i], rest = length(column + i + 1, m - i - 1);
        tau[i] = 0;
        if (rest == 0) continue;
        const T beta = -std::copysign(std::hypot(alpha, rest), alpha), scale = alpha - beta;
        tau[i] = -scale / beta;
        for (int64_t r = i + 1; r < m; ++r) column[r] /= scale;
        const int64_t first = i / lanes<T> * lanes<T>;
        std::copy(column + first, column + apart, v + first);
        std::fill(v + first, v + i, T(0));
        v[i] = 1, column[i] = beta;
        reflect_columns(v + first, tau[i], column + apart + first, apart - first, n - i - 1, apart);
    }
}

// The first p columns of the product of k reflections of m numbers.
template <class T> void product_columns(const T* packed, const T* tau, int64_t m, int64_t k, T* q, int64_t p, T* v) {
    const int64_t apart = room_of<T>(m);
    std::fill(q, q + apart * p, T(0));
    for (int64_t j = 0; j < std::min(m, p); ++j) q[j * apart + j] = 1;
    for (int64_t i = k - 1; i >= 0; --i) {  // the columns before have nothing there yet
        const int64_t first = i / lanes<T> * lanes<T>;
        std::copy(packed + i * apart + first, packed + (i + 1) * apart, v + first);
        std::fill(v + first, v + i, T(0));
        v[i] = 1;
        reflect_columns(v + first, tau[i], q + i * apart + first, apart - first, p - i, apart);
    }
}

// Calls f(i, j) for all, the second one first; what lies in either order stays in the caches.
template <class F> FW_INLINE void in_tiles(int64_t m, int64_t n, F&& f) {
    constexpr int64_t TILE = 16;
    for (int64_t first = 0; first < n; first += TILE)
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = first; j < std::min(n, first + TILE); ++j) f(i, j);
}

// Rows of numbers become columns, and the other way; a column is `apart` numbers long.
template <class From, class To> void to_columns(const From* from, int64_t rows, int64_t columns, To* to, int64_t apart) {
    for (int64_t c = 0; c < columns; ++c) std::fill(to + c * apart + rows, to + (c + 1) * apart, To(0));
    in_tiles(rows, columns, [=](int64_t r, int64_t c) { to[c * apart + r] = To(from[r * columns + c]); });
}
template <class From, class To> void to_rows(const From* from, int64_t apart, int64_t rows, int64_t columns, To* to) {
    in_tiles(columns, rows, [=](int64_t c, int64_t r) { to[r * columns + c] = To(from[c * apart + r]); });
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

namespace {

// By numbers of type U, column by column.
template <class U, class T> void factor_by(const T* a, int64_t count, int64_t m, int64_t n, T* packed, T* tau) {
    const int64_t k = std::min(m, n), size = m * n, apart = room_of<U>(m);
    each(count, 2 * size * k, [&](int64_t i) {
        U *columns = scratch<U>(1, apart * n), *factors = scratch<U>(2, k + apart);
        to_columns(a + i * size, m, n, columns, apart);
        factor_columns(columns, m, n, factors, factors + k);
        to_rows(columns, apart, m, n, packed + i * size);
        std::copy(factors, factors + k, tau + i * k);
    });
}

template <class U, class T> void qr_by(const T* a, int64_t count, int64_t m, int64_t n, T* q, int64_t p, T* r) {
    const int64_t k = std::min(m, n), apart = room_of<U>(m);
    each(count, 4 * m * (n + p) * k, [&](int64_t i) {
        U *columns = scratch<U>(1, apart * n), *factors = scratch<U>(2, k + apart), *own = scratch<U>(3, apart * p);
        to_columns(a + i * m * n, m, n, columns, apart);
        factor_columns(columns, m, n, factors, factors + k);
        product_columns(columns, factors, m, k, own, p, factors + k);
        to_rows(own, apart, m, p, q + i * m * p);
        for (int64_t row = 0; row < p; ++row)
            for (int64_t j = 0; j < n; ++j) r[(i * p + row) * n + j] = j < row ? T(0) : T(columns[j * apart + row]);
    });
}

// Small matrices take no longer in double precision.
bool is_exact(int64_t m, int64_t n) { return m * n <= 64 * 64; }

}  // namespace

template <class T> void factor(const T* a, int64_t count, int64_t m, int64_t n, T* packed, T* tau) {
    is_exact(m, n) ? factor_by<double>(a, count, m, n, packed, tau) : factor_by<T>(a, count, m, n, packed, tau);
}

template <class T> void qr(const T* a, int64_t count, int64_t m, int64_t n, T* q, int64_t p, T* r) {
    is_exact(m, n) ? qr_by<double>(a, count, m, n, q, p, r) : qr_by<T>(a, count, m, n, q, p, r);
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
