// LU factors and triangular systems of NumPy arrays.
#include <algorithm>

#include "bind/array.h"
#include "factor/triangles.h"

namespace fw::triangles {
namespace {

bool matrices(const Array& a) { return a.is_float() && a.ndim() >= 2 && a.size(); }

template <class T> nb::object factored(const Array& A, bool pivot) {
    const int dims = A.ndim();
    const int64_t m = A.shape(dims - 2), n = A.shape(dims - 1), k = std::min(m, n), count = A.size() / (m * n);
    std::vector<npy_intp> shape(A.shape(), A.shape() + dims - 1);
    NewArray packed = new_array(dims, A.shape(), A.type()), order = new_array(dims - 1, shape.data(), NPY_INT64);
    shape.back() = k;
    NewArray pivots = new_array(dims - 1, shape.data(), NPY_INT32);
    InRows rows(A);
    {
        Release release(A.size() * 32);
        lu_factors(rows.data<T>(), count, m, n, pivot, packed.data<T>(), pivots.data<int32_t>(), order.data<int64_t>());
    }
    return nb::make_tuple(give(packed), give(pivots), give(order));
}

// L and U in one matrix; the exchanges of rows (from 1), int32 (*, min(m, n)); the order of rows they give, int64 (*, m).
nb::object lu_factor(Array A, bool pivot) {
    if (!matrices(A) || A.shape(A.ndim() - 2) > INT32_MAX) return not_implemented();
    return A.is<float>() ? factored<float>(A, pivot) : factored<double>(A, pivot);
}

template <class T> nb::object taken_apart(const Array& packed, const Array& order) {
    const int last = packed.ndim() - 1;
    const int64_t m = packed.shape(last - 1), n = packed.shape(last), k = std::min(m, n), count = packed.size() / (m * n);
    std::vector<npy_intp> shape(packed.shape(), packed.shape() + last + 1);
    auto made = [&](int64_t rows, int64_t columns) {
        shape[size_t(last - 1)] = rows, shape[size_t(last)] = columns;
        return new_array(last + 1, shape.data(), packed.type());
    };
    NewArray L = made(m, k), U = made(k, n), P = made(m, m);
    nb::object lower = give(L), upper = give(U), exchanges = give(P);
    const InRows rows(packed), orders(order);
    {
        Release release(packed.size() * 8);
        lu_parts(rows.data<T>(), orders.data<int64_t>(), count, m, n, P.data<T>(), L.data<T>(), U.data<T>());
    }
    return nb::make_tuple(lower, upper, exchanges);
}

// L, U and P of what `lu_factor` gives.
nb::object lu_parts_of(Array packed, Array order) {
    const bool whole = packed.usable() && packed.is<int64_t>() && packed.ndim() >= 2 && packed.size();
    if ((!whole && !matrices(packed)) || !order.is<int64_t>() || order.ndim() != packed.ndim() - 1 ||
        !std::equal(order.shape(), order.shape() + order.ndim(), packed.shape()))
        return not_implemented();
    if (whole) return taken_apart<int64_t>(packed, order);
    return packed.is<float>() ? taken_apart<float>(packed, order) : taken_apart<double>(packed, order);
}

nb::object lu_zero_pivot(Array packed) {
    if (!matrices(packed)) return not_implemented();
    const int last = packed.ndim() - 1;
    const int64_t m = packed.shape(last - 1), n = packed.shape(last), count = packed.size() / (m * n);
    NewArray out = new_array(last - 1, packed.shape(), NPY_INT32);
    const InRows rows(packed);
    if (packed.is<float>()) zero_pivots(rows.data<float>(), count, m, n, out.data<int32_t>());
    else zero_pivots(rows.data<double>(), count, m, n, out.data<int32_t>());
    return give(out);
}

template <class T> nb::object solved(const Array& A, const Array& B, bool upper, bool unit) {
    const int64_t n = A.shape(A.ndim() - 1), k = B.shape(B.ndim() - 1), count = A.size() / (n * n);
    InRows rows(A), right(B);
    NewArray out = new_array(B.ndim(), B.shape(), B.type());
    bool regular;
    {
        Release release((A.size() + B.size()) * 32);
        regular = solve_triangles(rows.data<T>(), right.data<T>(), count, n, k, upper, unit, out.data<T>());
    }
    return regular ? give(out) : not_implemented();
}

// X with A X = B for the upper or lower triangle of A; unit: whose diagonal counts as ones.
nb::object solve_triangular(Array A, Array B, bool upper, bool unit) {
    if (!matrices(A) || !matrices(B) || A.type() != B.type() || A.ndim() != B.ndim()) return not_implemented();
    const int last = A.ndim() - 1;
    if (A.shape(last) != A.shape(last - 1) || B.shape(last - 1) != A.shape(last) ||
        !std::equal(A.shape(), A.shape() + last - 1, B.shape()))
        return not_implemented();
    return A.is<float>() ? solved<float>(A, B, upper, unit) : solved<double>(A, B, upper, unit);
}

}  // namespace

FW_BIND(m) {
    m.def("lu_factor", &lu_factor, nb::arg("A"), nb::arg("pivot"));
    m.def("lu_parts", &lu_parts_of, nb::arg("packed"), nb::arg("order"));
    m.def("lu_zero_pivot", &lu_zero_pivot, nb::arg("LU"));
    m.def("solve_triangular", &solve_triangular, nb::arg("A"), nb::arg("B"), nb::arg("upper"), nb::arg("unit"));
}

}  // namespace fw::triangles
