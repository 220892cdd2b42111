#include "norm/loss_classes.h"

#include <algorithm>
#include <memory>

#include "base/vecmath.h"

namespace fw {
namespace {

// -- forward --------------------------------------------------------------------------------------

// spread: the sum of w_c * (x_c - top)
template <class T> T loss_of(const Scores<T>& s, int64_t i, double log_total, double picked, double spread) {
    if (s.ignored(i)) return T(0);
    double hard = s.weight_of(i) * (log_total - picked);
    if (s.smoothing == 0) return T(hard);
    return T((1 - s.smoothing) * hard + s.even() * (s.all_weights * log_total - spread));
}

// Of a row of scores: the largest, the sum of the exponentials, and what smoothing counts.
template <class T> void row_sums(const Scores<T>& s, int64_t i, T* top, T* total, double* spreads) {
    const int64_t n = s.a.n;
    const T* x = s.x + i * n;
    top[i] = largest(x, n);
    Vec<T> t = splat(top[i]);
    double sum = long_sum<T>(n, [&](int64_t k, auto part) { return math::exp(take(x + k, part, LEAST<T>) - t); });
    double spread = 0;
    if (s.smoothing != 0)
        spread = sums<T, 1>(n, [&](int64_t k, auto part, Vec<T>* v) {
            Vec<T> d = take(x + k, part, top[i]) - t;
            v[0] += s.weight ? d * take(s.weight + k, part) : d;
        }).of[0];
    total[i] = T(sum);
    *spreads = spread;
}

// Rows [begin, end), some of them at a time: their logarithms side by side.
template <class T> void row_losses(const Scores<T>& s, int64_t begin, int64_t end, T* losses, T* top, T* total) {
    constexpr int64_t some = 64;
    double spread[some];
    for (; begin < end; begin += some) {
        const int64_t stop = std::min(end, begin + some);
        for (int64_t i = begin; i < stop; ++i) row_sums(s, i, top, total, spread + i - begin);
        long_vectors<T>(begin, stop, [&](int64_t i, auto part, int) {
            put(losses + i, math::log<Vec<T>>(take(total + i, part, T(1))), part);
        });
        for (int64_t i = begin; i < stop; ++i) {
            const double picked = s.ignored(i) ? 0 : double(s.x[i * s.a.n + s.target[size_t(i)]] - top[i]);
            losses[i] = loss_of(s, i, double(losses[i]), picked, spread[i - begin]);
        }
    }
}

template <class T>
void column_losses(const Scores<T>& s, int64_t o, int64_t first, Columns<T> c, T* losses, T* tops, T* totals) {
    const T* x = s.x + o * s.a.n * s.a.inner + first;
    T spread[MOST_COLUMNS] = {};
    const int64_t begin = o * s.a.inner + first;
    T *top = tops + begin, *total = totals + begin;
    c.largest(x, top);
    c.sum(total, [&](int64_t j, int64_t at, auto part) { return math::exp(take(x + at, part) - take(top + j, part)); });
    if (s.smoothing != 0)
        c.sum(spread, [&](int64_t j, int64_t at, auto part) {
            Vec<T> d = take(x + at, part) - take(top + j, part);
            return s.weight ? d * s.weight[at / s.a.inner] : d;
        });
    for (int64_t j = 0; j < c.width; ++j) {
        const int64_t i = begin + j;
        double picked = s.ignored(i) ? 0 : double(x[s.target[size_t(i)] * s.a.inner + j] - top[j]);
        losses[i] = loss_of(s, i, std::log(double(total[j])), picked, double(spread[j]));
    }
}

template <class T> void all_losses(const Scores<T>& s, T* losses, T* top, T* total) {
    if (s.a.inner == 1)
        parallel(s.a.outer, grain_of(s.a.n), [&](int64_t begin, int64_t end) {
            row_losses(s, begin, end, losses, top, total);
        });
    else
        over_columns<T>(s.a, [&](int64_t o, int64_t first, Columns<T> c) {
            column_losses(s, o, first, c, losses, top, total);
        });
}

// -- backward: scale * (p_c * sum(q) - q_c), p = exp(x - top) / total -----------------------------------

// gx_c = exp(x_c - top) * all - even * w_c, and own less at the target's class
template <class T> struct Terms { T top, all, even, own; };

template <class T> Terms<T> terms_of(const Scores<T>& s, int64_t i, double scale, T top, T total) {
    double own = (1 - s.smoothing) * s.weight_of(i), even = s.even();
    double q = own + even * s.all_weights;
    return {top, T(scale * q / double(total)), T(scale * even), T(scale * own)};
}

template <class T> void row_grad(const Scores<T>& s, int64_t i, const Terms<T>& t, T* gx) {
    const int64_t n = s.a.n;
    const T* x = s.x + i * n;
    Vec<T> top = splat(t.top), all = splat(t.all), even = splat(-t.even);
    const bool smooth = s.smoothing != 0;
    long_vectors<T>(0, n, [&](int64_t k, auto part, int) {
        Vec<T> v = math::exp(take(x + k, part) - top) * all;
        if (smooth) v = s.weight ? fma<T>(even, take(s.weight + k, part), v) : v + even;
        put(gx + k, v, part);
    });
    gx[s.target[size_t(i)]] -= t.own;
}

template <class T>
void column_grads(const Scores<T>& s, int64_t o, int64_t first, Columns<T> c, const Terms<T>* terms, T* out) {
    const int64_t start = o * s.a.n * s.a.inner + first, begin = o * s.a.inner + first;
    const T* x = s.x + start;
    T *gx = out + start, top[MOST_COLUMNS], all[MOST_COLUMNS], even[MOST_COLUMNS];
    for (int64_t j = 0; j < c.width; ++j) {
        top[j] = terms[j].top;
        all[j] = terms[j].all;
        even[j] = terms[j].even;
    }
    for (int64_t k = 0; k < c.n; ++k) {
        Vec<T> w = splat(s.weight ? -s.weight[k] : T(-1));
        c.each(k, [&](int64_t j, int64_t at, auto part) {
            Vec<T> e = math::exp(take(x + at, part) - take(top + j, part));
            put(gx + at, fma<T>(take(even + j, part), w, e * take(all + j, part)), part);
        });
    }
    for (int64_t j = 0; j < c.width; ++j) {
        if (!s.ignored(begin + j)) gx[s.target[size_t(begin + j)] * s.a.inner + j] -= terms[j].own;
        else for (int64_t k = 0; k < c.n; ++k) gx[k * s.a.inner + j] = T(0);
    }
}

// scale(i): what the loss of target i counts
template <class T, class F> void all_grads(const Scores<T>& s, const T* top, const T* total, F scale, T* gx) {
    auto terms = [&](int64_t i) {
        return s.ignored(i) ? Terms<T>{top[i], 0, 0, 0} : terms_of(s, i, scale(i), top[i], total[i]);
    };
    if (s.a.inner == 1)
        parallel(s.a.outer, grain_of(s.a.n), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                if (s.ignored(i)) std::fill(gx + i * s.a.n, gx + (i + 1) * s.a.n, T(0));
                else row_grad(s, i, terms(i), gx + i * s.a.n);
            }
        });
    else
        over_columns<T>(s.a, [&](int64_t o, int64_t first, Columns<T> c) {
            Terms<T> own[MOST_COLUMNS];
            for (int64_t j = 0; j < c.width; ++j) own[j] = terms(o * s.a.inner + first + j);
            column_grads(s, o, first, c, own, gx);
        });
}

}  // namespace

