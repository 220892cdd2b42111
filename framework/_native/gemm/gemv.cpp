#include "gemm/gemv.h"

#include <algorithm>

#include "base/pool.h"
#include "base/scratch.h"
#include "base/short_rows.h"

namespace fw {
namespace {

constexpr int64_t GRAIN = 64 * 1024;  // numbers of a matrix that are worth a thread
constexpr int64_t RUN = 4096;         // numbers of y that stay in the level 1 cache
// For so few rows, of so many steps, summing up is cheaper than packing; they stay in the level 2 cache.
constexpr int64_t MOST = 64, STEPS_PER_ROW = 20, NEAR = 1 << 17;
constexpr int64_t CHAIN = 64;  // vectors summed up one after the other: the error grows with their number
#if defined(FW_AVX512) || defined(__aarch64__)
constexpr int dot_rows = 4;
#else
constexpr int dot_rows = 2;
#endif

template <class T> FW_INLINE void put(T* y, T v, bool add) { *y = add ? *y + v : v; }

// -- operands whose steps lie side by side: inner products -----------------------------------------

// c[i * c_row + j * c_col] = the inner product of row i of A and row j of B, for i < R and j < cols <= S.
template <class T> struct Dots {
    int64_t k;
    const T* a;
    int64_t a_row;
    const T* b;
    int64_t b_row;
    int cols;
    T* c;
    int64_t c_row, c_col;
    bool add;
};

// The sum of the lanes of each vector.
template <class T, int COUNT> FW_INLINE void store_sums(Vec<T>* v, T* to) {
    constexpr int n = lanes<T>;
    if constexpr (COUNT > n) {
        store(to, group_sums<T, n>(v));
        store_sums<T, COUNT - n>(v + n, to + n);
    } else {
        store(to, group_sums<T, COUNT>(v));
    }
}

template <class T, int R, int S> void dots(const Dots<T>& d) {
    constexpr int n = lanes<T>, count = R * S;
    Vec<T> sum[count], whole[count];
    const T* b[S];
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) sum[i] = whole[i] = Vec<T>{};
    for (int j = 0; j < S; ++j) b[j] = d.b + std::min(j, d.cols - 1) * d.b_row;
    auto step = [&](int64_t p, auto&& read) __attribute__((always_inline)) {
        Vec<T> va[R];
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) va[i] = read(d.a + i * d.a_row + p);
#pragma GCC unroll 8
        for (int j = 0; j < S; ++j) {
            Vec<T> vb = read(b[j] + p);
#pragma GCC unroll 8
            for (int i = 0; i < R; ++i) sum[i * S + j] = fma<T>(va[i], vb, sum[i * S + j]);
        }
    };
    int64_t p = 0;
    while (p + n <= d.k) {
        const int64_t end = std::min(p + CHAIN * n, d.k);
        for (; p + n <= end; p += n) step(p, [](const T* q) __attribute__((always_inline)) { return load(q); });
        if (end == d.k) break;
#pragma GCC unroll 16
        for (int i = 0; i < count; ++i) whole[i] += sum[i], sum[i] = Vec<T>{};
    }
    if (p < d.k) step(p, [&](const T* q) __attribute__((always_inline)) { return load_first(q, d.k - p); });
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) sum[i] += whole[i];
    T total[(count + n - 1) / n * n];
    store_sums<T, count>(sum, total);
    for (int i = 0; i < R; ++i)
        for (int j = 0; j < d.cols; ++j) put(d.c + i * d.c_row + j * d.c_col, total[i * S + j], d.add);
}

