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

#if defined(FW_AVX512)
constexpr int64_t ROWS = 4;  // of x that share what is read of y: their sums fill the registers
#else
constexpr int64_t ROWS = 2;
#endif

// Of some rows of x to rows of y, which lie as columns (k, n), as many vectors of them at once as `count` says: each sum waits
// for its own last addition alone. Gives the first row that is left.
template <bool squares, int rows, int count, class T>
int64_t together(const T* x, const T* columns, T* const (&out)[rows], int64_t j, int64_t end, int64_t n, int64_t k) {
    for (; j + count * lanes<T> <= end; j += count * lanes<T>) {
        Vec<T> sum[rows][count] = {};
        const T* line = columns + j;
        for (int64_t l = 0; l < k; ++l, line += n) {
            Vec<T> of[count];
#pragma GCC unroll 4
            for (int c = 0; c < count; ++c) of[c] = load(line + c * lanes<T>);
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
                for (int c = 0; c < count; ++c) {
                    const Vec<T> d = splat(x[r * k + l]) - of[c];
                    sum[r][c] = squares ? fma<T>(d, d, sum[r][c]) : sum[r][c] + abs<T>(d);
                }
        }
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < count; ++c) store(out[r] + j + c * lanes<T>, squares ? sqrt(sum[r][c]) : sum[r][c]);
    }
    return j;
}

// Some rows of x to the rows [j, end) of y, which lie as columns (k, n). out: by row of x, where that of row 0 of y would be.
template <bool squares, int rows, class T>
void some_to_all(const T* x, const T* columns, T* const (&out)[rows], int64_t j, int64_t end, int64_t n, int64_t k) {
    j = together<squares, rows, 4>(x, columns, out, j, end, n, k);
    j = together<squares, rows, 2>(x, columns, out, j, end, n, k);
    j = together<squares, rows, 1>(x, columns, out, j, end, n, k);
    if (j == end) return;
    Vec<T> sum[rows] = {};
    for (int64_t l = 0; l < k; ++l) {
        const Vec<T> of = load_part(columns + l * n + j, end - j);
        for (int r = 0; r < rows; ++r) {
            const Vec<T> d = splat(x[r * k + l]) - of;
            sum[r] = squares ? fma<T>(d, d, sum[r]) : sum[r] + abs<T>(d);
        }
    }
    for (int r = 0; r < rows; ++r) store_part<T>(out[r] + j, squares ? sqrt(sum[r]) : sum[r], end - j);
}

template <bool squares, class T>
void one_to_all(const T* x, const T* columns, T* out, int64_t j, int64_t end, int64_t n, int64_t k) {
    T* const one[1] = {out};
    some_to_all<squares>(x, columns, one, j, end, n, k);
}

// What a pair that counts gives to a number of x: of the difference e.
template <bool squares, class T> FW_INLINE Vec<T> counted(Vec<T> share, Vec<T> e) {
    if constexpr (squares) return share * e;
    else return e > Vec<T>{} ? share : e < Vec<T>{} ? -share : Vec<T>{};
}
// The same of pairs of which some count nothing, be the difference infinite.
template <bool squares, class T> FW_INLINE Vec<T> given(Vec<T> share, Vec<T> e) {
    return squares ? select<T>(share == Vec<T>{}, Vec<T>{}, counted<squares, T>(share, e)) : counted<squares, T>(share, e);
}

constexpr int SOME = 4;           // of the numbers of a row at a time
constexpr int64_t SHARES = 128;   // pairs whose shares are found together

// What each pair counts for: its slope g, over its distance where that is a root; nothing where either is 0.
template <class T> struct Shares {
    Borrowed memory;
    const T* all;
    Shares(bool squares, const T* g, const T* out, int64_t count) : memory(count, sizeof(T)) {
        T* to = static_cast<T*>(memory.start);
        all = to;
        parallel(count, GRAIN, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i += lanes<T>) {
                const int64_t left = std::min<int64_t>(lanes<T>, end - i);
                const Vec<T> v = load_part(g + i, left), d = load_part(out + i, left);
                store_part<T>(to + i, select<T>((v == Vec<T>{}) | (d == Vec<T>{}), Vec<T>{}, squares ? v / d : v), left);
            }
        });
    }
};

