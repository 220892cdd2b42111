// Whole rows of NumPy arrays: x[index], embedding, index_put, and the sums that are their derivatives.
#include <algorithm>

#include "bind/bf16_array.h"
#include "bind/index/rows.h"
#include "index/bags.h"
#include "index/index.h"
#include "bind/move/copy.h"

namespace fw::moving {
namespace {

// `dims` as they stand in an array of that shape: next to each other, ascending
bool read_layout(int ndim, const npy_intp* shape, const Ints& dims, Layout& l) {
    if (!dims.good || dims.n < 1 || dims[0] < 0 || dims[0] >= ndim) return false;
    for (int k = 1; k < dims.n; ++k)
        if (dims[k] != dims[0] + k) return false;
    int first = int(dims[0]), stop = first + dims.n;
    if (stop > ndim) return false;
    l.outer = product(shape, 0, first), l.n = product(shape, first, stop), l.inner = product(shape, stop, ndim);
    return l.outer * l.n * l.inner > 0;
}

// The shape of a choice: x's, with the dimensions of `index` (from its own dimension `skip` on) at `dims`.
int chosen_shape(int ndim, const npy_intp* x, const Array& index, int skip, int first, int dims, npy_intp* shape) {
    int n = 0;
    if (ndim - dims + index.ndim() - skip > NPY_MAXDIMS) return -1;
    for (int d = 0; d < first; ++d) shape[n++] = x[d];
    for (int d = skip; d < index.ndim(); ++d) shape[n++] = index.shape(d);
    for (int d = first + dims; d < ndim; ++d) shape[n++] = x[d];
    return n;
}

bool has_shape(const Array& a, int ndim, const npy_intp* shape) {
    return a.ndim() == ndim && std::equal(shape, shape + ndim, a.shape());
}

// A choice from, or a place in, an array of shape `of`: what all of the ops here begin with.
struct Choice {
    Layout l;
    Places places;
    npy_intp shape[NPY_MAXDIMS];  // of what is chosen
    int ndim = 0;
    bool good = false;

