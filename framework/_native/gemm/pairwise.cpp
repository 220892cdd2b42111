#include "gemm/pairwise.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/pool.h"
#include "base/scratch.h"
#include "base/simd.h"

namespace fw::pairs {
namespace {

constexpr int64_t GRAIN = 16384;

int64_t grain(const PairsShape& s, int64_t each) { return 1 + GRAIN / (each * s.k + 1); }

// Of one row of x to rows of y, which lie as columns (k, n), as many vectors of them at once as `count` says: each sum waits for
// its own last addition alone. Gives the first row that is left.
template <bool squares, int count, class T>
int64_t together(const T* x, const T* columns, T* out, int64_t j, int64_t n, int64_t k) {
    for (; j + count * lanes<T> <= n; j += count * lanes<T>) {
        Vec<T> sum[count] = {};
        const T* line = columns + j;
        for (int64_t l = 0; l < k; ++l, line += n) {
            const Vec<T> of = splat(x[l]);
            for (int c = 0; c < count; ++c) {
                const Vec<T> d = of - load(line + c * lanes<T>);
                sum[c] = squares ? fma<T>(d, d, sum[c]) : sum[c] + abs<T>(d);
            }
        }
        for (int c = 0; c < count; ++c) store(out + j + c * lanes<T>, squares ? sqrt(sum[c]) : sum[c]);
    }
    return j;
}

// One row of x to all n rows of y, which lie as columns (k, n).
template <bool squares, class T> void one_to_all(const T* x, const T* columns, T* out, int64_t n, int64_t k) {
    int64_t j = together<squares, 4>(x, columns, out, 0, n, k);
    j = together<squares, 2>(x, columns, out, j, n, k);
    j = together<squares, 1>(x, columns, out, j, n, k);
    if (j == n) return;
    Vec<T> sum{};
    for (int64_t l = 0; l < k; ++l) {
        const Vec<T> d = splat(x[l]) - load_part(columns + l * n + j, n - j);
        sum = squares ? fma<T>(d, d, sum) : sum + abs<T>(d);
    }
    store_part<T>(out + j, squares ? sqrt(sum) : sum, n - j);
}

// The gradient of one row: the sum over others of g (row - other) / distance, or of g times the signs.
template <class T> void pull(bool squares, const T* row, const T* others, const T* g, const T* out, int64_t step, T* to,
                             int64_t n, int64_t k) {
    std::fill(to, to + k, T(0));
    for (int64_t j = 0; j < n; ++j) {
        const T* other = others + j * k;
        const T v = g[j * step], d = out[j * step];
        if (v == 0 || d == 0) continue;
        if (squares) {
            const T share = v / d;
            for (int64_t l = 0; l < k; ++l) to[l] += share * (row[l] - other[l]);
        } else {
            for (int64_t l = 0; l < k; ++l) {
                const T e = row[l] - other[l];
                to[l] += e > 0 ? v : e < 0 ? -v : T(0);
            }
        }
    }
}

}  // namespace

namespace {

// Few rows, fewer than make half of a vector: each pair by itself, of K numbers.
template <bool squares, int K, class T> void few_distances(const PairsShape& s, const T* x, const T* y, T* out) {
    parallel(s.batch * s.m, grain(s, s.n), [&](int64_t begin, int64_t end) {
        int64_t group = begin / s.m, left = s.m - begin % s.m;
        for (int64_t r = begin; r < end; ++r, --left) {
            if (!left) ++group, left = s.m;
            const T *row = x + r * K, *other = y + group * s.n * K;
            for (int64_t j = 0; j < s.n; ++j, other += K) {
                T sum = 0;
                for (int l = 0; l < K; ++l) {
                    const T d = row[l] - other[l];
                    sum += squares ? d * d : std::fabs(d);
                }
                out[r * s.n + j] = squares ? std::sqrt(sum) : sum;
            }
        }
    });
}

constexpr int FEW = 8;
template <class T, size_t... I>
void few_distances(const PairsShape& s, bool squares, const T* x, const T* y, T* out, std::index_sequence<I...>) {
    using Function = void (*)(const PairsShape&, const T*, const T*, T*);
    constexpr Function all[][FEW] = {{few_distances<false, int(I) + 1, T>...}, {few_distances<true, int(I) + 1, T>...}};
    all[squares][s.k - 1](s, x, y, out);
}

}  // namespace

namespace {

// The rows of each y as columns (k, n).
template <class T> struct Columns {
    Borrowed turned;
    explicit Columns(const PairsShape& s, const T* y) : turned(s.batch * s.n * s.k, sizeof(T)) {
        T* columns = static_cast<T*>(turned.start);
        parallel(s.batch * s.k, grain(s, 1), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) {
                const T* from = y + r / s.k * s.n * s.k + r % s.k;
                for (int64_t j = 0; j < s.n; ++j) columns[r * s.n + j] = from[j * s.k];
            }
        });
    }
    const T* of(const PairsShape& s, int64_t group) const { return static_cast<const T*>(turned.start) + group * s.k * s.n; }
};

