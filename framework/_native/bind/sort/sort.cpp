// sort, topk, kthvalue, median, searchsorted of NumPy arrays.
#include <algorithm>

#include "bind/bf16_array.h"
#include "bind/move/alike.h"
#include "sort/sorting.h"

namespace fw {
namespace {

// The arrays that fill(x, values, places) fills, with m elements along the dimension, or without it if m is 0.
template <class Fill> nb::object found(const Array& given, int dim, int64_t m, Fill&& fill) {
    InRows rows(given);
    npy_intp shape[NPY_MAXDIMS];
    int ndim = 0;
    for (int d = 0; d < given.ndim(); ++d)
        if (d != dim || m) shape[ndim++] = d == dim ? m : given.shape(d);
    NewArray values = new_array(ndim, shape, given.type()), places = new_array(ndim, shape, NPY_INT64);
    {
        const View x = view_of(rows.a);
        Release release(given.size() * PyArray_ITEMSIZE(given.p));
        fill(x, values.data<void>(), places.data<int64_t>());
    }
    return nb::make_tuple(give(values), give(places));
}

bool sortable(const Array& x, int dim) { return x.usable() && sort::sortable(view_of(x), dim); }

nb::object sort_along(Array x, int dim, bool descending) {
    if (!sortable(x, dim)) return not_implemented();
    return found(x, dim, x.shape(dim), [=](const View& from, void* values, int64_t* places) {
        sort::sort_along(from, dim, descending, values, places);
    });
}

nb::object topk(Array x, int64_t k, int dim, bool largest) {
    if (!sortable(x, dim) || k < 1 || k > x.shape(dim)) return not_implemented();
    return found(x, dim, k, [=](const View& from, void* values, int64_t* places) {
        sort::topk(from, k, dim, largest, values, places);
    });
}

nb::object kthvalue(Array x, int dim, bool keepdim, int64_t k, bool nan_wins) {
    if (!sortable(x, dim) || k < 0 || k >= x.shape(dim)) return not_implemented();
    return found(x, dim, keepdim, [=](const View& from, void* values, int64_t* places) {
        sort::kth(from, k, dim, nan_wins, values, places);
    });
}

nb::object nanmedian(Array x, int dim, bool keepdim) {
    if (!sortable(x, dim)) return not_implemented();
    return found(x, dim, keepdim, [=](const View& from, void* values, int64_t* places) {
        sort::nanmedian(from, dim, values, places);
    });
}

nb::object mode(Array x, int dim, bool keepdim) {
    if (!sortable(x, dim)) return not_implemented();
    return found(x, dim, keepdim, [=](const View& from, void* values, int64_t* places) {
        sort::mode(from, dim, values, places);
    });
}

nb::object median(Array x) {
    if (!x.usable() || x.size() > sort::MOST) return not_implemented();
    const InRows rows(x, !has_no_gaps(x));
    View all = view_of(rows.a);
    const int64_t size = x.size(), step = bytes_of(all.type());
    all.dims = 1, all.sizes = &size, all.steps = &step;
    if (!sort::sortable(all, 0)) return not_implemented();
    NewArray out = new_array(0, nullptr, x.type());
    {
        Release release(x.size() * step);
        sort::median(all, out.data<void>());
    }
    return give(out);
}

nb::object searchsorted(Array a, Array x, bool right) {
    if (!a.usable() || !x.usable() || !sort::searchable(view_of(a), view_of(x))) return not_implemented();
    NewArray out = new_array(x.ndim(), x.shape(), NPY_INT64);
    {
        const View sorted = view_of(a), keys = view_of(x);
        Release release(x.size() * 64);
        sort::search(sorted, keys, right, out.data<int64_t>());
    }
    return give(out);
}

}  // namespace

FW_BIND(m) {
    nb::arg x("x"), dim("dim");
    m.def("sort", &sort_along, x, dim, nb::arg("descending"));
    m.def("topk", &topk, x, nb::arg("k"), dim, nb::arg("largest"));
    m.def("kthvalue", &kthvalue, x, dim, nb::arg("keepdim"), nb::arg("k"), nb::arg("nan_wins"));
    m.def("nanmedian", &nanmedian, x, dim, nb::arg("keepdim"));
    m.def("mode", &mode, x, dim, nb::arg("keepdim"));
    m.def("median", &median, x);
    m.def("searchsorted", &searchsorted, nb::arg("sorted_sequence"), nb::arg("input"), nb::arg("right"));
}

}  // namespace fw
