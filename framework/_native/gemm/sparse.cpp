// Products with sparse matrices whose places stand row by row (`framework/sparse/pattern.py`, Rows).
#include <algorithm>
#include <atomic>

#include "bind/array.h"
#include "base/pool.h"
#include "base/simd.h"

namespace fw {
namespace {

constexpr int64_t GRAIN = 16384;  // multiplications of one piece at least
constexpr int AHEAD = 6;          // places whose dense rows are asked for before they are needed

// The places of m rows among n columns. What another thread could change meanwhile is checked where it is read.
template <class I> struct SparsePlaces {
    const I *starts, *columns;
    int64_t m, n, count;

    // the places of a row; false if they are none of this array
    bool row(int64_t r, int64_t& first, int64_t& last) const {
        first = int64_t(starts[r]), last = int64_t(starts[r + 1]);
        return 0 <= first && first <= last && last <= count;
    }
    bool column(int64_t place, int64_t& c) const {
        c = int64_t(columns[place]);
        return uint64_t(c) < uint64_t(n);
    }
    int64_t grain(int64_t width) const {
        int64_t each = std::max<int64_t>(count / std::max<int64_t>(m, 1), 1) * std::max<int64_t>(width, 1);
        return std::max<int64_t>(GRAIN / each, 1);
    }
};

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

template <class T, class I>
bool spmm_rows(const SparsePlaces<I>& p, const T* values, const T* dense, int64_t width, T* out) {
    std::atomic<bool> good{true};
    constexpr int L = lanes<T>;
    parallel(p.m, p.grain(width), [&](int64_t begin, int64_t end) {
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

template <class T, class I>
bool sddmm_rows(const SparsePlaces<I>& p, const T* x, const T* y, int64_t width, T* out) {
    std::atomic<bool> good{true};
    parallel(p.m, p.grain(width), [&](int64_t begin, int64_t end) {
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

struct SparseParts {  // of Rows
    nb::object kept[2];
    Array starts, columns;
    int64_t m = 0, n = 0;
    bool good = false;

    explicit SparseParts(nb::handle rows) {
        kept[0] = rows.attr("starts"), kept[1] = rows.attr("columns");
        starts = nb::cast<Array>(kept[0]), columns = nb::cast<Array>(kept[1]);
        nb::object shape = rows.attr("shape");
        m = nb::cast<int64_t>(shape[0]), n = nb::cast<int64_t>(shape[1]);
        good = starts.usable() && columns.usable() && starts.ndim() == 1 && columns.ndim() == 1 &&
               starts.contiguous() && columns.contiguous() && starts.type() == columns.type() &&
               (starts.is<int64_t>() || starts.is<int32_t>()) && m >= 0 && n >= 0 && starts.size() == m + 1;
    }
    template <class I> SparsePlaces<I> places() const {
        return {starts.data<I>(), columns.data<I>(), m, n, columns.size()};
    }
};

template <class F> bool with_types(const Array& a, const SparseParts& parts, F&& f) {
    auto index = [&](auto t) {
        return parts.starts.is<int64_t>() ? f(t, int64_t{}) : f(t, int32_t{});
    };
    return a.is<float>() ? index(float{}) : index(double{});
}

nb::object spmm(Array values, Array dense, nb::handle rows) {
    SparseParts parts(rows);
    if (!parts.good || !values.usable() || !dense.usable() || !values.is_float() || values.type() != dense.type() ||
        values.ndim() != 1 || values.size() != parts.columns.size() || dense.ndim() < 1 || dense.ndim() > 2 ||
        dense.shape(0) != parts.n)
        return not_implemented();
    InRows each(values), from(dense);
    values = each.a, dense = from.a;
    int64_t width = dense.ndim() == 2 ? dense.shape(1) : 1;
    npy_intp shape[2] = {npy_intp(parts.m), npy_intp(width)};
    NewArray out = new_array(dense.ndim(), shape, dense.type());
    nb::object result = give(out);
    bool good;
    {
        Release release(values.size() * std::max<int64_t>(width, 1) * 8);
        good = with_types(values, parts, [&](auto t, auto i) {
            using T = decltype(t);
            return spmm_rows<T>(parts.places<decltype(i)>(), values.data<T>(), dense.data<T>(), width, out.data<T>());
        });
    }
    return good ? result : not_implemented();
}

nb::object sddmm(Array x, Array y, nb::handle rows) {
    SparseParts parts(rows);
    if (!parts.good || !x.usable() || !y.usable() || !x.is_float() || x.type() != y.type() || x.ndim() != y.ndim() ||
        x.ndim() < 1 || x.ndim() > 2 || x.shape(0) != parts.m || y.shape(0) != parts.n ||
        (x.ndim() == 2 && x.shape(1) != y.shape(1)))
        return not_implemented();
    InRows left(x), right(y);
    x = left.a, y = right.a;
    int64_t width = x.ndim() == 2 ? x.shape(1) : 1;
    npy_intp shape[1] = {npy_intp(parts.columns.size())};
    NewArray out = new_array(1, shape, x.type());
    nb::object result = give(out);
    bool good;
    {
        Release release(parts.columns.size() * std::max<int64_t>(width, 1) * 8);
        good = with_types(x, parts, [&](auto t, auto i) {
            using T = decltype(t);
            return sddmm_rows<T>(parts.places<decltype(i)>(), x.data<T>(), y.data<T>(), width, out.data<T>());
        });
    }
    return good ? result : not_implemented();
}

}  // namespace

FW_BIND(m) {
    m.def("spmm", &spmm, nb::arg("values"), nb::arg("dense"), nb::arg("rows"));
    m.def("sddmm", &sddmm, nb::arg("x"), nb::arg("y"), nb::arg("rows"));
}

}  // namespace fw
