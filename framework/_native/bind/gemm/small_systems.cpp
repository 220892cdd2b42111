// Linear algebra of many small NumPy matrices. Larger ones, and those without a solution, are left to LAPACK.
#include <algorithm>

#include "bind/array.h"
#include "gemm/small_systems.h"

namespace fw::small {
namespace {

bool matrices(const Array& a, bool square) {
    if (!a.is_float() || a.ndim() < 2 || !a.size()) return false;
    const int64_t m = a.shape(a.ndim() - 2), n = a.shape(a.ndim() - 1);
    return m <= MOST && n <= MOST && (!square || m == n);
}

// run(a number of the dtype of A)
template <class F> auto by_float(const Array& A, F&& run) { return A.is<float>() ? run(float{}) : run(double{}); }

nb::object inv(Array A) {
    if (!matrices(A, true)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), count = A.size() / (n * n);
    NewArray out = like(A);
    InRows rows(A);
    bool regular;
    {
        Release release(A.size() * 64);
        regular = by_float(A, [&](auto t) {
            using T = decltype(t);
            return inverses(rows.data<T>(), count, n, out.data<T>());
        });
    }
    return regular ? give(out) : not_implemented();
}

nb::object solve(Array A, Array B) {
    if (!matrices(A, true) || !matrices(B, false) || A.type() != B.type() || A.ndim() != B.ndim()) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), k = B.shape(B.ndim() - 1), count = A.size() / (n * n);
    if (B.shape(B.ndim() - 2) != n || !std::equal(A.shape(), A.shape() + A.ndim() - 2, B.shape())) return not_implemented();
    NewArray out = like(B);
    InRows rows(A), right(B);
    bool regular;
    {
        Release release(A.size() * 64);
        regular = by_float(A, [&](auto t) {
            using T = decltype(t);
            return solutions(rows.data<T>(), right.data<T>(), count, n, k, out.data<T>());
        });
    }
    return regular ? give(out) : not_implemented();
}

nb::object det(Array A) {
    if (!matrices(A, true)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), count = A.size() / (n * n);
    NewArray out = new_array(A.ndim() - 2, A.shape(), A.type());
    InRows rows(A);
    {
        Release release(A.size() * 32);
        by_float(A, [&](auto t) {
            using T = decltype(t);
            determinants(rows.data<T>(), count, n, out.data<T>());
        });
    }
    return give(out);
}

nb::object slogdet(Array A) {
    if (!matrices(A, true)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), count = A.size() / (n * n);
    NewArray log = new_array(A.ndim() - 2, A.shape(), A.type()), sign = new_array(A.ndim() - 2, A.shape(), A.type());
    InRows rows(A);
    {
        Release release(A.size() * 32);
        by_float(A, [&](auto t) {
            using T = decltype(t);
            log_determinants(rows.data<T>(), count, n, log.data<T>(), sign.data<T>());
        });
    }
    return nb::make_tuple(give(log), give(sign));
}

nb::object cholesky(Array A) {
    if (!matrices(A, true)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), count = A.size() / (n * n);
    NewArray out = like(A);
    InRows rows(A);
    bool positive;
    {
        Release release(A.size() * 32);
        positive = by_float(A, [&](auto t) {
            using T = decltype(t);
            return cholesky_factors(rows.data<T>(), count, n, out.data<T>());
        });
    }
    return positive ? give(out) : not_implemented();
}

nb::object svdvals(Array A) {
    if (!matrices(A, false)) return not_implemented();
    const int64_t m = A.shape(A.ndim() - 2), n = A.shape(A.ndim() - 1), narrow = std::min(m, n);
    if (narrow > NARROW) return not_implemented();
    npy_intp shape[NPY_MAXDIMS];
    std::copy(A.shape(), A.shape() + A.ndim() - 2, shape);
    shape[A.ndim() - 2] = narrow;
    NewArray out = new_array(A.ndim() - 1, shape, A.type());
    InRows rows(A);
    bool finite;
    {
        Release release(A.size() * 32);
        finite = by_float(A, [&](auto t) {
            using T = decltype(t);
            return singular_values(rows.data<T>(), A.size() / (m * n), m, n, out.data<T>());
        });
    }
    return finite ? give(out) : not_implemented();
}

}  // namespace

FW_BIND(m) {
    m.def("small_inv", &inv, nb::arg("A"));
    m.def("small_solve", &solve, nb::arg("A"), nb::arg("B"));
    m.def("small_det", &det, nb::arg("A"));
    m.def("small_slogdet", &slogdet, nb::arg("A"));
    m.def("small_cholesky", &cholesky, nb::arg("A"));
    m.def("small_svdvals", &svdvals, nb::arg("A"));
}

}  // namespace fw::small
