// Connectionist temporal classification of NumPy arrays.
#include <algorithm>
#include <numeric>

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

// Whole numbers of a tuple, a list or an array, n of them between 0 and `most`; false for others.
bool lengths(nb::handle given, int64_t n, int64_t most, std::vector<int64_t>& to) {
    if (PyTuple_CheckExact(given.ptr()) || PyList_CheckExact(given.ptr())) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given.ptr()); ++i) {
            PyObject* item = PySequence_Fast_GET_ITEM(given.ptr(), i);
            int beyond = 0;
            if (!PyLong_CheckExact(item)) return false;
            to.push_back(PyLong_AsLongLongAndOverflow(item, &beyond));
            if (beyond) return false;
        }
    } else {
        const Array a = nb::cast<Array>(given);
        if (!a.is<int64_t>() || a.ndim() != 1) return false;
        const InRows rows(a);
        to.assign(rows.data<int64_t>(), rows.data<int64_t>() + a.size());
    }
    return int64_t(to.size()) == n && std::all_of(to.begin(), to.end(), [&](int64_t k) { return k >= 0 && k <= most; });
}

nb::object whole_numbers(const std::vector<int64_t>& from) {
    const npy_intp n = npy_intp(from.size());
    NewArray made = new_array(1, &n, NPY_INT64);
    std::copy(from.begin(), from.end(), made.data<int64_t>());
    return give(made);
}

// (the targets with blanks between, before and after them, the lengths of the inputs, of the targets, and these but at
// least 1 as numbers like x's) of log-probabilities x (steps, n, classes); anything wrong is left to Python.
nb::object ctc_places(Array x, Array targets, nb::object of_inputs, nb::object of_targets, int64_t blank) {
    if (!x.is_float() || x.ndim() != 3 || !targets.is<int64_t>() || targets.ndim() < 1 || targets.ndim() > 2 || !x.shape(1))
        return not_implemented();
    const int64_t n = x.shape(1), row = targets.ndim() == 2 ? targets.shape(1) : 0;
    std::vector<int64_t> times, sizes;
    if ((targets.ndim() == 2 && targets.shape(0) != n) || !lengths(of_inputs, n, x.shape(0), times) ||
        !lengths(of_targets, n, row ? row : targets.size(), sizes))
        return not_implemented();
    if (targets.ndim() == 1 && std::accumulate(sizes.begin(), sizes.end(), int64_t(0)) != targets.size())
        return not_implemented();
    const npy_intp shape[] = {n, 2 * *std::max_element(sizes.begin(), sizes.end()) + 1};
    const InRows given(targets);
    NewArray labels = new_array(2, shape, NPY_INT64), counted = new_array(1, shape, x.type());
    const int64_t* from = given.data<int64_t>();
    for (int64_t i = 0; i < n; ++i) {
        int64_t* to = labels.data<int64_t>() + i * shape[1];
        std::fill(to, to + shape[1], blank);
        for (int64_t k = 0; k < sizes[size_t(i)]; ++k) to[2 * k + 1] = from[k];
        for (int64_t k = 0; k < sizes[size_t(i)]; ++k)
            if (to[2 * k + 1] < 0 || to[2 * k + 1] >= x.shape(2)) return not_implemented();
        from += targets.ndim() == 2 ? row : sizes[size_t(i)];
        const double count = double(std::max<int64_t>(sizes[size_t(i)], 1));
        if (x.is<float>()) counted.data<float>()[i] = float(count);
        else counted.data<double>()[i] = count;
    }
    return nb::make_tuple(give(labels), whole_numbers(times), whole_numbers(sizes), give(counted));
}

}  // namespace

FW_BIND(m) {
    m.def("ctc_places", &ctc_places, nb::arg("x"), nb::arg("targets"), nb::arg("times").none(), nb::arg("sizes").none(),
          nb::arg("blank"));
    m.def("ctc", &ctc_of, nb::arg("x"), nb::arg("labels"), nb::arg("times"), nb::arg("sizes"), nb::arg("blank"));
    m.def("ctc_grad", &grad_of, nb::arg("g"), nb::arg("x"), nb::arg("alpha"), nb::arg("losses"), nb::arg("labels"),
          nb::arg("times"), nb::arg("sizes"), nb::arg("blank"));
}

}  // namespace fw::alignments