template <class T> bool Scores<T>::valid() const {
    for (int64_t i = 0; i < targets(); ++i)
        if ((target[i] < 0 || target[i] >= a.n) && !ignored(i)) return false;
    return true;
}

template <class T> double Scores<T>::share() const {  // added in blocks, for fewer roundings of large sums
    constexpr int64_t SHARE_BLOCK = 64;
    double total = 0;
    for (int64_t first = 0; first < targets(); first += SHARE_BLOCK) {
        double block = 0;
        for (int64_t i = first; i < std::min(targets(), first + SHARE_BLOCK); ++i) block += ignored(i) ? 0 : weight_of(i);
        total += block;
    }
    return total;
}

template <class T> double Scores<T>::sum_of_weights() const { return total_of(weight, a.n); }

template <class T> void class_losses(const Scores<T>& s, Reduction by, T* loss, T* top, T* total) {
    if (by == Reduction::none) return all_losses(s, loss, top, total);
    std::unique_ptr<T[]> losses(new T[size_t(s.targets())]);
    all_losses(s, losses.get(), top, total);
    *loss = T(total_of(losses.get(), s.targets()) / (by == Reduction::mean ? s.share() : 1));
}

template <class T>
void class_grads(const Scores<T>& s, Reduction by, const T* g, double scale, const T* top, const T* total, T* gx) {
    if (by == Reduction::mean) scale /= s.share();
    all_grads(s, top, total, [&](int64_t i) { return g ? double(g[i]) : scale; }, gx);
}

#define FW_OF(T)                                                                                        \
    template struct Scores<T>;                                                                          \
    template void class_losses(const Scores<T>&, Reduction, T*, T*, T*);                                \
    template void class_grads(const Scores<T>&, Reduction, const T*, double, const T*, const T*, T*);
FW_OF(float)
FW_OF(double)
#undef FW_OF

// -- by log-probabilities -------------------------------------------------------------------------

template <class T> double picked_losses(const Scores<T>& s, Reduction by, T* loss) {
    double total = 0, shares = 0;
    for (int64_t i = 0; i < s.targets(); ++i) {
        const bool counts = !s.ignored(i);
        const double share = counts ? s.weight_of(i) : 0;
        const int64_t at = counts ? (i / s.a.inner * s.a.n + s.target[size_t(i)]) * s.a.inner + i % s.a.inner : 0;
        const double one = counts ? -share * double(s.x[at]) : 0;
        if (by == Reduction::none) loss[i] = T(one);
        total += one, shares += share;
    }
    if (by != Reduction::none) *loss = T(by == Reduction::mean ? total / shares : total);
    return shares;
}

template <class T> void picked_grads(const Scores<T>& s, bool each, const T* g, double scale, T* gx) {
    std::fill(gx, gx + s.targets() * s.a.n, T(0));
    for (int64_t i = 0; i < s.targets(); ++i)
        if (!s.ignored(i))
            gx[(i / s.a.inner * s.a.n + s.target[size_t(i)]) * s.a.inner + i % s.a.inner] =
                T(-s.weight_of(i) * (each ? double(g[i]) : scale));
}

#define FW_OF(T)                                                              \
    template double picked_losses(const Scores<T>&, Reduction, T*);           \
    template void picked_grads(const Scores<T>&, bool, const T*, double, T*);
FW_OF(float)
FW_OF(double)
#undef FW_OF

}  // namespace fw