// Rows of B that are short, and one row of A.
template <class T, int W> void short_rows(const Dots<T>& d, int64_t many) {
    constexpr int n = lanes<T>;
    const ShortRows<T, W> whole{d.k};
    Vec<T> x{};
    for (int i = 0; i < n; ++i)
        if (i % W < d.k) x[i] = d.a[i % W];
    parallel(many, std::max<int64_t>(n, GRAIN / d.k / n * n), [&](int64_t begin, int64_t end) {
        alignas(64) T room[n * W];
        for (int64_t j = begin; j < end; j += n) {
            const int64_t left = std::min<int64_t>(n, end - j);
            const ShortRows<T, W> rows{left < n ? W : d.k};
            const int64_t row = left < n ? W : d.b_row;
            const T* b = d.b + j * d.b_row;
            if (left < n) whole.copy(b, d.b_row, left, T(0), room), b = room;
            Vec<T> v[W];
#pragma GCC unroll 16
            for (int i = 0; i < W; ++i) v[i] = fma<T>(x, rows.at(b + i * rows.together * row, T(0)), Vec<T>{});
            const Vec<T> made = group_sums<T, W, W / 2>(v);
            T* c = d.c + j * d.c_col;
            if (d.c_col == 1) {
                store_first(c, d.add ? load_first(c, left) + made : made, left);
            } else {
                for (int64_t i = 0; i < left; ++i) put(c + i * d.c_col, T(made[i]), d.add);
            }
        }
    });
}

// Few rows of A and many of B.
template <class T> void few_rows(Dots<T> d, int64_t few, int64_t many) {
    if (few == 1 && d.k <= lanes<T> && many >= lanes<T>)
        return with_short_rows<T>(d.k, d.b_row, [&](auto w) { short_rows<T, w>(d, many); });
    int64_t grain = std::max<int64_t>(8, GRAIN / (d.k * few) / 8 * 8);
    parallel(many, grain, [&](int64_t begin, int64_t end) {
        Dots<T> t = d;
        int wide = few == 1 ? 8 : 4;
        for (int64_t j = begin; j < end; j += wide) {
            t.b = d.b + j * d.b_row;
            t.cols = int(std::min<int64_t>(wide, end - j));
            for (int64_t i = 0; i < few;) {
                t.a = d.a + i * d.a_row;
                t.c = d.c + i * d.c_row + j * d.c_col;
                int64_t left = few - i;
                if (few == 1) {
                    dots<T, 1, 8>(t), i += 1;
                } else if (left == 1) {
                    dots<T, 1, 4>(t), i += 1;
                } else if (left == 2 || dot_rows == 2) {
                    dots<T, 2, 4>(t), i += 2;
                } else if (left == 3) {
                    dots<T, 3, 4>(t), i += 3;
                } else {
                    dots<T, 4, 4>(t), i += 4;
                }
            }
        }
    });
}

// -- one inner product ----------------------------------------------------------------------------

constexpr int chains = 8;

template <class T> T dot_part(const T* x, const T* y, int64_t k) {
    constexpr int n = lanes<T>;
    Vec<T> sum[chains] = {};
    int64_t p = 0;
    for (; p + chains * n <= k; p += chains * n)
#pragma GCC unroll 8
        for (int i = 0; i < chains; ++i) sum[i] = fma<T>(load(x + p + i * n), load(y + p + i * n), sum[i]);
    for (; p < k; p += n) {
        int64_t left = std::min<int64_t>(n, k - p);
        sum[p / n % chains] = fma<T>(load_first(x + p, left), load_first(y + p, left), sum[p / n % chains]);
    }
#pragma GCC unroll 3
    for (int w = chains / 2; w; w /= 2)
#pragma GCC unroll 4
        for (int i = 0; i < w; ++i) sum[i] += sum[i + w];
    return sum_lanes<T>(sum[0]);
}

template <class T> T dot(const T* x, const T* y, int64_t k) {
    constexpr int64_t piece = CHAIN * chains * lanes<T>;
    if (k <= piece) return dot_part(x, y, k);
    int64_t count = (k + piece - 1) / piece;
    T* parts = scratch<T>(2, count);
    parallel(count, GRAIN / piece, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            parts[i] = dot_part(x + i * piece, y + i * piece, std::min(piece, k - i * piece));
    });
    for (int64_t w = 1; w < count; w *= 2)
        for (int64_t i = 0; i + w < count; i += 2 * w) parts[i] += parts[i + w];
    return parts[0];
}

