// Linear algebra of many small matrices: elimination with row exchanges and what follows from it, and Cholesky's
// factors, in double precision whatever comes. Larger ones, and those without a solution, are left to LAPACK.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/pool.h"
#include "base/simd.h"
#include "bind/array.h"

namespace fw::small {
namespace {

constexpr int64_t MOST = 32;

// a[j] -= f * b[j]
FW_INLINE void subtract(double* a, const double* b, double f, int64_t n) {
    int64_t j = 0;
    for (; j + lanes<double> <= n; j += lanes<double>)
        store(a + j, load(a + j) - splat(f) * load(b + j));
    for (; j < n; ++j) a[j] -= f * b[j];
}

// An n x n matrix becomes L (below the diagonal) and U; row i was exchanged with row exchanged[i] in step i. False where
// a pivot is 0.
bool eliminate(double* a, int64_t n, int64_t* exchanged) {
    bool regular = true;
    for (int64_t i = 0; i < n; ++i) {
        int64_t p = i;
        for (int64_t r = i + 1; r < n; ++r)
            if (std::fabs(a[r * n + i]) > std::fabs(a[p * n + i])) p = r;
        exchanged[i] = p;
        if (p != i) std::swap_ranges(a + i * n, a + (i + 1) * n, a + p * n);
        double top = a[i * n + i];
        if (top == 0) regular = false, top = 1;
        for (int64_t r = i + 1; r < n; ++r) {
            const double f = a[r * n + i] /= top;
            if (f != 0) subtract(a + r * n + i + 1, a + i * n + i + 1, f, n - i - 1);
        }
    }
    return regular;
}

// b (n x k) becomes the solution of the system eliminated in a.
void solve_by(const double* a, int64_t n, const int64_t* exchanged, double* b, int64_t k) {
    for (int64_t i = 0; i < n; ++i)
        if (exchanged[i] != i) std::swap_ranges(b + i * k, b + (i + 1) * k, b + exchanged[i] * k);
    for (int64_t i = 0; i < n; ++i)
        for (int64_t r = i + 1; r < n; ++r) subtract(b + r * k, b + i * k, a[r * n + i], k);
    for (int64_t i = n; i-- > 0;) {
        const double top = a[i * n + i];
        for (int64_t j = 0; j < k; ++j) b[i * k + j] /= top;
        for (int64_t r = 0; r < i; ++r) subtract(b + r * k, b + i * k, a[r * n + i], k);
    }
}

bool cholesky_of(double* a, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j) {
            double s = a[i * n + j];
            for (int64_t k = 0; k < j; ++k) s -= a[i * n + k] * a[j * n + k];
            if (j < i) {
                a[i * n + j] = s / a[j * n + j];
            } else {
                if (!(s > 0)) return false;
                a[i * n + i] = std::sqrt(s);
            }
        }
    for (int64_t i = 0; i < n; ++i) std::fill(a + i * n + i + 1, a + (i + 1) * n, 0.0);
    return true;
}

template <class T> void read(const T* from, double* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = double(from[i]);
}
template <class T> void write(const double* from, T* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = T(from[i]);
}

bool matrices(const Array& a, bool square) {
    if (!a.is_float() || a.ndim() < 2 || !a.size()) return false;
    const int64_t m = a.shape(a.ndim() - 2), n = a.shape(a.ndim() - 1);
    return m <= MOST && n <= MOST && (!square || m == n);
}

// Calls body(number of the matrix, its m * n numbers as doubles) with all threads.
template <class F> void each(const Array& a, const void* start, F&& body) {
    const int64_t m = a.shape(a.ndim() - 2), n = a.shape(a.ndim() - 1), count = a.size() / (m * n);
    parallel(count, 1 + 20000 / (m * n * std::max(m, n)), [&](int64_t begin, int64_t end) {
        double own[MOST * MOST];
        for (int64_t i = begin; i < end; ++i) {
            if (a.is<float>()) read(static_cast<const float*>(start) + i * m * n, own, m * n);
            else read(static_cast<const double*>(start) + i * m * n, own, m * n);
            body(i, own);
        }
    });
}

void put(const NewArray& out, int64_t i, const double* from, int64_t n) {
    if (out.is<float>()) write(from, out.data<float>() + i * n, n);
    else write(from, out.data<double>() + i * n, n);
}

nb::object inv(Array A) {
    if (!matrices(A, true)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1);
    InRows rows(A);
    NewArray out = new_array(A.ndim(), A.shape(), A.type());
    std::atomic<bool> regular{true};
    {
        Release release(A.size() * 64);
        each(A, rows.data<char>(), [&](int64_t i, double* a) {
            int64_t exchanged[MOST];
            double b[MOST * MOST] = {};
            if (!eliminate(a, n, exchanged)) return regular.store(false);
            for (int64_t k = 0; k < n; ++k) b[k * n + k] = 1;
            solve_by(a, n, exchanged, b, n);
            put(out, i, b, n * n);
        });
    }
    return regular ? give(out) : not_implemented();
}

nb::object solve(Array A, Array B) {
    if (!matrices(A, true) || !matrices(B, false) || A.type() != B.type() || A.ndim() != B.ndim()) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), k = B.shape(B.ndim() - 1);
    if (B.shape(B.ndim() - 2) != n || !std::equal(A.shape(), A.shape() + A.ndim() - 2, B.shape())) return not_implemented();
    InRows rows(A), right(B);
    NewArray out = new_array(B.ndim(), B.shape(), B.type());
    std::atomic<bool> regular{true};
    {
        Release release(A.size() * 64);
        each(A, rows.data<char>(), [&](int64_t i, double* a) {
            int64_t exchanged[MOST];
            double b[MOST * MOST];
            if (!eliminate(a, n, exchanged)) return regular.store(false);
            if (B.is<float>()) read(right.data<float>() + i * n * k, b, n * k);
            else read(right.data<double>() + i * n * k, b, n * k);
            solve_by(a, n, exchanged, b, k);
            put(out, i, b, n * k);
        });
    }
    return regular ? give(out) : not_implemented();
}

