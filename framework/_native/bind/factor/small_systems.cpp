// Linear algebra of many small NumPy matrices. Larger ones, and those without a solution, are left to LAPACK.
#include <algorithm>
#include <type_traits>

#include "bind/array.h"
#include "factor/small_systems.h"
#include "factor/small_vectors.h"

namespace fw::small {
namespace {

bool matrices(const Array& a, bool square) {
    if (!a.is_float() || a.ndim() < 2 || !a.size()) return false;
    const int64_t m = a.shape(a.ndim() - 2), n = a.shape(a.ndim() - 1);
    return m <= MOST && n <= MOST && (!square || m == n);
}

// run(the elements of A in rows), of its dtype, while others run Python; cost: about how long an element takes.
template <class F> auto of_rows(const Array& A, int64_t cost, F&& run) {
    const InRows rows(A);
    const Release release(A.size() * cost);
    return A.is<float>() ? run(rows.template data<float>()) : run(rows.template data<double>());
}

template <class P> using Number = std::remove_const_t<std::remove_pointer_t<P>>;

nb::object inv(Array A) {
    if (!matrices(A, true)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), count = A.size() / (n * n);
    NewArray out = like(A);
    const bool regular = of_rows(A, 64, [&](auto x) {
        using T = Number<decltype(x)>;
        return inverses(x, count, n, out.data<T>());
    });
    return regular ? give(out) : not_implemented();
}

nb::object solve(Array A, Array B) {
    if (!matrices(A, true) || !matrices(B, false) || A.type() != B.type() || A.ndim() != B.ndim()) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), k = B.shape(B.ndim() - 1), count = A.size() / (n * n);
    if (B.shape(B.ndim() - 2) != n || !std::equal(A.shape(), A.shape() + A.ndim() - 2, B.shape())) return not_implemented();
    NewArray out = like(B);
    const InRows right(B);
    const bool regular = of_rows(A, 64, [&](auto x) {
        using T = Number<decltype(x)>;
        return solutions(x, right.data<T>(), count, n, k, out.data<T>());
    });
    return regular ? give(out) : not_implemented();
}

nb::object det(Array A) {
    if (!matrices(A, true)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), count = A.size() / (n * n);
    NewArray out = new_array(A.ndim() - 2, A.shape(), A.type());
    of_rows(A, 32, [&](auto x) {
        using T = Number<decltype(x)>;
        determinants(x, count, n, out.data<T>());
    });
    return give(out);
}

nb::object slogdet(Array A) {
    if (!matrices(A, true)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), count = A.size() / (n * n);
    NewArray log = new_array(A.ndim() - 2, A.shape(), A.type()), sign = new_array(A.ndim() - 2, A.shape(), A.type());
    of_rows(A, 32, [&](auto x) {
        using T = Number<decltype(x)>;
        log_determinants(x, count, n, log.data<T>(), sign.data<T>());
    });
    return nb::make_tuple(give(log), give(sign));
}

nb::object cholesky(Array A) {
    if (!matrices(A, true)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1), count = A.size() / (n * n);
    NewArray out = like(A);
    const bool positive = of_rows(A, 32, [&](auto x) {
        using T = Number<decltype(x)>;
        return cholesky_factors(x, count, n, out.data<T>());
    });
    return positive ? give(out) : not_implemented();
}

// A's dimensions but for the last `taken`, then others.
NewArray shaped(const Array& A, int taken, std::initializer_list<int64_t> last) {
    npy_intp shape[NPY_MAXDIMS];
    const int lead = A.ndim() - taken;
    std::copy(A.shape(), A.shape() + lead, shape);
    std::copy(last.begin(), last.end(), shape + lead);
    return new_array(lead + int(last.size()), shape, A.type());
}

nb::object svdvals(Array A) {
    if (!matrices(A, false)) return not_implemented();
    const int64_t m = A.shape(A.ndim() - 2), n = A.shape(A.ndim() - 1), narrow = std::min(m, n);
    if (narrow > NARROW) return not_implemented();
    NewArray out = shaped(A, 2, {narrow});
    const bool finite = of_rows(A, 32, [&](auto x) {
        using T = Number<decltype(x)>;
        return singular_values(x, A.size() / (m * n), m, n, out.data<T>());
    });
    return finite ? give(out) : not_implemented();
}

nb::object svd(Array A, bool full) {
    if (!matrices(A, false)) return not_implemented();
    const int64_t m = A.shape(A.ndim() - 2), n = A.shape(A.ndim() - 1), narrow = std::min(m, n);
    full = full && m != n;
    if (narrow > NARROW || (full && std::max(m, n) > NARROW)) return not_implemented();
    NewArray U = shaped(A, 2, {m, full ? m : narrow}), S = shaped(A, 2, {narrow}), Vh = shaped(A, 2, {full ? n : narrow, n});
    const bool found = of_rows(A, 64, [&](auto x) {
        using T = Number<decltype(x)>;
        return singular_vectors(x, A.size() / (m * n), m, n, full, U.data<T>(), S.data<T>(), Vh.data<T>());
    });
    return found ? nb::make_tuple(give(U), give(S), give(Vh)) : not_implemented();
}

bool are_narrow(const Array& A) { return matrices(A, true) && A.shape(A.ndim() - 1) <= NARROW; }

// The eigenvalues of symmetric matrices, which are found where there are vectors of them.
bool eigen(const Array& A, const std::string& uplo, NewArray& values, NewArray* vectors) {
    const int64_t n = A.shape(A.ndim() - 1);
    return of_rows(A, 64, [&](auto x) {
        using T = Number<decltype(x)>;
        return eigen_vectors(x, A.size() / (n * n), n, uplo == "L", values.data<T>(), vectors ? vectors->data<T>() : nullptr);
    });
}

nb::object eigh(Array A, const std::string& uplo) {
    if (!are_narrow(A)) return not_implemented();
    NewArray values = shaped(A, 1, {}), vectors = like(A);
    return eigen(A, uplo, values, &vectors) ? nb::make_tuple(give(values), give(vectors)) : not_implemented();
}

nb::object eigvalsh(Array A, const std::string& uplo) {
    if (!are_narrow(A)) return not_implemented();
    NewArray values = shaped(A, 1, {});
    return eigen(A, uplo, values, nullptr) ? give(values) : not_implemented();
}

nb::object exp_of(Array A) {
    if (!are_narrow(A)) return not_implemented();
    const int64_t n = A.shape(A.ndim() - 1);
    NewArray out = like(A);
    const bool finite = of_rows(A, 64, [&](auto x) {
        using T = Number<decltype(x)>;
        return exponentials(x, A.size() / (n * n), n, out.data<T>());
    });
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
    m.def("small_svd", &svd, nb::arg("A"), nb::arg("full"));
    m.def("small_eigh", &eigh, nb::arg("A"), nb::arg("uplo"));
    m.def("small_eigvalsh", &eigvalsh, nb::arg("A"), nb::arg("uplo"));
    m.def("small_exp", &exp_of, nb::arg("A"));
}

}  // namespace fw::small
