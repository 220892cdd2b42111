#include "factor/small_systems.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/pool.h"
#include "factor/small_beside.h"

namespace fw::small {
namespace {

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

template <class T> void read(const T* from, double* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = double(from[i]);
}
template <class T> void write(const double* from, T* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = T(from[i]);
}

// Calls body(number of the matrix, its n * n numbers as doubles) with all threads.
template <class T, class F> void each(const T* start, int64_t count, int64_t n, F&& body) {
    parallel(count, 1 + 20000 / (n * n * n), [&](int64_t begin, int64_t end) {
        alignas(64) double own[MOST * MOST];
        for (int64_t i = begin; i < end; ++i) {
            read(start + i * n * n, own, n * n);
            body(i, own);
        }
    });
}

// -- matrices beside each other, of n <= NARROW rows -------------------------------------------------

// a becomes U, and b (n x k) what `solve_by` has then of it; sign: turned with each exchange of rows. The lanes where a pivot is 0.
Mask<double> eliminate_beside(V* a, int64_t n, V* b, int64_t k, V& sign) {
    Mask<double> singular{};
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t r = i + 1; r < n; ++r) {
            const auto larger = abs<double>(a[r * n + i]) > abs<double>(a[i * n + i]);
            for (int64_t j = i; j < n; ++j) exchange(a[i * n + j], a[r * n + j], larger);
            for (int64_t j = 0; j < k; ++j) exchange(b[i * k + j], b[r * k + j], larger);
            sign = larger ? -sign : sign;
        }
        const auto none = a[i * n + i] == 0.0;
        const V top = none ? V{} + 1.0 : a[i * n + i];
        singular |= none;
        for (int64_t r = i + 1; r < n; ++r) {
            const V f = a[r * n + i] / top;
            for (int64_t j = i + 1; j < n; ++j) a[r * n + j] -= f * a[i * n + j];
            for (int64_t j = 0; j < k; ++j) b[r * k + j] -= f * b[i * k + j];
        }
    }
    return singular;
}

// b (n x k) becomes the solution; the lanes where there is none.
Mask<double> solve_beside(V* a, int64_t n, V* b, int64_t k) {
    V sign{};
    const Mask<double> singular = eliminate_beside(a, n, b, k, sign);
    for (int64_t i = n; i-- > 0;)
        for (int64_t j = 0; j < k; ++j) {
            b[i * k + j] /= a[i * n + i];
            for (int64_t r = 0; r < i; ++r) b[r * k + j] -= a[r * n + i] * b[i * k + j];
        }
    return singular;
}

// The lanes where a is not positive.
Mask<double> cholesky_beside(V* a, int64_t n) {
    Mask<double> wrong{};
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
            if (j > i) {
                a[i * n + j] = V{};
                continue;
            }
            V s = a[i * n + j];
            for (int64_t k = 0; k < j; ++k) s -= a[i * n + k] * a[j * n + k];
            wrong |= j == i ? ~(s > 0.0) : Mask<double>{};
            a[i * n + j] = j == i ? fw::sqrt(s) : s / a[j * n + j];
        }
    return wrong;
}

// Calls body(number of the first matrix, a vector's lanes of them) with all threads.
template <class T, class F> void each_beside(const T* start, int64_t count, int64_t n, F&& body) {
    constexpr int64_t L = lanes<double>;
    parallel((count + L - 1) / L, 1 + 2000 / (n * n * n), [&](int64_t begin, int64_t end) {
        V a[NARROW * NARROW];
        for (int64_t u = begin; u < end; ++u) {
            read_beside(start, n * n, count, u * L, a);
            body(u * L, a);
        }
    });
}

// The pivots and the sign of the determinant: of one matrix after the other, or of several beside each other.
template <class T, class One, class Some> void products(const T* start, int64_t count, int64_t n, One&& one, Some&& some) {
    if (n <= NARROW)
        return each_beside(start, count, n, [&](int64_t first, V* a) {
            V sign = V{} + 1.0;
            eliminate_beside(a, n, nullptr, 0, sign);
            some(first, a, sign);
        });
    each(start, count, n, [&](int64_t i, double* a) {
        int64_t exchanged[MOST];
        eliminate(a, n, exchanged);
        one(i, PivotProduct(a, n, exchanged));
    });
}

}  // namespace

