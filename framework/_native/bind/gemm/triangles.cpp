// LU factors and triangular systems of NumPy arrays.
#include <algorithm>

#include "bind/array.h"
#include "gemm/triangles.h"

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
    m.def("solve_triangular", &solve_triangular, nb::arg("A"), nb::arg("B"), nb::arg("upper"), nb::arg("unit"));
}

}  // namespace fw::triangles
