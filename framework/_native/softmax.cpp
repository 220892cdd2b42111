// softmax and log_softmax along one dimension, and their backward.
#include "columns.h"
#include "vecmath.h"

namespace fw {
namespace {

constexpr int64_t BUFFER = 1 << 12;  // numbers of a row that is put past the caches

// -- rows ----------------------------------------------------------------------------------------

// y[i] = f(x[i]); long rows of large results go past the caches.
template <bool Past, class T, class F> FW_INLINE void map_row(const T* x, T* y, int64_t n, F f) {
    vectors<T>(0, n, [&](int64_t i, auto part, int) {
        put_as<Past>(y + i, f(take(x + i, part)), part);
    });
}

template <bool Past, class T> void softmax_row(const T* x, T* y, int64_t n, T* exps) {
    Vec<T> top = splat(largest(x, n));
    double sum = long_sum<T>(n, [&](int64_t i, auto part) {
        Vec<T> e = math::exp(take(x + i, part, LEAST<T>) - top);
        put(exps + i, e, part);
        return e;
    });
    Vec<T> share = splat(T(1 / sum));
    map_row<Past>(exps, y, n, [&](Vec<T> e) { return e * share; });
}

template <bool Past, class T> void log_softmax_row(const T* x, T* y, int64_t n, T*) {
    Vec<T> top = splat(largest(x, n));
    double sum = long_sum<T>(n, [&](int64_t i, auto part) { return math::exp(take(x + i, part, LEAST<T>) - top); });
    Vec<T> shift = splat(T(std::log(sum)));
    map_row<Past>(x, y, n, [&](Vec<T> v) { return (v - top) - shift; });
}

// y * (g - sum(g * y))
template <bool Past, class T> void softmax_grad_row(const T* g, const T* y, T* out, int64_t n) {
    Vec<T> sum = splat(T(sums<T, 1>(n, [&](int64_t i, auto part, Vec<T>* s) {
        s[0] = fma<T>(take(g + i, part), take(y + i, part), s[0]);
    }).of[0]));
    vectors<T>(0, n, [&](int64_t i, auto part, int) {
        put_as<Past>(out + i, take(y + i, part) * (take(g + i, part) - sum), part);
    });
}

// g - exp(y) * sum(g)
template <bool Past, class T> void log_softmax_grad_row(const T* g, const T* y, T* out, int64_t n) {
    Vec<T> sum = splat(T(sums<T, 1>(n, [&](int64_t i, auto part, Vec<T>* s) { s[0] += take(g + i, part); }).of[0]));
    long_vectors<T>(0, n, [&](int64_t i, auto part, int) {
        put_as<Past>(out + i, fma<T>(-math::exp(take(y + i, part)), sum, take(g + i, part)), part);
    });
}

// -- columns --------------------------------------------------------------------------------------

template <bool Log, class T> void softmax_columns(const T* x, T* y, Columns<T> c) {
    T top[MOST_COLUMNS], sum[MOST_COLUMNS];
    c.largest(x, top);
    c.sum(sum, [&](int64_t j, int64_t at, auto part) {
        Vec<T> e = math::exp(take(x + at, part) - take(top + j, part));
        if (!Log) put(y + at, e, part);
        return e;
    });
    for (int64_t j = 0; j < c.width; ++j) sum[j] = Log ? std::log(sum[j]) : T(1) / sum[j];
    for (int64_t k = 0; k < c.n; ++k)
        c.each(k, [&](int64_t j, int64_t at, auto part) {
            Vec<T> s = take(sum + j, part);
            put(y + at, Log ? (take(x + at, part) - take(top + j, part)) - s : take(y + at, part) * s, part);
        });
}

template <bool Log, class T> void grad_columns(const T* g, const T* y, T* out, Columns<T> c) {
    T sum[MOST_COLUMNS];
    c.sum(sum, [&](int64_t, int64_t at, auto part) {
        return Log ? take(g + at, part) : take(g + at, part) * take(y + at, part);
    });
    for (int64_t k = 0; k < c.n; ++k)
        c.each(k, [&](int64_t j, int64_t at, auto part) {
            Vec<T> s = take(sum + j, part), a = take(g + at, part), b = take(y + at, part);
            put(out + at, Log ? a - math::exp(b) * s : b * (a - s), part);
        });
}

// -- whole arrays ---------------------------------------------------------------------------------

template <bool Log, bool Past, class T> void forward_rows(const T* x, T* y, const Around& a) {
    const bool buffered = Past && a.n <= BUFFER;
    parallel(a.outer, grain_of(a.n), [&](int64_t begin, int64_t end) {
        alignas(64) T buffer[Past ? BUFFER : 1];
        for (int64_t r = begin; r < end; ++r) {
            const T* from = x + r * a.n;
            T* to = y + r * a.n;
            if constexpr (Log) log_softmax_row<Past>(from, to, a.n, to);
            else softmax_row<Past>(from, to, a.n, buffered ? buffer : to);
        }
        if (Past) settle();
    });
}

template <bool Log, bool Past, class T> void grad_rows(const T* g, const T* y, T* out, const Around& a) {
    parallel(a.outer, grain_of(a.n), [&](int64_t begin, int64_t end) {
        for (int64_t at = begin * a.n; at < end * a.n; at += a.n) {
            if constexpr (Log) log_softmax_grad_row<Past>(g + at, y + at, out + at, a.n);
            else softmax_grad_row<Past>(g + at, y + at, out + at, a.n);
        }
        if (Past) settle();
    });
}

template <bool Log, class T> nb::object forward(const Array& given, int dim) {
    InRows x(given);
    NewArray out = new_array(given.ndim(), given.shape(), given.type());
    Around a(given, dim, dim);
    const T* from = x.data<T>();
    T* to = out.data<T>();
    {
        Release release(given.size() * int64_t(sizeof(T)));
        if (a.inner > 1)
            over_columns<T>(a, [&](int64_t o, int64_t first, Columns<T> c) {
                const int64_t at = o * a.n * a.inner + first;
                softmax_columns<Log>(from + at, to + at, c);
            });
        else
            choosing_caches(to, given.size(), a.n, [&](auto past) { forward_rows<Log, past.value>(from, to, a); });
    }
    return give(out);
}

template <bool Log, class T> nb::object backward(const Array& given_g, const Array& given_y, int dim) {
    InRows g(given_g), y(given_y);
    NewArray out = new_array(given_y.ndim(), given_y.shape(), given_y.type());
    Around a(given_y, dim, dim);
    const T *from = g.data<T>(), *through = y.data<T>();
    T* to = out.data<T>();
    {
        Release release(given_y.size() * int64_t(sizeof(T)));
        if (a.inner > 1)
            over_columns<T>(a, [&](int64_t o, int64_t first, Columns<T> c) {
                const int64_t at = o * a.n * a.inner + first;
                grad_columns<Log>(from + at, through + at, to + at, c);
            });
        else
            choosing_caches(to, given_y.size(), a.n, [&](auto past) {
                grad_rows<Log, past.value>(from, through, to, a);
            });
    }
    return give(out);
}

template <bool Log> nb::object softmax(const Array& x, int dim) {
    if (!x.is_float() || !x.size() || dim < 0 || dim >= x.ndim()) return not_implemented();
    return x.is<float>() ? forward<Log, float>(x, dim) : forward<Log, double>(x, dim);
}

template <bool Log> nb::object softmax_grad(const Array& g, const Array& y, int dim) {
    if (!y.is_float() || !y.size() || !g.usable() || g.type() != y.type() || !g.same_shape(y) || dim < 0 ||
        dim >= y.ndim())
        return not_implemented();
    return y.is<float>() ? backward<Log, float>(g, y, dim) : backward<Log, double>(g, y, dim);
}

}  // namespace

FW_BIND(m) {
    m.def("softmax", &softmax<false>, nb::arg("x"), nb::arg("dim"));
    m.def("log_softmax", &softmax<true>, nb::arg("x"), nb::arg("dim"));
    m.def("softmax_grad", &softmax_grad<false>, nb::arg("g"), nb::arg("y"), nb::arg("dim"));
    m.def("log_softmax_grad", &softmax_grad<true>, nb::arg("g"), nb::arg("y"), nb::arg("dim"));
}

}  // namespace fw
