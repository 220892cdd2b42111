// Elements of NumPy arrays by positions along a dimension and by masks: gather, scatter, masked_select, one_hot.
#include <algorithm>

#include "bind/bf16_array.h"
#include "bind/index/rows.h"
#include "bind/tensors/tensors.h"
#include "index/index.h"

namespace fw::moving {

bool is_line(const Array& x, const Array& index, int64_t dim) {
    if (!index.usable() || index.ndim() < 2 || index.ndim() != x.ndim() || dim < 0 || dim >= x.ndim()) return false;
    for (int d = 0; d < x.ndim(); ++d)
        if (d != dim && (index.shape(d) != x.shape(d) || (index.stride(d) && index.shape(d) != 1))) return false;
    return true;
}

namespace {

// An array without what is there again and again, by strides of 0: a view whose elements are the same ones.
nb::object each_once(const Array& x) {
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    int ndim = 0;
    for (int d = 0; d < x.ndim(); ++d)
        if (x.stride(d) || x.shape(d) == 1) shape[ndim] = x.shape(d), strides[ndim++] = x.stride(d);
    return ndim == x.ndim() ? nb::borrow(reinterpret_cast<PyObject*>(x.p)) : tensors::seen_as(x.p, ndim, shape, strides);
}

const int64_t* sizes(const npy_intp* given) { return reinterpret_cast<const int64_t*>(given); }

nb::object gather_op(Array x, Array index, int64_t dim) {
    int bytes = item_bytes(x);
    if (!bytes || !index.usable() || !x.size()) return not_implemented();
    NewArray out = new_array(index.ndim(), index.shape(), x.type());
    nb::object result = give(out);
    const Elements p(view_of(index), x.ndim(), sizes(x.shape()), sizes(x.strides()), sizes(out.strides()), dim, bytes, false);
    if (!p.good) return not_implemented();
    bool good = false;
    {
        Release release(out.size() * bytes);
        good = gather(p, bytes, x.data<char>(), out.data<char>());
    }
    return good ? result : not_implemented();
}

// Whether `index` is made of positions below `size`.
bool all_below(const Array& index, int64_t size) {
    if (!index.is<int64_t>() || !index.size()) return false;
    const nb::object once = each_once(index);
    const InRows rows(Array{reinterpret_cast<PyArrayObject*>(once.ptr())});
    int64_t smallest, largest;
    range_of(rows.data<int64_t>(), rows.a.size(), smallest, largest);
    return smallest >= 0 && largest < size;
}

// A dimension of x that was given as a number of Python's, counted from 0; -1 for anything else.
int dimension_of(const Array& x, nb::handle dim) {
    if (!x.usable() || !PyLong_CheckExact(dim.ptr())) return -1;
    int overflow = 0;
    const int64_t given = PyLong_AsLongLongAndOverflow(dim.ptr(), &overflow), at = given < 0 ? given + x.ndim() : given;
    return overflow || at < 0 || at >= x.ndim() ? -1 : int(at);
}

// The dimension of x along which all positions of `index` lie in it, and in whose others index is no larger; -1 where that is
// not so, or not known.
int places_fit(Array x, Array index, nb::handle dim) {
    const int at = dimension_of(x, dim);
    if (at < 0 || !index.usable() || index.ndim() != x.ndim()) return -1;
    for (int d = 0; d < x.ndim(); ++d)
        if (d != at && index.shape(d) > x.shape(d)) return -1;
    return all_below(index, x.shape(at)) ? at : -1;
}

// The same for an index of one dimension.
int line_fits(Array x, Array index, nb::handle dim) {
    const int at = dimension_of(x, dim);
    return at >= 0 && index.usable() && index.ndim() == 1 && all_below(index, x.shape(at)) ? at : -1;
}

// -- scatter --------------------------------------------------------------------------------------

// The strides of values in the index's shape: an array's, or all 0 for one number.
struct ScatterSource {
    const char* data = nullptr;
    npy_intp strides[NPY_MAXDIMS] = {};
    Pair bits{};

