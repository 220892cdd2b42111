// layer_norm and rms_norm of NumPy arrays, and their backward.
#include "bind/norm/norm.h"
#include "norm/layer.h"

namespace fw {
namespace {

template <bool Centred> struct LayerNorm {
    static constexpr bool centred = Centred;
    using Form = LayerForm;

    static bool form_of(const Array& x, nb::tuple dims, nb::tuple, double eps, Form& form) {
        const int count = int(dims.size()), first = x.usable() ? x.ndim() - count : 0;
        if (!has_moments(x) || !x.size() || count < 1 || first < 0) return false;
        form = {1, 1, eps, first};
        for (int d = 0; d < x.ndim(); ++d) (d < first ? form.rows : form.n) *= x.shape(d);
        return true;
    }
    static std::vector<npy_intp> kept(const Array& x, const Form& form) {
        std::vector<npy_intp> shape(x.shape(), x.shape() + x.ndim());
        std::fill(shape.begin() + form.first, shape.end(), 1);
        return shape;
    }
    static std::vector<npy_intp> weights(const Array& x, const Form& form) {
        return {x.shape() + form.first, x.shape() + x.ndim()};
    }

    template <class T>
    static void forward(const Form& form, const T* x, const T* weight, const T* bias, T* y, T* mean, T* var) {
        LayerForward<Centred, T>{x, weight, bias, y, mean, var, form}.run();
    }
    template <class... Memory> static void backward(const Form& form, Memory... all) { layer_grad<Centred>(form, all...); }
};

}  // namespace

FW_BIND(m) {
    bind_norm<LayerNorm<true>>(m, "layer_norm");
    bind_norm<LayerNorm<false>>(m, "rms_norm");
}

}  // namespace fw
