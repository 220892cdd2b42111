#include "norm/group.h"

#include <memory>

#include "norm/norm_rows.h"
#include "norm/short_norm.h"

namespace fw {
namespace {

// Of each channel of each sample, s = sum(g) and t = sum(g * (x - mean)) are all that is needed: weight gets
// the sum of rstd * t over the samples, bias that of s, and x, with a = g * weight and h = (x - mean) * rstd,
// rstd * (a - mean(a) - h * mean(a * h)).

template <class T> struct GroupBackward {
    const T *g, *x, *weight, *mean, *var;
    T *gx, *gw, *gb;                     // gx, or gw and gb, may be missing
    GroupForm form;

    // A row whose channels are of one number each.
    template <bool Past> void side_by_side(int64_t r, double* s, double* t, T rstd) const {
        const T *from = x + r * form.n, *gr = g + r * form.n, *w = weight ? weight + form.channel(r) : nullptr;
        const Vec<T> c = splat(mean[r]), one = splat(T(1));
        const auto found = sums<T, 2>(form.n, [&](int64_t k, auto part, Vec<T>* v) {
            const Vec<T> a = take(gr + k, part) * (w ? take(w + k, part) : one);
            v[0] += a;
            v[1] = fma<T>(a, take(from + k, part, mean[r]) - c, v[1]);
        });
        for (int64_t k = 0; gw && k < form.n; ++k) s[k] = gr[k], t[k] = double(gr[k]) * double(from[k] - mean[r]) * double(rstd);
        if (!gx) return;
        const Vec<T> down = splat(T(-found.of[1] * double(rstd) / double(form.n) * double(rstd)));
        const Vec<T> shift = splat(T(found.of[0] / double(form.n))), scale = splat(rstd);
        T* to = gx + r * form.n;
        vectors<T>(0, form.n, [&](int64_t k, auto part, int) {
            const Vec<T> a = fma<T>(take(gr + k, part), w ? take(w + k, part) : one, -shift);
            put_as<Past>(to + k, fma<T>(take(from + k, part) - c, down, a) * scale, part);
        });
    }

    // room: for s and for rstd * t of all channels of all samples
    template <bool Past> void row(int64_t r, double* room) const {
        const T *from = x + r * form.n, *gr = g + r * form.n;
        T rstd = rstd_of<T>(var[r], form.eps);
        double *s = room + r * form.each, *t = s + form.rows * form.each, mean_a = 0, mean_ah = 0;
        Vec<T> c = splat(mean[r]);
        if (form.length == 1) return side_by_side<Past>(r, s, t, rstd);
        for (int64_t k = 0; k < form.each; ++k) {
            const T *xs = from + k * form.length, *gs = gr + k * form.length;
            auto found = sums<T, 2>(form.length, [&](int64_t i, auto part, Vec<T>* v) {
                Vec<T> a = take(gs + i, part);
                v[0] += a;
                v[1] = fma<T>(a, take(xs + i, part, mean[r]) - c, v[1]);
            });
            double w = weight ? double(weight[form.channel(r) + k]) : 1;
            s[k] = found.of[0];
            t[k] = found.of[1] * double(rstd);
            mean_a += w * s[k] / double(form.n);
            mean_ah += w * t[k] / double(form.n);
        }
        if (!gx) return;
        Vec<T> down = splat(T(-mean_ah * double(rstd))), shift = splat(T(mean_a)), scale = splat(rstd);
        for (int64_t k = 0; k < form.each; ++k) {
            const T *xs = from + k * form.length, *gs = gr + k * form.length;
            T* to = gx + r * form.n + k * form.length;
            Vec<T> w = splat(weight ? weight[form.channel(r) + k] : T(1));
            vectors<T>(0, form.length, [&](int64_t i, auto part, int) {
                Vec<T> a = fma<T>(take(gs + i, part), w, -shift);
                put_as<Past>(to + i, fma<T>(take(xs + i, part) - c, down, a) * scale, part);
            });
        }
    }

    // Rows that stay in registers.
    void short_rows() const {
        const int64_t wide = form.channels() * form.length;
        const auto w = spread(form, weight);
        std::unique_ptr<T[]> sums(gw ? new T[size_t(2 * wide)] : nullptr);
        T *of_w = sums.get(), *of_b = gw ? of_w + wide : nullptr;
        short_norm_grad<true>({form.rows, form.n, form.groups, form.eps}, g, x, w.get(), mean, var, gx, of_w, of_b);
        for (int64_t c = 0; gw && c < form.channels(); ++c) {
            double s = 0, t = 0;
            for (int64_t i = c * form.length; i < (c + 1) * form.length; ++i) s += double(of_b[i]), t += double(of_w[i]);
            gw[c] = T(t), gb[c] = T(s);
        }
    }

    void run() const {
        if (form.length > 1 && form.length < form.n && !weight && !gw) {  // a group is one channel, then
            GroupBackward whole = *this;
            whole.form.each = 1, whole.form.length = form.n;
            return whole.run();
        }
        if (is_short<T>(form.n)) return short_rows();
        std::unique_ptr<double[]> room(new double[size_t(2 * form.rows * form.each)]);
        choosing_caches(gx, form.rows * form.n, form.length, [&](auto past) {
            parallel(form.rows, grain_of(form.n), [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) row<past.value>(r, room.get());
                if (past.value) settle();
            });
        });
        if (!gw) return;
        const int64_t channels = form.channels(), samples = form.rows / form.groups;
        for (int64_t c = 0; c < channels; ++c) {
            double s = 0, t = 0;
            for (int64_t i = 0; i < samples; ++i) {
                s += room[i * channels + c];
                t += room[(samples + i) * channels + c];
            }
            gw[c] = T(t);
            gb[c] = T(s);
        }
    }
};

}  // namespace

template <class T>
void group_grad(const GroupForm& f, const T* g, const T* x, const T* weight, const T* mean, const T* var, T* gx, T* gw, T* gb) {
    GroupBackward<T>{g, x, weight, mean, var, gx, gw, gb, f}.run();
}

template void group_grad(const GroupForm&, const float*, const float*, const float*, const float*, const float*, float*, float*,
                         float*);
template void group_grad(const GroupForm&, const double*, const double*, const double*, const double*, const double*, double*,
                         double*, double*);

}  // namespace fw
