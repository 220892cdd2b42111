// sort, topk, kthvalue, median, searchsorted of NumPy arrays.
#include <algorithm>

#include "bind/bf16_array.h"
#include "bind/move/alike.h"
#include "sort/sorting.h"

namespace fw {
namespace {

// Of which narrow numbers an array is; not `good` where it is of others.
struct NarrowType {
    sort::Narrow of{};
    bool good = true;

    explicit NarrowType(const Array& x) {
        switch (x.usable() ? x.type() : NPY_VOID) {
            case NPY_BOOL: of = sort::Narrow::truth; return;
            case NPY_INT8: of = sort::Narrow::int8; return;
            case NPY_UINT8: of = sort::Narrow::uint8; return;
            case NPY_INT16: of = sort::Narrow::int16; return;
            case NPY_UINT16: of = sort::Narrow::uint16; return;
            default: good = false;
        }
    }
};

// An array that can be sorted: narrow numbers widened.
struct Wide {
    nb::object owner;
    Array a;
    const NarrowType type;

    explicit Wide(const Array& x) : a(x), type(x) {
        if (!type.good) return;
        const InRows rows(x);
        NewArray wide = new_array(x.ndim(), x.shape(), NPY_INT32);
        a = wide, owner = give(wide);
        Release release(x.size() * 4);
        sort::widen(type.of, rows.data<void>(), x.size(), wide.data<int32_t>());
    }
    // What was found among them, as they were.
    nb::object back(NewArray& found, const Array& x) const {
        nb::object given = give(found);
        if (!type.good) return given;
        NewArray out = new_array(found.ndim(), found.shape(), x.type());
        sort::narrow(type.of, found.data<int32_t>(), found.size(), out.data<void>());
        return give(out);
    }
};

// The arrays that fill(x, values, places) fills, with m elements along the dimension, or without it if m is 0.
template <class Fill> nb::object found(const Array& x, int dim, int64_t m, Fill&& fill) {
    const Wide wide(x);
    const Array& given = wide.a;
    InRows rows(given);
    npy_intp shape[NPY_MAXDIMS];
    int ndim = 0;
    for (int d = 0; d < given.ndim(); ++d)
        if (d != dim || m) shape[ndim++] = d == dim ? m : given.shape(d);
    NewArray values = new_array(ndim, shape, given.type()), places = new_array(ndim, shape, NPY_INT64);
    {
        const View from = view_of(rows.a);
        Release release(given.size() * PyArray_ITEMSIZE(given.p));
        fill(from, values.data<void>(), places.data<int64_t>());
    }
    nb::object all = wide.back(values, x);
    return nb::make_tuple(all, give(places));
}

bool sortable(const Array& x, int dim) {
    if (!x.usable()) return false;
    View as = view_of(x);
    if (NarrowType(x).good) as.of = Type::int32;
    return sort::sortable(as, dim);
}

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

nb::object median(Array given) {
    if (!given.usable() || given.size() > sort::MOST) return not_implemented();
    const Wide wide(given);
    const Array& x = wide.a;
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
    return wide.back(out, given);
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
