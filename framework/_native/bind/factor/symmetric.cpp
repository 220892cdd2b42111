// L D L.T of NumPy arrays, systems of such factors, and the order of rows that exchanges give.
#include "bind/array.h"
#include "factor/symmetric.h"

namespace fw::symmetric {
namespace {

bool square(const Array& a) {
    return a.is_float() && a.ndim() >= 2 && a.size() && a.shape(a.ndim() - 1) == a.shape(a.ndim() - 2);
}

// hermitian is the same for real numbers, of which alone this knows.
nb::object ldl_factor(Array A, bool) {
    if (!square(A)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), count = A.size() / n / n;
    InRows rows(A);
    NewArray out = like(A), pivots = new_array(A.ndim() - 1, A.shape(), NPY_INT32);
    NewArray info = new_array(A.ndim() - 2, A.shape(), NPY_INT32);
    {
        Release release(A.size() * n);
        auto run = [&](auto t) {
            using T = decltype(t);
            ldl_factors(rows.data<T>(), count, n, out.data<T>(), pivots.data<int32_t>(), info.data<int32_t>());
        };
        if (A.is<float>()) run(float{});
        else run(double{});
    }
    return nb::make_tuple(give(out), give(pivots), give(info));
}

nb::object ldl_solve(Array LD, Array pivots, Array B, bool) {
    if (!square(LD) || !B.usable() || B.type() != LD.type() || B.ndim() != LD.ndim() || !B.size() ||
        !pivots.is<int32_t>() || pivots.ndim() != LD.ndim() - 1)
        return not_implemented();
    const int last = LD.ndim() - 1;
    const int64_t n = LD.shape(last), m = B.shape(last), count = LD.size() / n / n;
    for (int d = 0; d < last; ++d)
        if (B.shape(d) != LD.shape(d) || pivots.shape(d) != LD.shape(d)) return not_implemented();
    InRows rows(LD), right(B), places(pivots);
    NewArray out = like(B);
    bool regular;
    {
        Release release(LD.size() * m);
        auto run = [&](auto t) {
            using T = decltype(t);
            return solve_ldl(rows.data<T>(), places.data<int32_t>(), right.data<T>(), count, n, m, out.data<T>());
        };
        regular = LD.is<float>() ? run(float{}) : run(double{});
    }
    return regular ? give(out) : not_implemented();
}

// The order of n rows (int64) that exchanges (int32, from 1) give: row i was exchanged with row pivots[i] - 1 in step i.
nb::object lu_order(Array pivots, int64_t n) {
    if (!pivots.is<int32_t>() || !pivots.ndim() || !pivots.size() || n < pivots.shape(pivots.ndim() - 1))
        return not_implemented();
    const int last = pivots.ndim() - 1;
    const int64_t k = pivots.shape(last), count = pivots.size() / k;
    std::vector<npy_intp> shape(pivots.shape(), pivots.shape() + pivots.ndim());
    shape[size_t(last)] = n;
    InRows rows(pivots);
    NewArray out = new_array(pivots.ndim(), shape.data(), NPY_INT64);
    return row_orders(rows.data<int32_t>(), count, k, n, out.data<int64_t>()) ? give(out) : not_implemented();
}

}  // namespace

FW_BIND(m) {
    m.def("ldl_factor", &ldl_factor, nb::arg("A"), nb::arg("hermitian"));
    m.def("ldl_solve", &ldl_solve, nb::arg("LD"), nb::arg("pivots"), nb::arg("B"), nb::arg("hermitian"));
    m.def("lu_order", &lu_order, nb::arg("pivots"), nb::arg("n"));
}

}  // namespace fw::symmetric
