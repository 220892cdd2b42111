// Householder reflections of NumPy arrays, and QR by them.
#include <algorithm>

#include "bind/array.h"
#include "factor/reflections.h"

namespace fw::reflections {
namespace {

bool matrices(const Array& a) { return a.is_float() && a.ndim() >= 2 && a.size(); }
bool small(const Array& a) {
    return matrices(a) && a.shape(a.ndim() - 2) * a.shape(a.ndim() - 1) * PyArray_ITEMSIZE(a.p) <= MOST_BYTES;
}

// Matrices m x n, `count` of them, and arrays of their batch with other last sizes.
struct Matrices {
    InRows rows;
    int last;
    int64_t m, n, k, count;
    explicit Matrices(const Array& a)
        : rows(a), last(a.ndim() - 1), m(a.shape(last - 1)), n(a.shape(last)), k(std::min(m, n)), count(a.size() / (m * n)) {}
    NewArray beside(std::initializer_list<int64_t> sizes) const {
        std::vector<npy_intp> shape(rows.a.shape(), rows.a.shape() + last - 1);
        shape.insert(shape.end(), sizes.begin(), sizes.end());
        return new_array(int(shape.size()), shape.data(), rows.a.type());
    }
    int64_t cost() const { return rows.a.size() * k * 4; }
};

template <class F> nb::object of_type(const Array& a, F&& f) { return a.is<float>() ? f(float{}) : f(double{}); }

// Whether tau (*, k) goes with packed (*, m, n).
bool belongs(const Array& tau, const Array& packed) {
    const int last = packed.ndim() - 1;
    return tau.usable() && tau.type() == packed.type() && tau.ndim() == last && tau.size() &&
           tau.shape(last - 1) <= std::min(packed.shape(last - 1), packed.shape(last)) &&
           std::equal(tau.shape(), tau.shape() + last - 1, packed.shape());
}

nb::object geqrf(Array A) {
    if (!small(A)) return not_implemented();
    return of_type(A, [&](auto t) -> nb::object {
        using T = decltype(t);
        const Matrices a(A);
        NewArray packed = a.beside({a.m, a.n}), tau = a.beside({a.k});
        nb::object first = give(packed), second = give(tau);
        {
            Release release(a.cost());
            factor(a.rows.data<T>(), a.count, a.m, a.n, packed.data<T>(), tau.data<T>());
        }
        return nb::make_tuple(first, second);
    });
}

// Q and R: "reduced" or "complete".
nb::object small_qr(Array A, const std::string& mode) {
    if (!small(A) || (mode != "reduced" && mode != "complete")) return not_implemented();
    const int64_t m = A.shape(A.ndim() - 2);
    if (mode == "complete" && m * m * PyArray_ITEMSIZE(A.p) > MOST_BYTES) return not_implemented();
    return of_type(A, [&](auto t) -> nb::object {
        using T = decltype(t);
        const Matrices a(A);
        const int64_t wide = mode == "complete" ? a.m : a.k;
        NewArray q = a.beside({a.m, wide}), r = a.beside({wide, a.n});
        nb::object first = give(q), second = give(r);
        {
            Release release(a.cost() * 2);
            qr(a.rows.data<T>(), a.count, a.m, a.n, q.data<T>(), wide, r.data<T>());
        }
        return nb::make_tuple(first, second);
    });
}

// The first n columns of the product of reflections.
nb::object householder_product(Array A, Array tau) {
    if (!matrices(A) || !belongs(tau, A)) return not_implemented();
    return of_type(A, [&](auto t) -> nb::object {
        using T = decltype(t);
        const Matrices a(A);
        const InRows factors(tau);
        NewArray q = a.beside({a.m, a.n});
        nb::object result = give(q);
        Release release(a.cost());
        product(a.rows.data<T>(), factors.data<T>(), a.count, a.m, a.n, tau.shape(a.last - 1), q.data<T>(), a.n);
        return result;
    });
}

// The product of reflections, or its transpose, times C.
nb::object reflected(Array A, Array tau, Array C, bool transposed) {
    if (!matrices(A) || !belongs(tau, A) || !matrices(C) || C.type() != A.type() || C.ndim() != A.ndim() ||
        !std::equal(A.shape(), A.shape() + A.ndim() - 1, C.shape()))
        return not_implemented();
    return of_type(A, [&](auto t) -> nb::object {
        using T = decltype(t);
        const Matrices a(A), c(C);
        const InRows factors(tau);
        NewArray out = c.beside({c.m, c.n});
        nb::object result = give(out);
        Release release(c.cost() * 4);
        std::copy(c.rows.data<T>(), c.rows.data<T>() + C.size(), out.data<T>());
        apply(a.rows.data<T>(), factors.data<T>(), a.count, a.m, a.n, tau.shape(a.last - 1), transposed, out.data<T>(), c.n);
        return result;
    });
}

}  // namespace

FW_BIND(m) {
    m.def("geqrf", &geqrf, nb::arg("A"));
    m.def("small_qr", &small_qr, nb::arg("A"), nb::arg("mode"));
    m.def("householder_product", &householder_product, nb::arg("A"), nb::arg("tau"));
    m.def("reflected", &reflected, nb::arg("A"), nb::arg("tau"), nb::arg("C"), nb::arg("transposed"));
}

}  // namespace fw::reflections
