// Losses by margins of NumPy arrays.
#include "bind/norm/reduction.h"
#include "norm/loss_margins.h"

namespace fw {
namespace {

// Scores (rows, classes), or one row of them, and as many targets for each row.
bool takes(const Array& x, const Array& target) {
    if (!x.is_float() || !x.size() || x.ndim() < 1 || x.ndim() > 2 || !target.is<int64_t>() || !target.size()) return false;
    return x.ndim() == 1 || (target.ndim() >= 1 && target.shape(0) == x.shape(0));
}

template <class T> Margins<T> margins(const InRows& x, const InRows& t, int64_t p, double margin) {
    const int64_t classes = x.a.shape(x.a.ndim() - 1), rows = x.a.size() / classes;
    const int64_t* from = t.data<int64_t>();  // copied, since another thread may write into the array
    return {rows, classes, t.a.size() / rows, x.data<T>(), {from, from + t.a.size()}, p == 2, margin};
}

template <class T>
nb::object forward(const Array& given, const Array& target, int64_t p, double margin, bool single, Reduction by) {
    const InRows x(given), t(target);
    const Margins<T> m = margins<T>(x, t, p, margin);
    if (!m.valid(!single)) return not_implemented();
    const npy_intp rows = m.rows;
    NewArray losses = new_array(given.ndim() - 1, &rows, given.type());
    {
        Release release(given.size() * int64_t(sizeof(T)));
        margin_losses(m, losses.data<T>());
    }
    if (by == Reduction::none || given.ndim() < 2) return give(losses);
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) sum += double(losses.data<T>()[i]);
    NewArray total = new_array(0, nullptr, given.type());
    *total.data<T>() = T(by == Reduction::mean ? sum / double(rows) : sum);
    return give(total);
}

nb::object margin_loss(const Array& x, const Array& target, int64_t p, double margin, bool single,
                       nb::object reduction) {
    if (!takes(x, target)) return not_implemented();
    const Reduction by = reduction_of(reduction);
    return x.is<float>() ? forward<float>(x, target, p, margin, single, by) : forward<double>(x, target, p, margin, single, by);
}

template <class T>
nb::object backward(nb::handle g, const Array& given, const Array& target, int64_t p, double margin, bool single,
                    Reduction by) {
    const InRows x(given), t(target);
    const Margins<T> m = margins<T>(x, t, p, margin);
    const Array by_row = nb::cast<Array>(g);
    const bool one = by != Reduction::none || given.ndim() < 2;
    if (!m.valid(!single) || (!one && (!by_row.is<T>() || by_row.size() != m.rows))) return not_implemented();
    const InRows gs(one ? given : by_row);
    const double scale = one ? PyFloat_AsDouble(g.ptr()) : 1;
    if (PyErr_Occurred()) throw nb::python_error();
    NewArray gx = like(given);
    {
        Release release(given.size() * int64_t(sizeof(T)));
        margin_grads(m, one ? nullptr : gs.data<T>(), by == Reduction::mean ? scale / double(m.rows) : scale, gx.data<T>());
    }
    return give(gx);
}

nb::object margin_loss_grad(nb::object g, const Array& x, const Array& target, int64_t p, double margin, bool single,
                            nb::object reduction) {
    if (!takes(x, target)) return not_implemented();
    const Reduction by = reduction_of(reduction);
    return x.is<float>() ? backward<float>(g, x, target, p, margin, single, by)
                         : backward<double>(g, x, target, p, margin, single, by);
}

}  // namespace

FW_BIND(m) {
    m.def("margin_loss", &margin_loss, nb::arg("x"), nb::arg("target"), nb::arg("p"), nb::arg("margin"), nb::arg("single"),
          nb::arg("reduction"));
    m.def("margin_loss_grad", &margin_loss_grad, nb::arg("g"), nb::arg("x"), nb::arg("target"), nb::arg("p"),
          nb::arg("margin"), nb::arg("single"), nb::arg("reduction"));
}

}  // namespace fw