// W vectors of some rows, of their sums and of `count` others: l numbers from their start, the last of `left` numbers.
template <bool squares, bool all, int rows, int W, class T>
void pull_part(const T* row, const T* others, const T (&share)[rows][SHARES], T* to, int64_t count, int64_t l, int64_t left, int64_t k) {
    const auto part = [=](const T* p, int w) { return w < W - 1 ? load(p + w * lanes<T>) : load_part(p + w * lanes<T>, left); };
    Vec<T> sum[rows][W], own[rows][W];
    for (int r = 0; r < rows; ++r)
        for (int w = 0; w < W; ++w) sum[r][w] = part(to + r * k + l, w), own[r][w] = part(row + r * k + l, w);
    const T* other = others + l;
    for (int64_t j = 0; j < count; ++j, other += k) {
        Vec<T> of[W];
        for (int w = 0; w < W; ++w) of[w] = part(other, w);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) {
            const Vec<T> by = splat(share[r][j]);
#pragma GCC unroll 2
            for (int w = 0; w < W; ++w)
                sum[r][w] += all ? counted<squares, T>(by, own[r][w] - of[w]) : given<squares, T>(by, own[r][w] - of[w]);
        }
    }
    for (int r = 0; r < rows; ++r)
        for (int w = 0; w < W; ++w) store_part<T>(to + r * k + l + w * lanes<T>, sum[r][w], w < W - 1 ? lanes<T> : left);
}

template <bool squares, bool all, int rows, class T>
void pull_parts(const T* row, const T* others, const T (&share)[rows][SHARES], T* to, int64_t count, int64_t k) {
    int64_t l = 0;
    for (; l + 2 * lanes<T> <= k; l += 2 * lanes<T>)
        pull_part<squares, all, rows, 2>(row, others, share, to, count, l, lanes<T>, k);
    for (; l < k; l += lanes<T>)
        pull_part<squares, all, rows, 1>(row, others, share, to, count, l, std::min<int64_t>(lanes<T>, k - l), k);
}

// The gradient of some rows of k numbers: the sum over n others of share(r, j) times (row - other), or times the sign of that.
template <bool squares, int rows, class T, class Share>
void pull(const T* row, const T* others, const Share& share, T* to, int64_t n, int64_t k) {
    std::fill(to, to + rows * k, T(0));
    for (int64_t first = 0; first < n; first += SHARES) {
        T shares[rows][SHARES];
        const int64_t count = std::min(SHARES, n - first);
        bool all = true;
        for (int r = 0; r < rows; ++r)
            for (int64_t j = 0; j < count; ++j) shares[r][j] = share(r, first + j), all &= shares[r][j] != 0;
        (all ? pull_parts<squares, true, rows, T> : pull_parts<squares, false, rows, T>)(row, others + first * k, shares, to, count, k);
    }
}

