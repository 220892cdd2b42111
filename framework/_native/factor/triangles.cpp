#include "factor/triangles.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/pool.h"
#include "base/scratch.h"
#include "base/vecmath_core.h"
#include "gemm/gemm.h"

namespace fw::triangles {
namespace {

constexpr int64_t BLOCK = 32;

// a[j] -= f * b[j]
template <class T> FW_INLINE void subtract(T* a, const T* b, T f, int64_t n) {
    int64_t j = 0;
    for (; j + lanes<T> <= n; j += lanes<T>) store(a + j, load(a + j) - splat(f) * load(b + j));
    if (n - j > 1 && FW_BYTES > 16)
        store_part(a + j, load_part(a + j, n - j) - splat(f) * load_part(b + j, n - j), n - j);
    else
        for (; j < n; ++j) a[j] -= f * b[j];
}

// c (m x n) -= a (m x k) b (k x n); room holds m * k numbers.
template <class T>
void subtract_product(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_row, T* c,
                      int64_t c_row, T* room) {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t p = 0; p < k; ++p) room[i * k + p] = -a[i * a_row + p];
    Gemm<T> product{m, n, k, room, k, 1, b, b_row, 1, c, c_row};
    product.add = true;
    gemm(product);
}

// An m x n matrix becomes L (below the diagonal) and U; row i was exchanged with row exchanged[i] in step i. A pivot of 0
// divides as 1 does.
template <class T> void eliminate(T* a, int64_t m, int64_t n, int64_t* exchanged, bool pivot, T* room) {
    const int64_t steps = std::min(m, n);
    for (int64_t first = 0; first < steps; first += BLOCK) {
        const int64_t end = std::min(first + BLOCK, steps);
        for (int64_t i = first; i < end; ++i) {
            int64_t p = i;
            for (int64_t r = i + 1; pivot && r < m; ++r)
                if (std::fabs(a[r * n + i]) > std::fabs(a[p * n + i])) p = r;
            exchanged[i] = p;
            if (p != i) std::swap_ranges(a + i * n, a + (i + 1) * n, a + p * n);
            const T top = a[i * n + i] == 0 ? T(1) : a[i * n + i];
            for (int64_t r = i + 1; r < m; ++r) {
                const T f = a[r * n + i] /= top;
                if (f != 0) subtract(a + r * n + i + 1, a + i * n + i + 1, f, end - i - 1);
            }
        }
        if (end == n) continue;
        for (int64_t i = first; i < end; ++i)
            for (int64_t r = i + 1; r < end; ++r) subtract(a + r * n + end, a + i * n + end, a[r * n + i], n - end);
        if (end < m)
            subtract_product(m - end, n - end, end - first, a + end * n + first, n, a + first * n + end, n,
                             a + end * n + end, n, room);
    }
}

// b (n x k) becomes the solution of a x = b for the triangle of a; whether it has one.
template <class T> bool solve(const T* a, int64_t n, T* b, int64_t k, bool upper, bool unit, T* room) {
    for (int64_t i = 0; i < n && !unit; ++i)
        if (a[i * n + i] == 0) return false;
    const int64_t blocks = (n + BLOCK - 1) / BLOCK;
    for (int64_t s = 0; s < blocks; ++s) {
        const int64_t first = (upper ? blocks - 1 - s : s) * BLOCK, end = std::min(first + BLOCK, n);
        for (int64_t t = first; t < end; ++t) {
            const int64_t i = upper ? end - 1 - (t - first) : t;
            const T top = a[i * n + i];
            for (int64_t j = 0; j < k && !unit; ++j) b[i * k + j] /= top;
            for (int64_t r = upper ? first : i + 1; r < (upper ? i : end); ++r)
                subtract(b + r * k, b + i * k, a[r * n + i], k);
        }
        const int64_t from = upper ? 0 : end, rest = upper ? first : n - end;
        if (rest)
            subtract_product(rest, k, end - first, a + from * n + first, n, b + first * k, k, b + from * k, k, room);
    }
    return true;
}

// Some matrices of N x K numbers beside each other, one in each lane, and back.
template <class T, int N, int K = N> struct Beside {
    static constexpr int64_t L = lanes<T>;
    Vec<T> at[N][K];

    void read(const T* from, int64_t apart, int64_t row = K) {
        alignas(64) T room[L];
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < K; ++j) {
                for (int64_t l = 0; l < L; ++l) room[l] = from[l * apart + i * row + j];
                at[i][j] = load(room);
            }
    }
    void write(T* to, int64_t apart, int64_t row = K) const {
        alignas(64) T room[L];
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < K; ++j) {
                store(room, at[i][j]);
                for (int64_t l = 0; l < L; ++l) to[l * apart + i * row + j] = room[l];
            }
    }
};

