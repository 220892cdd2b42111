// Runs of equal elements of NumPy arrays, elements repeated, and copies with a part replaced.
#include "move/runs.h"

#include "bind/move/copy.h"

namespace fw::moving {
namespace {

template <class T> nb::object runs_of(const Array& x) {
    const InRows rows(x);
    npy_intp count[] = {npy_intp(count_runs(rows.data<T>(), x.size()))}, none[] = {0};
    NewArray out = new_array(1, count, x.type());
    nb::object values = give(out);
    {
        Release release(x.size() * int64_t(sizeof(T)));
        take_runs(rows.data<T>(), x.size(), out.data<T>(), count[0]);
    }
    return nb::make_tuple(values, give(new_array(1, none, NPY_INT64)), give(new_array(1, none, NPY_INT64)));
}

// The elements, row by row, that differ from the one before, and two arrays of nothing.
nb::object runs(Array x, nb::handle dim, bool inverse, bool counts) {
    if (!x.usable() || !dim.is_none() || inverse || counts || !x.size()) return not_implemented();
    if (x.is<float>()) return runs_of<float>(x);
    if (x.is<double>()) return runs_of<double>(x);
    if (x.is<int64_t>()) return runs_of<int64_t>(x);
    if (x.is<int32_t>()) return runs_of<int32_t>(x);
    return x.is<uint8_t>() ? runs_of<uint8_t>(x) : not_implemented();
}

// Each element `times` times along the last dimension.
nb::object repeat_each(Array x, int64_t times) {
    const int bytes = item_bytes(x);
    if (!bytes || !x.ndim() || !x.size() || times < 1) return not_implemented();
    npy_intp shape[NPY_MAXDIMS];
    std::copy(x.shape(), x.shape() + x.ndim(), shape);
    if (__builtin_mul_overflow(shape[x.ndim() - 1], times, &shape[x.ndim() - 1]) || !countable(shape, x.ndim()))
        return not_implemented();
    NewArray out = new_array(x.ndim(), shape, x.type());
    nb::object result = give(out);
    const InRows rows(x);
    Release release(out.size() * bytes);
    repeat_elements(rows.data<char>(), x.size(), bytes, times, out.data<char>());
    return result;
}

// A copy of x with `value` where `part`, a view of x, lies in it; without one Python follows the chain of views.
nb::object put_view(Array x, nb::handle given, nb::handle, nb::handle, Array part) {
    const Array value = nb::cast<Array>(given);
    const int bytes = item_bytes(x);
    if (!bytes || !part.usable() || !value.usable() || !x.size() || !part.size()) return not_implemented();
    int axes[NPY_MAXDIMS];  // the result lies as x does, so that the part lies there as in x
    axes_in_memory(x, axes);
    if (!dense_in_order(x, axes)) return not_implemented();
    if (PyArray_DESCR(value.p) != PyArray_DESCR(x.p) || PyArray_DESCR(part.p) != PyArray_DESCR(x.p) || !value.same_shape(part))
        return not_implemented();
    const int64_t start = part.data<char>() - x.data<char>();
    int64_t end = start + bytes;
    for (int d = 0; d < part.ndim(); ++d) {
        if (part.stride(d) < 0) return not_implemented();
        end += (part.shape(d) - 1) * part.stride(d);
    }
    if (start < 0 || end > x.size() * bytes || !elements_apart(part.ndim(), part.shape(), part.strides(), bytes))
        return not_implemented();
    NewArray out = x.contiguous() ? like(x) : new_in_order(x.ndim(), x.shape(), x.type(), axes);
    nb::object result = give(out);
    Release release(x.size() * bytes);
    copy_bytes(x.data<char>(), out.data<char>(), x.size() * bytes);
    Block b;

    for (int d = 0; d < part.ndim(); ++d) b.add(part.shape(d), value.stride(d), part.stride(d));
    copy_block(b, bytes, value.data<char>(), out.data<char>() + start);
    return result;
}

template <class T> void among(const T* x, int64_t n, const T* y, int64_t m, bool invert, bool* out) {
    for (int64_t i = 0; i < n; ++i) {
        bool found = false;
        for (int64_t j = 0; j < m; ++j) found |= x[i] == y[j];
        out[i] = found != invert;
    }
}

// Whether each element of x is one of the few of y.
nb::object isin(Array x, Array y, bool, bool invert) {
    constexpr int64_t MOST = 16;
    if (!x.usable() || !y.usable() || x.type() != y.type() || y.size() > MOST || !y.size()) return not_implemented();
    NewArray out = new_array(x.ndim(), x.shape(), NPY_BOOL);
    nb::object result = give(out);
    const InRows rows(x), others(y);
    const int64_t n = x.size(), m = y.size();
    if (x.is<float>()) among(rows.data<float>(), n, others.data<float>(), m, invert, out.data<bool>());
    else if (x.is<double>()) among(rows.data<double>(), n, others.data<double>(), m, invert, out.data<bool>());
    else if (x.is<int64_t>()) among(rows.data<int64_t>(), n, others.data<int64_t>(), m, invert, out.data<bool>());
    else return not_implemented();
    return result;
}

}  // namespace

FW_BIND(m) {
    m.def("runs", &runs, nb::arg("x"), nb::kw_only(), nb::arg("dim").none(), nb::arg("inverse"), nb::arg("counts"));
    m.def("repeat_each", &repeat_each, nb::arg("x"), nb::kw_only(), nb::arg("times"));
    m.def("put_view", &put_view, nb::arg("x"), nb::arg("value"), nb::kw_only(), nb::arg("shape"), nb::arg("chain"),
          nb::arg("part").none() = nb::none());
    m.def("isin", &isin, nb::arg("x"), nb::arg("y"), nb::kw_only(), nb::arg("assume_unique"), nb::arg("invert"));
}

}  // namespace fw::moving
