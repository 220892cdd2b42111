// Strided copies, and what is made of them: contiguous, clone, flip, roll, tile, tril, triu, pad.
#include "bind/move/copy.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "bind/move/alike.h"

namespace fw::moving {

void copy_array(const Array& x, char* to) {
    int bytes = item_bytes(x);
    if (x.contiguous()) return copy_bytes(x.data<char>(), to, x.size() * bytes);
    Block b;
    int64_t stride = x.size() * bytes;
    for (int d = 0; d < x.ndim() && stride; ++d) b.add(x.shape(d), x.stride(d), stride /= x.shape(d));
    if (stride) copy_block(b, bytes, x.data<char>(), to);
}

namespace {

// Where the elements of an array begin and end in memory.
std::pair<const char*, const char*> ends(const Array& x) {
    const char *low = x.data<char>(), *high = low + item_bytes(x);
    for (int d = 0; d < x.ndim(); ++d) (x.stride(d) < 0 ? low : high) += (x.shape(d) - 1) * x.stride(d);
    return {low, high};
}

}  // namespace

bool elements_apart(int ndim, const npy_intp* shape, const npy_intp* strides, int64_t itemsize) {
    std::pair<int64_t, int64_t> steps[NPY_MAXDIMS];
    int n = 0;
    for (int d = 0; d < ndim; ++d)
        if (shape[d] != 1) steps[n++] = {std::abs(strides[d]), shape[d]};
    std::sort(steps, steps + n);
    for (int i = 0; i < n; itemsize += (steps[i].second - 1) * steps[i].first, ++i)
        if (steps[i].first < itemsize) return false;
    return true;
}

bool share_memory(const Array& a, const Array& b) {
    const auto [low, high] = ends(a);
    const auto [from, to] = ends(b);
    return low < to && from < high;
}

bool are_channels_last(int ndim, const int* axes) {
    if (ndim < 4 || ndim > 5 || axes[0] != 0 || axes[ndim - 1] != 1) return false;
    for (int i = 1; i < ndim - 1; ++i)
        if (axes[i] != i + 1) return false;
    return true;
}

bool add_broadcast(Block& b, const Array& from, const Array& to) {
    const int front = to.ndim() - from.ndim();
    if (front < 0) return false;
    for (int d = 0; d < to.ndim(); ++d) {
        const int own = d - front;
        const bool repeated = own < 0 || from.shape(own) != to.shape(d);
        if (repeated && own >= 0 && from.shape(own) != 1) return false;
        b.add(to.shape(d), repeated ? 0 : from.stride(own), to.stride(d));
    }
    return true;
}

bool copy_over(const Array& from, const Array& to) {
    const int bytes = item_bytes(to);
    if (!bytes || !item_bytes(from) || !to.writeable() || PyArray_DESCR(from.p) != PyArray_DESCR(to.p)) return false;
    Block b;
    if (!add_broadcast(b, from, to)) return false;
    if (!to.size()) return true;
    if (from.data<char>() == to.data<char>() && from.same_shape(to) && std::equal(to.strides(), to.strides() + to.ndim(), from.strides()))
        return true;  // onto itself, as where `x[key] += 1` ends
    if (share_memory(from, to) || !elements_apart(to.ndim(), to.shape(), to.strides(), bytes)) return false;
    Release release(to.size() * bytes, Writes::memory);
    copy_block(b, bytes, from.data<char>(), to.data<char>());
    return true;
}

namespace {

// The shape that both broadcast to, and its dimensions; -1 where they do not.
int joint_shape(const Array& x, const Array& y, npy_intp* shape) {
    const int n = std::max(x.ndim(), y.ndim());
    for (int d = 0; d < n; ++d) {
        const int i = d - (n - x.ndim()), j = d - (n - y.ndim());
        const npy_intp a = i < 0 ? 1 : x.shape(i), b = j < 0 ? 1 : y.shape(j);
        if (a != b && a != 1 && b != 1) return -1;
        shape[d] = a == 1 ? b : a;
    }
    return n;
}

}  // namespace

Alike::Alike(const Array& a, const Array& b) : x(a), y(b) {
    const bool same = a.same_shape(b);
    if (same && a.contiguous() && b.contiguous()) return;
    if (same && std::equal(a.strides(), a.strides() + a.ndim(), b.strides()) && has_no_gaps(a)) return;
    npy_intp shape[NPY_MAXDIMS];
    const int n = joint_shape(a, b, shape);
    fits = n >= 0;
    for (int i = 0; i < 2 && fits; ++i) {
        Array& own = i ? y : x;
        if (own.contiguous() && own.ndim() == n && std::equal(shape, shape + n, own.shape())) continue;
        made[i] = new_array(n, shape, own.type());
        fits = copy_over(own, made[i]);
        own = made[i];
    }
}

NewArray Alike::result(int type) const {
    return x.contiguous() ? new_array(x.ndim(), x.shape(), type) : new_like(x, type);
}

bool fill_over(const Pair& bits, const Array& to) {
    const int bytes = item_bytes(to);
    if (!bytes || !to.writeable() || !elements_apart(to.ndim(), to.shape(), to.strides(), bytes)) return false;
    Release release(to.size() * bytes, Writes::memory);
    if (PyArray_ISONESEGMENT(to.p)) return fill_elements(to.data<char>(), to.size(), bytes, bits), true;
    Block b;
    for (int d = 0; d < to.ndim(); ++d) b.add(to.shape(d), 0, to.stride(d));
    copy_block(b, bytes, reinterpret_cast<const char*>(&bits), to.data<char>());
    return true;
}

namespace {

// Whether strides can tell where the elements are in another shape: runs of dimensions have to be even in memory.
bool has_strides(const Array& x, int ndim, const npy_intp* shape) {
    npy_intp old[NPY_MAXDIMS], stride[NPY_MAXDIMS];
    int n = 0;
    for (int d = 0; d < x.ndim(); ++d)
        if (x.shape(d) != 1) old[n] = x.shape(d), stride[n++] = x.stride(d);
    for (int i = 0, j = 0; i < n && j < ndim;) {
        npy_intp of_old = old[i++], of_new = shape[j++];
        while (of_old != of_new) {
            if (of_new < of_old && j < ndim) {
                of_new *= shape[j++];
            } else if (of_old < of_new && i < n) {
                if (stride[i - 1] != old[i] * stride[i]) return false;
                of_old *= old[i++];
            } else {
                return false;
            }
        }
    }
    return true;
}

}  // namespace

nb::object in_shape(const Array& x, int ndim, const npy_intp* shape) {
    const bool copies = !x.contiguous() && item_bytes(x) && x.size() && countable(shape, ndim) &&
                        product(shape, 0, ndim) == x.size() && !has_strides(x, ndim, shape);
    if (!copies) {
        PyArray_Dims dims{const_cast<npy_intp*>(shape), ndim};
        nb::object out = nb::steal(PyArray_Newshape(x.p, &dims, NPY_CORDER));
        if (!out.is_valid()) throw nb::python_error();
        return out;
    }
    NewArray out = new_array(ndim, shape, x.type());
    nb::object result = give(out);
    Release release(x.size() * item_bytes(x));
    copy_array(x, out.data<char>());
    return result;
}

bool element(nb::handle value, const Array& array, Pair& bits) {
    PyObject* o = value.ptr();
    if (!(PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o))) return false;
    if (PyArray_Pack(PyArray_DESCR(array.p), &bits, o) == 0) return true;
    PyErr_Clear();
    return false;
}

