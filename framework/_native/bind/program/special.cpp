// Special functions of NumPy arrays.
#include <algorithm>

#include "bind/array.h"
#include "bind/move/copy.h"
#include "program/special.h"
#include "program/special_pairs.h"

namespace fw::special {
namespace {

void compute(const Function& f, const Array& rows, int order, const Array& out, Writes into) {
    Release release(rows.size() * (f.quick(order) ? 16 : 64), into);
    if (rows.is<float>()) f.floats(rows.data<float>(), rows.size(), out.data<float>(), order);
    else f.doubles(rows.data<double>(), rows.size(), out.data<double>(), order);
}

// Whether a result may be written over `to`: it is x, or shares no memory with it.
bool takes_result(const Array& to, const Array& x) {
    if (!to.usable() || to.type() != x.type() || !to.same_shape(x) || !to.contiguous() || !to.writeable()) return false;
    const char *a = to.data<char>(), *b = x.data<char>();
    const int64_t bytes = x.size() * PyArray_ITEMSIZE(x.p);
    return x.contiguous() && (a == b || a + bytes <= b || b + bytes <= a);
}

// `out`: the array that the result is written into, or None.
nb::object of_one(const Function& f, const Array& x, int order, nb::handle out) {
    if (!x.is_float() || !f.takes(order)) return not_implemented();
    const InRows rows(x);
    if (!out.is_none()) {
        PyObject* given = out.ptr();
        Array to;
        if (PyArray_CheckExact(given) && PyArray_ISBEHAVED_RO(reinterpret_cast<PyArrayObject*>(given)))
            to.p = reinterpret_cast<PyArrayObject*>(given);
        if (!takes_result(to, x)) return not_implemented();
        compute(f, rows.a, order, to, Writes::memory);
        return nb::borrow(given);
    }
    NewArray made = like(x);
    compute(f, rows.a, order, made, Writes::results);
    return give(made);
}

template <class T, class F> nb::object each_pair(const Array& x, const Array& y, F f) {
    const Array& larger = x.size() < y.size() || x.ndim() < y.ndim() ? y : x;
    NewArray out = new_array(larger.ndim(), larger.shape(), type_number<T>);
    const int64_t n = larger.size();
    {
        Release release(n * 64);
        f(Pairs<T>{x.data<T>(), x.size() != 1, y.data<T>(), y.size() != 1, out.data<T>(), n});
    }
    return give(out);
}

// The shape that both broadcast to, and its dimensions; -1 where they do not.
int joint_shape(const Array& x, const Array& y, npy_intp* shape) {
    const int n = std::max(x.ndim(), y.ndim());
    for (int d = 0; d < n; ++d) {
        const int i = d - (n - x.ndim()), j = d - (n - y.ndim());
        const npy_intp a = i < 0 ? 1 : x.shape(i), b = j < 0 ? 1 : y.shape(j);
        if (a != b && a != 1 && b != 1) return -1;
        shape[d] = a == 1 ? b : a;
    }
    return n;
}

// f(pairs) of arrays that broadcast; those that are neither of one shape nor a single number are copied out in full.
template <class F> nb::object over_pair(const Array& x, const Array& y, F f) {
    if (!x.is_float() || !y.is_float() || y.type() != x.type()) return not_implemented();
    if (!x.size() || !y.size()) return not_implemented();  // a single number beside none
    const bool single = (x.size() == 1 && x.ndim() <= y.ndim()) || (y.size() == 1 && y.ndim() <= x.ndim());
    if (!single && !x.same_shape(y)) {
        npy_intp shape[NPY_MAXDIMS];
        const int n = joint_shape(x, y, shape);
        if (n < 0) return not_implemented();
        const NewArray a = new_array(n, shape, x.type()), b = new_array(n, shape, x.type());
        return moving::copy_over(x, a) && moving::copy_over(y, b) ? over_pair(a, b, f) : not_implemented();
    }
    const InRows a(x), b(y);
    return x.is<float>() ? each_pair<float>(a.a, b.a, f) : each_pair<double>(a.a, b.a, f);
}

// Of two arrays nothing is written into `out`.
template <bool upper> nb::object gammas(Array a, Array x, nb::handle out) {
    if (!out.is_none()) return not_implemented();
    return over_pair(a, x, [](const auto& pairs) { incomplete_gamma(pairs, upper); });
}

nb::object zetas(Array x, Array q, nb::handle out) {
    if (!out.is_none()) return not_implemented();
    return over_pair(x, q, [](const auto& pairs) { hurwitz_zeta(pairs); });
}

nb::object polynomial(Array x, Array given, const std::string& family, int order) {
    Polynomial of;
    constexpr double MOST = 10000;
    if (order || !polynomial_of(family, of) || !given.is_float()) return not_implemented();
    const InRows degrees(given);
    const Array& n = degrees.a;
    const double most = n.is<float>() ? largest(n.data<float>(), n.size()) : largest(n.data<double>(), n.size());
    if (most > MOST) return not_implemented();  // they take as long as the degrees are large
    return over_pair(x, n, [&](const auto& pairs) { polynomials(pairs, of, most); });
}

}  // namespace

FW_BIND(m) {
    for (const Function& f : functions())
        m.def(f.name, [f](Array x, int n, nb::handle out) { return of_one(f, x, n, out); }, nb::arg("x"), nb::arg("n") = 0,
              nb::arg("out") = nb::none());
    const nb::arg x("x"), y("y");
    m.def("special_gammainc", &gammas<false>, x, y, nb::arg("out") = nb::none());
    m.def("special_gammaincc", &gammas<true>, x, y, nb::arg("out") = nb::none());
    m.def("special_zeta", &zetas, x, y, nb::arg("out") = nb::none());
    m.def("polynomial", &polynomial, nb::arg("x"), nb::arg("n"), nb::arg("family"), nb::arg("order"));
}

}  // namespace fw::special
