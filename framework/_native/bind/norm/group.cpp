// group_norm and instance_norm of NumPy arrays, and their backward.
#include "bind/norm/norm.h"
#include "norm/group.h"

namespace fw {
namespace {

struct GroupNorm {
    static constexpr bool centred = true;
    using Form = GroupForm;

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

    template <class T>
    static void forward(const Form& form, const T* x, const T* weight, const T* bias, T* y, T* mean, T* var) {
        GroupForward<T>{x, weight, bias, y, mean, var, form}.run();
    }
    template <class... Memory> static void backward(const Form& form, Memory... all) { group_grad(form, all...); }
};

}  // namespace

FW_BIND(m) { bind_norm<GroupNorm>(m, "group_norm"); }

}  // namespace fw
