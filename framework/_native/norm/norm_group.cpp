// group_norm and instance_norm of NumPy arrays, and their backward.
#include <memory>

#include "norm/group_forward.h"
#include "bind/norm/norm.h"

namespace fw {
namespace {

// -- backward -------------------------------------------------------------------------------------
//
// Of each channel of each sample, s = sum(g) and t = sum(g * (x - mean)) are all that is needed: weight gets
// the sum of rstd * t over the samples, bias that of s, and x, with a = g * weight and h = (x - mean) * rstd,
// rstd * (a - mean(a) - h * mean(a * h)).

template <class T> struct GroupBackward {
    const T *g, *x, *weight, *mean, *var;
    T *gx, *gw, *gb;                     // gx, or gw and gb, may be missing
    GroupForm form;

    // room: for s and for rstd * t of all channels of all samples
    template <bool Past> void row(int64_t r, double* room) const {
        const T *from = x + r * form.n, *gr = g + r * form.n;
        T rstd = rstd_of<T>(var[r], form.eps);
        double *s = room + r * form.each, *t = s + form.rows * form.each, mean_a = 0, mean_ah = 0;
        Vec<T> c = splat(mean[r]);
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

    void run() const {
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

// -- bindings -------------------------------------------------------------------------------------

struct GroupNorm {
    static constexpr bool centred = true;
    using Form = GroupForm;
    template <class T> using Forward = fw::GroupForward<T>;
    template <class T> using Backward = GroupBackward<T>;

    // `per` is the shape that the weights broadcast from: 1 for the samples, the groups, their channels, 1 ...
    static bool form_of(const Array& x, nb::tuple dims, nb::tuple per, double eps, Form& form) {
        if (!x.is_float() || !x.size() || x.ndim() < 3 || int(per.size()) != x.ndim()) return false;
        if (x.ndim() - int(dims.size()) != 2) return false;
        form = {x.shape(0) * x.shape(1), 1, x.shape(1), 1, 1, eps};
        for (int d = 2; d < x.ndim(); ++d) {
            form.n *= x.shape(d);
            const int64_t channels = nb::cast<int64_t>(per[size_t(d)]);
            if (channels < 1 || channels > form.n / form.each) return false;
            form.each *= channels;
        }
        if (form.n % form.each) return false;
        form.length = form.n / form.each;
        return form.each == 1 || form.length >= lanes<float> || x.size() < (1 << 14);  // else NumPy is quicker
    }
    static std::vector<npy_intp> kept(const Array& x, const Form&) {
        std::vector<npy_intp> shape(size_t(x.ndim()), 1);
        std::copy_n(x.shape(), 2, shape.begin());
        return shape;
    }
    static std::vector<npy_intp> weights(const Array&, const Form& form) { return {form.channels()}; }
};

}  // namespace

FW_BIND(m) { bind_norm<GroupNorm>(m, "group_norm"); }

}  // namespace fw
