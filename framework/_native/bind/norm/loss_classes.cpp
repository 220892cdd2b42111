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

}  // namespace

FW_BIND(m) {
    m.def("cross_entropy", &cross_entropy, nb::arg("x"), nb::arg("target"), nb::arg("weight").none(),
          nb::arg("ignore"), nb::arg("smoothing"), nb::arg("reduction"));
    m.def("cross_entropy_grad", &cross_entropy_grad, nb::arg("g"), nb::arg("x"), nb::arg("target"),
          nb::arg("weight").none(), nb::arg("top"), nb::arg("total"), nb::arg("ignore"), nb::arg("smoothing"),
          nb::arg("reduction"));
}

}  // namespace fw
