#include "factor/symmetric.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/rows.h"
#include "base/scratch.h"

namespace fw::symmetric {
namespace {

// Which row comes to the end of the block that begins at k, and the block's size; 0 where the column is 0. Only the
// lower triangle is read and written: one number for two places, so that rounding cannot make them differ.
int64_t pivot(const double* a, int64_t n, int64_t k, int& size) {
    const double alpha = (1 + std::sqrt(17.0)) / 8, own = std::fabs(a[k * n + k]);
    int64_t far = k;
    double most = 0;
    for (int64_t i = k + 1; i < n; ++i)
        if (std::fabs(a[i * n + k]) > most || std::isnan(a[i * n + k])) most = std::fabs(a[i * n + k]), far = i;
    size = !(std::max(own, most) > 0) || own != own ? 0 : 1;
    if (!size || own >= alpha * most) return k;
    double row = 0;
    for (int64_t j = k; j < far; ++j) row = std::max(row, std::fabs(a[far * n + j]));
    for (int64_t i = far + 1; i < n; ++i) row = std::max(row, std::fabs(a[i * n + far]));
    if (own >= alpha * most * (most / row)) return k;
    size = std::fabs(a[far * n + far]) >= alpha * row ? 1 : 2;
    return far;
}

// Rows and columns i < j of what is left from k on change places.
void exchange(double* a, int64_t n, int64_t k, int64_t i, int64_t j) {
    for (int64_t c = k; c < i; ++c) std::swap(a[i * n + c], a[j * n + c]);
    std::swap(a[i * n + i], a[j * n + j]);
    for (int64_t c = i + 1; c < j; ++c) std::swap(a[c * n + i], a[j * n + c]);
    for (int64_t r = j + 1; r < n; ++r) std::swap(a[r * n + i], a[r * n + j]);
}

// a[j] -= of(j, part)
template <class F> FW_INLINE void subtract(double* a, int64_t n, F&& of) {
    long_vectors<double>(0, n, [&](int64_t j, auto part, int) { put<double>(a + j, take(a + j, part) - of(j, part), part); });
}

// The lower triangle of a becomes its factors; which step, from 1, met a column of 0 (0: none). room: for 2 n numbers.
int32_t factor(double* a, int64_t n, int32_t* pivots, double* room) {
    int32_t info = 0;
    double *first = room, *second = room + n;  // the block's columns
    for (int64_t k = 0, end; k < n; k = end) {
        int size;
        const int64_t found = pivot(a, n, k, size);
        end = k + std::max(size, 1);
        const int64_t last = end - 1;
        if (found != last) exchange(a, n, k, last, found);
        for (int64_t i = k; i < end; ++i) pivots[i] = int32_t(size == 2 ? -(found + 1) : found + 1);
        for (int64_t i = end; i < n; ++i) first[i] = a[i * n + k], second[i] = a[i * n + last];
        if (!size) {
            if (!info) info = int32_t(k + 1);
        } else if (size == 1) {
            const double top = a[k * n + k];
            for (int64_t i = end; i < n; ++i) {
                const double f = a[i * n + k] /= top;
                subtract(a + i * n + end, i + 1 - end, [&](int64_t j, auto part) { return splat(f) * take(first + end + j, part); });
            }
        } else {
            const double p = a[k * n + k], q = a[last * n + k], r = a[last * n + last], det = p * r - q * q;
            for (int64_t i = end; i < n; ++i) {
                const double c = first[i], d = second[i], f = (c * r - d * q) / det, g = (d * p - c * q) / det;
                subtract(a + i * n + end, i + 1 - end, [&](int64_t j, auto part) {
                    return splat(f) * take(first + end + j, part) + splat(g) * take(second + end + j, part);
                });
                a[i * n + k] = f, a[i * n + last] = g;
            }
        }
    }
    for (int64_t i = 0; i < n; ++i) std::fill(a + i * n + i + 1, a + (i + 1) * n, 0.0);
    return info;
}

// b (n x m) becomes the solution; false where a block of D is singular or the pivots are none.
bool solve_by(const double* a, int64_t n, const int32_t* pivots, double* b, int64_t m) {
    const auto swap = [&](int64_t i, int64_t j) {
        if (i != j) std::swap_ranges(b + i * m, b + (i + 1) * m, b + j * m);
    };
    const auto take = [&](int64_t i, int64_t from, double f) {
        for (int64_t c = 0; c < m; ++c) b[i * m + c] -= f * b[from * m + c];
    };
    int64_t k = 0;
    while (k < n) {
        const int64_t end = k + (pivots[k] > 0 ? 1 : 2), found = std::abs(int64_t(pivots[k])) - 1;
        if (end > n || found < end - 1 || found >= n || (end - k == 2 && pivots[k + 1] != pivots[k])) return false;
        swap(end - 1, found);
        for (int64_t i = end; i < n; ++i)
            for (int64_t j = k; j < end; ++j) take(i, j, a[i * n + j]);
        const double p = a[k * n + k];
        if (end - k == 1) {
            if (p == 0) return false;
            for (int64_t c = 0; c < m; ++c) b[k * m + c] /= p;
        } else {
            const double q = a[(k + 1) * n + k], r = a[(k + 1) * n + k + 1], det = p * r - q * q;
            if (det == 0) return false;
            for (int64_t c = 0; c < m; ++c) {
                const double x = b[k * m + c], y = b[(k + 1) * m + c];
                b[k * m + c] = (x * r - y * q) / det, b[(k + 1) * m + c] = (y * p - x * q) / det;
            }
        }
        k = end;
    }
    while (k > 0) {
        const int64_t first = k - (pivots[k - 1] > 0 ? 1 : 2), found = std::abs(int64_t(pivots[k - 1])) - 1;
        for (int64_t j = first; j < k; ++j)
            for (int64_t i = k; i < n; ++i) take(j, i, a[i * n + j]);
        swap(k - 1, found);
        k = first;
    }
    return true;
}

template <class T> void write(T* to, const double* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i] = T(from[i]);
}

}  // namespace

