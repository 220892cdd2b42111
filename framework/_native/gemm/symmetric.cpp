// Symmetric matrices as L D L.T with 1 x 1 and 2 x 2 blocks in D (Bunch and Kaufman, as LAPACK packs them: the exchanges
// of a step are not made in the columns before it), their systems, and the order of rows that exchanges give. In double
// precision whatever comes, a matrix a thread.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/pool.h"
#include "base/scratch.h"
#include "bind/array.h"

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
                for (int64_t j = end; j <= i; ++j) a[i * n + j] -= f * first[j];
            }
        } else {
            const double p = a[k * n + k], q = a[last * n + k], r = a[last * n + last], det = p * r - q * q;
            for (int64_t i = end; i < n; ++i) {
                const double c = first[i], d = second[i], f = (c * r - d * q) / det, g = (d * p - c * q) / det;
                for (int64_t j = end; j <= i; ++j) a[i * n + j] -= f * first[j] + g * second[j];
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

bool square(const Array& a) {
    return a.is_float() && a.ndim() >= 2 && a.size() && a.shape(a.ndim() - 1) == a.shape(a.ndim() - 2);
}

template <class T> void read(const T* from, double* to, int64_t count) { std::copy(from, from + count, to); }

void read(const Array& a, const void* start, int64_t at, double* to, int64_t count) {
    if (a.is<float>()) read(static_cast<const float*>(start) + at, to, count);
    else read(static_cast<const double*>(start) + at, to, count);
}

void write(const NewArray& a, int64_t at, const double* from, int64_t count) {
    if (a.is<float>())
        for (int64_t i = 0; i < count; ++i) a.data<float>()[at + i] = float(from[i]);
    else
        std::copy(from, from + count, a.data<double>() + at);
}

// hermitian is the same for real numbers, of which alone this knows.
nb::object ldl_factor(Array A, bool) {
    if (!square(A)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), count = A.size() / n / n;
    InRows rows(A);
    NewArray out = like(A), pivots = new_array(A.ndim() - 1, A.shape(), NPY_INT32);
    NewArray info = new_array(A.ndim() - 2, A.shape(), NPY_INT32);
    {
        Release release(A.size() * n);
        parallel(count, 1 + 20000 / (n * n * n), [&](int64_t begin, int64_t end) {
            Borrowed memory(n * (n + 2), sizeof(double));
            auto* a = static_cast<double*>(memory.start);
            for (int64_t i = begin; i < end; ++i) {
                read(A, rows.data<char>(), i * n * n, a, n * n);
                info.data<int32_t>()[i] = factor(a, n, pivots.data<int32_t>() + i * n, a + n * n);
                write(out, i * n * n, a, n * n);
            }
        });
    }
    return nb::make_tuple(give(out), give(pivots), give(info));
}

nb::object ldl_solve(Array LD, Array pivots, Array B, bool) {
    if (!square(LD) || !B.usable() || B.type() != LD.type() || B.ndim() != LD.ndim() || !B.size() ||
        !pivots.is<int32_t>() || pivots.ndim() != LD.ndim() - 1)
        return not_implemented();
    const int last = LD.ndim() - 1;
    const int64_t n = LD.shape(last), m = B.shape(last), count = LD.size() / n / n;
    for (int d = 0; d < last; ++d)
        if (B.shape(d) != LD.shape(d) || pivots.shape(d) != LD.shape(d)) return not_implemented();
    InRows rows(LD), right(B), places(pivots);
    NewArray out = like(B);
    std::atomic<bool> regular{true};
    {
        Release release(LD.size() * m);
        parallel(count, 1 + 20000 / (n * n * m), [&](int64_t begin, int64_t end) {
            Borrowed memory(n * (n + m), sizeof(double));
            auto *a = static_cast<double*>(memory.start), *b = a + n * n;
            for (int64_t i = begin; i < end; ++i) {
                read(LD, rows.data<char>(), i * n * n, a, n * n);
                read(B, right.data<char>(), i * n * m, b, n * m);
                std::vector<int32_t> own(places.data<int32_t>() + i * n, places.data<int32_t>() + (i + 1) * n);
                if (!solve_by(a, n, own.data(), b, m)) return regular.store(false);
                write(out, i * n * m, b, n * m);
            }
        });
    }
    return regular ? give(out) : not_implemented();
}

// The order of n rows (int64) that exchanges (int32, from 1) give: row i was exchanged with row pivots[i] - 1 in step i.
nb::object lu_order(Array pivots, int64_t n) {
    if (!pivots.is<int32_t>() || !pivots.ndim() || !pivots.size() || n < pivots.shape(pivots.ndim() - 1))
        return not_implemented();
    const int last = pivots.ndim() - 1;
    const int64_t k = pivots.shape(last), count = pivots.size() / k;
    std::vector<npy_intp> shape(pivots.shape(), pivots.shape() + pivots.ndim());
    shape[size_t(last)] = n;
    InRows rows(pivots);
    NewArray out = new_array(pivots.ndim(), shape.data(), NPY_INT64);
    for (int64_t i = 0; i < count; ++i) {
        int64_t* order = out.data<int64_t>() + i * n;
        for (int64_t r = 0; r < n; ++r) order[r] = r;
        for (int64_t r = 0; r < k; ++r) {
            const int64_t p = int64_t(rows.data<int32_t>()[i * k + r]) - 1;
            if (p < 0 || p >= n) return not_implemented();
            std::swap(order[r], order[p]);
        }
    }
    return give(out);
}

}  // namespace

FW_BIND(m) {
    m.def("ldl_factor", &ldl_factor, nb::arg("A"), nb::arg("hermitian"));
    m.def("ldl_solve", &ldl_solve, nb::arg("LD"), nb::arg("pivots"), nb::arg("B"), nb::arg("hermitian"));
    m.def("lu_order", &lu_order, nb::arg("pivots"), nb::arg("n"));
}

}  // namespace fw::symmetric
