#include "gemm/sparse.h"

#include <atomic>

#include "base/pool.h"
#include "base/simd.h"

namespace fw::sparse {
namespace {

constexpr int64_t GRAIN = 16384;  // multiplications of one piece at least
constexpr int AHEAD = 6;          // places whose dense rows are asked for before they are needed

template <class I> int64_t grain_of(const SparsePlaces<I>& p, int64_t width) {
    int64_t each = std::max<int64_t>(p.count / std::max<int64_t>(p.m, 1), 1) * std::max<int64_t>(width, 1);
    return std::max<int64_t>(GRAIN / each, 1);
}

// to[j] = the sum over the places of a row of value * dense[column, j], for V vectors from column j on
template <int V, class T, class I>
FW_INLINE bool stretch(const SparsePlaces<I>& p, const T* values, const T* dense, int64_t width, int64_t first, int64_t last,
                       int64_t j, T* to) {
    constexpr int L = lanes<T>;
    Vec<T> sum[V];
    for (int v = 0; v < V; ++v) sum[v] = splat(T(0));
    for (int64_t e = first; e < last; ++e) {
        int64_t c;
        if (!p.column(e, c)) return false;
        if (e + AHEAD < last) __builtin_prefetch(dense + int64_t(p.columns[e + AHEAD]) * width + j);
        const T* row = dense + c * width + j;
        Vec<T> value = splat(values[e]);
        for (int v = 0; v < V; ++v) sum[v] = fma<T>(value, load(row + v * L), sum[v]);
    }
    for (int v = 0; v < V; ++v) store(to + j + v * L, sum[v]);
    return true;
}

template <class T> FW_INLINE T dot(const T* x, const T* y, int64_t n) {
    constexpr int L = lanes<T>;
    Vec<T> a = splat(T(0)), b = a;
    int64_t j = 0;
    for (; j + 2 * L <= n; j += 2 * L) {
        a = fma<T>(load(x + j), load(y + j), a);
        b = fma<T>(load(x + j + L), load(y + j + L), b);
    }
    a += b;
    if (j + L <= n) a = fma<T>(load(x + j), load(y + j), a), j += L;
    T sum = sum_lanes<T>(a);
    for (; j < n; ++j) sum += x[j] * y[j];
    return sum;
}

}  // namespace

template <class T, class I>
bool spmm_rows(const SparsePlaces<I>& p, const T* values, const T* dense, int64_t width, T* out) {
    std::atomic<bool> good{true};
    constexpr int L = lanes<T>;
    parallel(p.m, grain_of(p, width), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            int64_t first, last, j = 0, c;
            T* to = out + r * width;
            bool fine = p.row(r, first, last);
            for (; fine && j + 4 * L <= width; j += 4 * L)
                fine = stretch<4>(p, values, dense, width, first, last, j, to);
            for (; fine && j + L <= width; j += L) fine = stretch<1>(p, values, dense, width, first, last, j, to);
            for (; fine && j < width; ++j) {
                T sum = 0;
                for (int64_t e = first; e < last && fine; ++e)
                    if ((fine = p.column(e, c))) sum += values[e] * dense[c * width + j];
                to[j] = sum;
            }
            if (!fine) {
                good = false;
                return;
            }
        }
    });
    return good;
}

template <class T, class I>
bool sddmm_rows(const SparsePlaces<I>& p, const T* x, const T* y, int64_t width, T* out) {
    std::atomic<bool> good{true};
    parallel(p.m, grain_of(p, width), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            int64_t first, last, c;
            bool fine = p.row(r, first, last);
            for (int64_t e = first; fine && e < last; ++e) {
                if (!(fine = p.column(e, c))) break;
                if (e + AHEAD < last) __builtin_prefetch(y + int64_t(p.columns[e + AHEAD]) * width);
                out[e] = dot(x + r * width, y + c * width, width);
            }
            if (!fine) {
                good = false;
                return;
            }
        }
    });
    return good;
}

template bool spmm_rows(const SparsePlaces<int32_t>&, const float*, const float*, int64_t, float*);
template bool spmm_rows(const SparsePlaces<int64_t>&, const float*, const float*, int64_t, float*);
template bool spmm_rows(const SparsePlaces<int32_t>&, const double*, const double*, int64_t, double*);
template bool spmm_rows(const SparsePlaces<int64_t>&, const double*, const double*, int64_t, double*);
template bool sddmm_rows(const SparsePlaces<int32_t>&, const float*, const float*, int64_t, float*);
template bool sddmm_rows(const SparsePlaces<int64_t>&, const float*, const float*, int64_t, float*);
template bool sddmm_rows(const SparsePlaces<int32_t>&, const double*, const double*, int64_t, double*);
template bool sddmm_rows(const SparsePlaces<int64_t>&, const double*, const double*, int64_t, double*);

}  // namespace fw::sparse