// -- ops ------------------------------------------------------------------------------------------

namespace {

int64_t bytes_of(const Array& x) { return x.size() * item_bytes(x); }

nb::object copied(const Array& x) {
    NewArray out = like(x);
    nb::object result = give(out);
    Release release(bytes_of(x));
    copy_array(x, out.data<char>());
    return result;
}

// Whether the dimensions stand in another order in memory than in the shape, no element twice.
bool is_turned(const Array& x) {
    if (x.contiguous()) return false;
    bool found = false;
    int64_t coarser = std::numeric_limits<int64_t>::max();
    for (int d = 0; d < x.ndim(); ++d) {
        if (x.shape(d) == 1) continue;
        if (x.stride(d) <= 0) return false;
        found = found || x.stride(d) > coarser;
        coarser = x.stride(d);
    }
    return found;
}

}  // namespace

NewArray as_laid(const Array& x, bool images) {
    if (!is_turned(x)) return like(x);
    int axes[NPY_MAXDIMS];
    axes_in_memory(x, axes);
    if (images && !are_channels_last(x.ndim(), axes)) return like(x);
    return new_in_order(x.ndim(), x.shape(), x.type(), axes);
}

namespace {

nb::object preserved(Array x) {
    if (!item_bytes(x)) return not_implemented();
    NewArray out = as_laid(x);
    nb::object result = give(out);
    Release release(bytes_of(x));
    Block b;
    for (int d = 0; d < x.ndim(); ++d) b.add(x.shape(d), x.stride(d), out.stride(d));
    copy_block(b, item_bytes(x), x.data<char>(), out.data<char>());
    return result;
}

nb::object clone(Array x) { return item_bytes(x) ? copied(x) : not_implemented(); }

nb::object contiguous(Array x) {
    if (!item_bytes(x)) return not_implemented();
    return x.contiguous() ? x.object() : copied(x);
}

nb::object flip(Array x, nb::handle dims) {
    Ints turned(dims);
    if (!item_bytes(x) || !turned.good || !x.size()) return not_implemented();
    bool back[NPY_MAXDIMS] = {};
    for (int i = 0; i < turned.n; ++i) {
        if (turned[i] < 0 || turned[i] >= x.ndim()) return not_implemented();
        back[turned[i]] = true;
    }
    NewArray out = as_laid(x);
    nb::object result = give(out);
    Release release(bytes_of(x));
    Block b;
    const char* from = x.data<char>();
    for (int d = 0; d < x.ndim(); ++d) {
        if (back[d]) from += (x.shape(d) - 1) * x.stride(d);
        b.add(x.shape(d), back[d] ? -x.stride(d) : x.stride(d), out.stride(d));
    }
    copy_block(b, item_bytes(x), from, out.data<char>());
    return result;
}

// Copies all parts of a rolled array: of each dimension the part before the wrap and the one behind it.
void roll_parts(const Array& x, const int64_t* shift, int d, Block b, const char* from, char* to, const Array& out) {
    if (d == x.ndim()) return copy_block(b, item_bytes(x), from, to);
    int64_t size = x.shape(d), s = shift[d];
    for (int part = 0; part < (s ? 2 : 1); ++part) {
        Block with = b;
        with.add(part ? s : size - s, x.stride(d), out.stride(d));
        roll_parts(x, shift, d + 1, with, from + (part ? size - s : 0) * x.stride(d),
                   to + (part ? 0 : s) * out.stride(d), out);
    }
}

nb::object roll(Array x, nb::handle shifts, nb::handle dims) {
    Ints by(shifts);
    if (!item_bytes(x) || !x.size() || !by.good) return not_implemented();
    if (dims.is_none()) {
        if (by.n != 1) return not_implemented();
        const InRows rows(x);
        NewArray out = like(x);
        nb::object result = give(out);
        int64_t n = bytes_of(x), s = (by[0] % x.size() + x.size()) % x.size() * item_bytes(x);
        Release release(n);
        copy_bytes(rows.data<char>(), out.data<char>() + s, n - s);
        copy_bytes(rows.data<char>() + n - s, out.data<char>(), s);
        return result;
    }
    Ints along(dims);
    if (!along.good || along.n != by.n || along.n > 8) return not_implemented();
    int64_t shift[NPY_MAXDIMS] = {};
    for (int i = 0; i < along.n; ++i) {
        int64_t d = along[i];
        if (d < 0 || d >= x.ndim()) return not_implemented();
        shift[d] = (shift[d] + by[i] % x.shape(int(d)) + x.shape(int(d))) % x.shape(int(d));
    }
    NewArray out = as_laid(x, true);
    nb::object result = give(out);
    Release release(bytes_of(x));
    roll_parts(x, shift, 0, Block(), x.data<char>(), out.data<char>(), out);
    return result;
}

nb::object tile(Array x, nb::handle reps) {
    Ints times(reps);
    const int bytes = item_bytes(x);
    if (!bytes || !times.is_shape() || !x.size() || times.n < x.ndim()) return not_implemented();
    const int front = times.n - x.ndim();
    npy_intp shape[NPY_MAXDIMS];
    for (int d = 0; d < times.n; ++d)
        if (__builtin_mul_overflow(times[d], d < front ? 1 : x.shape(d - front), &shape[d])) return not_implemented();
    if (!countable(shape, times.n)) return not_implemented();
    NewArray out = new_array(times.n, shape, x.type());
    nb::object result = give(out);
    Release release(out.size() * bytes);
    Block b;
    for (int d = 0; d < times.n; ++d) {
        int64_t size = d < front ? 1 : x.shape(d - front);
        b.add(times[d], 0, size * out.stride(d));
        b.add(size, d < front ? 0 : x.stride(d - front), out.stride(d));
    }
    copy_block(b, bytes, x.data<char>(), out.data<char>());
    return result;
}

nb::object triangle(const Array& x, int64_t k, bool lower) {
    int bytes = item_bytes(x);
    if (!bytes || x.ndim() < 2 || !x.size()) return not_implemented();
    InRows rows(x);
    NewArray out = like(x);
    nb::object result = give(out);
    Release release(bytes_of(x));
    const int64_t height = x.shape(x.ndim() - 2), width = x.shape(x.ndim() - 1);
    copy_triangles(rows.data<char>(), out.data<char>(), x.size() / width, height, width, bytes, k, lower);
    return result;
}

nb::object pad(Array x, nb::handle pads, nb::handle value) {
    int bytes = item_bytes(x);
    Pair bits{};
    if (!bytes || !x.size() || !PyTuple_Check(pads.ptr()) || Py_SIZE(pads.ptr()) != x.ndim() ||
        !element(value, x, bits))
        return not_implemented();
    npy_intp shape[NPY_MAXDIMS];
    int64_t before[NPY_MAXDIMS];
    for (int d = 0; d < x.ndim(); ++d) {
        Ints sides(PyTuple_GET_ITEM(pads.ptr(), d));
        if (!sides.good || sides.n != 2 || sides[0] < 0 || sides[1] < 0) return not_implemented();
        before[d] = sides[0];
        if (__builtin_add_overflow(sides[0], sides[1], &shape[d]) ||
            __builtin_add_overflow(int64_t(shape[d]), x.shape(d), &shape[d]))
            return not_implemented();
    }
    if (!countable(shape, x.ndim())) return not_implemented();
    NewArray out = new_array(x.ndim(), shape, x.type());
    nb::object result = give(out);
    Release release(out.size() * bytes);
    fill_elements(out.data<char>(), out.size(), bytes, bits);
    Block b;
    char* to = out.data<char>();
    for (int d = 0; d < x.ndim(); ++d) {
        to += before[d] * out.stride(d);
        b.add(x.shape(d), x.stride(d), out.stride(d));
    }
    copy_block(b, bytes, x.data<char>(), to);
    return result;
}

// Zeros of a shape with the last dimension of x on a diagonal of two of its dimensions.
nb::object put_diagonal(Array x, nb::handle shape, int64_t offset, nb::handle dims) {
    const Ints whole(shape), two(dims);
    const int bytes = item_bytes(x);
    if (!bytes || !whole.is_shape() || !two.good || two.n != 2 || !x.ndim() || !x.size() || whole.n != x.ndim() + 1)
        return not_implemented();
    const int64_t row = two[0] < 0 ? two[0] + whole.n : two[0], column = two[1] < 0 ? two[1] + whole.n : two[1];
    if (row < 0 || row >= whole.n || column < 0 || column >= whole.n || row == column) return not_implemented();
    const int64_t rows = whole[row], columns = whole[column];
    if (offset <= -rows || offset >= columns) return not_implemented();
    const int64_t length = offset < 0 ? std::min(rows + offset, columns) : std::min(rows, columns - offset);
    if (length != x.shape(x.ndim() - 1)) return not_implemented();
    npy_intp sizes[NPY_MAXDIMS];
    std::copy(whole.at, whole.at + whole.n, sizes);
    if (!countable(sizes, whole.n)) return not_implemented();
    NewArray out = new_array(whole.n, sizes, x.type());
    Block b;
    int from = 0;
    for (int d = 0; d < whole.n; ++d) {
        if (d == row || d == column) continue;
        if (x.shape(from) != whole[d]) return not_implemented();
        b.add(x.shape(from), x.stride(from), out.stride(d));
        ++from;
    }
    nb::object result = give(out);
    b.add(length, x.stride(from), out.stride(int(row)) + out.stride(int(column)));
    Release release(out.size() * bytes);
    fill_bytes(out.data<char>(), out.size() * bytes, 0);
    copy_block(b, bytes, x.data<char>(),
               out.data<char>() + (offset < 0 ? -offset * out.stride(int(row)) : offset * out.stride(int(column))));
    return result;
}

// A copy of x in one shape, with its dimensions in another order, in a third shape.
// Another shape where that takes a copy, of which one size may be -1.
nb::object reshaped(Array x, nb::tuple shape) {
    if (!x.usable() || x.contiguous() || !x.size() || shape.size() > NPY_MAXDIMS) return not_implemented();
    npy_intp sizes[NPY_MAXDIMS], known = 1;
    int open = -1;
    const int n = int(shape.size());
    for (int d = 0; d < n; ++d) {
        sizes[d] = nb::cast<npy_intp>(shape[size_t(d)]);
        if (sizes[d] == -1 && open < 0) open = d;
        else if (sizes[d] < 1 || __builtin_mul_overflow(known, sizes[d], &known)) return not_implemented();
    }
    if (open >= 0) sizes[open] = x.size() / known;
    return (open >= 0 ? sizes[open] * known : known) == x.size() ? in_shape(x, n, sizes) : not_implemented();
}

nb::object rearranged(Array x, nb::handle as, nb::handle order, nb::handle to) {
    const Ints shape(as), dims(order), out(to);
    if (!item_bytes(x) || !shape.is_shape() || !dims.good || !out.is_shape() || dims.n != shape.n || !x.size() ||
        product(shape.at, 0, shape.n) != x.size() || product(out.at, 0, out.n) != x.size())
        return not_implemented();
    const nb::object seen = in_shape(x, shape.n, shape.at);
    Array turned;
    npy_intp axes[NPY_MAXDIMS];
    std::copy(dims.at, dims.at + dims.n, axes);
    PyArray_Dims given{axes, dims.n};
    const nb::object view = nb::steal(PyArray_Transpose(reinterpret_cast<PyArrayObject*>(seen.ptr()), &given));
    if (!view.is_valid()) throw nb::python_error();
    turned.p = reinterpret_cast<PyArrayObject*>(view.ptr());
    NewArray made = new_array(out.n, out.at, x.type());
    nb::object result = give(made);
    Release release(bytes_of(x));
    copy_array(turned, made.data<char>());
    return result;
}

}  // namespace

