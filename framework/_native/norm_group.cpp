// group_norm and instance_norm: each row is a group of channels of one sample. With R rows of n numbers, row r
// holds `each` channels of `length` numbers, the first of which is channel (r % groups) * each.
#include <memory>

#include "norm_rows.h"

namespace fw {
namespace {

struct Form {
    int64_t rows, n, groups, each, length;
    double eps;

    int64_t channels() const { return groups * each; }
    int64_t channel(int64_t r) const { return r % groups * each; }
};

// -- forward --------------------------------------------------------------------------------------

template <class T> struct Forward {
    const T *x, *weight, *bias;
    T *y, *mean, *var;
    Form form;

    template <bool Past> void row(int64_t r) const {
        const T* from = x + r * form.n;
        Moments m = moments<true>(from, form.n);
        mean[r] = T(m.mean);
        var[r] = T(m.var);
        T rstd = rstd_of<T>(m.var, form.eps);
        for (int64_t k = 0; k < form.each; ++k) {
            const int64_t c = form.channel(r) + k;
            segment<Past>(from + k * form.length, y + r * form.n + k * form.length, mean[r],
                    weight ? rstd * weight[c] : rstd, bias ? bias[c] : T(0));
        }
    }

    template <bool Past> FW_INLINE void segment(const T* from, T* to, T centre, T scale, T shift) const {
        Vec<T> c = splat(centre), k = splat(scale), s = splat(shift);
        vectors<T>(0, form.length, [&](int64_t i, auto part, int) {
            put_as<Past>(to + i, fma<T>(take(from + i, part) - c, k, s), part);
        });
    }

    void run() const {
        choosing_caches(y, form.rows * form.n, form.length, [&](auto past) {
            parallel(form.rows, grain_of(form.n), [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) row<past.value>(r);
                if (past.value) settle();
            });
        });
    }
};

// -- backward -------------------------------------------------------------------------------------
//
// Of each channel of each sample, s = sum(g) and t = sum(g * (x - mean)) are all that is needed: weight gets
// the sum of rstd * t over the samples, bias that of s, and x, with a = g * weight and h = (x - mean) * rstd,
// rstd * (a - mean(a) - h * mean(a * h)).

template <class T> struct Backward {
    const T *g, *x, *weight, *mean, *var;
    T *gx, *gw, *gb;                     // gx, or gw and gb, may be missing
    double *sums_s, *sums_t;             // of rstd * t
    Form form;

    template <bool Past> void row(int64_t r) const {
        const T *from = x + r * form.n, *gr = g + r * form.n;
        T rstd = rstd_of<T>(var[r], form.eps);
        double *s = sums_s + r * form.each, *t = sums_t + r * form.each, mean_a = 0, mean_ah = 0;
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
        choosing_caches(gx, form.rows * form.n, form.length, [&](auto past) {
            parallel(form.rows, grain_of(form.n), [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) row<past.value>(r);
                if (past.value) settle();
            });
        });
        if (!gw) return;
        const int64_t channels = form.channels(), samples = form.rows / form.groups;
        for (int64_t c = 0; c < channels; ++c) {
            double s = 0, t = 0;
            for (int64_t i = 0; i < samples; ++i) {
                s += sums_s[i * channels + c];
                t += sums_t[i * channels + c];
            }
            gw[c] = T(t);
            gb[c] = T(s);
        }
    }
};

// -- bindings -------------------------------------------------------------------------------------

// `per` is the shape that the weights broadcast from: 1 for the samples, the groups, their channels, 1 ...
bool form_of(const Array& x, nb::tuple dims, nb::tuple per, double eps, Form& form) {
    if (!x.is_float() || !x.size() || x.ndim() < 3 || int(per.size()) != x.ndim()) return false;
    const int first = x.ndim() - int(dims.size());
    if (first != 2) return false;
    form = {x.shape(0) * x.shape(1), 1, x.shape(1), 1, 1, eps};
    for (int d = 2; d < x.ndim(); ++d) {
        form.n *= x.shape(d);
        form.each *= nb::cast<int64_t>(per[size_t(d)]);
    }
    form.length = form.n / form.each;
    return form.each == 1 || form.length >= lanes<float>;
}

