// layer_norm and rms_norm: y = (x - mean) * rstd * weight + bias over the last dimensions, and their backward.
#include <memory>

#include "norm_rows.h"

namespace fw {
namespace {

constexpr int64_t MOST_CHUNKS = 32;   // of rows, whose sums for weight and bias are added up in order
constexpr int64_t LEAST_ROWS = 8;
constexpr int TOGETHER = 2;           // rows; of more, lines of 4096 bytes would drive each other out of the cache

struct Form {
    int64_t rows, n;
    double eps;
};

// -- forward --------------------------------------------------------------------------------------

template <bool Centred, class T> struct Forward {
    const T *x, *weight, *bias;
    T *y, *mean, *var;
    Form form;

    template <bool Past> void row(int64_t r) const {
        const T* from = x + r * form.n;
        T* to = y + r * form.n;
        Moments m = moments<Centred>(from, form.n);
        if (Centred) mean[r] = T(m.mean);
        var[r] = T(m.var);
        Vec<T> c = splat(T(m.mean)), k = splat(rstd_of<T>(m.var, form.eps));
        vectors<T>(0, form.n, [&](int64_t i, auto part, int) {
            Vec<T> v = (Centred ? take(from + i, part) - c : take(from + i, part)) * k;
            if (weight && bias) v = fma<T>(v, take(weight + i, part), take(bias + i, part));
            else if (weight) v *= take(weight + i, part);
            else if (bias) v += take(bias + i, part);
            put_as<Past>(to + i, v, part);
        });
    }

    void run() const {
        choosing_caches(y, form.rows * form.n, form.n, [&](auto past) {
            parallel(form.rows, grain_of(form.n), [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) row<past.value>(r);
                if (past.value) settle();
            });
        });
    }
};

// -- backward -------------------------------------------------------------------------------------
//
// With a = g * weight and h = (x - mean) * rstd: gx = rstd * (a - mean(a) - h * mean(a * h)), and over the
// rows, weight gets the sum of g * h and bias that of g.

template <bool Centred, class T> struct Backward {
    const T *g, *x, *weight, *mean, *var;
    T *gx, *gw, *gb;  // gx, or gw and gb, may be missing
    Form form;

    // What is the same along a row: gx = (a - mean_a - h * mean_ah) * rstd.
    struct Row { T centre, rstd, mean_a, mean_ah; };

    template <bool Weighted> Row row(int64_t r) const {
        const T *from = x + r * form.n, *gr = g + r * form.n;
        Row row{Centred ? mean[r] : T(0), rstd_of<T>(var[r], form.eps), 0, 0};
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
            Row own = row<Weighted>(r + k);
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
        for (; r < end; ++r) rows<1, Weighted, Sums, Past>(r, sum_w, sum_b);
        if (Past) settle();
    }

    template <bool Sums> void some(int64_t begin, int64_t end, T* sum_w, T* sum_b) const {
        choosing_caches(gx, gx ? form.rows * form.n : 0, form.n, [&](auto past) {
            if (weight) some<true, Sums, past.value>(begin, end, sum_w, sum_b);
            else some<false, Sums, past.value>(begin, end, sum_w, sum_b);
        });
    }

    // Chunks of rows depend on the shape alone, and so do the sums.
    int64_t chunk() const { return std::max(LEAST_ROWS, (form.rows + MOST_CHUNKS - 1) / MOST_CHUNKS); }
    int64_t chunks() const { return (form.rows + chunk() - 1) / chunk(); }

    void run(T* partial) const {  // partial: room for chunks() times gw and gb
        const int64_t n = form.n, many = chunks();
        if (!gw) {
            parallel(form.rows, grain_of(n), [&](int64_t begin, int64_t end) {
                some<false>(begin, end, nullptr, nullptr);
            });
            return;
        }
        parallel(many, grain_of(n * chunk()), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                T* own = partial + 2 * n * i;
                std::fill(own, own + 2 * n, T(0));
                some<true>(i * chunk(), std::min(form.rows, (i + 1) * chunk()), own, own + n);
            }
        });
        parallel(n, grain_of(2 * many), [&](int64_t begin, int64_t end) {
            auto add_up = [&](const T* first, T* out) {
                std::copy(first + begin, first + end, out + begin);
                for (int64_t i = 1; i < many; ++i)
                    for (int64_t j = begin; j < end; ++j) out[j] += first[2 * n * i + j];
            };
            add_up(partial, gw);
            if (Centred) add_up(partial + n, gb);
        });
    }
};

// -- bindings -------------------------------------------------------------------------------------

struct Shapes {
    std::vector<npy_intp> kept, last;  // of the statistics, of the weights
    Form form;

    Shapes(const Array& x, int count, double eps) : kept(x.shape(), x.shape() + x.ndim()), form{1, 1, eps} {
        int first = x.ndim() - count;
        last.assign(kept.begin() + first, kept.end());
        std::fill(kept.begin() + first, kept.end(), 1);
        for (int d = 0; d < x.ndim(); ++d) (d < first ? form.rows : form.n) *= x.shape(d);
    }
};

bool takes(const Array& x, size_t count) {
    return x.is_float() && x.size() && count >= 1 && count <= size_t(x.ndim());
}

