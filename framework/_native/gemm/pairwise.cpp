// Distances of all rows of one matrix to all rows of another, and both gradients, without a table of the differences:
// framework/ops/linalg/distances.py.
#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "base/simd.h"
#include "bind/array.h"

namespace fw::pairs {
namespace {

constexpr int64_t GRAIN = 16384;

struct PairsShape {
    int64_t batch = 1, m = 0, n = 0, k = 0;
    int64_t grain(int64_t each) const { return 1 + GRAIN / (each * k + 1); }
};

bool read_shape(PairsShape& s, const Array& x, const Array& y, double p) {
    const int d = x.usable() ? x.ndim() : 0;
    if ((p != 1 && p != 2) || !x.is_float() || !y.usable() || y.type() != x.type() || d < 2 || y.ndim() != d ||
        !x.size() || !y.size() || x.shape(d - 1) != y.shape(d - 1) ||
        !std::equal(x.shape(), x.shape() + d - 2, y.shape()))
        return false;
    s.m = x.shape(d - 2), s.n = y.shape(d - 2), s.k = x.shape(d - 1);
    s.batch = x.size() / (s.m * s.k);
    const int64_t sizes[] = {s.batch, s.m, s.n};
    return countable(sizes, 3);
}

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
template <bool squares, class T> void distances(const T* x, const T* columns, T* out, int64_t n, int64_t k) {
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

template <class T> void all(const PairsShape& s, bool squares, const T* x, const T* y, T* columns, T* out) {
    parallel(s.batch * s.k, s.grain(1), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            const T* from = y + r / s.k * s.n * s.k + r % s.k;
            for (int64_t j = 0; j < s.n; ++j) columns[r * s.n + j] = from[j * s.k];
        }
    });
    parallel(s.batch * s.m, s.grain(s.n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            const T* of = columns + r / s.m * s.k * s.n;
            if (squares) distances<true>(x + r * s.k, of, out + r * s.n, s.n, s.k);
            else distances<false>(x + r * s.k, of, out + r * s.n, s.n, s.k);
        }
    });
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

template <class T> void pull_all(const PairsShape& s, bool squares, const T* g, const T* x, const T* y, const T* out, T* gx, T* gy) {
    if (gx)
        parallel(s.batch * s.m, s.grain(s.n), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r)
                pull(squares, x + r * s.k, y + r / s.m * s.n * s.k, g + r * s.n, out + r * s.n, 1, gx + r * s.k, s.n, s.k);
        });
    if (gy)
        parallel(s.batch * s.n, s.grain(s.m), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) {
                const int64_t at = r / s.n * s.m * s.n + r % s.n;
                pull(squares, y + r * s.k, x + r / s.n * s.m * s.k, g + at, out + at, s.n, gy + r * s.k, s.m, s.k);
            }
        });
}

nb::object cdist(Array x, Array y, double p) {
    PairsShape s;
    if (!read_shape(s, x, y, p)) return not_implemented();
    std::vector<npy_intp> shape(x.shape(), x.shape() + x.ndim());
    shape.back() = s.n;
    InRows a(x), b(y);
    NewArray columns = like(y), out = new_array(x.ndim(), shape.data(), x.type());
    {
        Release release((x.size() + y.size() + out.size()) * 8);
        if (x.is<float>()) all(s, p == 2, a.data<float>(), b.data<float>(), columns.data<float>(), out.data<float>());
        else all(s, p == 2, a.data<double>(), b.data<double>(), columns.data<double>(), out.data<double>());
    }
    return give(out);
}

// Both gradients; of what is not wanted an empty array.
nb::object cdist_grad(Array g, Array x, Array y, Array out, double p, const std::vector<bool>& wanted) {
    PairsShape s;
    if (wanted.size() != 2 || !read_shape(s, x, y, p) || !g.usable() || !out.usable() || g.type() != x.type() ||
        out.type() != x.type() || g.ndim() != x.ndim() || !g.same_shape(out) || g.size() != s.batch * s.m * s.n ||
        g.shape(g.ndim() - 1) != s.n)
        return not_implemented();
    const npy_intp none = 0;
    InRows a(x), b(y), slopes(g), found(out);
    NewArray gx = wanted[0] ? like(x) : new_array(1, &none, x.type());
    NewArray gy = wanted[1] ? like(y) : new_array(1, &none, x.type());
    {
        Release release((x.size() + y.size() + out.size()) * 8);
        auto run = [&](auto t) {
            using T = decltype(t);
            pull_all(s, p == 2, slopes.data<T>(), a.data<T>(), b.data<T>(), found.data<T>(),
                     wanted[0] ? gx.data<T>() : nullptr, wanted[1] ? gy.data<T>() : nullptr);
        };
        if (x.is<float>()) run(float{});
        else run(double{});
    }
    return nb::make_tuple(give(gx), give(gy));
}

FW_BIND(m) {
    m.def("cdist", &cdist, nb::arg("x"), nb::arg("y"), nb::arg("p"));
    m.def("cdist_grad", &cdist_grad, nb::arg("g"), nb::arg("x"), nb::arg("y"), nb::arg("out"), nb::arg("p"), nb::arg("wanted"));
}

}  // namespace
}  // namespace fw::pairs
