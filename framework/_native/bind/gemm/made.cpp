// Matrices made of NumPy arrays.
#include "gemm/made.h"

#include <algorithm>

#include "base/half.h"
#include "bind/array.h"
#include "bind/bf16_array.h"

namespace fw {
namespace {

template <class F> nb::object of_numbers(const Array& x, F&& f) {
    if (x.is<float>()) return f(float{});
    if (x.is<double>()) return f(double{});
    return x.is<int64_t>() ? f(int64_t{}) : not_implemented();
}

nb::object kron(Array x, Array y) {
    if (!x.usable() || !y.usable() || x.type() != y.type() || !x.size() || !y.size()) return not_implemented();
    const int ndim = std::max(x.ndim(), y.ndim());
    int64_t of_x[NPY_MAXDIMS], of_y[NPY_MAXDIMS];
    npy_intp shape[NPY_MAXDIMS];
    for (int d = 0; d < ndim; ++d) {
        of_x[d] = d < ndim - x.ndim() ? 1 : x.shape(d - ndim + x.ndim());
        of_y[d] = d < ndim - y.ndim() ? 1 : y.shape(d - ndim + y.ndim());
        if (__builtin_mul_overflow(of_x[d], of_y[d], &shape[d])) return not_implemented();
    }
    if (!countable(shape, ndim)) return not_implemented();
    return of_numbers(x, [&](auto number) -> nb::object {
        using T = decltype(number);
        NewArray out = new_array(ndim, shape, x.type());
        nb::object result = give(out);
        const InRows first(x), second(y);
        Release release(out.size() * 8);
        kronecker(first.data<T>(), of_x, second.data<T>(), of_y, ndim, out.data<T>());
        return result;
    });
}

// Powers of the elements as a last dimension.
nb::object powers_of(Array x, int64_t count, bool falling) {
    if (!x.usable() || x.ndim() >= NPY_MAXDIMS || count < 0) return not_implemented();
    npy_intp shape[NPY_MAXDIMS];
    std::copy(x.shape(), x.shape() + x.ndim(), shape);
    shape[x.ndim()] = count;
    if (!countable(shape, x.ndim() + 1)) return not_implemented();
    return of_numbers(x, [&](auto number) -> nb::object {
        using T = decltype(number);
        NewArray out = new_array(x.ndim() + 1, shape, x.type());
        nb::object result = give(out);
        const InRows rows(x);
        Release release(out.size() * 8);
        powers(rows.data<T>(), x.size(), count, falling, out.data<T>());
        return result;
    });
}

constexpr int64_t FEW = 256;  // numbers of 16 bits, which are widened first

template <class H> void trace_of_few(const H* x, int64_t m, int64_t n, H* out) {
    float wide[FEW], sum;
    widen(wide, x, m * n);
    sum = trace(static_cast<const float*>(wide), m, n);
    narrow(out, &sum, 1);
}

nb::object traced(Array A) {
    const bool few = A.usable() && A.size() <= FEW && (A.type() == NPY_HALF || is_bf16(A));
    if ((!few && !A.is_float() && !A.is<int64_t>()) || A.ndim() != 2) return not_implemented();
    const InRows rows(A);
    NewArray out = new_array(0, nullptr, A.type());
    if (A.type() == NPY_HALF) trace_of_few(rows.data<Half>(), A.shape(0), A.shape(1), out.data<Half>());
    else if (few) trace_of_few(rows.data<Bf16>(), A.shape(0), A.shape(1), out.data<Bf16>());
    else if (A.is<int64_t>()) *out.data<uint64_t>() = trace(rows.data<uint64_t>(), A.shape(0), A.shape(1));
    else if (A.is<float>()) *out.data<float>() = trace(rows.data<float>(), A.shape(0), A.shape(1));
    else *out.data<double>() = trace(rows.data<double>(), A.shape(0), A.shape(1));
    return give(out);
}

constexpr int64_t MOST_LINES = int64_t(1) << 31;  // rows, columns and the like of what is made here

nb::object triangle(int64_t rows, int64_t columns, int64_t offset, bool lower) {
    if (rows < 0 || columns < 0 || rows >= MOST_LINES || columns >= MOST_LINES || offset <= -MOST_LINES || offset >= MOST_LINES) return not_implemented();
    npy_intp shape[] = {2, 0};
    for (int64_t i = 0; i < rows; ++i) shape[1] += in_triangle(i, columns, offset, lower);
    if (!countable(shape, 2)) return not_implemented();
    NewArray out = new_array(2, shape, NPY_INT64);
    nb::object result = give(out);
    Release release(out.size() * 8);
    triangle_places(rows, columns, offset, lower, out.data<int64_t>(), out.data<int64_t>() + shape[1]);
    return result;
}

// `count` has to be how many there are, which is looked at.
nb::object choices_of(int64_t n, int64_t r, bool repeated, int64_t count) {
    if (n < 0 || n >= MOST_LINES || r < 1 || r >= MOST_LINES) return not_implemented();
    const int64_t of = repeated ? n + r - 1 : n;
    __int128 all = of >= r && n ? 1 : 0;
    for (int64_t k = 1; k <= std::min(r, of - r) && all <= INT64_MAX; ++k) all = all * (of - std::min(r, of - r) + k) / k;
    const npy_intp shape[] = {count, r};
    if (all != count || !countable(shape, 2)) return not_implemented();
    NewArray out = new_array(2, shape, NPY_INT64);
    nb::object result = give(out);
    Release release(out.size() * 8);
    choices(n, r, repeated, count, out.data<int64_t>());
    return result;
}

}  // namespace

FW_BIND(m) {
    m.def("triangle_places", &triangle, nb::arg("row"), nb::arg("col"), nb::arg("offset"), nb::arg("lower"));
    m.def("choices", &choices_of, nb::arg("n"), nb::arg("r"), nb::arg("repeated"), nb::arg("count"));
    m.def("kron", &kron, nb::arg("x"), nb::arg("y"));
    m.def("powers", &powers_of, nb::arg("x"), nb::kw_only(), nb::arg("count"), nb::arg("falling"));
    m.def("trace", &traced, nb::arg("A"));
}

}  // namespace fw