    ScatterSource(nb::handle given, const Array& x, const Array& index) {
        PyObject* o = given.ptr();
        if (!PyArray_CheckExact(o) || !PyArray_ISBEHAVED_RO(reinterpret_cast<PyArrayObject*>(o))) {
            if (element(given, x, bits)) data = reinterpret_cast<const char*>(&bits);
            return;
        }
        Array a;
        a.p = reinterpret_cast<PyArrayObject*>(o);
        if (a.type() != x.type() || (a.ndim() && !a.same_shape(index))) return;
        data = a.data<char>();
        std::copy(a.strides(), a.strides() + a.ndim(), strides);
    }
};

// f(plan, src, out): x with `src` combined into it.
template <class F> nb::object scattered(const Array& x, nb::handle src, const Array& index, int64_t dim, F&& f) {
    int bytes = item_bytes(x);
    if (!bytes || !index.usable() || !x.size()) return not_implemented();
    ScatterSource source(src, x, index);
    if (!source.data) return not_implemented();
    NewArray out = like(x);
    nb::object result = give(out);
    const Elements p(view_of(index), x.ndim(), sizes(x.shape()), sizes(out.strides()), sizes(source.strides), dim, bytes, true);
    if (!p.good) return not_implemented();
    bool good = false;
    {
        Release release((x.size() + index.size()) * bytes);
        good = f(p, source.data, out.data<char>());
    }
    return good ? result : not_implemented();
}

nb::object scatter_op(Array x, nb::handle src, Array index, int64_t dim) {
    return scattered(x, src, index, dim, [&](const Elements& p, const char* from, char* to) {
        copy_array(x, to);
        return scatter(p, item_bytes(x), from, to);
    });
}

nb::object combined(Combine how, const Array& x, nb::handle src, const Array& index, int64_t dim) {
    const Type type = x.usable() ? view_of(x).type() : Type::other;
    return scattered(x, src, index, dim, [&](const Elements& p, const char* from, char* to) {
        copy_array(x, to);
        return scatter(how, type, p, from, to);
    });
}

// The sums beside zeros, and x at last: the order in which the plain formula and GPUs add.
nb::object scatter_add(Array x, nb::handle src, Array index, int64_t dim) {
    const Type type = x.usable() ? view_of(x).type() : Type::other;
    if (!by_number(type, [](auto) {})) return not_implemented();
    if (is_line(x, index, dim)) {
        npy_intp shape[] = {1, index.shape(int(dim))}, strides[] = {0, index.stride(int(dim))};
        const nb::object line = tensors::seen_as(index.p, 2, shape, strides);
        return index_add(x, nb::cast<Array>(src), Array{reinterpret_cast<PyArrayObject*>(line.ptr())}, nb::make_tuple(dim));
    }
    const InRows first(x);
    return scattered(x, src, index, dim, [&](const Elements& p, const char* from, char* to) {
        fill_bytes(to, x.size() * bytes_of(type), 0);
        const bool good = scatter(Combine::sum, type, p, from, to);
        by_number(type, [&](auto number) {
            using T = decltype(number);
            parallel(x.size(), grain_of(sizeof(T)), [&](int64_t begin, int64_t end) {
                add_sums(first.a.data<T>() + begin, end - begin, reinterpret_cast<T*>(to) + begin);
            });
        });
        return good;
    });
}

nb::object scatter_multiply(Array x, nb::handle src, Array index, int64_t dim) {
    return combined(Combine::product, x, src, index, dim);
}

nb::object scatter_extreme(Array x, nb::handle src, Array index, int64_t dim, bool largest) {
    return combined(largest ? Combine::largest : Combine::smallest, x, src, index, dim);
}

nb::object ungather(Array x, Array index, int64_t dim, nb::handle shape) {
    Ints whole(shape);
    if (!x.usable() || !index.usable() || !whole.is_shape() || !x.same_shape(index)) return not_implemented();
    const Type type = view_of(x).type();
    if (!by_number(type, [](auto) {})) return not_implemented();
    npy_intp shape_of_it[NPY_MAXDIMS];
    std::copy(whole.at, whole.at + whole.n, shape_of_it);
    NewArray out = new_array(whole.n, shape_of_it, x.type());
    nb::object result = give(out);
    const int64_t bytes = bytes_of(type);
    const InRows rows(x);  // often the gradient of a sum, one number with strides of 0
    x = rows.a;
    const Elements p(view_of(index), whole.n, whole.at, sizes(out.strides()), sizes(x.strides()), dim, int(bytes), true);
    if (!p.good || !out.size()) return not_implemented();
    bool good = false;
    {
        Release release((out.size() + x.size()) * bytes);
        fill_bytes(out.data<char>(), out.size() * bytes, 0);
        good = scatter(Combine::sum, type, p, x.data<char>(), out.data<char>());
    }
    return good ? result : not_implemented();
}

nb::object one_hot_op(Array classes, int64_t count) {
    if (!classes.is<int64_t>() || !classes.size() || count < 1 || classes.ndim() + 1 > NPY_MAXDIMS)
        return not_implemented();
    InRows rows(classes);
    npy_intp shape[NPY_MAXDIMS];
    std::copy(classes.shape(), classes.shape() + classes.ndim(), shape);
    shape[classes.ndim()] = count;
    if (!countable(shape, classes.ndim() + 1)) return not_implemented();
    NewArray out = new_array(classes.ndim() + 1, shape, NPY_INT64);
    nb::object result = give(out);
    bool good = false;
    {
        Release release(out.size() * 8);
        good = one_hot(rows.a.data<int64_t>(), classes.size(), count, out.data<int64_t>());
    }
    return good ? result : not_implemented();
}

// -- masks ----------------------------------------------------------------------------------------

// A mask over the leading dimensions of an array of that shape; false for anything else.
bool read_mask(Chosen& chosen, const Array& mask, int ndim, const npy_intp* shape) {
    if (!mask.is<bool>() || !mask.contiguous() || mask.ndim() > ndim || !mask.size() ||
        !std::equal(shape, shape + mask.ndim(), mask.shape()))
        return false;
    chosen.mask = mask.data<uint8_t>(), chosen.n = mask.size();
    chosen.inner = product(shape, mask.ndim(), ndim);
    return chosen.inner > 0;
}

nb::object masked_select(Array x, Array mask, int64_t count) {
    int bytes = item_bytes(x);
    if (!bytes || !mask.usable()) return not_implemented();
    Chosen chosen;
    const InRows holds(mask);
    if (!read_mask(chosen, holds.a, x.ndim(), x.shape())) return not_implemented();
    chosen.count();
    if (chosen.total() != count) return not_implemented();
    InRows rows(x);
    npy_intp shape[NPY_MAXDIMS] = {npy_intp(count)};
    int rest = x.ndim() - mask.ndim();
    std::copy(x.shape() + mask.ndim(), x.shape() + x.ndim(), shape + 1);
    NewArray out = new_array(1 + rest, shape, x.type());
    nb::object result = give(out);
    Release release(x.size() * bytes);
    pick(chosen, bytes, rows.a.data<char>(), out.data<char>());
    return result;
}

// (shape of the mask and the rest) = the rows of x where the mask holds, else those of `other`, or 0
nb::object placed(const Array& x, const Array& mask, int ndim, const npy_intp* shape, const Array* other) {
    int bytes = item_bytes(x);
    if (!bytes || !mask.usable() || mask.ndim() > ndim || x.ndim() != 1 + ndim - mask.ndim() ||
        !std::equal(shape + mask.ndim(), shape + ndim, x.shape() + 1))
        return not_implemented();
    Chosen chosen;
    const InRows holds(mask);
    if (!read_mask(chosen, holds.a, ndim, shape)) return not_implemented();
    chosen.count();
    if (chosen.total() != x.shape(0)) return not_implemented();
    InRows rows(x), old(other ? *other : x);
    NewArray out = new_array(ndim, shape, x.type());
    nb::object result = give(out);
    Release release(out.size() * bytes);
    place(chosen, bytes, rows.a.data<char>(), other ? old.a.data<char>() : nullptr, out.data<char>());
    return result;
}

nb::object unmask(Array x, Array mask, nb::handle shape) {
    Ints sizes(shape);
    if (!x.usable() || !sizes.is_shape()) return not_implemented();
    npy_intp whole[NPY_MAXDIMS];
    std::copy(sizes.at, sizes.at + sizes.n, whole);
    return placed(x, mask, sizes.n, whole, nullptr);
}

// x with one number where the mask holds
nb::object filled(const Array& x, const Pair& number, const Array& mask) {
    const int bytes = item_bytes(x);
    Chosen chosen;
    const InRows holds(mask);
    if (!read_mask(chosen, holds.a, x.ndim(), x.shape())) return not_implemented();
    InRows rows(x);
    NewArray out = like(x);
    nb::object result = give(out);
    Release release(x.size() * bytes);
    fill(chosen, bytes, number, rows.a.data<char>(), out.data<char>());
    return result;
}

nb::object mask_put(Array x, nb::handle value, Array mask, int64_t) {
    if (!item_bytes(x) || !mask.usable()) return not_implemented();
    PyObject* o = value.ptr();
    Pair bits{};
    if (!PyArray_CheckExact(o)) return element(value, x, bits) ? filled(x, bits, mask) : not_implemented();
    Array a;
    a.p = reinterpret_cast<PyArrayObject*>(o);
    if (!PyArray_ISBEHAVED_RO(a.p) || a.type() != x.type() || !a.ndim()) return not_implemented();
    return placed(a, mask, x.ndim(), x.shape(), &x);
}

}  // namespace

FW_BIND(m) {
    m.def("gather", &gather_op, nb::arg("x"), nb::arg("index"), nb::arg("dim"));
    m.def("ungather", &ungather, nb::arg("x"), nb::arg("index"), nb::arg("dim"), nb::arg("shape"));
    m.def("scatter", &scatter_op, nb::arg("x"), nb::arg("src").none(), nb::arg("index"), nb::arg("dim"));
    m.def("places_fit", &places_fit, nb::arg("x"), nb::arg("index"), nb::arg("dim"));
    m.def("line_fits", &line_fits, nb::arg("x"), nb::arg("index"), nb::arg("dim"));
    m.def("scatter_add", &scatter_add, nb::arg("x"), nb::arg("src"), nb::arg("index"), nb::arg("dim"));
    m.def("scatter_multiply", &scatter_multiply, nb::arg("x"), nb::arg("src").none(), nb::arg("index"),
          nb::arg("dim"));
    m.def("scatter_extreme", &scatter_extreme, nb::arg("x"), nb::arg("src").none(), nb::arg("index"),
          nb::arg("dim"), nb::arg("largest"));
    m.def("one_hot", &one_hot_op, nb::arg("classes"), nb::arg("count"));
    m.def("masked_select", &masked_select, nb::arg("x"), nb::arg("mask"), nb::arg("count"));
    m.def("unmask", &unmask, nb::arg("x"), nb::arg("mask"), nb::arg("shape"));
    m.def("mask_put", &mask_put, nb::arg("x"), nb::arg("value").none(), nb::arg("mask"), nb::arg("count"));
}

}  // namespace fw::moving
