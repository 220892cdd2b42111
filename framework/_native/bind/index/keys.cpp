// Keys of tensors of positions, read in one go, and what is read and written by them. Each function gives NotImplemented, and has
// done nothing, where Python is to go the whole way.
#include <algorithm>
#include <vector>

#include "base/half.h"
#include "bind/bf16_array.h"
#include "bind/index/rows.h"
#include "bind/move/copy.h"
#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

constexpr npy_intp FEW_PLACES = 4096;  // positions that are looked at once more, for Python to say which is wrong
PyObject* word_dims_of_index;

// Positions as the records want them, in an array (number of dimensions, their shape), and the tensor of them if it is but one.
struct Positions {
    nb::object places;
    PyObject* only = nullptr;
    int first = 0, count = 0, ndim = 0;     // the dimensions that they stand for; their own number of them
    npy_intp shape[NPY_MAXDIMS];

    bool is_read() const { return places.is_valid(); }
    Array array() const { return Array{reinterpret_cast<PyArrayObject*>(places.ptr())}; }
    nb::object dims() const {
        nb::object made = taken(PyTuple_New(count));
        for (int i = 0; i < count; ++i) PyTuple_SET_ITEM(made.ptr(), i, taken(PyLong_FromLong(first + i)).release().ptr());
        return made;
    }
    // Whether all of them are there, of which there must be few.
    bool are_there(PyArrayObject* x) const {
        const Array all = array();
        const npy_intp each = all.size() / count;
        if (all.size() > FEW_PLACES) return false;
        for (npy_intp i = 0; i < all.size(); ++i) {
            const npy_intp size = PyArray_DIM(x, first + int(i / each)), at = all.data<int64_t>()[i];
            if (at < -size || at >= size) return false;
        }
        return true;
    }
    // The shape of what they choose.
    int chosen(PyArrayObject* x, npy_intp* to) const {
        int n = 0;
        for (int d = 0; d < first; ++d) to[n++] = PyArray_DIM(x, d);
        for (int d = 0; d < ndim; ++d) to[n++] = shape[d];
        for (int d = first + count; d < PyArray_NDIM(x); ++d) to[n++] = PyArray_DIM(x, d);
        return n;
    }
};

bool is_whole(PyObject* k) {
    if (!PySlice_Check(k)) return false;
    const auto* slice = reinterpret_cast<PySliceObject*>(k);
    return slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None;
}

// A tensor of positions, in a row; in 64 bits, if it was shorter.
nb::object positions_of(PyObject* k, const PyArrayObject* like) {
    PyArrayObject* a = array_of(k);
    if (!a || !PyArray_ISBEHAVED_RO(a) || PyArray_DESCR(a)->kind != 'i') return nb::object();
    if (!PyArray_NDIM(a) || PyArray_NDIM(a) + PyArray_NDIM(like) > NPY_MAXDIMS || !PyArray_SIZE(a)) return nb::object();
    const nb::object rows = PyArray_IS_C_CONTIGUOUS(a) ? nb::borrow(reinterpret_cast<PyObject*>(a)) : taken(PyArray_NewCopy(a, NPY_CORDER));
    if (PyArray_ITEMSIZE(a) == 8) return rows;
    const nb::object wide = nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_INT64)));
    return converted(reinterpret_cast<PyArrayObject*>(rows.ptr()), reinterpret_cast<PyArray_Descr*>(wide.ptr()));
}

// Tensors of one shape at dimensions next to each other, from `first` on.
Positions positions_at(PyObject* const* tensors, int count, int first, PyArrayObject* x) {
    Positions p;
    p.first = first, p.count = count;
    if (first + count > PyArray_NDIM(x)) return p;
    NewArray out;
    nb::object all;
    for (int i = 0; i < count; ++i) {
        const nb::object given = positions_of(tensors[i], x);
        if (!given.is_valid()) return p;
        auto* a = reinterpret_cast<PyArrayObject*>(given.ptr());
        if (!i) {
            p.ndim = PyArray_NDIM(a);
            std::copy(PyArray_DIMS(a), PyArray_DIMS(a) + p.ndim, p.shape);
            npy_intp sizes[NPY_MAXDIMS + 1] = {count}, strides[NPY_MAXDIMS + 1] = {PyArray_NBYTES(a)};
            std::copy(p.shape, p.shape + p.ndim, sizes + 1);
            std::copy(PyArray_STRIDES(a), PyArray_STRIDES(a) + p.ndim, strides + 1);
            if (count == 1) {
                p.only = reinterpret_cast<PyObject*>(a) == slot(tensors[0], at_array) ? tensors[0] : nullptr;
                p.places = seen_as(a, p.ndim + 1, sizes, strides);
                return p;
            }
            out = new_array(p.ndim + 1, sizes, NPY_INT64);
            all = give(out);
        } else if (PyArray_NDIM(a) != p.ndim || !std::equal(p.shape, p.shape + p.ndim, PyArray_DIMS(a))) {
            return p;
        }
        const int64_t* from = static_cast<const int64_t*>(PyArray_DATA(a));
        std::copy(from, from + PyArray_SIZE(a), out.data<int64_t>() + i * PyArray_SIZE(a));
    }
    p.places = std::move(all);
    return p;
}

