#include "norm/softmax.h"

#include "base/vecmath.h"

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

// Some rows: their logarithms side by side.
constexpr int64_t ROWS_AT_ONCE = 64;

template <bool Past, class T> void log_softmax_rows(const T* x, T* y, int64_t n, int64_t rows) {
    alignas(64) T top[ROWS_AT_ONCE], shift[ROWS_AT_ONCE];
    for (int64_t r = 0; r < rows; ++r) {
        const T* from = x + r * n;
        top[r] = largest(from, n);
        Vec<T> most = splat(top[r]);
        shift[r] = T(long_sum<T>(n, [&](int64_t i, auto part) { return math::exp(take(from + i, part, LEAST<T>) - most); }));
    }
    long_vectors<T>(0, rows, [&](int64_t r, auto part, int) {
        put(shift + r, math::log<Vec<T>>(take(shift + r, part, T(1))), part);
    });
    for (int64_t r = 0; r < rows; ++r) {
        Vec<T> most = splat(top[r]), less = splat(shift[r]);
        map_row<Past>(x + r * n, y + r * n, n, [&](Vec<T> v) { return (v - most) - less; });
    }
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
    long_vectors<T>(0, c.width, [&](int64_t j, auto part, int) {
        const Vec<T> s = take(sum + j, part, T(1));
        put(sum + j, Log ? math::log<Vec<T>>(s) : splat(T(1)) / s, part);
    });
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
        const int64_t some = Log ? std::clamp<int64_t>(BUFFER / a.n, 1, ROWS_AT_ONCE) : 1;
        for (int64_t r = begin; r < end; r += some) {
            const T* from = x + r * a.n;
            T* to = y + r * a.n;
            if constexpr (Log) log_softmax_rows<Past>(from, to, a.n, std::min(some, end - r));
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

template <bool Log, class T> void forward(const T* x, T* y, const Around& a) {
    if (a.inner > 1)
        over_columns<T>(a, [&](int64_t o, int64_t first, Columns<T> c) {
            const int64_t at = o * a.n * a.inner + first;
            softmax_columns<Log>(x + at, y + at, c);
        });
    else
        choosing_caches(y, a.outer * a.n, a.n, [&](auto past) { forward_rows<Log, past.value>(x, y, a); });
}

template <bool Log, class T> void backward(const T* g, const T* y, T* out, const Around& a) {
    if (a.inner > 1)
        over_columns<T>(a, [&](int64_t o, int64_t first, Columns<T> c) {
            const int64_t at = o * a.n * a.inner + first;
            grad_columns<Log>(g + at, y + at, out + at, c);
        });
    else
        choosing_caches(out, a.outer * a.n, a.n, [&](auto past) { grad_rows<Log, past.value>(g, y, out, a); });
}

}  // namespace

template <class T> void softmax(bool log, const T* x, T* y, const Around& a) {
    log ? forward<true>(x, y, a) : forward<false>(x, y, a);
}
template <class T> void softmax_grad(bool log, const T* g, const T* y, T* out, const Around& a) {
    log ? backward<true>(g, y, out, a) : backward<false>(g, y, out, a);
}

template void softmax(bool, const float*, float*, const Around&);
template void softmax(bool, const double*, double*, const Around&);
template void softmax_grad(bool, const float*, const float*, float*, const Around&);
template void softmax_grad(bool, const double*, const double*, double*, const Around&);

}  // namespace fw
