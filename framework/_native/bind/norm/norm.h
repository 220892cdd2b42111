// The Python functions of a normalisation and of its backward.
//
// A class `Norm` says: `centred`, whether a mean is subtracted (there is no bias otherwise); `Form`, the sizes, with
// `form_of` to make it; `kept` and `weights`, the shapes of the statistics and of the weights' gradients; `forward`
// and `backward`, which do the work on memory.
#pragma once

#include <memory>

#include "base/half.h"
#include "bind/array.h"
#include "bind/bf16_array.h"
#include "bind/tensors/tensors.h"
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

constexpr int64_t FEW_NARROW = 1024;  // numbers of 16 bits that are widened without another array

inline bool has_moments(const Array& x) { return x.is_float() || (x.usable() && tensors::is_narrow(PyArray_DESCR(x.p))); }

// Of few numbers of 16 bits, computed as float32 and rounded once; statistics stay what they were computed as.
template <class Norm, class H>
nb::object norm_of_few(const Array& given, const Given& weight, const Given& bias, const typename Norm::Form& form) {
    alignas(64) float wide[FEW_NARROW], made[FEW_NARROW], scale[FEW_NARROW], shift[FEW_NARROW];
    const InRows x(given);
    const std::vector<npy_intp> kept = Norm::kept(given, form);
    NewArray y = new_array(given.ndim(), given.shape(), given.type());
    NewArray var = new_array(int(kept.size()), kept.data(), NPY_FLOAT);
    NewArray mean = Norm::centred ? new_array(int(kept.size()), kept.data(), NPY_FLOAT) : NewArray();
    widen(wide, x.data<H>(), given.size());
    if (!weight.none) widen(scale, weight.data<H>(), weight.a.size());
    if (!bias.none) widen(shift, bias.data<H>(), bias.a.size());
    Norm::forward(form, static_cast<const float*>(wide), weight.none ? nullptr : static_cast<const float*>(scale),
                  bias.none ? nullptr : static_cast<const float*>(shift), static_cast<float*>(made),
                  (Norm::centred ? mean : var).template data<float>(), var.data<float>());
    narrow(y.data<H>(), made, given.size());
    if (Norm::centred) return nb::make_tuple(give(y), give(mean), give(var));
    return nb::make_tuple(give(y), give(var));
}

// Of any number of them.
template <class Norm>
nb::object norm_of_narrow(const Array& given, const Given& weight, const Given& bias, const typename Norm::Form& form) {
    if (given.size() <= FEW_NARROW)
        return (given.type() == NPY_HALF ? norm_of_few<Norm, Half> : norm_of_few<Norm, Bf16>)(given, weight, bias, form);
    const nb::object type = nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_FLOAT)));
    const auto wide = [&](const Given& numbers) {
        return numbers.none ? nb::none() : tensors::in_dtype(reinterpret_cast<PyObject*>(numbers.a.p),
                                                             reinterpret_cast<PyArray_Descr*>(type.ptr()));
    };
    const nb::object x = tensors::in_dtype(reinterpret_cast<PyObject*>(given.p), reinterpret_cast<PyArray_Descr*>(type.ptr()));
    const nb::object w = wide(weight), b = wide(bias);
    nb::object all = norm_forward<Norm, float>(nb::cast<Array>(x), Given(w), Given(b), form);
    nb::list parts;
    for (nb::handle part : all)
        parts.append(nb::len(parts) ? nb::borrow(part) : tensors::in_dtype(part.ptr(), PyArray_DESCR(given.p)));
    return nb::tuple(parts);
}

template <class Norm>
nb::object norm(const Array& x, nb::object w, nb::object b, nb::tuple dims, nb::tuple per, double eps) {
    typename Norm::Form form;
    if (!Norm::form_of(x, dims, per, eps, form)) return not_implemented();
    Given weight(w), bias(b);
    if (!weight.fits(x, form.weights()) || !bias.fits(x, form.weights())) return not_implemented();
    if (!x.is_float()) return norm_of_narrow<Norm>(x, weight, bias, form);
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
    if (!x.is_float() || !Norm::form_of(x, dims, per, eps, form) || !g.usable() || g.type() != x.type() || !g.same_shape(x))
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