// A key that is a tensor of positions, or a tuple of some next to each other with whole slices around them.
Positions read(PyObject* key, PyArrayObject* x) {
    if (!PyTuple_CheckExact(key)) return array_of(key) ? positions_at(&key, 1, 0, x) : Positions();
    const int n = int(std::min<Py_ssize_t>(PyTuple_GET_SIZE(key), NPY_MAXDIMS));
    int first = 0;
    while (first < n && is_whole(PyTuple_GET_ITEM(key, first))) ++first;
    int stop = first;
    while (stop < n && array_of(PyTuple_GET_ITEM(key, stop))) ++stop;
    int end = stop;
    while (end < n && is_whole(PyTuple_GET_ITEM(key, end))) ++end;
    if (stop == first || end < PyTuple_GET_SIZE(key) || n > PyArray_NDIM(x)) return Positions();
    return positions_at(&PyTuple_GET_ITEM(key, first), stop - first, first, x);
}

// The positions of a key of one tensor for each of the first dimensions of x, as one new array. not_implemented() for other keys,
// positions that are not there, and none at all.
nb::object stacked_positions(nb::handle key, Array x) {
    if (!x.usable() || !PyTuple_CheckExact(key.ptr())) return not_implemented();
    const Positions p = read(key.ptr(), x.p);
    if (!p.is_read() || p.first || p.count < PyTuple_GET_SIZE(key.ptr()) || !p.are_there(x.p)) return not_implemented();
    return p.only ? taken(PyArray_NewCopy(p.array().p, NPY_CORDER)) : p.places;  // it is nobody else's
}

// x[key]: (x, key, the record of it)
nb::object at_positions(PyObject* const* args) {
    PyArrayObject* a = unwatched(args[0]);
    if (!a || !PyArray_ISBEHAVED_RO(a) || !PyArray_NDIM(a)) return nb::object();
    const Held held(a);
    const Positions p = read(args[1], a);
    if (!p.is_read() || !p.are_there(a)) return nb::object();
    const nb::object dims = p.dims();
    if (!has_node(args[0])) {
        nb::object found = moving::index(Array{a}, p.array(), dims);
        return found.ptr() == Py_NotImplemented ? nb::object() : tensor_over(std::move(found));
    }
    nb::object places = tensor_over(p.places);
    if (p.only) Py_SETREF(slot(places.ptr(), at_counter), counter_of(p.only).release().ptr());
    PyObject* given[] = {args[2], args[0], places.ptr(), dims.ptr()};
    return taken(PyObject_VectorcallMethod(word_run, given, 3, word_dims_of_index));
}

// The values as they are written: a number, or an array of the dtype of x that broadcasts to the shape of what is chosen; if `exact`,
// one that has it. Null for others.
nb::object values_of(PyObject* value, PyArrayObject* x, int ndim, const npy_intp* shape, bool exact) {
    PyArrayObject* b = array_of(value);
    if (!b) {  // what would warn or raise is Python's
        moving::Pair bits{};
        const bool number = PyFloat_CheckExact(value) || PyLong_CheckExact(value);
        return number && element_of(PyArray_DESCR(x), value, bits) ? nb::borrow(value) : nb::object();
    }
    if (is_followed(value) || PyArray_DESCR(b) != PyArray_DESCR(x)) return nb::object();
    const int own = PyArray_NDIM(b), lead = ndim - own;
    nb::object given = nb::borrow(reinterpret_cast<PyObject*>(b));
    if (!lead && std::equal(shape, shape + ndim, PyArray_DIMS(b))) return given;
    if (!own) return exact ? nb::object() : given;
    if (lead < 0 || exact) return nb::object();
    npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS] = {0};
    std::copy(shape, shape + ndim, sizes);
    for (int d = 0; d < own; ++d) {
        if (PyArray_DIM(b, d) == shape[lead + d]) strides[lead + d] = PyArray_STRIDE(b, d);
        else if (PyArray_DIM(b, d) != 1) return nb::object();
    }
    return seen_as(b, ndim, sizes, strides);
}