// Many inner products, `lanes` of them at a time: as `dot_part` adds each up.
template <class T, int W> void inner_products(const Gemm<T>& g, int64_t count, int64_t a_step, int64_t b_step, int64_t c_step) {
    constexpr int n = lanes<T>;
    auto chains_of = [k = g.k](const T* x, const T* y) __attribute__((always_inline)) {
        auto product = [=](int64_t p) __attribute__((always_inline)) {
            const int64_t some = std::min<int64_t>(n, k - p);
            return fma<T>(load_first(x + p, some), load_first(y + p, some), Vec<T>{});
        };
        if (k <= n) return product(0);
        Vec<T> sum[chains];
#pragma GCC unroll 8
        for (int i = 0; i < chains; ++i) sum[i] = i * n < k ? product(i * n) : Vec<T>{};
#pragma GCC unroll 3
        for (int w = chains / 2; w; w /= 2)
#pragma GCC unroll 4
            for (int i = 0; i < w; ++i) sum[i] += sum[i + w];
        return sum[0];
    };
    const ShortRows<T, W> whole{g.k};
    parallel(count, std::max<int64_t>(n, GRAIN / g.k / n * n), [&](int64_t begin, int64_t end) {
        alignas(64) T room[2][n * W];
        for (int64_t r = begin; r < end; r += n) {
            const int64_t left = std::min<int64_t>(n, end - r);
            const T *x = g.a + r * a_step, *y = g.b + r * b_step;
            const ShortRows<T, W> rows{left < n ? W : g.k};
            Vec<T> v[W];
            if (W < n && left < n) {
                whole.copy(x, a_step, left, T(0), room[0]), whole.copy(y, b_step, left, T(0), room[1]);
                x = room[0], y = room[1];
            }
            if constexpr (W == n) {
#pragma GCC unroll 1
                for (int64_t i = 0; i < n; ++i) {
                    const int64_t at = std::min<int64_t>(i, left - 1);
                    v[i] = chains_of(x + at * a_step, y + at * b_step);
                }
            } else {
#pragma GCC unroll 8
                for (int i = 0; i < W; ++i) {
                    const int64_t at = i * rows.together * rows.k;
                    v[i] = fma<T>(rows.at(x + at, T(0)), rows.at(y + at, T(0)), Vec<T>{});
                }
            }
            const Vec<T> sums = group_sums<T, W, W / 2>(v);
            if (c_step == 1) store_first(g.c + r, sums, left);
            else
                for (int64_t i = 0; i < left; ++i) g.c[(r + i) * c_step] = sums[i];
        }
    });
}

template <class T> bool choose_inner(const Gemm<T>& g, const Batch& batch) {
    if (g.m != 1 || g.n != 1 || batch.ndim != 1 || batch.shape[0] < lanes<T> || g.k < 2 || g.k > chains * lanes<T>) return false;
    if (g.a_col != 1 || g.b_row != 1 || g.panels || g.add || g.finish.run) return false;
    const int64_t a = batch.a[0], b = batch.b[0], row = a == g.k && b == g.k ? g.k : -1;
    with_short_rows<T>(g.k, row, [&](auto w) { inner_products<T, w>(g, batch.shape[0], a, b, batch.c[0]); });
    return true;
}

// -- a matrix whose outputs lie side by side -------------------------------------------------------

// y += sum over i < R of x[i] * matrix[i, :]; the R products are summed first, so that y is read and
// rounded once for all of them
template <class T, int R>
FW_INLINE void add_rows(const T* x, const T* matrix, int64_t step, T* y, int64_t n) {
    Vec<T> vx[R];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) vx[i] = splat(x[i]);
    auto products = [&](auto&& read) __attribute__((always_inline)) {
        Vec<T> sum = vx[0] * read(matrix);
#pragma GCC unroll 8
        for (int i = 1; i < R; ++i) sum = fma<T>(vx[i], read(matrix + i * step), sum);
        return sum;
    };
    for (; n >= lanes<T>; n -= lanes<T>, matrix += lanes<T>, y += lanes<T>)
        store(y, load(y) + products([](const T* q) __attribute__((always_inline)) { return load(q); }));
    if (n > 0)
        store_first(y, load_first(y, n) +
                    products([=](const T* q) __attribute__((always_inline)) { return load_first(q, n); }), n);
}

template <class T>
void row_times(int64_t k, int64_t n, const T* x, const T* matrix, int64_t step, T* y, bool add) {
    constexpr int R = 8;
    int64_t grain = std::max<int64_t>(256, GRAIN / k / 64 * 64);
    parallel(n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; j += RUN) {
            int64_t wide = std::min(RUN, end - j), p = 0;
            if (!add) std::fill(y + j, y + j + wide, T(0));
            for (; p + R <= k; p += R) add_rows<T, R>(x + p, matrix + p * step + j, step, y + j, wide);
            for (; p < k; ++p) add_rows<T, 1>(x + p, matrix + p * step + j, step, y + j, wide);
        }
    });
}

