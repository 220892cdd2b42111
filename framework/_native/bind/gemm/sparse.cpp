// Products of NumPy arrays with sparse matrices.
#include <algorithm>

#include "bind/array.h"
#include "gemm/sparse.h"

namespace fw::sparse {
namespace {

struct SparseParts {  // of Rows
    nb::object kept[2];
    Array starts, columns;
    int64_t m = 0, n = 0;
    bool good = false;

    explicit SparseParts(nb::handle rows) {
        kept[0] = rows.attr("starts"), kept[1] = rows.attr("columns");
        starts = nb::cast<Array>(kept[0]), columns = nb::cast<Array>(kept[1]);
        nb::object shape = rows.attr("shape");
        m = nb::cast<int64_t>(shape[0]), n = nb::cast<int64_t>(shape[1]);
        good = starts.usable() && columns.usable() && starts.ndim() == 1 && columns.ndim() == 1 &&
               starts.contiguous() && columns.contiguous() && starts.type() == columns.type() &&
               (starts.is<int64_t>() || starts.is<int32_t>()) && m >= 0 && n >= 0 && starts.size() == m + 1;
    }
    template <class I> SparsePlaces<I> places() const {
        return {starts.data<I>(), columns.data<I>(), m, n, columns.size()};
    }
};

template <class F> bool with_types(const Array& a, const SparseParts& parts, F&& f) {
    auto index = [&](auto t) {
        return parts.starts.is<int64_t>() ? f(t, int64_t{}) : f(t, int32_t{});
    };
    return a.is<float>() ? index(float{}) : index(double{});
}

nb::object spmm(Array values, Array dense, nb::handle rows) {
    SparseParts parts(rows);
    if (!parts.good || !values.usable() || !dense.usable() || !values.is_float() || values.type() != dense.type() ||
        values.ndim() != 1 || values.size() != parts.columns.size() || dense.ndim() < 1 || dense.ndim() > 2 ||
        dense.shape(0) != parts.n)
        return not_implemented();
    InRows each(values), from(dense);
    values = each.a, dense = from.a;
    int64_t width = dense.ndim() == 2 ? dense.shape(1) : 1;
    npy_intp shape[2] = {npy_intp(parts.m), npy_intp(width)};
    NewArray out = new_array(dense.ndim(), shape, dense.type());
    nb::object result = give(out);
    bool good;
    {
        Release release(values.size() * std::max<int64_t>(width, 1) * 8);
        good = with_types(values, parts, [&](auto t, auto i) {
            using T = decltype(t);
            return spmm_rows<T>(parts.places<decltype(i)>(), values.data<T>(), dense.data<T>(), width, out.data<T>());
        });
    }
    return good ? result : not_implemented();
}

nb::object sddmm(Array x, Array y, nb::handle rows) {
    SparseParts parts(rows);
    if (!parts.good || !x.usable() || !y.usable() || !x.is_float() || x.type() != y.type() || x.ndim() != y.ndim() ||
        x.ndim() < 1 || x.ndim() > 2 || x.shape(0) != parts.m || y.shape(0) != parts.n ||
        (x.ndim() == 2 && x.shape(1) != y.shape(1)))
        return not_implemented();
    InRows left(x), right(y);
    x = left.a, y = right.a;
    int64_t width = x.ndim() == 2 ? x.shape(1) : 1;
    npy_intp shape[1] = {npy_intp(parts.columns.size())};
    NewArray out = new_array(1, shape, x.type());
    nb::object result = give(out);
    bool good;
    {
        Release release(parts.columns.size() * std::max<int64_t>(width, 1) * 8);
        good = with_types(x, parts, [&](auto t, auto i) {
            using T = decltype(t);
            return sddmm_rows<T>(parts.places<decltype(i)>(), x.data<T>(), y.data<T>(), width, out.data<T>());
        });
    }
    return good ? result : not_implemented();
}

}  // namespace

FW_BIND(m) {
    m.def("spmm", &spmm, nb::arg("values"), nb::arg("dense"), nb::arg("rows"));
    m.def("sddmm", &sddmm, nb::arg("x"), nb::arg("y"), nb::arg("rows"));
}

}  // namespace fw::sparse
