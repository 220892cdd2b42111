// Reductions of NumPy arrays.
#pragma once

#include "bind/array.h"
#include "reduce/reduce.h"

namespace fw {
namespace reduce {

inline const int64_t* as_sizes(const npy_intp* sizes) { return reinterpret_cast<const int64_t*>(sizes); }

inline bool make_plan(Plan& plan, const Array& x, uint32_t dims) {
    return plan.make(x.ndim(), as_sizes(x.shape()), as_sizes(x.strides()), PyArray_ITEMSIZE(x.p), dims);
}

// The dimensions that a tuple names, as bits; false for anything else.
inline bool read_dims(nb::handle dims, int ndim, uint32_t& mask) {
    mask = 0;
    if (!PyTuple_Check(dims.ptr()) || ndim > MOST) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dims.ptr()); ++i) {
        long d = PyLong_AsLong(PyTuple_GET_ITEM(dims.ptr(), i));
        if (d < 0 || d >= ndim) {
            PyErr_Clear();
            return false;
        }
        mask |= 1u << d;
    }
    return true;
}

// An array for the results.
inline NewArray results_array(int ndim, const npy_intp* whole, uint32_t dims, bool keepdim, int type) {
    npy_intp shape[MOST] = {};
    int n = 0;
    for (int d = 0; d < ndim; ++d) {
        bool fold = dims >> d & 1;
        if (!fold || keepdim) shape[n++] = fold ? 1 : whole[d];
    }
    return new_array(n, shape, type);
}
inline NewArray results_array(const Array& x, uint32_t dims, bool keepdim, int type) {
    return results_array(x.ndim(), x.shape(), dims, keepdim, type);
}

constexpr int64_t MOST_WITH_GAPS = 1 << 24;  // elements that are put side by side first; what is larger NumPy goes over as it lies

// A plan for the dimensions `dims` of x, and the array for its results: false for what is not taken.
struct Prepared {
    Plan plan;
    NewArray out;
    Array from;  // x, or its elements side by side
    nb::object owner;

    [[gnu::noinline]] bool make(const Array& x, nb::handle dims, bool keepdim, int type) {
        uint32_t mask;
        if (!read_dims(dims, x.ndim(), mask)) return false;
        from = x;
        if (!make_plan(plan, x, mask)) {
            if (x.contiguous() || x.size() > MOST_WITH_GAPS || !x.size()) return false;
            InRows rows(x);
            from = rows.a, owner = std::move(rows.owner);
            plan = Plan();
            if (!make_plan(plan, from, mask)) return false;
        }
        out = results_array(x, mask, keepdim, type);
        return true;
    }
};

// The results of fold(plan, x, results), which are of x's dtype and numbers of type T for it, for the dimensions `dims` of x, or
// not_implemented().
template <class T, class F> nb::object run(const Array& x, nb::handle dims, bool keepdim, F&& fold) {
    Prepared to;
    if (!to.make(x, dims, keepdim, x.type())) return not_implemented();
    {
        Release release(x.size() * int64_t(sizeof(T)));
        fold(to.plan, to.from.data<char>(), to.out.data<T>());
    }
    return give(to.out);
}

}  // namespace reduce
}  // namespace fw