template <bool Centred, class T>
nb::object forward(const Array& given, const Given& weight, const Given& bias, const Shapes& s) {
    InRows x(given);
    Array y = new_array(given.ndim(), given.shape(), given.type());
    Array var = new_array(given.ndim(), s.kept.data(), given.type());
    Array mean = Centred ? new_array(given.ndim(), s.kept.data(), given.type()) : var;
    {
        Release release(given.size() * int64_t(sizeof(T)));
        Forward<Centred, T>{x.data<T>(), weight.data<T>(), bias.data<T>(), y.data<T>(), mean.data<T>(),
                            var.data<T>(), s.form}.run();
    }
    if (Centred) return nb::make_tuple(give(y), give(mean), give(var));
    return nb::make_tuple(give(y), give(var));
}

template <bool Centred>
nb::object norm(const Array& x, nb::handle w, nb::handle b, nb::tuple dims, double eps) {
    if (!takes(x, dims.size())) return not_implemented();
    Shapes s(x, int(dims.size()), eps);
    Given weight(w), bias(b);
    if (!weight.fits(x, s.form.n) || !bias.fits(x, s.form.n)) return not_implemented();
    return x.is<float>() ? forward<Centred, float>(x, weight, bias, s) : forward<Centred, double>(x, weight, bias, s);
}

nb::object layer_norm(const Array& x, nb::object w, nb::object b, nb::tuple dims, nb::object, double eps) {
    return norm<true>(x, w, b, dims, eps);
}

nb::object rms_norm(const Array& x, nb::object w, nb::tuple dims, nb::object, double eps) {
    return norm<false>(x, w, nb::none(), dims, eps);
}

template <bool Centred, class T>
nb::object backward(const Array& g, const Array& x, const Given& weight, const Array* mean, const Array& var,
                    const Shapes& s, bool wants_x, bool wants_w) {
    InRows g_rows(g), x_rows(x);
    const npy_intp none = 0;
    Array gx = wants_x ? new_array(x.ndim(), x.shape(), x.type()) : new_array(1, &none, x.type());
    auto sums = [&] { return wants_w ? new_array(int(s.last.size()), s.last.data(), x.type())
                                     : new_array(1, &none, x.type()); };
    Array gw = sums(), gb = Centred ? sums() : Array();
    Backward<Centred, T> work{g_rows.data<T>(), x_rows.data<T>(), weight.data<T>(),
                              mean ? mean->data<T>() : nullptr, var.data<T>(), wants_x ? gx.data<T>() : nullptr,
                              wants_w ? gw.data<T>() : nullptr, Centred ? gb.data<T>() : nullptr, s.form};
    std::unique_ptr<T[]> partial(wants_w ? new T[size_t(work.chunks() * 2 * s.form.n)] : nullptr);
    {
        Release release(x.size() * int64_t(sizeof(T)));
        work.run(partial.get());
    }
    if (Centred) return nb::make_tuple(give(gx), give(gw), give(gb));
    return nb::make_tuple(give(gx), give(gw));
}

template <bool Centred>
nb::object norm_grad(const Array& g, const Array& x, nb::handle w, const Array* mean, const Array& var,
                     nb::tuple dims, double eps, nb::tuple wanted) {
    if (!takes(x, dims.size()) || !g.usable() || g.type() != x.type() || !g.same_shape(x)) return not_implemented();
    Shapes s(x, int(dims.size()), eps);
    Given weight(w);
    auto statistic = [&](const Array& a) {
        return a.usable() && a.type() == x.type() && a.contiguous() && a.size() == s.form.rows;
    };
    if (!weight.fits(x, s.form.n) || !statistic(var) || (mean && !statistic(*mean))) return not_implemented();
    bool wants_x = nb::cast<bool>(wanted[0]), wants_w = nb::cast<bool>(wanted[1]);
    return x.is<float>() ? backward<Centred, float>(g, x, weight, mean, var, s, wants_x, wants_w)
                         : backward<Centred, double>(g, x, weight, mean, var, s, wants_x, wants_w);
}

nb::object layer_norm_grad(const Array& g, const Array& x, nb::object w, const Array& mean, const Array& var,
                           nb::tuple dims, nb::object, double eps, nb::tuple wanted) {
    return norm_grad<true>(g, x, w, &mean, var, dims, eps, wanted);
}

nb::object rms_norm_grad(const Array& g, const Array& x, nb::object w, const Array& var, nb::tuple dims, nb::object,
                         double eps, nb::tuple wanted) {
    return norm_grad<false>(g, x, w, nullptr, var, dims, eps, wanted);
}

}  // namespace

FW_BIND(m) {
    m.def("layer_norm", &layer_norm, nb::arg("x"), nb::arg("weight").none(), nb::arg("bias").none(),
          nb::arg("dims"), nb::arg("per"), nb::arg("eps"));
    m.def("rms_norm", &rms_norm, nb::arg("x"), nb::arg("weight").none(), nb::arg("dims"), nb::arg("per"),
          nb::arg("eps"));
    m.def("layer_norm_grad", &layer_norm_grad, nb::arg("g"), nb::arg("x"), nb::arg("weight").none(),
          nb::arg("mean"), nb::arg("var"), nb::arg("dims"), nb::arg("per"), nb::arg("eps"), nb::arg("wanted"));
    m.def("rms_norm_grad", &rms_norm_grad, nb::arg("g"), nb::arg("x"), nb::arg("weight").none(), nb::arg("var"),
          nb::arg("dims"), nb::arg("per"), nb::arg("eps"), nb::arg("wanted"));
}

}  // namespace fw