template <class T> void ldl_factors(const T* from, int64_t count, int64_t n, T* factors, int32_t* pivots, int32_t* info) {
    parallel(count, 1 + 20000 / (n * n * n), [&](int64_t begin, int64_t end) {
        Borrowed memory(n * (n + 2), sizeof(double));
        auto* a = static_cast<double*>(memory.start);
        for (int64_t i = begin; i < end; ++i) {
            std::copy(from + i * n * n, from + (i + 1) * n * n, a);
            info[i] = factor(a, n, pivots + i * n, a + n * n);
            write(factors + i * n * n, a, n * n);
        }
    });
}

template <class T>
bool solve_ldl(const T* factors, const int32_t* pivots, const T* right, int64_t count, int64_t n, int64_t m, T* x) {
    std::atomic<bool> regular{true};
    parallel(count, 1 + 20000 / (n * n * m), [&](int64_t begin, int64_t end) {
        Borrowed memory(n * (n + m), sizeof(double));
        auto *a = static_cast<double*>(memory.start), *b = a + n * n;
        for (int64_t i = begin; i < end; ++i) {
            std::copy(factors + i * n * n, factors + (i + 1) * n * n, a);
            std::copy(right + i * n * m, right + (i + 1) * n * m, b);
            std::vector<int32_t> own(pivots + i * n, pivots + (i + 1) * n);
            if (!solve_by(a, n, own.data(), b, m)) return regular.store(false);
            write(x + i * n * m, b, n * m);
        }
    });
    return regular;
}

bool row_orders(const int32_t* pivots, int64_t count, int64_t k, int64_t n, int64_t* orders) {
    for (int64_t i = 0; i < count; ++i) {
        int64_t* order = orders + i * n;
        for (int64_t r = 0; r < n; ++r) order[r] = r;
        for (int64_t r = 0; r < k; ++r) {
            const int64_t p = int64_t(pivots[i * k + r]) - 1;
            if (p < 0 || p >= n) return false;
            std::swap(order[r], order[p]);
        }
    }
    return true;
}

template void ldl_factors(const float*, int64_t, int64_t, float*, int32_t*, int32_t*);
template void ldl_factors(const double*, int64_t, int64_t, double*, int32_t*, int32_t*);
template bool solve_ldl(const float*, const int32_t*, const float*, int64_t, int64_t, int64_t, float*);
template bool solve_ldl(const double*, const int32_t*, const double*, int64_t, int64_t, int64_t, double*);

}  // namespace fw::symmetric