template <class T>
nb::object forward(const Array& given, const Given& weight, const Given& bias, const Form& form) {
    InRows x(given);
    std::vector<npy_intp> kept(size_t(given.ndim()), 1);
    kept[0] = given.shape(0);
    kept[1] = given.shape(1);
    Array y = new_array(given.ndim(), given.shape(), given.type());
    Array mean = new_array(given.ndim(), kept.data(), given.type());
    Array var = new_array(given.ndim(), kept.data(), given.type());
    {
        Release release(given.size() * int64_t(sizeof(T)));
        Forward<T>{x.data<T>(), weight.data<T>(), bias.data<T>(), y.data<T>(), mean.data<T>(), var.data<T>(),
                   form}.run();
    }
    return nb::make_tuple(give(y), give(mean), give(var));
}

nb::object group_norm(const Array& x, nb::object w, nb::object b, nb::tuple dims, nb::tuple per, double eps) {
    Form form;
    if (!form_of(x, dims, per, eps, form)) return not_implemented();
    Given weight(w), bias(b);
    if (!weight.fits(x, form.channels()) || !bias.fits(x, form.channels())) return not_implemented();
    return x.is<float>() ? forward<float>(x, weight, bias, form) : forward<double>(x, weight, bias, form);
}

template <class T>
nb::object backward(const Array& g, const Array& x, const Given& weight, const Array& mean, const Array& var,
                    const Form& form, bool wants_x, bool wants_w) {
    InRows g_rows(g), x_rows(x);
    const npy_intp none = 0, channels = form.channels();
    Array gx = wants_x ? new_array(x.ndim(), x.shape(), x.type()) : new_array(1, &none, x.type());
    Array gw = new_array(1, wants_w ? &channels : &none, x.type());
    Array gb = new_array(1, wants_w ? &channels : &none, x.type());
    const size_t room = size_t(form.rows * form.each);
    std::unique_ptr<double[]> both(new double[2 * room]);
    {
        Release release(x.size() * int64_t(sizeof(T)));
        Backward<T>{g_rows.data<T>(), x_rows.data<T>(), weight.data<T>(), mean.data<T>(), var.data<T>(),
                    wants_x ? gx.data<T>() : nullptr, wants_w ? gw.data<T>() : nullptr, gb.data<T>(),
                    both.get(), both.get() + room, form}.run();
    }
    return nb::make_tuple(give(gx), give(gw), give(gb));
}

nb::object group_norm_grad(const Array& g, const Array& x, nb::object w, const Array& mean, const Array& var,
                           nb::tuple dims, nb::tuple per, double eps, nb::tuple wanted) {
    Form form;
    if (!form_of(x, dims, per, eps, form) || !g.usable() || g.type() != x.type() || !g.same_shape(x))
        return not_implemented();
    Given weight(w);
    auto statistic = [&](const Array& a) {
        return a.usable() && a.type() == x.type() && a.contiguous() && a.size() == form.rows;
    };
    if (!weight.fits(x, form.channels()) || !statistic(mean) || !statistic(var)) return not_implemented();
    bool wants_x = nb::cast<bool>(wanted[0]), wants_w = nb::cast<bool>(wanted[1]);
    return x.is<float>() ? backward<float>(g, x, weight, mean, var, form, wants_x, wants_w)
                         : backward<double>(g, x, weight, mean, var, form, wants_x, wants_w);
}

}  // namespace

FW_BIND(m) {
    m.def("group_norm", &group_norm, nb::arg("x"), nb::arg("weight").none(), nb::arg("bias").none(),
          nb::arg("dims"), nb::arg("per"), nb::arg("eps"));
    m.def("group_norm_grad", &group_norm_grad, nb::arg("g"), nb::arg("x"), nb::arg("weight").none(),
          nb::arg("mean"), nb::arg("var"), nb::arg("dims"), nb::arg("per"), nb::arg("eps"), nb::arg("wanted"));
}

}  // namespace fw