FW_BIND(m) {
    m.def("reshaped", &reshaped, nb::arg("x"), nb::arg("shape"));
    m.def("rearranged", &rearranged, nb::arg("x"), nb::arg("shape"), nb::arg("dims"), nb::arg("out"));
    m.def("clone", &clone, nb::arg("x"));
    m.def("contiguous", &contiguous, nb::arg("x"));
    m.def("preserved", &preserved, nb::arg("x"));
    m.def("flip", &flip, nb::arg("x"), nb::arg("dims"));
    m.def("roll", &roll, nb::arg("x"), nb::arg("shifts"), nb::arg("dims").none());
    m.def("tile", &tile, nb::arg("x"), nb::arg("reps"));
    m.def("tril", [](Array x, int64_t k) { return triangle(x, k, true); }, nb::arg("x"), nb::arg("k"));
    m.def("triu", [](Array x, int64_t k) { return triangle(x, k, false); }, nb::arg("x"), nb::arg("k"));
    m.def("put_diagonal", &put_diagonal, nb::arg("x"), nb::arg("shape"), nb::arg("offset"), nb::arg("dims"));
    m.def("pad", &pad, nb::arg("x"), nb::arg("pads"), nb::arg("value"));
}

}  // namespace fw::moving

namespace fw {

void InRows::copy() {
    const Array given = a;
    const int bytes = moving::item_bytes(given);
    NewArray made = bytes ? like(given) : NewArray(PyArray_NewCopy(given.p, NPY_CORDER));
    if (!made.p) throw nb::python_error();
    if (bytes) {
        Release release(given.size() * bytes);
        moving::copy_array(given, made.data<char>());
    }
    a = made;
    owner = give(made);
}

}  // namespace fw
