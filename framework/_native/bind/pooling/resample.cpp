// Resampling of NumPy arrays.
#include <numeric>

#include "bind/move/copy.h"
#include "pooling/resample.h"

namespace fw::sampling {
namespace {

template <class T> nb::object run(const Array& x, int dim, const Array& starts, const Array& index, const Array& weight) {
    const int64_t size = x.shape(dim);
    Lists<T> lists;  // copies: nobody changes them while they are read
    lists.starts.assign(starts.data<int64_t>(), starts.data<int64_t>() + starts.size());
    lists.index.assign(index.data<int64_t>(), index.data<int64_t>() + index.size());
    lists.weight.assign(weight.data<double>(), weight.data<double>() + weight.size());
    if (!lists.settle(size)) return not_implemented();
    std::vector<npy_intp> shape(x.shape(), x.shape() + x.ndim());
    shape[size_t(dim)] = lists.out();
    if (!countable(shape.data(), x.ndim())) return not_implemented();
    int axes[NPY_MAXDIMS];
    axes_in_memory(x, axes);
    const bool dense = x.contiguous() || (moving::are_channels_last(x.ndim(), axes) && dense_in_order(x, axes));
    nb::object rows;
    const T* from = x.data<T>();
    if (!dense || x.contiguous()) std::iota(axes, axes + x.ndim(), 0);
    if (!dense) {
        InRows copy(x);
        from = copy.data<T>(), rows = std::move(copy.owner);
    }
    int64_t outer = 1, inner = 1;
    for (int i = 0, behind = 0; i < x.ndim(); ++i) {
        if (axes[i] == dim) behind = 1;
        else (behind ? inner : outer) *= x.shape(axes[i]);
    }
    NewArray y = new_in_order(x.ndim(), shape.data(), x.type(), axes);
    {
        Release release((x.size() + y.size()) * int64_t(sizeof(T)));
        resample(lists, from, y.data<T>(), outer, size, inner);
    }
    return give(y);
}

nb::object resample_by(Array x, int dim, Array starts, Array index, Array weight) {
    if (!x.is_float() || dim < 0 || dim >= x.ndim() || !x.size() || !starts.is<int64_t>() || !index.is<int64_t>() ||
        !weight.is<double>() || starts.ndim() != 1 || index.ndim() != 1 || weight.ndim() != 1 ||
        !starts.contiguous() || !index.contiguous() || !weight.contiguous() || index.size() != weight.size() ||
        starts.size() < 2)
        return not_implemented();
    return x.is<float>() ? run<float>(x, dim, starts, index, weight) : run<double>(x, dim, starts, index, weight);
}

FW_BIND(m) {
    m.def("resample", &resample_by, nb::arg("x"), nb::arg("dim"), nb::arg("starts"), nb::arg("index"), nb::arg("weight"));
}

}  // namespace
}  // namespace fw::sampling