// The same of rows [begin, end) that have the same others: share(row, j).
template <bool squares, class T, class Share>
void pull_rows(const T* x, const T* others, const Share& share, T* to, int64_t begin, int64_t end, int64_t n, int64_t k) {
    for (int64_t i = begin, m; i < end; i += m) {
        m = end - i < ROWS ? 1 : ROWS;
        const auto of = [&](int r, int64_t j) { return share(i + r, j); };
        if (m == ROWS) pull<squares, ROWS>(x + i * k, others, of, to + i * k, n, k);
        else pull<squares, 1>(x + i * k, others, of, to + i * k, n, k);
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

constexpr int64_t NARROW = 32;  // numbers of a row, up to where a vector is of pairs and not of numbers

// As `pull`, of a row of x to n columns.
template <bool squares, class T> void pull_row(const T* row, const T* columns, const T* shares, T* to, int64_t n, int64_t k) {
    for (int64_t l = 0; l < k; l += SOME) {
        Vec<T> sum[SOME] = {};
        const int64_t some = std::min<int64_t>(SOME, k - l);
        for (int64_t j = 0; j < n; j += lanes<T>) {
            const int64_t left = std::min<int64_t>(lanes<T>, n - j);
            const Vec<T> share = load_part(shares + j, left);
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
void pull_columns(const PairsShape& s, const T* x, const T* columns, const T* shares, int64_t j, T* to) {
    const int64_t left = std::min<int64_t>(lanes<T>, s.n - j);
    for (int64_t l = 0; l < s.k; l += SOME) {
        Vec<T> sum[SOME] = {}, own[SOME];
        const int64_t some = std::min<int64_t>(SOME, s.k - l);
        for (int64_t c = 0; c < SOME; ++c) own[c] = load_part(columns + (l + std::min<int64_t>(c, some - 1)) * s.n + j, left);
        for (int64_t i = 0; i < s.m; ++i) {
            const Vec<T> share = load_part(shares + i * s.n + j, left);
#pragma GCC unroll 4
            for (int c = 0; c < SOME; ++c)
                sum[c] += given<squares, T>(share, own[c] - splat(x[i * s.k + l + std::min<int64_t>(c, some - 1)]));
        }
        for (int64_t c = 0; c < some; ++c)
            for (int64_t r = 0; r < left; ++r) to[(j + r) * s.k + l + c] = sum[c][r];
    }
}

template <bool squares, class T>
void narrow_grad(const PairsShape& s, const T* shares, const T* x, const T* y, T* gx, T* gy) {
    const Columns<T> columns(s, y);
    if (gx)
        parallel(s.batch * s.m, grain(s, s.n), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r)
                pull_row<squares>(x + r * s.k, columns.of(s, r / s.m), shares + r * s.n, gx + r * s.k, s.n, s.k);
        });
    const int64_t pieces = (s.n + lanes<T> - 1) / lanes<T>;
    if (gy)
        parallel(s.batch * pieces, grain(s, s.m * lanes<T>), [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end; ++u) {
                const int64_t b = u / pieces;
                pull_columns<squares>(s, x + b * s.m * s.k, columns.of(s, b), shares + b * s.m * s.n, u % pieces * lanes<T>,
                                      gy + b * s.n * s.k);
            }
        });
}

}  // namespace

template <class T> void distances(const PairsShape& s, bool squares, const T* x, const T* y, T* out) {
    if (2 * s.n < lanes<T> && s.k >= 1 && s.k <= FEW)
        return few_distances(s, squares, x, y, out, std::make_index_sequence<FEW>{});
    const Columns<T> columns(s, y);
    parallel(s.batch * s.m, grain(s, s.n), [&](int64_t begin, int64_t end) {
        const auto some = squares ? some_to_all<true, ROWS, T> : some_to_all<false, ROWS, T>;
        const auto one = squares ? one_to_all<true, T> : one_to_all<false, T>;
        for (int64_t r = begin, left; r < end; r += left < ROWS ? 1 : ROWS) {
            left = std::min(end, (r / s.m + 1) * s.m) - r;
            T* to[ROWS];
            for (int64_t i = 0; i < ROWS; ++i) to[i] = out + (r + i) * s.n;
            if (left < ROWS) one(x + r * s.k, columns.of(s, r / s.m), to[0], 0, s.n, s.n, s.k);
            else some(x + r * s.k, columns.of(s, r / s.m), to, 0, s.n, s.n, s.k);
        }
    });
}

namespace {

// Calls f(group, begin, end) for the rows of each batch.
template <class F> void each_group(int64_t batch, int64_t rows, int64_t grain, F&& f) {
    parallel(batch * rows, grain, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin, next; r < end; r = next) {
            next = std::min(end, (r / rows + 1) * rows);
            f(r / rows, r % rows, next - r / rows * rows);
        }
    });
}

