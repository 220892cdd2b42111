#include "norm/short_norm.h"

#include "norm/norm_rows.h"

namespace fw {
namespace {

constexpr int64_t LEAST_HELD = 8;  // numbers whose mean and variance are found quicker in a vector than one by one

// A row of n numbers, K vectors of which the last one may be a part.
template <int K, class T> struct Held {
    Vec<T> v[K];

    static FW_INLINE int64_t rest(int64_t n) { return n - (K - 1) * lanes<T>; }
    static FW_INLINE Held of(const T* row, int64_t n, T fill = T(0)) {
        Held h;
        for (int k = 0; k + 1 < K; ++k) h.v[k] = load(row + k * lanes<T>);
        h.v[K - 1] = load_part(row + (K - 1) * lanes<T>, rest(n), fill);
        return h;
    }
    FW_INLINE void put(T* row, int64_t n) const {
        for (int k = 0; k + 1 < K; ++k) store<T>(row + k * lanes<T>, v[k]);
        store_part<T>(row + (K - 1) * lanes<T>, v[K - 1], rest(n));
    }
    FW_INLINE T sum() const {
        Vec<T> all = v[0];
        for (int k = 1; k < K; ++k) all += v[k];
        return total<T>(all);
    }
    template <class F> static FW_INLINE Held each(F f) {
        Held h;
        for (int k = 0; k < K; ++k) h.v[k] = f(k);
        return h;
    }
};

// Calls body(an integral constant K) with the number of vectors of a row.
template <class T, int K = 1, class Body> void with_vectors(int64_t n, Body&& body) {
    if constexpr (K < MOST_HELD)
        if (n > K * lanes<T>) return with_vectors<T, K + 1>(n, body);
    body(std::integral_constant<int, K>());
}

// The second pass sets right what the first one's mean was rounded by.
template <bool Centred, int K, class T> FW_INLINE Moments moments_of(const T* row, int64_t n) {
    using Row = Held<K, T>;
    if (K == 1 && n < LEAST_HELD) return moments<Centred>(row, n);
    Row x = Row::of(row, n);
    const T centre = Centred ? x.sum() / T(n) : T(0);
    if (Centred) {
        x = Row::of(row, n, centre);
        x = Row::each([&](int k) { return x.v[k] - splat(centre); });
    }
    const double squares = double(Row::each([&](int k) { return x.v[k] * x.v[k]; }).sum());
    if (!Centred) return {0, squares / double(n)};
    const double off = double(x.sum()) / double(n);
    return {double(centre) + off, std::max(0.0, squares / double(n) - off * off)};
}

template <bool Centred, int K, class T>
void forward(const ShortForm& f, const T* x, const T* weight, const T* bias, T* y, T* mean, T* var, int64_t begin, int64_t end) {
    using Row = Held<K, T>;
    const int64_t n = f.n;
    for (int64_t r = begin; r < end; ++r) {
        const Moments m = moments_of<Centred, K>(x + r * n, n);
        if (Centred) mean[r] = T(m.mean);
        var[r] = T(m.var);
        const Vec<T> centre = splat(T(m.mean)), rstd = splat(rstd_of<T>(m.var, f.eps));
        const Row of = Row::of(x + r * n, n);
        Row to = Row::each([&](int k) { return (Centred ? of.v[k] - centre : of.v[k]) * rstd; });
        const int64_t own = f.groups == 1 ? 0 : r % f.groups * n;
        if (weight) {
            const Row w = Row::of(weight + own, n), b = bias ? Row::of(bias + own, n) : Row{};
            to = Row::each([&](int k) { return bias ? fma<T>(to.v[k], w.v[k], b.v[k]) : to.v[k] * w.v[k]; });
        } else if (bias) {
            const Row b = Row::of(bias + own, n);
            to = Row::each([&](int k) { return to.v[k] + b.v[k]; });
        }
        to.put(y + r * n, n);
    }
}

// With a = g * weight and h = (x - mean) * rstd: gx = rstd * (a - mean(a) - h * mean(a * h)), and over the rows of a group its
// weight gets the sum of g * h and its bias that of g.
template <bool Centred, int K, class T> struct Backward {
    using Row = Held<K, T>;
    const ShortForm& f;
    const T *g, *x, *weight, *mean, *var;
    T* gx;

    FW_INLINE void row(int64_t r, const Row& w, Row* to_w, Row* to_b) const {
        const int64_t n = f.n;
        const T middle = Centred ? mean[r] : T(0);
        const Vec<T> centre = splat(middle), rstd = splat(rstd_of<T>(double(var[r]), f.eps));
        const Row own = Row::of(g + r * n, n), of = Row::of(x + r * n, n, middle);
        const Row h = Row::each([&](int k) { return (of.v[k] - centre) * rstd; });
        if (to_w) {
            *to_w = Row::each([&](int k) { return fma<T>(own.v[k], h.v[k], to_w->v[k]); });
            *to_b = Row::each([&](int k) { return to_b->v[k] + own.v[k]; });
        }
        if (!gx) return;
        const Row a = Row::each([&](int k) { return weight ? own.v[k] * w.v[k] : own.v[k]; });
        const Vec<T> mean_a = splat(Centred ? a.sum() / T(n) : T(0));
        const Vec<T> down = splat(-Row::each([&](int k) { return a.v[k] * h.v[k]; }).sum() / T(n));
        Row::each([&](int k) { return fma<T>(h.v[k], down, a.v[k] - mean_a) * rstd; }).put(gx + r * n, n);
    }

    // sum_w, sum_b: of `groups` rows, to which is added; none where only gx is wanted
    void some(int64_t begin, int64_t end, T* sum_w, T* sum_b) const {
        const int64_t n = f.n;
        Row w = weight ? Row::of(weight, n) : Row{};
        if (f.groups == 1) {
            Row to_w{}, to_b{};
            for (int64_t r = begin; r < end; ++r) row(r, w, sum_w ? &to_w : nullptr, &to_b);
            if (sum_w) to_w.put(sum_w, n), to_b.put(sum_b, n);
            return;
        }
        for (int64_t r = begin; r < end; ++r) {
            const int64_t at = r % f.groups * n;
            if (weight) w = Row::of(weight + at, n);
            if (!sum_w) {
                row(r, w, nullptr, nullptr);
                continue;
            }
            Row to_w = Row::of(sum_w + at, n), to_b = Row::of(sum_b + at, n);
            row(r, w, &to_w, &to_b);
            to_w.put(sum_w + at, n), to_b.put(sum_b + at, n);
        }
    }

    void run(T* gw, T* gb) const {
        if (!gw) return parallel(f.rows, grain_of(f.n), [&](int64_t begin, int64_t end) { some(begin, end, nullptr, nullptr); });
        const int64_t samples = f.rows / f.groups, least = (LEAST_CHUNK + f.groups - 1) / f.groups;
        sum_in_chunks<Centred>(samples, f.groups * f.n, least, gw, gb, [&](int64_t begin, int64_t end, T* of_w, T* of_b) {
            some(begin * f.groups, end * f.groups, of_w, of_b);
        });
    }
};

}  // namespace

template <bool Centred, class T>
void short_norm(const ShortForm& f, const T* x, const T* weight, const T* bias, T* y, T* mean, T* var) {
    with_vectors<T>(f.n, [&](auto count) {
        parallel(f.rows, grain_of(f.n), [&](int64_t begin, int64_t end) {
            forward<Centred, count.value>(f, x, weight, bias, y, mean, var, begin, end);
        });
    });
}

template <bool Centred, class T>
void short_norm_grad(const ShortForm& f, const T* g, const T* x, const T* weight, const T* mean, const T* var, T* gx, T* gw, T* gb) {
    with_vectors<T>(f.n, [&](auto count) { Backward<Centred, count.value, T>{f, g, x, weight, mean, var, gx}.run(gw, gb); });
}

#define FW_OF(Centred, T)                                                                                        \
    template void short_norm<Centred>(const ShortForm&, const T*, const T*, const T*, T*, T*, T*);               \
    template void short_norm_grad<Centred>(const ShortForm&, const T*, const T*, const T*, const T*, const T*, T*, T*, T*);
FW_OF(true, float)
FW_OF(true, double)
FW_OF(false, float)
FW_OF(false, double)
#undef FW_OF

}  // namespace fw