// The factors of a vector of matrices of N rows, one in each lane.
template <class T, int N> void eliminate_beside(const T* from, bool pivot, T* packed, int32_t* pivots, int64_t* order) {
    constexpr int64_t L = lanes<T>;
    Beside<T, N> a;
    a.read(from, N * N);
    Mask<T> of[N], exchanged[N];
    for (int i = 0; i < N; ++i) of[i] = splat<Int<T>>(i);
    for (int i = 0; i < N; ++i) {
        Vec<T> most = abs<T>(a.at[i][i]);
        exchanged[i] = splat<Int<T>>(i);
        for (int r = i + 1; pivot && r < N; ++r) {
            const Vec<T> size = abs<T>(a.at[r][i]);
            exchanged[i] = size > most ? splat<Int<T>>(r) : exchanged[i];
            most = size > most ? size : most;
        }
        for (int r = i + 1; pivot && r < N; ++r) {
            const Mask<T> here = exchanged[i] == splat<Int<T>>(r), place = of[i];
            of[i] = here ? of[r] : of[i], of[r] = here ? place : of[r];
            for (int c = 0; c < N; ++c) {
                const Vec<T> x = a.at[i][c];
                a.at[i][c] = here ? a.at[r][c] : x, a.at[r][c] = here ? x : a.at[r][c];
            }
        }
        const Vec<T> top = a.at[i][i] == Vec<T>{} ? splat<T>(1) : a.at[i][i];
        for (int r = i + 1; r < N; ++r) {
            const Vec<T> f = a.at[r][i] /= top;
            for (int c = i + 1; c < N; ++c) a.at[r][c] = f != Vec<T>{} ? a.at[r][c] - f * a.at[i][c] : a.at[r][c];
        }
    }
    a.write(packed, N * N);
    Int<T> room[L];
    for (int i = 0; i < N; ++i) {
        std::memcpy(room, &exchanged[i], sizeof room);
        for (int64_t l = 0; l < L; ++l) pivots[l * N + i] = int32_t(room[l] + 1);
        std::memcpy(room, &of[i], sizeof room);
        for (int64_t l = 0; l < L; ++l) order[l * N + i] = room[l];
    }
}

// The last ones, which do not fill a vector, by arrays of as many.
template <class T, int N> void factors_of_few(const T* from, int64_t count, bool pivot, T* packed, int32_t* pivots, int64_t* order) {
    constexpr int64_t L = lanes<T>;
    parallel((count + L - 1) / L, 1 + 20000 / (N * N * N * L), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin * L; u < end * L; u += L) {
            if (u + L <= count) {
                eliminate_beside<T, N>(from + u * N * N, pivot, packed + u * N * N, pivots + u * N, order + u * N);
                continue;
            }
            const int64_t rest = count - u;
            T a[L * N * N] = {}, made[L * N * N];
            int32_t exchanges[L * N];
            int64_t orders[L * N];
            std::copy_n(from + u * N * N, rest * N * N, a);
            eliminate_beside<T, N>(a, pivot, made, exchanges, orders);
            std::copy_n(made, rest * N * N, packed + u * N * N);
            std::copy_n(exchanges, rest * N, pivots + u * N), std::copy_n(orders, rest * N, order + u * N);
        }
    });
}

// Columns of x become the solutions; whether all have one.
template <class T, int N> bool solve_beside(const T* from, T* b, int64_t k, bool upper, bool unit) {
    Beside<T, N> a;
    a.read(from, N * N);
    bool regular = true;
    for (int i = 0; i < N && !unit; ++i) regular &= !math::any(a.at[i][i] == Vec<T>{});
    if (!regular) return false;
    for (int64_t j = 0; j < k; ++j) {
        Beside<T, N, 1> x;
        x.read(b + j, N * k, k);
        for (int s = 0; s < N; ++s) {
            const int i = upper ? N - 1 - s : s;
            if (!unit) x.at[i][0] /= a.at[i][i];
            for (int r = upper ? 0 : i + 1; r < (upper ? i : N); ++r) x.at[r][0] -= a.at[r][i] * x.at[i][0];
        }
        x.write(b + j, N * k, k);
    }
    return true;
}

template <class T, int N> bool solutions_of_few(const T* a, int64_t count, int64_t k, bool upper, bool unit, T* x) {
    constexpr int64_t L = lanes<T>;
    std::atomic<bool> regular{true};
    parallel((count + L - 1) / L, 1 + 20000 / (N * N * std::max<int64_t>(k, 1) * L), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin * L; u < end * L; u += L) {
            bool good;
            if (u + L <= count) {
                good = solve_beside<T, N>(a + u * N * N, x + u * N * k, k, upper, unit);
            } else {
                const int64_t rest = count - u;
                T some[L * N * N];
                std::fill_n(some, L * N * N, T(1));
                std::copy_n(a + u * N * N, rest * N * N, some);
                T* right = scratch<T>(0, L * N * k);
                std::fill(std::copy_n(x + u * N * k, rest * N * k, right), right + L * N * k, T(0));
                good = solve_beside<T, N>(some, right, k, upper, unit);
                std::copy_n(right, rest * N * k, x + u * N * k);
            }
            if (!good) regular.store(false);
        }
    });
    return regular;
}

