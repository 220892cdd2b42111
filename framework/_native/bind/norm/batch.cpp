// batch_norm of NumPy arrays, with its own statistics and with given ones, and its backward.
#include "bind/norm/norm.h"
#include "norm/batch.h"

namespace fw {
namespace {

struct BatchNorm {
    static constexpr bool centred = true;
    using Form = BatchForm;

    static bool form_of(const Array& x, nb::handle, nb::handle, double eps, Form& f) {
        if (!has_moments(x) || !x.size() || x.ndim() < 2) return false;
        Around a(x, 1, 1);
        f = {a.outer, a.n, a.inner, eps};
        return true;
    }
    static std::vector<npy_intp> kept(const Array& x, const Form& f) {
        std::vector<npy_intp> shape(size_t(x.ndim()), 1);
        shape[1] = f.channels;
        return shape;
    }
    static std::vector<npy_intp> weights(const Array&, const Form& f) { return {f.channels}; }

    template <class... Memory> static void forward(const Form& f, Memory... all) { batch_forward(f, all...); }
    template <class... Memory> static void backward(const Form& f, Memory... all) { batch_grad(f, all...); }
};

// With given statistics.
template <class T>
nb::object fixed(const Array& given, const T* mean, const T* var, const Given& weight, const Given& bias,
                 const BatchForm& f) {
    InRows x(given);
    NewArray y = new_array(given.ndim(), given.shape(), given.type());
    {
        Release release(given.size() * int64_t(sizeof(T)));
        batch_fixed(f, x.data<T>(), mean, var, weight.data<T>(), bias.data<T>(), y.data<T>());
    }
    return give(y);
}

nb::object batch_norm_eval(const Array& x, const Array& mean, const Array& var, nb::object w, nb::object b,
                           nb::object, double eps) {
    BatchForm f;
    if (!x.is_float() || !BatchNorm::form_of(x, {}, {}, eps, f)) return not_implemented();
    Given weight(w), bias(b);
    if (!statistic(mean, x, f.channels) || !statistic(var, x, f.channels)) return not_implemented();
    if (!weight.fits(x, f.channels) || !bias.fits(x, f.channels)) return not_implemented();
    return x.is<float>() ? fixed(x, mean.data<float>(), var.data<float>(), weight, bias, f)
                         : fixed(x, mean.data<double>(), var.data<double>(), weight, bias, f);
}

// Its gradients where the statistics are constants: of x, weight and bias; those that are not wanted are empty.
nb::object batch_norm_eval_grad(const Array& g, const Array& x, const Array& mean, const Array& var, nb::object w, double eps,
                                bool wants_x, bool wants_w) {
    BatchForm f;
    if (!x.is_float() || !BatchNorm::form_of(x, {}, {}, eps, f) || !g.usable() || g.type() != x.type() || !g.same_shape(x))
        return not_implemented();
    Given weight(w);
    if (!statistic(mean, x, f.channels) || !statistic(var, x, f.channels) || !weight.fits(x, f.channels))
        return not_implemented();
    InRows g_rows(g), x_rows(x);
    const npy_intp none = 0, channels = f.channels;
    NewArray gx = wants_x ? new_array(x.ndim(), x.shape(), x.type()) : new_array(1, &none, x.type());
    NewArray gw = new_array(1, wants_w ? &channels : &none, x.type()), gb = new_array(1, wants_w ? &channels : &none, x.type());
    {
        Release release(x.size() * 8);
        const auto run = [&](auto t) {
            using T = decltype(t);
            batch_fixed_grad<T>(f, g_rows.data<T>(), x_rows.data<T>(), weight.data<T>(), mean.data<T>(), var.data<T>(),
                                wants_x ? gx.data<T>() : nullptr, wants_w ? gw.data<T>() : nullptr,
                                wants_w ? gb.data<T>() : nullptr);
        };
        x.is<float>() ? run(float{}) : run(double{});
    }
    return nb::make_tuple(give(gx), give(gw), give(gb));
}

}  // namespace

FW_BIND(m) {
    m.def("batch_norm_eval_grad", &batch_norm_eval_grad, nb::arg("g"), nb::arg("x"), nb::arg("mean"), nb::arg("var"),
          nb::arg("weight").none(), nb::arg("eps"), nb::arg("wants_x"), nb::arg("wants_w"));
    m.def("batch_norm_eval", &batch_norm_eval, nb::arg("x"), nb::arg("mean"), nb::arg("var"),
          nb::arg("weight").none(), nb::arg("bias").none(), nb::arg("per"), nb::arg("eps"));
    bind_norm<BatchNorm>(m, "batch_norm");
}

}  // namespace fw