template <class T> bool inverses(const T* start, int64_t count, int64_t n, T* out) {
    std::atomic<bool> regular{true};
    if (n <= NARROW) {
        each_beside(start, count, n, [&](int64_t first, V* a) {
            V b[NARROW * NARROW];
            for (int64_t i = 0; i < n; ++i)
                for (int64_t k = 0; k < n; ++k) b[i * n + k] = V{} + double(i == k);
            if (math::any(solve_beside(a, n, b, n))) return regular.store(false);
            write_beside(b, n * n, count, first, out);
        });
        return regular;
    }
    each(start, count, n, [&](int64_t i, double* a) {
        int64_t exchanged[MOST];
        alignas(64) double b[MOST * MOST] = {};
        if (!eliminate(a, n, exchanged)) return regular.store(false);
        for (int64_t k = 0; k < n; ++k) b[k * n + k] = 1;
        solve_by(a, n, exchanged, b, n);
        write(b, out + i * n * n, n * n);
    });
    return regular;
}

template <class T> bool solutions(const T* start, const T* right, int64_t count, int64_t n, int64_t k, T* x) {
    std::atomic<bool> regular{true};
    if (n <= NARROW && k <= NARROW) {
        each_beside(start, count, n, [&](int64_t first, V* a) {
            V b[NARROW * NARROW];
            read_beside(right, n * k, count, first, b);
            if (math::any(solve_beside(a, n, b, k))) return regular.store(false);
            write_beside(b, n * k, count, first, x);
        });
        return regular;
    }
    each(start, count, n, [&](int64_t i, double* a) {
        int64_t exchanged[MOST];
        alignas(64) double b[MOST * MOST];
        if (!eliminate(a, n, exchanged)) return regular.store(false);
        read(right + i * n * k, b, n * k);
        solve_by(a, n, exchanged, b, k);
        write(b, x + i * n * k, n * k);
    });
    return regular;
}

template <class T> void determinants(const T* start, int64_t count, int64_t n, T* out) {
    products(start, count, n, [&](int64_t i, const PivotProduct& p) { out[i] = T(p.value); },
             [&](int64_t first, const V* a, V value) {
                 for (int64_t i = 0; i < n; ++i) value *= a[i * n + i];
                 write_beside(&value, 1, count, first, out);
             });
}

template <class T> void log_determinants(const T* start, int64_t count, int64_t n, T* log, T* sign) {
    products(start, count, n, [&](int64_t i, const PivotProduct& p) { log[i] = T(p.log), sign[i] = T(p.sign); },
             [&](int64_t first, const V* a, V turned) {
                 V total{};
                 for (int64_t i = 0; i < n; ++i) {
                     const V top = a[i * n + i];
                     turned *= top > 0.0 ? V{} + 1.0 : top < 0.0 ? V{} - 1.0 : top;
                     total += math::log<V>(abs<double>(top));
                 }
                 write_beside(&total, 1, count, first, log), write_beside(&turned, 1, count, first, sign);
             });
}

template <class T> bool cholesky_factors(const T* start, int64_t count, int64_t n, T* out) {
    std::atomic<bool> positive{true};
    if (n <= NARROW) {
        each_beside(start, count, n, [&](int64_t first, V* a) {
            if (math::any(cholesky_beside(a, n))) positive.store(false);
            else write_beside(a, n * n, count, first, out);
        });
        return positive;
    }
    each(start, count, n, [&](int64_t i, double* a) {
        if (cholesky_of(a, n)) write(a, out + i * n * n, n * n);
        else positive.store(false);
    });
    return positive;
}

template bool inverses(const float*, int64_t, int64_t, float*);
template bool solutions(const float*, const float*, int64_t, int64_t, int64_t, float*);
template void determinants(const float*, int64_t, int64_t, float*);
template void log_determinants(const float*, int64_t, int64_t, float*, float*);
template bool cholesky_factors(const float*, int64_t, int64_t, float*);
template bool inverses(const double*, int64_t, int64_t, double*);
template bool solutions(const double*, const double*, int64_t, int64_t, int64_t, double*);
template void determinants(const double*, int64_t, int64_t, double*);
template void log_determinants(const double*, int64_t, int64_t, double*, double*);
template bool cholesky_factors(const double*, int64_t, int64_t, double*);

}  // namespace fw::small