// Calls body(number of the matrix, room for BLOCK columns): small matrices on all threads, others by products that are.
template <class T, class F> void each(int64_t count, int64_t m, int64_t n, F&& body) {
    const auto some = [&](int64_t begin, int64_t end) {
        std::vector<T> room(size_t(std::max(m, n) > BLOCK ? std::max(m, n) * BLOCK : 0));
        for (int64_t i = begin; i < end; ++i) body(i, room.data());
    };
    if (std::max(m, n) > BLOCK) return some(0, count);
    parallel(count, 1 + 20000 / (m * n * std::max(m, n)), some);
}

}  // namespace

template <class T>
void lu_factors(const T* from, int64_t count, int64_t m, int64_t n, bool pivot, T* packed, int32_t* pivots, int64_t* order) {
    const int64_t k = std::min(m, n);
    if (m == n && count > 1) {
        if (n == 2) return factors_of_few<T, 2>(from, count, pivot, packed, pivots, order);
        if (n == 3) return factors_of_few<T, 3>(from, count, pivot, packed, pivots, order);
        if (n == 4) return factors_of_few<T, 4>(from, count, pivot, packed, pivots, order);
    }
    each<T>(count, m, n, [&](int64_t i, T* room) {
        T* a = std::copy(from + i * m * n, from + (i + 1) * m * n, packed + i * m * n) - m * n;
        int64_t* exchanged = scratch<int64_t>(0, k);
        eliminate(a, m, n, exchanged, pivot, room);
        int64_t* of = order + i * m;
        for (int64_t r = 0; r < m; ++r) of[r] = r;
        for (int64_t r = 0; r < k; ++r) {
            pivots[i * k + r] = int32_t(exchanged[r] + 1);
            std::swap(of[r], of[exchanged[r]]);
        }
    });
}

template <class T>
bool solve_triangles(const T* a, const T* b, int64_t count, int64_t n, int64_t k, bool upper, bool unit, T* out) {
    std::copy_n(b, count * n * k, out);
    if (count > 1) {
        if (n == 2) return solutions_of_few<T, 2>(a, count, k, upper, unit, out);
        if (n == 3) return solutions_of_few<T, 3>(a, count, k, upper, unit, out);
        if (n == 4) return solutions_of_few<T, 4>(a, count, k, upper, unit, out);
    }
    std::atomic<bool> regular{true};
    each<T>(count, n, std::min(n, k), [&](int64_t i, T* room) {
        if (!solve(a + i * n * n, n, out + i * n * k, k, upper, unit, room)) regular.store(false);
    });
    return regular;
}

template <class T>
void lu_parts(const T* packed, const int64_t* order, int64_t count, int64_t m, int64_t n, T* P, T* L, T* U) {
    const int64_t k = std::min(m, n);
    parallel(count, 1 + 16384 / (m * std::max(m, n)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const T* a = packed + i * m * n;
            T *lower = L + i * m * k, *upper = U + i * k * n;
            for (int64_t r = 0; r < m; ++r)
                for (int64_t c = 0; c < k; ++c) lower[r * k + c] = c < r ? a[r * n + c] : T(c == r);
            for (int64_t r = 0; r < k; ++r)
                for (int64_t c = 0; c < n; ++c) upper[r * n + c] = c < r ? T(0) : a[r * n + c];
            if (!order) continue;
            T* exchanges = P + i * m * m;
            std::fill(exchanges, exchanges + m * m, T(0));
            for (int64_t c = 0; c < m; ++c) {
                const int64_t r = order[i * m + c];
                if (r >= 0 && r < m) exchanges[r * m + c] = 1;
            }
        }
    });
}

template <class T> void zero_pivots(const T* packed, int64_t count, int64_t m, int64_t n, int32_t* places) {
    const int64_t k = std::min(m, n);
    for (int64_t i = 0; i < count; ++i) {
        const T* a = packed + i * m * n;
        int64_t at = 0;
        while (at < k && a[at * n + at] != 0) ++at;
        places[i] = at < k ? int32_t(at + 1) : 0;
    }
}

template void lu_parts(const float*, const int64_t*, int64_t, int64_t, int64_t, float*, float*, float*);
template void lu_parts(const int64_t*, const int64_t*, int64_t, int64_t, int64_t, int64_t*, int64_t*, int64_t*);
template void lu_parts(const double*, const int64_t*, int64_t, int64_t, int64_t, double*, double*, double*);
template void zero_pivots(const float*, int64_t, int64_t, int64_t, int32_t*);
template void zero_pivots(const double*, int64_t, int64_t, int64_t, int32_t*);
template void lu_factors(const float*, int64_t, int64_t, int64_t, bool, float*, int32_t*, int64_t*);
template void lu_factors(const double*, int64_t, int64_t, int64_t, bool, double*, int32_t*, int64_t*);
template bool solve_triangles(const float*, const float*, int64_t, int64_t, int64_t, bool, bool, float*);
template bool solve_triangles(const double*, const double*, int64_t, int64_t, int64_t, bool, bool, double*);

}  // namespace fw::triangles
