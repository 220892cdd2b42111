// Sums, means, norms, products, extremes and truth over any dimensions.
#include <cmath>

#include "program/program_fold.h"
#include "bind/reduce/arrays.h"
#include "reduce/reduce_tasks.h"
#include "reduce/totals.h"

namespace fw {
namespace {

using namespace reduce;

struct Root {
    template <class W> static W of(W v) { return std::sqrt(v); }
};
struct Truth {
    static uint8_t of(uint8_t v) { return v != 0; }
};

template <template <class> class F, class T, class End = Itself>
nb::object fold(const Array& x, nb::handle dims, bool keepdim) {
    return run(x, dims, keepdim, Plain<F<T>, End>());
}

template <template <class> class F, class End = Itself>
nb::object fold_floats(const Array& x, nb::handle dims, bool keepdim) {
    if (x.is<float>()) return fold<F, float, End>(x, dims, keepdim);
    if (x.is<double>()) return fold<F, double, End>(x, dims, keepdim);
    return not_implemented();
}

// work(plan, x, results) of numbers of type T
template <class T, class F> nb::object run_as(const Array& x, nb::handle dims, bool keepdim, F&& work) {
    Prepared to;
    if (!to.make(x, dims, keepdim)) return not_implemented();
    {
        Release release(x.size() * int64_t(sizeof(T)));
        work(to.plan, to.from.data<char>(), to.out.data<T>());
    }
    return give(to.out);
}

template <class T> nb::object total_of(const Array& x, nb::handle dims, bool keepdim, bool divided) {
    return run_as<T>(x, dims, keepdim, [=](const reduce::Plan& p, const char* from, T* to) {
        reduce::total(p, from, to, divided);
    });
}

nb::object total(const Array& x, nb::handle dims, bool keepdim, bool divided) {
    if (x.is<float>()) return total_of<float>(x, dims, keepdim, divided);
    if (x.is<double>()) return total_of<double>(x, dims, keepdim, divided);
    return fold_halves(x, dims, {divided ? "mean" : "sum", 0, keepdim, 0});
}

nb::object sum(Array x, nb::handle dims, bool keepdim) {
    if (x.is<int64_t>()) return fold<Sum, uint64_t>(x, dims, keepdim);  // unsigned: overflow wraps
    return total(x, dims, keepdim, false);
}

nb::object mean(Array x, nb::handle dims, bool keepdim) { return total(x, dims, keepdim, true); }

nb::object vector_norm(Array x, double ord, nb::handle dims, bool keepdim) {
    return ord == 2 ? fold_floats<SumOfSquares, Root>(x, dims, keepdim) : not_implemented();
}

nb::object prod(Array x) {
    if (!x.usable() || x.ndim() == 0) return not_implemented();
    nb::tuple dims = nb::make_tuple(x.ndim() - 1);
    if (x.is<int64_t>()) return fold<Product, uint64_t>(x, dims, false);
    return fold_floats<Product>(x, dims, false);
}

template <class T> nb::object extreme_of(const Array& x, nb::handle dims, bool keepdim, bool largest) {
    return run_as<T>(x, dims, keepdim, [=](const reduce::Plan& p, const char* from, T* to) {
        reduce::extreme(p, from, to, largest);
    });
}

template <template <class> class F, bool IsLargest> nb::object extreme(Array x, nb::handle dims, bool keepdim) {
    if (x.is<int64_t>()) return fold<F, int64_t>(x, dims, keepdim);
    if (x.is<int32_t>()) return fold<F, int32_t>(x, dims, keepdim);
    if (x.is<float>()) return extreme_of<float>(x, dims, keepdim, IsLargest);
    if (x.is<double>()) return extreme_of<double>(x, dims, keepdim, IsLargest);
    return fold_halves(x, dims, {IsLargest ? "amax" : "amin", 0, keepdim, 0});
}

template <class T> struct Some : Largest<T> {
    static constexpr bool stops = true;
    static bool decides(T v) { return v != 0; }
};
template <class T> struct Every : Smallest<T> {
    static constexpr bool stops = true;
    static bool decides(T v) { return v == 0; }
};

template <template <class> class F> nb::object truth(Array x, nb::handle dims, bool keepdim) {
    if (!x.is<bool>() && !x.is<uint8_t>()) return not_implemented();
    return fold<F, uint8_t, Truth>(x, dims, keepdim);
}

// The sum that undoes broadcasting to x's shape from `size`.
nb::object sum_to_size(Array x, nb::handle size) {
    if (!x.usable() || !PyTuple_Check(size.ptr()) || x.ndim() > MOST) return not_implemented();
    int extra = x.ndim() - int(PyTuple_GET_SIZE(size.ptr()));
    npy_intp shape[MOST];
    if (extra < 0) return not_implemented();
    uint32_t mask = (1u << extra) - 1;
    for (int d = extra; d < x.ndim(); ++d) {
        shape[d - extra] = PyLong_AsLong(PyTuple_GET_ITEM(size.ptr(), d - extra));
        if (shape[d - extra] == x.shape(d)) continue;
        if (shape[d - extra] != 1) {
            PyErr_Clear();
            return not_implemented();
        }
        mask |= 1u << d;
    }
    if (mask == 0) return x.object();
    nb::list dims;
    for (int d = 0; d < x.ndim(); ++d)
        if (mask >> d & 1) dims.append(d);
    if (mask == (1u << extra) - 1) return sum(x, nb::tuple(dims), false);  // in its own memory, which need not be copied
    nb::object out = sum(x, nb::tuple(dims), true);
    if (out.is(not_implemented()) || extra == 0) return out;
    PyArray_Dims wanted{shape, x.ndim() - extra};
    return nb::steal(PyArray_Newshape(reinterpret_cast<PyArrayObject*>(out.ptr()), &wanted, NPY_CORDER));
}

}  // namespace

FW_BIND(m) {
    nb::arg x("x"), dims("dims"), keepdim("keepdim");
    m.def("sum", &sum, x, dims, keepdim);
    m.def("mean", &mean, x, dims, keepdim);
    m.def("vector_norm", &vector_norm, x, nb::arg("ord"), dims, keepdim);
    m.def("prod", &prod, x);
    m.def("amax", &extreme<Largest, true>, x, dims, keepdim);
    m.def("amin", &extreme<Smallest, false>, x, dims, keepdim);
    m.def("any", &truth<Some>, x, dims, keepdim);
    m.def("all", &truth<Every>, x, dims, keepdim);
    m.def("sum_to_size", &sum_to_size, x, nb::arg("size"));
}

}  // namespace fw
