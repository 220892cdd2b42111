// Sums, means, norms, products, extremes and truth over any dimensions.
#include "bind/program/program_fold.h"
#include "bind/reduce/arrays.h"
#include "bind/tensors/tensors.h"
#include "reduce/counts.h"
#include "reduce/totals.h"

namespace fw {
namespace {

using namespace reduce;

template <class T> nb::object total_of(const Array& x, nb::handle dims, bool keepdim, bool divided) {
    return run<T>(x, dims, keepdim, [=](const Plan& p, const char* from, T* to) { reduce::total(p, from, to, divided); });
}

nb::object total(const Array& x, nb::handle dims, bool keepdim, bool divided) {
    if (x.is<float>()) return total_of<float>(x, dims, keepdim, divided);
    if (x.is<double>()) return total_of<double>(x, dims, keepdim, divided);
    return fold_halves(x, dims, {divided ? Reduction::mean : Reduction::sum, 0, keepdim, 0});
}

// Complex numbers by their parts, which are a last dimension.
nb::object total_of_parts(const Array& x, nb::handle dims, bool keepdim) {
    const bool narrow = x.type() == NPY_CFLOAT;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    int ndim = x.ndim();
    if (ndim >= std::min(MOST, NPY_MAXDIMS)) return not_implemented();
    std::copy(x.shape(), x.shape() + ndim, shape), std::copy(x.strides(), x.strides() + ndim, strides);
    shape[ndim] = 2, strides[ndim] = narrow ? 4 : 8;
    const nb::object parts = tensors::seen_as(x.p, ndim + 1, shape, strides, 0, narrow ? NPY_FLOAT : NPY_DOUBLE);
    const nb::object made = total(nb::cast<Array>(parts), dims, keepdim, false);
    if (made.is(not_implemented())) return made;
    const Array sums = nb::cast<Array>(made);
    std::copy(sums.shape(), sums.shape() + sums.ndim() - 1, shape), std::copy(sums.strides(), sums.strides() + sums.ndim() - 1, strides);
    return tensors::seen_as(sums.p, sums.ndim() - 1, shape, strides, 0, x.type());
}

nb::object sum(Array x, nb::handle dims, bool keepdim) {
    if (x.usable() && (x.type() == NPY_CFLOAT || x.type() == NPY_CDOUBLE)) return total_of_parts(x, dims, keepdim);
    if (x.is<int64_t>()) return run<uint64_t>(x, dims, keepdim, wrapped_sum);
    return total(x, dims, keepdim, false);
}

nb::object mean(Array x, nb::handle dims, bool keepdim) { return total(x, dims, keepdim, true); }

nb::object vector_norm(Array x, double ord, nb::handle dims, bool keepdim) {
    if (ord == 2 && x.is<float>()) return run<float>(x, dims, keepdim, norm<float>);
    if (ord == 2 && x.is<double>()) return run<double>(x, dims, keepdim, norm<double>);
    return ord == 2 ? fold_halves(x, dims, {Reduction::norm, 0, keepdim, 0}) : not_implemented();
}

nb::object nansum(Array x, nb::handle dims, bool keepdim) {
    if (x.is<float>()) return run<float>(x, dims, keepdim, total_of_numbers<float>);
    if (x.is<double>()) return run<double>(x, dims, keepdim, total_of_numbers<double>);
    return fold_halves(x, dims, {Reduction::nansum, 0, keepdim, 0});
}

nb::object prod(Array x) {
    if (!x.usable() || x.ndim() == 0) return not_implemented();
    nb::tuple dims = nb::make_tuple(x.ndim() - 1);
    if (x.is<int64_t>()) return run<uint64_t>(x, dims, false, product<uint64_t>);
    if (x.is<float>()) return run<float>(x, dims, false, product<float>);
    return x.is<double>() ? run<double>(x, dims, false, product<double>) : not_implemented();
}

template <class T> nb::object extreme_of(const Array& x, nb::handle dims, bool keepdim, bool largest) {
    return run<T>(x, dims, keepdim, [=](const Plan& p, const char* from, T* to) { reduce::extreme(p, from, to, largest); });
}

template <bool largest> nb::object extreme(Array x, nb::handle dims, bool keepdim) {
    if (x.is<int64_t>()) return extreme_of<int64_t>(x, dims, keepdim, largest);
    if (x.is<int32_t>()) return extreme_of<int32_t>(x, dims, keepdim, largest);
    if (x.is<float>()) return extreme_of<float>(x, dims, keepdim, largest);
    if (x.is<double>()) return extreme_of<double>(x, dims, keepdim, largest);
    return fold_halves(x, dims, {largest ? Reduction::amax : Reduction::amin, 0, keepdim, 0});
}

template <class T> nb::object counted(const Array& x, nb::handle dims) {
    Prepared to;
    if (!to.make(x, dims, false, NPY_INT64)) return not_implemented();
    {
        Release release(x.size() * int64_t(sizeof(T)));
        reduce::count_nonzero<T>(to.plan, to.from.data<char>(), to.out.data<int64_t>());
    }
    return give(to.out);
}

nb::object nonzero_counts(Array x, nb::handle dims) {
    if (x.is<bool>() || x.is<uint8_t>()) return counted<uint8_t>(x, dims);
    if (x.is<int32_t>()) return counted<int32_t>(x, dims);
    if (x.is<int64_t>()) return counted<int64_t>(x, dims);
    if (x.is<float>()) return counted<float>(x, dims);
    return x.is<double>() ? counted<double>(x, dims) : not_implemented();
}

// Whether some are not 0, or all: long rows are read until that is known, others counted.
template <class T> nb::object truth_of(const Array& x, nb::handle dims, bool keepdim, bool all) {
    Prepared to;
    if (!to.make(x, dims, keepdim, x.is<uint8_t>() ? NPY_UINT8 : NPY_BOOL)) return not_implemented();
    const Plan& plan = to.plan;
    {
        Release release(x.size() * int64_t(sizeof(T)));
        const auto* from = to.from.data<char>();
        auto* out = to.out.data<uint8_t>();
        if (sizeof(T) == 1 && plan.count() > COUNTED_FOR_TRUTH) reduce::truth(plan, from, out, all);
        else truth_by_counts<T>(plan, from, out, all);
    }
    return give(to.out);
}

template <bool all> nb::object truth(Array x, nb::handle dims, bool keepdim) {
    if (x.is<bool>() || x.is<uint8_t>()) return truth_of<uint8_t>(x, dims, keepdim, all);
    if (x.is<int32_t>()) return truth_of<int32_t>(x, dims, keepdim, all);
    if (x.is<int64_t>()) return truth_of<int64_t>(x, dims, keepdim, all);
    if (x.is<float>()) return truth_of<float>(x, dims, keepdim, all);
    return x.is<double>() ? truth_of<double>(x, dims, keepdim, all) : not_implemented();
}

}  // namespace

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

FW_BIND(m) {
    nb::arg x("x"), dims("dims"), keepdim("keepdim");
    m.def("sum", &sum, x, dims, keepdim);
    m.def("mean", &mean, x, dims, keepdim);
    m.def("nansum", &nansum, x, dims, keepdim);
    m.def("vector_norm", &vector_norm, x, nb::arg("ord"), dims, keepdim);
    m.def("prod", &prod, x);
    m.def("amax", &extreme<true>, x, dims, keepdim);
    m.def("amin", &extreme<false>, x, dims, keepdim);
    m.def("any", &truth<false>, x, dims, keepdim);
    m.def("all", &truth<true>, x, dims, keepdim);
    m.def("count_nonzero", &nonzero_counts, x, dims);
    m.def("sum_to_size", &sum_to_size, x, nb::arg("size"));
}

}  // namespace fw