// A matrix, or what has more dimensions, whose memory is that of the transposed one, as that one, with a number to be put there.
bool is_turned(const Positions& p, PyArrayObject* a, PyObject* value) {
    return p.is_read() && p.count == 1 && !PyArray_IS_C_CONTIGUOUS(a) && PyArray_IS_F_CONTIGUOUS(a) && !array_of(value);
}

nb::object turned(PyArrayObject* a) {
    const int n = PyArray_NDIM(a);
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    std::reverse_copy(PyArray_DIMS(a), PyArray_DIMS(a) + n, shape);
    std::reverse_copy(PyArray_STRIDES(a), PyArray_STRIDES(a) + n, strides);
    return seen_as(a, n, shape, strides);
}

nb::object assigned(Positions p, PyObject* x, PyArrayObject* a, PyObject* value, PyObject* name, bool exact) {
    npy_intp shape[NPY_MAXDIMS];
    const nb::object values = p.is_read() ? values_of(value, a, p.chosen(a, shape), shape, exact) : nb::object();
    if (!values.is_valid() || !nobody_looks()) return nb::object();
    nb::object memory = nb::borrow(reinterpret_cast<PyObject*>(a));
    if (is_turned(p, a, value)) memory = turned(a), p.first = PyArray_NDIM(a) - 1 - p.first;
    const Array to{reinterpret_cast<PyArrayObject*>(memory.ptr())};
    if (moving::index_assign(to, values, p.array(), p.dims()).ptr() == Py_NotImplemented) return nb::object();
    bump(x, name);
    return nb::borrow(x);
}

template <class T> void put_where(T* out, const npy_bool* mask, npy_intp n, const moving::Pair& bits) {
    T element;
    std::memcpy(&element, &bits, sizeof element);
    for (npy_intp i = 0; i < n; ++i)
        if (mask[i]) out[i] = element;
}

// A number of Python, or of a tensor of its dtype, at the places of a mask of the shape of x.
bool filled_where(PyArrayObject* a, PyArrayObject* mask, PyObject* value) {
    moving::Pair bits{};
    if (PyArrayObject* b = array_of(value)) {
        if (PyArray_NDIM(b) || is_followed(value) || PyArray_DESCR(b) != PyArray_DESCR(a) || PyArray_ITEMSIZE(b) > 16) return false;
        std::memcpy(&bits, PyArray_DATA(b), size_t(PyArray_ITEMSIZE(b)));
    } else if (!element_of(PyArray_DESCR(a), value, bits)) {
        return false;
    }
    if (!nobody_looks()) return false;
    const auto* holds = static_cast<const npy_bool*>(PyArray_DATA(mask));
    void* out = PyArray_DATA(a);
    const npy_intp n = PyArray_SIZE(a);
    switch (PyArray_ITEMSIZE(a)) {
        case 1: put_where(static_cast<uint8_t*>(out), holds, n, bits); return true;
        case 2: put_where(static_cast<uint16_t*>(out), holds, n, bits); return true;
        case 4: put_where(static_cast<uint32_t*>(out), holds, n, bits); return true;
        case 8: put_where(static_cast<uint64_t*>(out), holds, n, bits); return true;
        default: return false;
    }
}

// x[key] = value in memory: (x, key, value, name)
nb::object into_positions(PyObject* const* args) {
    PyObject *x = args[0], *key = args[1];
    const Held a = memory_of(x);
    if (!a || !PyArray_ISBEHAVED(a.a) || !PyArray_NDIM(a.a)) return nb::object();
    PyArrayObject* mask = array_of(key);
    const Held held(mask);
    if (mask && PyArray_TYPE(mask) == NPY_BOOL) {
        const bool few = PyArray_SIZE(mask) <= FEW_PLACES && PyArray_SAMESHAPE(mask, a.a) && !PyDataType_REFCHK(PyArray_DESCR(a.a));
        if (!few || !PyArray_IS_C_CONTIGUOUS(a.a) || !PyArray_IS_C_CONTIGUOUS(mask) || !filled_where(a, mask, args[2])) return nb::object();
        bump(x, args[3]);
        return nb::borrow(x);
    }
    return assigned(read(key, a), x, a, args[2], args[3], false);
}

}  // namespace