template <bool squares, class T>
void wide_grad(const PairsShape& s, const T* shares, const T* x, const T* y, T* gx, T* gy) {
    if (gx)
        each_group(s.batch, s.m, grain(s, s.n), [&](int64_t b, int64_t begin, int64_t end) {
            const auto share = [&, own = shares + b * s.m * s.n](int64_t i, int64_t j) { return own[i * s.n + j]; };
            pull_rows<squares>(x + b * s.m * s.k, y + b * s.n * s.k, share, gx + b * s.m * s.k, begin, end, s.n, s.k);
        });
    if (gy)
        each_group(s.batch, s.n, grain(s, s.m), [&](int64_t b, int64_t begin, int64_t end) {
            const auto share = [&, own = shares + b * s.m * s.n](int64_t j, int64_t i) { return own[i * s.n + j]; };
            pull_rows<squares>(y + b * s.n * s.k, x + b * s.m * s.k, share, gy + b * s.n * s.k, begin, end, s.m, s.k);
        });
}

// Where the pairs of row i with those after it begin, the pair with row 0 being there.
int64_t pairs_of(int64_t n, int64_t i) { return i * n - i * (i + 1) / 2 - i - 1; }

template <bool squares, class T> void within(int64_t n, int64_t k, const T* x, T* out) {
    PairsShape s;
    s.batch = 1, s.m = s.n = n, s.k = k;
    const Columns<T> columns(s, x);
    const T* of = columns.of(s, 0);
    parallel(n - 1, 1 + 2 * GRAIN / (n * k + 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin, rows; i < end; i += rows) {
            rows = end - i < ROWS ? 1 : ROWS;
            T* to[ROWS];
            for (int64_t r = 0; r < rows; ++r) {
                to[r] = out + pairs_of(n, i + r);
                one_to_all<squares>(x + (i + r) * k, of, to[r], i + r + 1, std::min(i + rows, n), n, k);
            }
            if (rows == 1) one_to_all<squares>(x + i * k, of, to[0], i + 1, n, n, k);
            else some_to_all<squares>(x + i * k, of, to, i + rows, n, n, k);
        }
    });
}

template <bool squares, class T> void within_grad(int64_t n, int64_t k, const T* shares, const T* x, T* gx) {
    const auto share = [=](int64_t i, int64_t j) {
        return i == j ? T(0) : shares[pairs_of(n, std::min(i, j)) + std::max(i, j)];
    };
    parallel(n, 1 + GRAIN / (n * k + 1), [&](int64_t begin, int64_t end) {
        pull_rows<squares>(x, x, share, gx, begin, end, n, k);
    });
}

}  // namespace

template <class T>
void distances_grad(const PairsShape& s, bool squares, const T* g, const T* x, const T* y, const T* out, T* gx, T* gy) {
    const Shares<T> shares(squares, g, out, s.batch * s.m * s.n);
    if (s.k <= NARROW && s.n >= lanes<T>)
        return squares ? narrow_grad<true>(s, shares.all, x, y, gx, gy) : narrow_grad<false>(s, shares.all, x, y, gx, gy);
    squares ? wide_grad<true>(s, shares.all, x, y, gx, gy) : wide_grad<false>(s, shares.all, x, y, gx, gy);
}

template <class T> void distances_within(int64_t n, int64_t k, bool squares, const T* x, T* out) {
    squares ? within<true>(n, k, x, out) : within<false>(n, k, x, out);
}

template <class T>
void distances_within_grad(int64_t n, int64_t k, bool squares, const T* g, const T* x, const T* out, T* gx) {
    const Shares<T> shares(squares, g, out, n * (n - 1) / 2);
    squares ? within_grad<true>(n, k, shares.all, x, gx) : within_grad<false>(n, k, shares.all, x, gx);
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