// The product of the pivots with its sign; or the sign, and the logarithm of the absolute value.
struct PivotProduct {
    double value = 1, sign = 1, log = 0;
    PivotProduct(const double* a, int64_t n, const int64_t* exchanged) {
        for (int64_t i = 0; i < n; ++i) {
            const double top = a[i * n + i];
            if (exchanged[i] != i) value = -value, sign = -sign;
            value *= top;
            sign *= top > 0 ? 1 : top < 0 ? -1 : top;
            log += std::log(std::fabs(top));
        }
    }
};

template <class F> void products(const Array& A, F&& body) {
    const int64_t n = A.shape(A.ndim() - 1);
    InRows rows(A);
    Release release(A.size() * 32);
    each(A, rows.data<char>(), [&](int64_t i, double* a) {
        int64_t exchanged[MOST];
        eliminate(a, n, exchanged);
        body(i, PivotProduct(a, n, exchanged));
    });
}

nb::object det(Array A) {
    if (!matrices(A, true)) return not_implemented();
    NewArray out = new_array(A.ndim() - 2, A.shape(), A.type());
    products(A, [&](int64_t i, const PivotProduct& p) { put(out, i, &p.value, 1); });
    return give(out);
}

nb::object slogdet(Array A) {
    if (!matrices(A, true)) return not_implemented();
    NewArray log = new_array(A.ndim() - 2, A.shape(), A.type()), sign = new_array(A.ndim() - 2, A.shape(), A.type());
    products(A, [&](int64_t i, const PivotProduct& p) {
        put(log, i, &p.log, 1);
        put(sign, i, &p.sign, 1);
    });
    return nb::make_tuple(give(log), give(sign));
}

nb::object cholesky(Array A) {
    if (!matrices(A, true)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1);
    InRows rows(A);
    NewArray out = new_array(A.ndim(), A.shape(), A.type());
    std::atomic<bool> positive{true};
    {
        Release release(A.size() * 32);
        each(A, rows.data<char>(), [&](int64_t i, double* a) {
            if (cholesky_of(a, n)) put(out, i, a, n * n);
            else positive.store(false);
        });
    }
    return positive ? give(out) : not_implemented();
}

FW_BIND(m) {
    m.def("small_inv", &inv, nb::arg("A"));
    m.def("small_solve", &solve, nb::arg("A"), nb::arg("B"));
    m.def("small_det", &det, nb::arg("A"));
    m.def("small_slogdet", &slogdet, nb::arg("A"));
    m.def("small_cholesky", &cholesky, nb::arg("A"));
}

}  // namespace
}  // namespace fw::small
