// Special functions of NumPy arrays.
#include "base/half.h"
#include "bind/array.h"
#include "bind/bf16_array.h"
#include "bind/move/alike.h"
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

constexpr int64_t FEW = 1024;

// Of few numbers of 16 bits: as float32, and rounded once.
template <class H> nb::object of_few(const Function& f, const Array& x, int order, nb::handle out) {
    alignas(64) float wide[FEW], made[FEW];
    const auto compute = [&](const Array& to) {
        widen(wide, x.data<H>(), x.size());
        f.floats(wide, x.size(), made, order);
        narrow(to.data<H>(), made, x.size());
    };
    if (!out.is_none()) {
        Array to;
        if (PyArray_CheckExact(out.ptr()) && PyArray_ISBEHAVED_RO(reinterpret_cast<PyArrayObject*>(out.ptr())))
            to.p = reinterpret_cast<PyArrayObject*>(out.ptr());
        if (!takes_result(to, x)) return not_implemented();
        compute(to);
        return nb::borrow(out);
    }
    NewArray result = like(x);
    compute(result);
    return give(result);
}

// `out`: the array that the result is written into, or None.
nb::object of_one(const Function& f, const Array& x, int order, nb::handle out) {
    if (!f.takes(order)) return not_implemented();
    if (x.usable() && x.size() <= FEW && x.contiguous()) {
        if (x.type() == NPY_HALF) return of_few<Half>(f, x, order, out);
        if (is_bf16(x)) return of_few<Bf16>(f, x, order, out);
    }
    if (!x.is_float()) return not_implemented();
    const InRows rows(x, !has_no_gaps(x));
    if (!out.is_none()) {
        PyObject* given = out.ptr();
        Array to;
        if (PyArray_CheckExact(given) && PyArray_ISBEHAVED_RO(reinterpret_cast<PyArrayObject*>(given)))
            to.p = reinterpret_cast<PyArrayObject*>(given);
        if (!takes_result(to, x)) return not_implemented();
        compute(f, rows.a, order, to, Writes::memory);
        return nb::borrow(given);
    }
    NewArray made = rows.a.contiguous() ? like(x) : new_like(x, x.type());
    compute(f, rows.a, order, made, Writes::results);
    return give(made);
}

template <class T, class F> nb::object each_pair(const Array& x, const Array& y, NewArray out, F f) {
    const int64_t n = out.size();
    {
        Release release(n * 64);
        f(Pairs<T>{x.data<T>(), x.size() != 1, y.data<T>(), y.size() != 1, out.data<T>(), n});
    }
    return give(out);
}

template <class F> nb::object each_pair(const Array& x, const Array& y, NewArray out, F f) {
    return x.is<float>() ? each_pair<float>(x, y, std::move(out), f) : each_pair<double>(x, y, std::move(out), f);
}

// f(pairs) of arrays that broadcast.
template <class F> nb::object over_pair(const Array& x, const Array& y, F f) {
    if (!x.is_float() || !y.is_float() || y.type() != x.type()) return not_implemented();
    if (!x.size() || !y.size()) return not_implemented();  // a single number beside none
    if ((x.size() == 1 && x.ndim() <= y.ndim()) || (y.size() == 1 && y.ndim() <= x.ndim())) {
        const InRows a(x), b(y);
        return each_pair(a.a, b.a, like(x.size() < y.size() || x.ndim() < y.ndim() ? y : x), f);
    }
    const moving::Alike both(x, y);
    return both.fits ? each_pair(both.x, both.y, both.result(x.type()), f) : not_implemented();
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
    const InRows degrees(given, !has_no_gaps(given));
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
