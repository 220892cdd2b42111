// Special functions of NumPy arrays.
#include "bind/array.h"
#include "program/special.h"
#include "program/special_pairs.h"

namespace fw::special {
namespace {

nb::object of_one(const Function& f, const Array& x, int order) {
    if (!x.is_float() || !f.takes(order)) return not_implemented();
    const InRows rows(x);
    NewArray out = like(x);
    {
        Release release(x.size() * (x.is<float>() && f.quick(order) ? 16 : 64));
        if (x.is<float>()) f.floats(rows.data<float>(), x.size(), out.data<float>(), order);
        else f.doubles(rows.data<double>(), x.size(), out.data<double>(), order);
    }
    return give(out);
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

// f(pairs) of arrays of one shape, or one of them a single number.
template <class F> nb::object over_pair(const Array& x, const Array& y, F f) {
    if (!x.is_float() || !y.is_float() || y.type() != x.type()) return not_implemented();
    if (!x.size() || !y.size()) return not_implemented();  // a single number beside none
    const bool single = (x.size() == 1 && x.ndim() <= y.ndim()) || (y.size() == 1 && y.ndim() <= x.ndim());
    if (!single && !x.same_shape(y)) return not_implemented();
    const InRows a(x), b(y);
    return x.is<float>() ? each_pair<float>(a.a, b.a, f) : each_pair<double>(a.a, b.a, f);
}

template <bool upper> nb::object gammas(Array a, Array x) {
    return over_pair(a, x, [](const auto& pairs) { incomplete_gamma(pairs, upper); });
}

nb::object zetas(Array x, Array q) {
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
        m.def(f.name, [f](Array x, int n) { return of_one(f, x, n); }, nb::arg("x"), nb::arg("n") = 0);
    m.def("special_gammainc", &gammas<false>);
    m.def("special_gammaincc", &gammas<true>);
    m.def("special_zeta", &zetas);
    m.def("polynomial", &polynomial, nb::arg("x"), nb::arg("n"), nb::arg("family"), nb::arg("order"));
}

}  // namespace fw::special
