// Eigenvalues and eigenvectors of small real matrices.
#include "bind/array.h"
#include "factor/unsymmetric.h"

namespace fw::unsymmetric {
namespace {

template <class T> bool decomposed(const Array& A, NewArray& values, NewArray* vectors) {
    const int64_t n = A.shape(A.ndim() - 1);
    const InRows rows(A);
    Release release(A.size() * n * 8);
    return eigen(rows.data<T>(), A.size() / n / n, n, values.data<std::complex<T>>(), vectors ? vectors->data<std::complex<T>>() : nullptr);
}

nb::object eigen_of(Array A, bool wanted) {
    const int last = A.usable() ? A.ndim() - 1 : 0;
    if (!A.is_float() || last < 1 || !A.size() || A.shape(last) != A.shape(last - 1) || A.shape(last) > MOST) return not_implemented();
    const int type = A.is<float>() ? NPY_CFLOAT : NPY_CDOUBLE;
    NewArray values = new_array(last, A.shape(), type), vectors;
    const nb::object first = give(values);
    nb::object second;
    if (wanted) vectors = new_array(A.ndim(), A.shape(), type), second = give(vectors);
    NewArray* to = wanted ? &vectors : nullptr;
    if (!(A.is<float>() ? decomposed<float>(A, values, to) : decomposed<double>(A, values, to))) return not_implemented();
    return wanted ? nb::make_tuple(first, second) : first;
}

}  // namespace

FW_BIND(m) {
    m.def("eig", [](Array A) { return eigen_of(A, true); }, nb::arg("A"));
    m.def("eigvals", [](Array A) { return eigen_of(A, false); }, nb::arg("A"));
}

}  // namespace fw::unsymmetric