int dim_of(PyObject* given, PyArrayObject* x) {
    if (!PyLong_CheckExact(given)) return -1;
    int beyond = 0;
    const long d = PyLong_AsLongAndOverflow(given, &beyond), ndim = PyArray_NDIM(x);
    return beyond || d < -ndim || d >= ndim ? -1 : int(d < 0 ? d + ndim : d);
}

namespace {

// Whether a position counts from the end, which the functions along a dimension refuse.
bool any_from_the_end(const Positions& p) {
    const Array at = p.array();
    const int last = at.ndim() - 1;
    const char* place = static_cast<const char*>(PyArray_DATA(at.p));
    for (npy_intp i = 0; i < PyArray_DIM(at.p, last); ++i, place += PyArray_STRIDE(at.p, last))
        if (*reinterpret_cast<const int64_t*>(place) < 0) return true;
    return false;
}

// The entries at positions of one dimension replaced, in memory, by those of a tensor of just their shape, or by a number:
// (x, dim, index, value, name)
nb::object into_entries(PyObject* const* args) {
    const Held a = memory_of(args[0]);
    const int dim = a && PyArray_ISBEHAVED(a.a) ? dim_of(args[1], a) : -1;
    PyArrayObject* index = array_of(args[2]);
    if (dim < 0 || !index || PyArray_NDIM(index) != 1) return nb::object();
    Positions p = positions_at(&args[2], 1, dim, a);
    if (!p.is_read() || any_from_the_end(p)) return nb::object();
    return assigned(std::move(p), args[0], a, args[3], args[4], true);
}

// Elements at positions of the flattened tensor replaced by as many others: (x, index, source, name)
nb::object into_flat(PyObject* const* args) {
    const Held a = memory_of(args[0]);
    PyArrayObject *index = array_of(args[1]), *source = array_of(args[2]);
    const Held held_index(index), held_source(source);
    if (!a || !PyArray_ISBEHAVED(a.a) || !index || !PyArray_ISBEHAVED_RO(index) || PyArray_TYPE(index) != NPY_INT64) return nb::object();
    if (!source || is_followed(args[2]) || PyArray_DESCR(source) != PyArray_DESCR(a.a)) return nb::object();
    if (!PyArray_SIZE(index) || PyArray_SIZE(index) != PyArray_SIZE(source) || !nobody_looks()) return nb::object();
    moving::RowsOf to(Array{a.a});
    const InRows in_row(Array{index});
    if (!to.good) return nb::object();
    npy_intp size[] = {PyArray_SIZE(a.a)}, step[] = {PyArray_ITEMSIZE(a.a)}, places[] = {1, PyArray_SIZE(index)}, steps[] = {8 * places[1], 8};
    const nb::object flat = seen_as(to.rows.a.p, 1, size, step), at = seen_as(in_row.a.p, 2, places, steps), first = nb::int_(0);
    const InRows others(Array{source});
    npy_intp as_many[] = {PyArray_SIZE(index)};
    const nb::object values = seen_as(others.a.p, 1, as_many, step);
    const auto array = [](const nb::object& o) { return Array{reinterpret_cast<PyArrayObject*>(o.ptr())}; };
    if (moving::index_assign(array(flat), values, array(at), taken(PyTuple_Pack(1, first.ptr()))).ptr() == Py_NotImplemented) return nb::object();
    if (!to.put_back()) return nb::object();
    bump(args[0], args[3]);
    return nb::borrow(args[0]);
}

template <class T> void add_over(PyArrayObject* to, PyArrayObject* from) {
    T* out = static_cast<T*>(PyArray_DATA(to));
    const T* add = static_cast<const T*>(PyArray_DATA(from));
    for (npy_intp i = 0; i < PyArray_SIZE(to); ++i) {
        const T both = out[i] + add[i];
        out[i] = add[i] == T(0) ? out[i] : both;
    }
}

// Sums of float32 to numbers of 16 bits, rounded to these before and after.
template <class H> void add_rounded(PyArrayObject* to, PyArrayObject* from) {
    const npy_intp n = PyArray_SIZE(to);
    std::vector<float> sums(size_t(n), 0.0f);
    std::vector<H> rounded(size_t(n), H{});
    narrow(rounded.data(), static_cast<const float*>(PyArray_DATA(from)), n);
    widen(sums.data(), rounded.data(), n);
    H* out = static_cast<H*>(PyArray_DATA(to));
    std::vector<float> numbers(size_t(n), 0.0f);
    widen(numbers.data(), out, n);
    for (npy_intp i = 0; i < n; ++i) numbers[size_t(i)] = sums[size_t(i)] == 0 ? numbers[size_t(i)] : numbers[size_t(i)] + sums[size_t(i)];
    narrow(out, numbers.data(), n);
}

// The same, added: what stands at one position twice is summed up first.
nb::object into_sums(PyObject* const* args) {
    const Held a = memory_of(args[0]);
    const int dim = a && PyArray_ISBEHAVED(a.a) && PyArray_SIZE(a.a) <= FEW_PLACES ? dim_of(args[1], a) : -1;
    PyArrayObject *index = array_of(args[2]), *source = array_of(args[3]);
    if (dim < 0 || !index || PyArray_NDIM(index) != 1 || !source) return nb::object();
    const int type = PyArray_TYPE(a.a);
    const bool rounded = is_narrow(PyArray_DESCR(a.a));
    if (type != NPY_FLOAT && type != NPY_DOUBLE && type != NPY_INT64 && !rounded) return nb::object();
    const Positions p = positions_at(&args[2], 1, dim, a);
    npy_intp shape[NPY_MAXDIMS];
    const nb::object values = p.is_read() && !any_from_the_end(p) ? values_of(args[3], a, p.chosen(a, shape), shape, true) : nb::object();
    if (!values.is_valid() || !PyArray_ISBEHAVED_RO(source) || !nobody_looks()) return nb::object();
    npy_intp sizes[NPY_MAXDIMS];
    std::copy(PyArray_DIMS(a.a), PyArray_DIMS(a.a) + PyArray_NDIM(a.a), sizes);
    const nb::object whole = taken(PyArray_IntTupleFromIntp(PyArray_NDIM(a.a), sizes));
    const nb::object wide = nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_FLOAT)));
    nb::object added_up = nb::borrow(reinterpret_cast<PyObject*>(source));
    if (rounded) added_up = in_dtype(added_up.ptr(), reinterpret_cast<PyArray_Descr*>(wide.ptr()));
    const nb::object sums = moving::unindex(Array{reinterpret_cast<PyArrayObject*>(added_up.ptr())}, p.array(), p.dims(), whole);
    if (sums.ptr() == Py_NotImplemented) return nb::object();
    moving::RowsOf to(Array{a.a});
    PyArrayObject *own = to.rows.a.p, *added = reinterpret_cast<PyArrayObject*>(sums.ptr());
    if (!to.good) return nb::object();
    if (type == NPY_FLOAT) add_over<float>(own, added);
    else if (type == NPY_DOUBLE) add_over<double>(own, added);
    else if (type == NPY_HALF) add_rounded<Half>(own, added);
    else if (rounded) add_rounded<Bf16>(own, added);
    else add_over<int64_t>(own, added);
    if (!to.put_back()) return nb::object();
    bump(args[0], args[4]);
    return nb::borrow(args[0]);
}

template <nb::object (*F)(PyObject* const*), int ARGS> PyObject* by_places(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (n != ARGS) return PyErr_Format(PyExc_TypeError, "wanted %d arguments, got %zd", ARGS, n);
    return guarded([&]() -> PyObject* {
        nb::object made = F(args);
        if (made.is_valid()) return made.release().ptr();
        Py_RETURN_NOTIMPLEMENTED;
    });
}

#define FW_PLACES(name, args) \
    {#name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&by_places<name, args>)), METH_FASTCALL, nullptr}
PyMethodDef placing[] = {FW_PLACES(at_positions, 3), FW_PLACES(into_positions, 4), FW_PLACES(into_entries, 5), FW_PLACES(into_sums, 5), FW_PLACES(into_flat, 4),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

FW_BIND(m) {
    word_dims_of_index = taken(PyTuple_Pack(1, word("dims"))).release().ptr();
    if (PyModule_AddFunctions(m.ptr(), placing) < 0) throw nb::python_error();
    m.def("stacked_positions", &stacked_positions, nb::arg("key"), nb::arg("x"));
}

}  // namespace fw::tensors
