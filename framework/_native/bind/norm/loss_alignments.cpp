// Connectionist temporal classification of NumPy arrays.
#include "bind/array.h"
#include "norm/loss_alignments.h"

namespace fw::alignments {
namespace {

// Copies of the labels, and of the samples' numbers of steps and labels; false where arrays do not fit.
bool read(Ways& w, const Array& x, const Array& label, const Array& time, const Array& size, int64_t blank) {
    if (!x.is_float() || x.ndim() != 3 || !x.size() || !label.is<int64_t>() || label.ndim() != 2 || !label.size() ||
        !time.is<int64_t>() || time.ndim() != 1 || !size.is<int64_t>() || size.ndim() != 1)
        return false;
    const int64_t samples = x.shape(1);
    if (label.shape(0) != samples || time.shape(0) != samples || size.shape(0) != samples) return false;
    const auto copy = [](const Array& a) {
        InRows rows(a);
        return std::vector<int64_t>(rows.data<int64_t>(), rows.data<int64_t>() + a.size());
    };
    w = {x.shape(0), samples, x.shape(2), label.shape(1), blank, copy(label), copy(time), copy(size)};
    return w.valid();
}

nb::object ctc_of(Array x, Array labels, Array times, Array sizes, int64_t blank) {
    Ways w;
    if (!read(w, x, labels, times, sizes, blank)) return not_implemented();
    InRows rows(x);
    const npy_intp shape[] = {w.samples, w.steps, w.width};
    NewArray losses = new_array(1, shape, x.type()), alpha = new_array(3, shape, x.type());
    {
        Release release(alpha.size() * 64);
        if (x.is<float>()) ctc(w, rows.data<float>(), losses.data<float>(), alpha.data<float>());
        else ctc(w, rows.data<double>(), losses.data<double>(), alpha.data<double>());
    }
    return nb::make_tuple(give(losses), give(alpha));
}

nb::object grad_of(Array g, Array x, Array alpha, Array losses, Array labels, Array times, Array sizes, int64_t blank) {
    Ways w;
    if (!read(w, x, labels, times, sizes, blank)) return not_implemented();
    const auto is_of = [&](const Array& a, int ndim) { return a.usable() && a.type() == x.type() && a.ndim() == ndim; };
    if (!is_of(g, 1) || !is_of(losses, 1) || !is_of(alpha, 3) || g.shape(0) != w.samples || losses.shape(0) != w.samples ||
        alpha.shape(0) != w.samples || alpha.shape(1) != w.steps || alpha.shape(2) != w.width)
        return not_implemented();
    InRows scores(x), ways(alpha), loss(losses), seed(g);
    NewArray out = new_array(3, x.shape(), x.type());
    const auto run = [&](auto t) {
        using T = decltype(t);
        ctc_grad(w, seed.data<T>(), scores.data<T>(), ways.data<T>(), loss.data<T>(), out.data<T>());
    };
    {
        Release release(alpha.size() * 64);
        if (x.is<float>()) run(0.0f);
        else run(0.0);
    }
    return give(out);
}

}  // namespace

FW_BIND(m) {
    m.def("ctc", &ctc_of, nb::arg("x"), nb::arg("labels"), nb::arg("times"), nb::arg("sizes"), nb::arg("blank"));
    m.def("ctc_grad", &grad_of, nb::arg("g"), nb::arg("x"), nb::arg("alpha"), nb::arg("losses"), nb::arg("labels"),
          nb::arg("times"), nb::arg("sizes"), nb::arg("blank"));
}

}  // namespace fw::alignments
