// The Python functions of a normalisation and of its backward.
//
// A class `Norm` says: `centred`, whether a mean is subtracted (there is no bias otherwise); `Form`, the sizes, with
// `form_of` to make it; `kept` and `weights`, the shapes of the statistics and of the weights' gradients; `forward`
// and `backward`, which do the work on memory.
#pragma once

#include <memory>

#include "bind/array.h"
#include "norm/norm_rows.h"

namespace fw {

inline bool statistic(const Array& a, const Array& x, int64_t n) {
    return a.usable() && a.type() == x.type() && a.contiguous() && a.size() == n;
}

template <class Norm, class T>
nb::object norm_forward(const Array& given, const Given& weight, const Given& bias, const typename Norm::Form& form) {
    InRows x(given);
    const std::vector<npy_intp> kept = Norm::kept(given, form);
    NewArray y = new_array(given.ndim(), given.shape(), given.type());
    const int dims = int(kept.size());
    NewArray var = new_array(dims, kept.data(), given.type());
    NewArray mean = Norm::centred ? new_array(dims, kept.data(), given.type()) : NewArray();
    {
        Release release(given.size() * int64_t(sizeof(T)));
        Norm::forward(form, x.data<T>(), weight.data<T>(), bias.data<T>(), y.data<T>(),
                      (Norm::centred ? mean : var).template data<T>(), var.data<T>());
    }
    if (Norm::centred) return nb::make_tuple(give(y), give(mean), give(var));
    return nb::make_tuple(give(y), give(var));
}

template <class Norm>
nb::object norm(const Array& x, nb::object w, nb::object b, nb::tuple dims, nb::tuple per, double eps) {
    typename Norm::Form form;
    if (!Norm::form_of(x, dims, per, eps, form)) return not_implemented();
    Given weight(w), bias(b);
    if (!weight.fits(x, form.weights()) || !bias.fits(x, form.weights())) return not_implemented();
    return (x.is<float>() ? norm_forward<Norm, float> : norm_forward<Norm, double>)(x, weight, bias, form);
}

template <class Norm, class T>
nb::object norm_backward(const Array& g, const Array& x, const Given& weight, const Array& mean, const Array& var,
                         const typename Norm::Form& form, nb::tuple wanted) {
    const bool wants_x = nb::cast<bool>(wanted[0]), wants_w = nb::cast<bool>(wanted[1]);
    InRows g_rows(g), x_rows(x);
    const std::vector<npy_intp> shape = wants_w ? Norm::weights(x, form) : std::vector<npy_intp>{0};
    const npy_intp none = 0;
    NewArray gx = wants_x ? new_array(x.ndim(), x.shape(), x.type()) : new_array(1, &none, x.type());
    NewArray gw = new_array(int(shape.size()), shape.data(), x.type());
    NewArray gb = Norm::centred ? new_array(int(shape.size()), shape.data(), x.type()) : NewArray();
    {
        Release release(x.size() * int64_t(sizeof(T)));
        Norm::backward(form, g_rows.data<T>(), x_rows.data<T>(), weight.data<T>(), mean.data<T>(), var.data<T>(),
                       wants_x ? gx.data<T>() : nullptr, wants_w ? gw.data<T>() : nullptr,
                       (Norm::centred ? gb : gw).template data<T>());
    }
    if (Norm::centred) return nb::make_tuple(give(gx), give(gw), give(gb));
    return nb::make_tuple(give(gx), give(gw));
}

template <class Norm>
nb::object norm_grad(const Array& g, const Array& x, nb::object w, const Array& mean, const Array& var, nb::tuple dims,
                     nb::tuple per, double eps, nb::tuple wanted) {
    typename Norm::Form form;
    if (!Norm::form_of(x, dims, per, eps, form) || !g.usable() || g.type() != x.type() || !g.same_shape(x))
        return not_implemented();
    if (wanted.size() < 2) throw nb::value_error("wanted: two or three truth values");
    Given weight(w);
    const int64_t n = form.statistics();
    if (!weight.fits(x, form.weights()) || !statistic(mean, x, n) || !statistic(var, x, n)) return not_implemented();
    return (x.is<float>() ? norm_backward<Norm, float> : norm_backward<Norm, double>)(g, x, weight, mean, var, form,
                                                                                      wanted);
}

template <class Norm> void bind_norm(nb::module_& m, const char* name) {
    nb::arg x("x"), g("g"), var("var"), dims("dims"), per("per"), eps("eps"), wanted("wanted");
    const std::string grad = std::string(name) + "_grad";
    if constexpr (Norm::centred) {
        m.def(name, &norm<Norm>, x, nb::arg("weight").none(), nb::arg("bias").none(), dims, per, eps);
        m.def(grad.c_str(), &norm_grad<Norm>, g, x, nb::arg("weight").none(), nb::arg("mean"), var, dims, per, eps,
              wanted);
    } else {
        m.def(name, [](const Array& x, nb::object w, nb::tuple dims, nb::tuple per, double eps) {
            return norm<Norm>(x, w, nb::none(), dims, per, eps);
        }, x, nb::arg("weight").none(), dims, per, eps);
        m.def(grad.c_str(), [](const Array& g, const Array& x, nb::object w, const Array& var, nb::tuple dims,
                               nb::tuple per, double eps, nb::tuple wanted) {
            return norm_grad<Norm>(g, x, w, var, var, dims, per, eps, wanted);
        }, g, x, nb::arg("weight").none(), var, dims, per, eps, wanted);
    }
}

}  // namespace fw