// -- choice ---------------------------------------------------------------------------------------

// Rows of k numbers, each row side by side.
template <class T> const T* gathered(const T* x, int64_t step, int64_t k, int64_t row = 0, int64_t rows = 1) {
    if (step == 1 && rows == 1) return x;
    T* to = scratch<T>(2, rows * k);
    for (int64_t p = 0; p < k; ++p)
        for (int64_t i = 0; i < rows; ++i) to[i * k + p] = x[i * row + p * step];
    return to;
}

template <class T> bool vector_times_matrix(const Gemm<T>& g) {  // m == 1
    if (g.b_row == 1) {
        const T* x = gathered(g.a, g.a_col, g.k);
        few_rows<T>({g.k, x, 0, g.b, g.b_col, 0, g.c, 0, 1, g.add}, 1, g.n);
    } else if (g.b_col == 1) {
        row_times(g.k, g.n, gathered(g.a, g.a_col, g.k), g.b, g.b_row, g.c, g.add);
    } else {
        return false;
    }
    return true;
}

template <class T> bool matrix_times_vector(const Gemm<T>& g) {  // n == 1
    if (g.a_col == 1) {
        const T* x = gathered(g.b, g.b_row, g.k);
        few_rows<T>({g.k, x, 0, g.a, g.a_row, 0, g.c, 0, g.c_row, g.add}, 1, g.m);
        return true;
    }
    if (g.a_row != 1) return false;
    const T* x = gathered(g.b, g.b_row, g.k);
    T* y = g.c_row == 1 ? g.c : scratch<T>(3, g.m);
    row_times(g.k, g.m, x, g.a, g.a_col, y, g.add && y == g.c);
    if (y != g.c)
        for (int64_t i = 0; i < g.m; ++i) put(g.c + i * g.c_row, y[i], g.add);
    return true;
}

// Few rows or columns, of so many steps that summing up is cheaper than packing.
template <class T> bool is_thin(const Gemm<T>& g) {
    const int64_t few = std::min(g.m, g.n);
    return few <= MOST && few * STEPS_PER_ROW <= g.k && few * g.k <= NEAR;
}

template <class T> bool choose(const Gemm<T>& g) {
    if (g.k == 0) return false;
    bool side_a = g.a_col == 1 || g.k == 1, side_b = g.b_row == 1 || g.k == 1;
    if (g.m == 1 && g.n == 1 && side_a && side_b) {
        put(g.c, dot(g.a, g.b, g.k), g.add);
        return true;
    }
    if (g.m == 1) return vector_times_matrix(g);
    if (g.n == 1) return matrix_times_vector(g);
    if (!is_thin(g)) return false;
    int64_t row = g.k;  // of the gathered matrix
    if (g.m <= g.n && side_b) {
        const T* a = side_a ? (row = g.a_row, g.a) : gathered(g.a, g.a_col, g.k, g.a_row, g.m);
        few_rows<T>({g.k, a, row, g.b, g.b_col, 0, g.c, g.c_row, 1, g.add}, g.m, g.n);
        return true;
    }
    if (g.m > g.n && side_a) {
        const T* b = side_b ? (row = g.b_col, g.b) : gathered(g.b, g.b_row, g.k, g.b_col, g.n);
        few_rows<T>({g.k, b, row, g.a, g.a_row, 0, g.c, 1, g.c_row, g.add}, g.n, g.m);
        return true;
    }
    return false;
}

}  // namespace

bool try_inner_products(const Gemm<float>& g, const Batch& batch) { return choose_inner(g, batch); }
bool try_inner_products(const Gemm<double>& g, const Batch& batch) { return choose_inner(g, batch); }
bool try_gemv(const Gemm<float>& g) { return choose(g); }
bool try_gemv(const Gemm<double>& g) { return choose(g); }
bool sums_rows(const Gemm<float>& g) { return is_thin(g); }
bool sums_rows(const Gemm<double>& g) { return is_thin(g); }

}  // namespace fw
