// group_norm and instance_norm of NumPy arrays, and their backward.
#include "bind/norm/norm.h"
#include "norm/group.h"
#include "norm/short_norm.h"

namespace fw {
namespace {

struct GroupNorm {
    static constexpr bool centred = true;
    using Form = GroupForm;

    // `per` is the shape that the weights broadcast from: 1 for the samples, the groups, their channels, 1 ... Of x
    // with all channels in one dimension it has one more.
    static bool form_of(const Array& x, nb::tuple dims, nb::tuple per, double eps, Form& form) {
        if (!has_moments(x) || !x.size() || int(per.size()) - int(dims.size()) != 2) return false;
        if (int(per.size()) == x.ndim() + 1 && x.ndim() >= 2) return of_channels(x, per, eps, form);
        if (x.ndim() < 3 || int(per.size()) != x.ndim()) return false;
        form = {x.shape(0) * x.shape(1), 1, x.shape(1), 1, 1, eps, x.ndim()};
        for (int d = 2; d < x.ndim(); ++d) {
            form.n *= x.shape(d);
            const int64_t channels = nb::cast<int64_t>(per[size_t(d)]);
            if (channels < 1 || channels > form.n / form.each) return false;
            form.each *= channels;
        }
        if (form.n % form.each) return false;
        return is_worth(x, form);
    }
    static bool of_channels(const Array& x, nb::tuple per, double eps, Form& form) {
        const int64_t groups = nb::cast<int64_t>(per[1]), each = nb::cast<int64_t>(per[2]);
        if (groups < 1 || groups > x.shape(1) || each != x.shape(1) / groups || each * groups != x.shape(1)) return false;
        for (size_t d = 3; d < per.size(); ++d)
            if (nb::cast<int64_t>(per[d]) != 1) return false;
        form = {x.shape(0) * groups, x.size() / (x.shape(0) * groups), groups, each, 1, eps, x.ndim() + 1};
        return is_worth(x, form);
    }
    static bool is_worth(const Array& x, Form& form) {
        form.length = form.n / form.each;
        return form.each == 1 || form.length >= lanes<float> || x.size() < (1 << 14) ||  // else NumPy is quicker
               form.n <= MOST_HELD * (x.is<double>() ? lanes<double> : lanes<float>);
    }
    // samples and groups, then 1 for each dimension of a group
    static std::vector<npy_intp> kept(const Array&, const Form& form) {
        std::vector<npy_intp> shape(size_t(form.dims), 1);
        shape[1] = form.groups, shape[0] = form.rows / form.groups;
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
