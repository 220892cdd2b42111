#include "gemm/made.h"

#include <algorithm>

#include "base/pool.h"

namespace fw {
namespace {

float product(float a, float b) { return a * b; }
double product(double a, double b) { return a * b; }
int64_t product(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }  // which may run over

}  // namespace

template <class T> void kronecker(const T* x, const int64_t* x_shape, const T* y, const int64_t* y_shape, int ndim, T* out) {
    int64_t x_size = 1, y_size = 1;
    for (int d = 0; d < ndim; ++d) x_size *= x_shape[d], y_size *= y_shape[d];
    const int64_t own = ndim ? x_shape[ndim - 1] : 1, width = ndim ? y_shape[ndim - 1] : 1;
    const int64_t rows = x_size * y_size / (own * width);
    // a row of the result is one of x with one of y: the places of both, from the place of the row
    parallel(rows, std::max<int64_t>(1, 16384 / (own * width)), [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            int64_t rest = row, p = 0, q = 0, p_step = own, q_step = width;
            for (int d = ndim - 2; d >= 0; --d) {
                q += rest % y_shape[d] * q_step, rest /= y_shape[d], q_step *= y_shape[d];
                p += rest % x_shape[d] * p_step, rest /= x_shape[d], p_step *= x_shape[d];
            }
            T* to = out + row * own * width;
            for (int64_t i = 0; i < own; ++i)
                for (int64_t j = 0; j < width; ++j) *to++ = product(x[p + i], y[q + j]);
        }
    });
}

template <class T> void powers(const T* x, int64_t n, int64_t count, bool falling, T* out) {
    parallel(n, std::max<int64_t>(1, 16384 / std::max<int64_t>(count, 1)), [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            T *to = out + i * count, power = 1;
            for (int64_t k = 0; k < count; ++k, power = product(power, x[i])) to[falling ? count - 1 - k : k] = power;
        }
    });
}

template <class T> T trace(const T* a, int64_t m, int64_t n) {
    T sum = 0;
    for (int64_t i = 0; i < std::min(m, n); ++i) sum += a[i * n + i];
    return sum;
}

#define FW_MADE(T)                                                                              \
    template void kronecker(const T*, const int64_t*, const T*, const int64_t*, int, T*);       \
    template void powers(const T*, int64_t, int64_t, bool, T*);
FW_MADE(float)
FW_MADE(double)
FW_MADE(int64_t)
template float trace(const float*, int64_t, int64_t);
template double trace(const double*, int64_t, int64_t);
template uint64_t trace(const uint64_t*, int64_t, int64_t);  // whole numbers, which may run over

void triangle_places(int64_t rows, int64_t columns, int64_t offset, bool lower, int64_t* row, int64_t* column) {
    for (int64_t i = 0; i < rows; ++i) {
        const int64_t n = in_triangle(i, columns, offset, lower), first = lower ? 0 : columns - n;
        for (int64_t j = 0; j < n; ++j) row[j] = i, column[j] = first + j;
        row += n, column += n;
    }
}

void choices(int64_t n, int64_t r, bool repeated, int64_t count, int64_t* out) {
    for (int64_t j = 0; j < r && count; ++j) out[j] = repeated ? 0 : j;
    for (int64_t i = 1; i < count; ++i, out += r) {
        int64_t at = r - 1;  // the last that can grow
        while (out[at] == (repeated ? n - 1 : n - r + at)) --at;
        for (int64_t j = 0; j < at; ++j) out[r + j] = out[j];
        for (int64_t j = at, next = out[at] + 1; j < r; ++j, next += !repeated) out[r + j] = next;
    }
}

}  // namespace fw
