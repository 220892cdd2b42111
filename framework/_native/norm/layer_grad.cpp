#include "norm/layer.h"

#include "norm/norm_rows.h"
#include "norm/short_norm.h"

namespace fw {
namespace {

constexpr int TOGETHER = 2;           // rows; of more, lines of 4096 bytes would drive each other out of the cache

// With a = g * weight and h = (x - mean) * rstd: gx = rstd * (a - mean(a) - h * mean(a * h)), and over the
// rows, weight gets the sum of g * h and bias that of g.

template <bool Centred, class T> struct LayerBackward {
    const T *g, *x, *weight, *mean, *var;
    T *gx, *gw, *gb;  // gx, or gw and gb, may be missing
    LayerForm form;

    // What is the same along a row: gx = (a - mean_a - h * mean_ah) * rstd.
    struct LayerRow { T centre, rstd, mean_a, mean_ah; };

    template <bool Weighted> [[gnu::noinline]] LayerRow row(int64_t r) const {
        const T *from = x + r * form.n, *gr = g + r * form.n;
        LayerRow row{Centred ? mean[r] : T(0), rstd_of<T>(var[r], form.eps), 0, 0};
        Vec<T> c = splat(row.centre);
        auto found = sums<T, 2>(form.n, [&](int64_t i, auto part, Vec<T>* s) {
            Vec<T> a = take(gr + i, part);
            if (Weighted) a *= take(weight + i, part);
            if (Centred) s[0] += a;
            s[1] = fma<T>(a, take(from + i, part) - c, s[1]);
        });
        row.mean_a = T(found.of[0] / double(form.n));
        row.mean_ah = T(found.of[1] * double(row.rstd) / double(form.n));
        return row;
    }

    // R rows from r on, side by side, so that what is added up stays in registers for all of them.
    template <int R, bool Weighted, bool Sums, bool Past> void rows(int64_t r, T* sum_w, T* sum_b) const {
        Vec<T> centre[R], rstd[R], mean_a[R], down[R];
        for (int k = 0; k < R; ++k) {
            LayerRow own = row<Weighted>(r + k);
            centre[k] = splat(own.centre);
            rstd[k] = splat(own.rstd);
            mean_a[k] = splat(own.mean_a);
            down[k] = splat(-own.mean_ah);
        }
        const int64_t n = form.n;
        const T *gr = g + r * n, *xr = x + r * n;
        T* to = gx ? gx + r * n : nullptr;
        long_vectors<T>(0, n, [&](int64_t i, auto part, int) {
            Vec<T> w = Weighted ? take(weight + i, part) : Vec<T>{}, to_w = {}, to_b = {};
            for (int k = 0; k < R; ++k) {
                Vec<T> v = take(gr + k * n + i, part);
                Vec<T> h = (take(xr + k * n + i, part) - centre[k]) * rstd[k];
                if (Sums) {
                    to_w = fma<T>(v, h, to_w);
                    to_b += v;
                }
                if (Weighted) v *= w;
                if (Centred) v -= mean_a[k];
                if (to) put_as<Past>(to + k * n + i, fma<T>(h, down[k], v) * rstd[k], part);
            }
            if (Sums) {
                put(sum_w + i, take(sum_w + i, part) + to_w, part);
                if (Centred) put(sum_b + i, take(sum_b + i, part) + to_b, part);
            }
        });
    }

    template <bool Weighted, bool Sums, bool Past>
    void some(int64_t begin, int64_t end, T* sum_w, T* sum_b) const {
        int64_t r = begin;
        for (; r + TOGETHER <= end; r += TOGETHER) rows<TOGETHER, Weighted, Sums, Past>(r, sum_w, sum_b);
        for (; r < end; ++r) rows<1, Weighted, Sums, false>(r, sum_w, sum_b);
        if (Past) settle();
    }

    template <bool Sums> void some(int64_t begin, int64_t end, T* sum_w, T* sum_b) const {
        choosing_caches(gx, gx ? form.rows * form.n : 0, form.n, [&](auto past) {
            if (weight) some<true, Sums, past.value>(begin, end, sum_w, sum_b);
            else some<false, Sums, past.value>(begin, end, sum_w, sum_b);
        });
    }

    void run() const {
        if (gw)
            return sum_in_chunks<Centred>(form.rows, form.n, LEAST_CHUNK, gw, gb, [&](int64_t begin, int64_t end, T* of_w, T* of_b) {
                some<true>(begin, end, of_w, of_b);
            });
        parallel(form.rows, grain_of(form.n), [&](int64_t begin, int64_t end) { some<false>(begin, end, nullptr, nullptr); });
    }
};

}  // namespace

template <bool Centred, class T>
void layer_grad(const LayerForm& f, const T* g, const T* x, const T* weight, const T* mean, const T* var, T* gx, T* gw, T* gb) {
    if (is_short<T>(f.n)) return short_norm_grad<Centred>({f.rows, f.n, 1, f.eps}, g, x, weight, mean, var, gx, gw, gb);
    LayerBackward<Centred, T>{g, x, weight, mean, var, gx, gw, gb, f}.run();
}

#define FW_OF(Centred, T)                                                                                                  \
    template void layer_grad<Centred>(const LayerForm&, const T*, const T*, const T*, const T*, const T*, T*, T*, T*);
FW_OF(true, float)
FW_OF(true, double)
FW_OF(false, float)
FW_OF(false, double)
#undef FW_OF

}  // namespace fw
