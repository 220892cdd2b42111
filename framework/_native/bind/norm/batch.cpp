// batch_norm of NumPy arrays, with its own statistics and with given ones, and its backward.
#include "bind/norm/norm.h"
#include "norm/batch.h"

namespace fw {
namespace {

struct BatchNorm {
    static constexpr bool centred = true;
    using Form = BatchForm;

    static bool form_of(const Array& x, nb::handle, nb::handle, double eps, Form& f) {
        if (!x.is_float() || !x.size() || x.ndim() < 2) return false;
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
    if (!BatchNorm::form_of(x, {}, {}, eps, f)) return not_implemented();
    Given weight(w), bias(b);
    if (!statistic(mean, x, f.channels) || !statistic(var, x, f.channels)) return not_implemented();
    if (!weight.fits(x, f.channels) || !bias.fits(x, f.channels)) return not_implemented();
    return x.is<float>() ? fixed(x, mean.data<float>(), var.data<float>(), weight, bias, f)
                         : fixed(x, mean.data<double>(), var.data<double>(), weight, bias, f);
}

}  // namespace

FW_BIND(m) {
    m.def("batch_norm_eval", &batch_norm_eval, nb::arg("x"), nb::arg("mean"), nb::arg("var"),
          nb::arg("weight").none(), nb::arg("bias").none(), nb::arg("per"), nb::arg("eps"));
    bind_norm<BatchNorm>(m, "batch_norm");
}

}  // namespace fw