    Choice(int of_ndim, const npy_intp* of, const Array& index, const Ints& dims, int skip) {
        if (!(index.is<int64_t>() || index.is<int32_t>()) || !dims.good || !index.size() || !read_layout(of_ndim, of, dims, l)) return;
        if (skip && (index.ndim() < 1 || index.shape(0) != dims.n)) return;
        int first = int(dims[0]);
        ndim = chosen_shape(of_ndim, of, index, skip, first, dims.n, shape);
        if (ndim < 0) return;
        const InRows rows(index);
        places = read_places(view_of(rows.a), dims.n, reinterpret_cast<const int64_t*>(of + first));
        good = places.good;
    }
    int64_t size() const { return l.outer * places.count() * l.inner; }
};

nb::object taken(const Array& x, const Array& index, const Ints& dims, int skip) {
    int bytes = item_bytes(x);
    if (!bytes) return not_implemented();
    Choice c(x.ndim(), x.shape(), index, dims, skip);
    if (!c.good) return not_implemented();
    InRows rows(x);
    NewArray out = new_array(c.ndim, c.shape, x.type());
    nb::object result = give(out);
    Release release(c.size() * bytes);
    take_rows(c.l, c.places, bytes, rows.a.data<char>(), out.data<char>());
    return result;
}

nb::object summed(const Array& x, const Array& index, const Ints& dims, int skip, int ndim, const npy_intp* shape) {
    if (!x.usable()) return not_implemented();
    Choice c(ndim, shape, index, dims, skip);
    if (!c.good || !has_shape(x, c.ndim, c.shape)) return not_implemented();
    InRows rows(x);
    const Type type = view_of(x).type();
    if (!by_number(type, [](auto) {})) return not_implemented();
    NewArray out = new_array(ndim, shape, x.type());
    nb::object result = give(out);
    Release release((out.size() + x.size()) * bytes_of(type));
    add_rows(type, c.l, c.places, rows.a.data<void>(), out.data<void>());
    return result;
}

}  // namespace

nb::object index(Array x, Array index, nb::handle dims) {
    return x.usable() ? taken(x, index, Ints(dims), 1) : not_implemented();
}

nb::object unindex(Array x, Array index, nb::handle dims, nb::handle shape) {
    Ints sizes(shape);
    npy_intp whole[NPY_MAXDIMS];
    if (!sizes.is_shape()) return not_implemented();
    std::copy(sizes.at, sizes.at + sizes.n, whole);
    return summed(x, index, Ints(dims), 1, sizes.n, whole);
}

// x with the rows of `source` added at the positions: the sum of those of a place is made first.
nb::object index_add(Array x, Array source, Array index, nb::handle dims) {
    if (!x.usable() || !source.usable() || !index.usable() || x.type() != source.type()) return not_implemented();
    const Type type = view_of(x).type();
    if (!by_number(type, [](auto) {})) return not_implemented();
    Choice c(x.ndim(), x.shape(), index, Ints(dims), 1);
    if (!c.good || !has_shape(source, c.ndim, c.shape)) return not_implemented();
    const InRows own(x), rows(source);
    NewArray out = like(x);
    nb::object result = give(out);
    Release release((x.size() + source.size()) * bytes_of(type));
    add_rows_to(type, c.l, c.places, own.a.data<void>(), rows.a.data<void>(), out.data<void>());
    return result;
}

namespace {

Ints first_dim() { return Ints(nb::int_(0)); }

nb::object embedding(Array weight, Array indices, nb::handle, nb::handle) {
    return weight.usable() ? taken(weight, indices, first_dim(), 0) : not_implemented();
}

nb::object add_rows_op(Array x, Array indices, int64_t rows) {
    if (!x.usable() || !indices.usable() || x.ndim() < indices.ndim()) return not_implemented();
    npy_intp shape[NPY_MAXDIMS + 1] = {rows};
    int ndim = 1 + x.ndim() - indices.ndim();
    std::copy(x.shape() + indices.ndim(), x.shape() + x.ndim(), shape + 1);
    if (ndim > NPY_MAXDIMS || !countable(shape, ndim)) return not_implemented();
    return summed(x, indices, first_dim(), 0, ndim, shape);
}

// -- writing --------------------------------------------------------------------------------------

// What is written: an array of the chosen shape, or one number.
struct Values {
    Pair bits{};
    const char* rows = nullptr;
    bool good = false;
    Array own;
    nb::object copy;