constexpr int64_t NARROW = 64;  // numbers of a row, up to where a vector is of pairs and not of numbers
constexpr int SOME = 4;         // of them at a time

// What a pair gives to a number of x: of the difference e.
template <bool squares, class T> FW_INLINE Vec<T> given(Vec<T> share, Vec<T> e) {
    if constexpr (squares) return share == Vec<T>{} ? Vec<T>{} : share * e;  // of a pair that counts nothing, infinite or not
    else return e > Vec<T>{} ? share : e < Vec<T>{} ? -share : Vec<T>{};
}
template <bool squares, class T> FW_INLINE Vec<T> share_of(Vec<T> g, Vec<T> distance) {
    const auto none = (g == Vec<T>{}) | (distance == Vec<T>{});
    return none ? Vec<T>{} : squares ? g / distance : g;
}

// As `pull`, of a row of x to n columns.
template <bool squares, class T> void pull_row(const T* row, const T* columns, const T* g, const T* out, T* to, int64_t n, int64_t k) {
    for (int64_t l = 0; l < k; l += SOME) {
        Vec<T> sum[SOME] = {};
        const int64_t some = std::min<int64_t>(SOME, k - l);
        for (int64_t j = 0; j < n; j += lanes<T>) {
            const int64_t left = std::min<int64_t>(lanes<T>, n - j);
            const Vec<T> share = share_of<squares, T>(load_part(g + j, left), load_part(out + j, left));
#pragma GCC unroll 4
            for (int c = 0; c < SOME; ++c) {
                const int64_t at = l + std::min<int64_t>(c, some - 1);
                sum[c] += given<squares, T>(share, splat(row[at]) - load_part(columns + at * n + j, left));
            }
        }
        for (int64_t c = 0; c < some; ++c) to[l + c] = sum_lanes<T>(sum[c]);
    }
}

// Of rows [j, j + lanes) of y, which are columns, to m rows of x.
template <bool squares, class T>
void pull_columns(const PairsShape& s, const T* x, const T* columns, const T* g, const T* out, int64_t j, T* to) {
    const int64_t left = std::min<int64_t>(lanes<T>, s.n - j);
    for (int64_t l = 0; l < s.k; l += SOME) {
        Vec<T> sum[SOME] = {}, own[SOME];
        const int64_t some = std::min<int64_t>(SOME, s.k - l);
        for (int64_t c = 0; c < SOME; ++c) own[c] = load_part(columns + (l + std::min<int64_t>(c, some - 1)) * s.n + j, left);
        for (int64_t i = 0; i < s.m; ++i) {
            const Vec<T> share = share_of<squares, T>(load_part(g + i * s.n + j, left), load_part(out + i * s.n + j, left));
#pragma GCC unroll 4
            for (int c = 0; c < SOME; ++c)
                sum[c] += given<squares, T>(share, own[c] - splat(x[i * s.k + l + std::min<int64_t>(c, some - 1)]));
        }
        for (int64_t c = 0; c < some; ++c)
            for (int64_t r = 0; r < left; ++r) to[(j + r) * s.k + l + c] = sum[c][r];
    }
}

