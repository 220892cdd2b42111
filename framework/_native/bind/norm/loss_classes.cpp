// cross_entropy of NumPy arrays.
#include "bind/norm/reduction.h"

namespace fw {
namespace {

bool takes(const Array& x, const Array& target, const Given& weight) {
    if (!x.is_float() || !x.size() || x.ndim() < 2 || !target.is<int64_t>() || target.ndim() != x.ndim() - 1)
        return false;
    for (int d = 0; d < target.ndim(); ++d)
        if (target.shape(d) != x.shape(d ? d + 1 : 0)) return false;
    return weight.fits(x, x.shape(1));
}

// A copy, since another thread may write into the array while the kernel runs.
std::vector<int64_t> copy_of(const InRows& t) {
    const int64_t* from = t.data<int64_t>();
    return {from, from + t.a.size()};
}

template <class T>
nb::object forward(const Array& given, const Array& target, const Given& weight, int64_t ignore, double smoothing,
                   Reduction reduction) {
    InRows x(given), t(target);
    Scores<T> s{Around(given, 1, 1), x.data<T>(), copy_of(t), weight.data<T>(), ignore, smoothing};
    if (!s.valid()) return not_implemented();
    const bool reduced = reduction != Reduction::none;
    NewArray loss = reduced ? new_array(0, nullptr, given.type()) : new_array(target.ndim(), target.shape(), given.type());
    NewArray top = new_array(target.ndim(), target.shape(), given.type());
    NewArray total = new_array(target.ndim(), target.shape(), given.type());
    {
        Release release(given.size() * int64_t(sizeof(T)));
        class_losses(s, reduction, loss.data<T>(), top.data<T>(), total.data<T>());
    }
    return nb::make_tuple(give(loss), give(top), give(total));
}

nb::object cross_entropy(const Array& x, const Array& target, nb::object w, int64_t ignore, double smoothing,
                         nb::object reduction) {
    Given weight(w);
    if (!takes(x, target, weight)) return not_implemented();
    Reduction r = reduction_of(reduction);
    return x.is<float>() ? forward<float>(x, target, weight, ignore, smoothing, r)
                         : forward<double>(x, target, weight, ignore, smoothing, r);
}

template <class T>
nb::object backward(nb::handle g, const Array& given, const Array& target, const Given& weight, const Array& top,
                    const Array& total, int64_t ignore, double smoothing, Reduction reduction) {
    Array by_target = nb::cast<Array>(g);
    const bool reduced = reduction != Reduction::none;
    if (!reduced && (!by_target.is<T>() || by_target.size() != target.size())) return not_implemented();
    InRows x(given), t(target), gs(reduced ? target : by_target);
    Scores<T> s{Around(given, 1, 1), x.data<T>(), copy_of(t), weight.data<T>(), ignore, smoothing};
    if (!s.valid()) return not_implemented();
    const double scale = reduced ? PyFloat_AsDouble(g.ptr()) : 1;
    if (PyErr_Occurred()) throw nb::python_error();
    NewArray gx = new_array(given.ndim(), given.shape(), given.type());
    {
        Release release(given.size() * int64_t(sizeof(T)));
        class_grads(s, reduction, reduced ? nullptr : gs.data<T>(), scale, top.data<T>(), total.data<T>(), gx.data<T>());
    }
    return give(gx);
}

nb::object cross_entropy_grad(nb::object g, const Array& x, const Array& target, nb::object w, const Array& top,
                              const Array& total, int64_t ignore, double smoothing, nb::object reduction) {
    Given weight(w);
    if (!takes(x, target, weight)) return not_implemented();
    for (const Array* a : {&top, &total})
        if (!a->usable() || a->type() != x.type() || a->size() != target.size() || !a->contiguous())
            return not_implemented();
    Reduction r = reduction_of(reduction);
    return x.is<float>() ? backward<float>(g, x, target, weight, top, total, ignore, smoothing, r)
                         : backward<double>(g, x, target, weight, top, total, ignore, smoothing, r);
}

// (the loss, what the targets count together) of log-probabilities
template <class T>
nb::object picked(const Array& given, const Array& target, const Given& weight, int64_t ignore, Reduction by) {
    InRows x(given), t(target);
    const Scores<T> s{Around(given, 1, 1), x.data<T>(), copy_of(t), weight.data<T>(), ignore, 0};
    if (!s.valid()) return not_implemented();
    NewArray loss = by == Reduction::none ? new_array(target.ndim(), target.shape(), given.type())
                                          : new_array(0, nullptr, given.type());
    NewArray shares = new_array(0, nullptr, given.type());
    {
        Release release(target.size() * 16);
        *shares.data<T>() = T(picked_losses(s, by, loss.data<T>()));
    }
    return nb::make_tuple(give(loss), give(shares));
}

nb::object nll_loss(const Array& x, const Array& target, nb::object w, int64_t ignore, nb::object reduction) {
    Given weight(w);
    if (!takes(x, target, weight)) return not_implemented();
    const Reduction by = reduction_of(reduction);
    return x.is<float>() ? picked<float>(x, target, weight, ignore, by) : picked<double>(x, target, weight, ignore, by);
}

template <class T>
nb::object picked_grad(nb::handle g, const Array& shares, const Array& target, const Given& weight, int64_t ignore, Reduction by,
                       const std::vector<npy_intp>& shape) {
    const Array each = nb::cast<Array>(g);
    const bool all = by != Reduction::none;
    if (!all && (!each.is<T>() || each.size() != target.size())) return not_implemented();
    InRows t(target), gs(all ? target : each);
    NewArray gx = new_array(int(shape.size()), shape.data(), type_number<T>);
    const Scores<T> s{Around(gx, 1, 1), nullptr, copy_of(t), weight.data<T>(), ignore, 0};
    if (!s.valid()) return not_implemented();
    double scale = all ? PyFloat_AsDouble(g.ptr()) : 1;
    if (PyErr_Occurred()) throw nb::python_error();
    if (by == Reduction::mean) scale /= double(*shares.data<T>());
    {
        Release release(gx.size() * int64_t(sizeof(T)));
        picked_grads(s, !all, all ? nullptr : gs.data<T>(), scale, gx.data<T>());
    }
    return give(gx);
}

nb::object nll_loss_grad(nb::object g, const Array& target, nb::object w, const Array& shares, int64_t ignore,
                         nb::object reduction, const std::vector<npy_intp>& shape) {
    const Reduction by = reduction_of(reduction);
    bool fit = shares.is_float() && shares.size() == 1 && target.is<int64_t>() && shape.size() >= 2 && shape.size() < 32 &&
               size_t(target.ndim()) == shape.size() - 1 && countable(shape.data(), int(shape.size())) && shape[1] > 0;
    for (size_t d = 0; fit && d < shape.size(); ++d)
        fit = shape[d] > 0 && (d == 1 || target.shape(int(d ? d - 1 : 0)) == shape[d]);
    Given weight(w);
    if (!fit || !weight.fits(shares, shape[1])) return not_implemented();
    return shares.is<float>() ? picked_grad<float>(g, shares, target, weight, ignore, by, shape)
                              : picked_grad<double>(g, shares, target, weight, ignore, by, shape);
}

}  // namespace

FW_BIND(m) {
    m.def("nll_loss", &nll_loss, nb::arg("x"), nb::arg("target"), nb::arg("weight").none(), nb::arg("ignore"),
          nb::arg("reduction"));
    m.def("nll_loss_grad", &nll_loss_grad, nb::arg("g"), nb::arg("target"), nb::arg("weight").none(), nb::arg("shares"),
          nb::arg("ignore"), nb::arg("reduction"), nb::arg("shape"));
    m.def("cross_entropy", &cross_entropy, nb::arg("x"), nb::arg("target"), nb::arg("weight").none(),
          nb::arg("ignore"), nb::arg("smoothing"), nb::arg("reduction"));
    m.def("cross_entropy_grad", &cross_entropy_grad, nb::arg("g"), nb::arg("x"), nb::arg("target"),
          nb::arg("weight").none(), nb::arg("top"), nb::arg("total"), nb::arg("ignore"), nb::arg("smoothing"),
          nb::arg("reduction"));
}

}  // namespace fw