    Values(nb::handle given, const Array& x, int ndim, const npy_intp* shape) {
        PyObject* o = given.ptr();
        if (!PyArray_CheckExact(o) || !PyArray_ISBEHAVED_RO(reinterpret_cast<PyArrayObject*>(o))) {
            good = element(given, x, bits);
            return;
        }
        Array a;
        a.p = reinterpret_cast<PyArrayObject*>(o);
        if (a.type() != x.type()) return;
        if (a.ndim() == 0) {
            memcpy(&bits, a.data<char>(), size_t(item_bytes(x)));
            good = true;
        } else if (has_shape(a, ndim, shape)) {
            InRows row_major(a);
            own = row_major.a, copy = row_major.owner;
            rows = own.data<char>();
            good = true;
        }
    }
};

nb::object index_put(Array x, nb::handle value, Array index, nb::handle dims) {
    int bytes = item_bytes(x);
    if (!bytes) return not_implemented();
    Choice c(x.ndim(), x.shape(), index, Ints(dims), 1);
    if (!c.good) return not_implemented();
    Values values(value, x, c.ndim, c.shape);
    if (!values.good) return not_implemented();
    NewArray out = like(x);
    nb::object result = give(out);
    Release release(x.size() * bytes);
    copy_array(x, out.data<char>());
    put_rows(c.l, c.places, bytes, values.rows, values.bits, out.data<char>());
    return result;
}

}  // namespace

nb::object index_assign(Array x, nb::handle value, Array index, nb::handle dims) {
    int bytes = item_bytes(x);
    if (!bytes) return not_implemented();
    Choice c(x.ndim(), x.shape(), index, Ints(dims), 1);
    if (!c.good) return not_implemented();
    RowsOf to(x);
    if (!to.good) return not_implemented();
    Values values(value, x, c.ndim, c.shape);
    if (!values.good || (values.rows && share_memory(values.own, x))) return not_implemented();
    {
        Release release(c.size() * bytes, Writes::memory);
        put_rows(c.l, c.places, bytes, values.rows, values.bits, to.rows.a.data<char>());
    }
    return to.put_back() ? nb::none() : not_implemented();
}

namespace {

// -- bags -----------------------------------------------------------------------------------------

// The sums or means of bags of rows: indices (N) are cut at offsets, the first being 0.
nb::object bag_rows_of(Array table, Array index, Array offsets, bool mean, bool last) {
    if (!table.is_float() || !index.is<int64_t>() || !offsets.is<int64_t>() || table.ndim() != 2 || index.ndim() != 1 ||
        offsets.ndim() != 1 || offsets.size() <= last || !index.size() || !table.size())
        return not_implemented();
    const Bags b = {offsets.size() - last, index.size(), table.shape(0), table.shape(1), mean, last};
    const npy_intp shape[] = {b.bags, b.width};
    const InRows rows(table), at(index), cuts(offsets);
    NewArray out = new_array(2, shape, table.type());
    bool good = false;
    {
        Release release((index.size() * b.width + out.size()) * 4);
        good = table.is<float>()
                   ? bag_rows(b, rows.data<float>(), at.data<int64_t>(), cuts.data<int64_t>(), out.data<float>())
                   : bag_rows(b, rows.data<double>(), at.data<int64_t>(), cuts.data<int64_t>(), out.data<double>());
    }
    return good ? give(out) : not_implemented();
}

// -- checks ---------------------------------------------------------------------------------------

// (smallest, largest)
nb::object index_range(Array index) {
    if (!index.is<int64_t>() || !index.size()) return not_implemented();
    const InRows rows(index);
    int64_t low, high;
    {
        Release release(index.size() * 8);
        range_of(rows.data<int64_t>(), index.size(), low, high);
    }
    return nb::make_tuple(low, high);
}

// Whether an array is of int64 and none of its elements lies outside of low ... high - 1.
bool all_within(Array index, int64_t low, int64_t high) {
    if (!index.is<int64_t>() || !index.size()) return false;
    const InRows rows(index);
    int64_t least, most;
    Release release(index.size() * 8);
    range_of(rows.data<int64_t>(), index.size(), least, most);
    return least >= low && most < high;
}

// Whether an array is of floating numbers of which none lies outside of low ... high; nan is neither.
nb::object reals_within(Array x, double low, double high) {
    if (!x.is_float()) return not_implemented();
    const InRows rows(x);
    bool outside = false;
    const auto look = [&](auto* at) {
        for (int64_t i = 0; i < x.size(); ++i) outside |= (at[i] < low) | (at[i] > high);
    };
    {
        Release release(x.size() * 4);
        x.is<float>() ? look(rows.data<float>()) : look(rows.data<double>());
    }
    return nb::bool_(!outside);
}

}  // namespace

FW_BIND(m) {
    m.def("bag_rows", &bag_rows_of, nb::arg("table"), nb::arg("index"), nb::arg("offsets"), nb::arg("mean"), nb::arg("last"));
    m.def("reals_within", &reals_within, nb::arg("x"), nb::arg("low"), nb::arg("high"));
    m.def("index", &index, nb::arg("x"), nb::arg("index"), nb::arg("dims"));
    m.def("unindex", &unindex, nb::arg("x"), nb::arg("index"), nb::arg("dims"), nb::arg("shape"));
    m.def("index_add", &index_add, nb::arg("x"), nb::arg("src"), nb::arg("index"), nb::arg("dims"));
    m.def("embedding", &embedding, nb::arg("weight"), nb::arg("indices"), nb::arg("padding").none(),
          nb::arg("by_frequency").none());
    m.def("add_rows", &add_rows_op, nb::arg("x"), nb::arg("indices"), nb::arg("rows"));
    m.def("index_put", &index_put, nb::arg("x"), nb::arg("value").none(), nb::arg("index"), nb::arg("dims"));
    m.def("index_assign", &index_assign, nb::arg("x"), nb::arg("value").none(), nb::arg("index"), nb::arg("dims"));
    m.def("index_range", &index_range, nb::arg("index"));
    m.def("all_within", &all_within, nb::arg("index"), nb::arg("low"), nb::arg("high"));
}

}  // namespace fw::moving