template <bool squares, class T>
void narrow_grad(const PairsShape& s, const T* g, const T* x, const T* y, const T* out, T* gx, T* gy) {
    const Columns<T> columns(s, y);
    if (gx)
        parallel(s.batch * s.m, grain(s, s.n), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r)
                pull_row<squares>(x + r * s.k, columns.of(s, r / s.m), g + r * s.n, out + r * s.n, gx + r * s.k, s.n, s.k);
        });
    const int64_t pieces = (s.n + lanes<T> - 1) / lanes<T>;
    if (gy)
        parallel(s.batch * pieces, grain(s, s.m * lanes<T>), [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end; ++u) {
                const int64_t b = u / pieces, at = b * s.m * s.n;
                pull_columns<squares>(s, x + b * s.m * s.k, columns.of(s, b), g + at, out + at, u % pieces * lanes<T>, gy + b * s.n * s.k);
            }
        });
}

}  // namespace

template <class T> void distances(const PairsShape& s, bool squares, const T* x, const T* y, T* out) {
    if (2 * s.n < lanes<T> && s.k >= 1 && s.k <= FEW)
        return few_distances(s, squares, x, y, out, std::make_index_sequence<FEW>{});
    const Columns<T> columns(s, y);
    parallel(s.batch * s.m, grain(s, s.n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            const T* of = columns.of(s, r / s.m);
            if (squares) one_to_all<true>(x + r * s.k, of, out + r * s.n, s.n, s.k);
            else one_to_all<false>(x + r * s.k, of, out + r * s.n, s.n, s.k);
        }
    });
}

template <class T>
void distances_grad(const PairsShape& s, bool squares, const T* g, const T* x, const T* y, const T* out, T* gx, T* gy) {
    if (s.k <= NARROW && s.n >= lanes<T>)
        return squares ? narrow_grad<true>(s, g, x, y, out, gx, gy) : narrow_grad<false>(s, g, x, y, out, gx, gy);
    if (gx)
        parallel(s.batch * s.m, grain(s, s.n), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r)
                pull(squares, x + r * s.k, y + r / s.m * s.n * s.k, g + r * s.n, out + r * s.n, 1, gx + r * s.k, s.n, s.k);
        });
    if (gy)
        parallel(s.batch * s.n, grain(s, s.m), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) {
                const int64_t at = r / s.n * s.m * s.n + r % s.n;
                pull(squares, y + r * s.k, x + r / s.n * s.m * s.k, g + at, out + at, s.n, gy + r * s.k, s.m, s.k);
            }
        });
}

template <class T> void distances_within(int64_t n, int64_t k, bool squares, const T* x, T* out) {
    parallel(n - 1, 1 + 2 * GRAIN / (n * k + 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            T* next = out + i * n - i * (i + 1) / 2;
            for (int64_t j = i + 1; j < n; ++j) {
                T sum = 0;
                for (int64_t l = 0; l < k; ++l) {
                    const T d = x[i * k + l] - x[j * k + l];
                    sum += squares ? d * d : std::abs(d);
                }
                *next++ = squares ? std::sqrt(sum) : sum;
            }
        }
    });
}

template <class T>
void distances_within_grad(int64_t n, int64_t k, bool squares, const T* g, const T* x, const T* out, T* gx) {
    parallel(n, 1 + GRAIN / (n * k + 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            T *to = gx + i * k, *before = scratch<T>(0, k);
            const int64_t from = i * n - i * (i + 1) / 2;
            pull(squares, x + i * k, x + (i + 1) * k, g + from, out + from, 1, to, n - 1 - i, k);
            for (int64_t j = 0; j < i; ++j) {
                const int64_t at = j * n - j * (j + 1) / 2 + i - j - 1;
                pull(squares, x + i * k, x + j * k, g + at, out + at, 1, before, 1, k);
                for (int64_t l = 0; l < k; ++l) to[l] += before[l];
            }
        }
    });
}

#define FW_OF(T)                                                                  \
    template void distances_within(int64_t, int64_t, bool, const T*, T*);         \
    template void distances_within_grad(int64_t, int64_t, bool, const T*, const T*, const T*, T*);
FW_OF(float)
FW_OF(double)
#undef FW_OF
template void distances(const PairsShape&, bool, const float*, const float*, float*);
template void distances(const PairsShape&, bool, const double*, const double*, double*);
template void distances_grad(const PairsShape&, bool, const float*, const float*, const float*, const float*, float*, float*);
template void distances_grad(const PairsShape&, bool, const double*, const double*, const double*, const double*, double*,
                             double*);

}  // namespace fw::pairs
