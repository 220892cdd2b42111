// Elements put into a tensor's memory at places along a dimension, and combined with what stands there: only these are gone over,
// however large the tensor is. Gives NotImplemented, and has done nothing, where Python is to go the whole way.
#include <algorithm>
#include <cstring>

#include "bind/bf16_array.h"
#include "bind/index/rows.h"
#include "bind/move/copy.h"
#include "bind/tensors/tensors.h"
#include "index/index.h"

namespace fw::tensors {
namespace {

// What is put: an array of the shape of the places, or one number.
struct Source {
    Held held{nullptr};
    moving::Pair bits{};
    const char* data = nullptr;
    int64_t strides[NPY_MAXDIMS] = {};

    Source(PyObject* given, PyArrayObject* to, int ndim, const int64_t* shape) {
        if (PyArrayObject* a = array_of(given)) {
            held = Held(a);
            if (is_followed(given) || !PyArray_ISBEHAVED_RO(a) || PyArray_DESCR(a) != PyArray_DESCR(to) || PyArray_NDIM(a) != ndim) return;
            if (!std::equal(shape, shape + ndim, PyArray_DIMS(a)) || moving::share_memory(Array{a}, Array{to})) return;
            data = static_cast<const char*>(PyArray_DATA(a));
            std::copy(PyArray_STRIDES(a), PyArray_STRIDES(a) + ndim, strides);
        } else if (element_of(PyArray_DESCR(to), given, bits)) {
            data = reinterpret_cast<const char*>(&bits);
        }
    }
};

// What becomes of an element and what stands at its place.
enum class How { set, sum, product, largest, smallest, other };

How how_of(PyObject* word) {
    const auto is = [&](const char* what) { return PyUnicode_CompareWithASCIIString(word, what) == 0; };
    if (is("set") || is("sum")) return is("set") ? How::set : How::sum;
    return is("prod") ? How::product : is("amax") ? How::largest : is("amin") ? How::smallest : How::other;
}

bool scatter(How how, Type type, const moving::Elements& p, int bytes, const char* from, char* to) {
    switch (how) {
        case How::set: return moving::scatter(p, bytes, from, to);
        case How::sum: return moving::add_few(type, p, from, to);
        case How::product: return moving::scatter(moving::Combine::product, type, p, from, to);
        case How::largest: return moving::scatter(moving::Combine::largest, type, p, from, to);
        case How::smallest: return moving::scatter(moving::Combine::smallest, type, p, from, to);
        default: return false;
    }
}

// Whole rows of an array in rows, at the places of a line; false where they cannot be combined so.
bool combine_rows(How how, const Array& to, int dim, const Array& index, const char* from) {
    if (how != How::sum && how != How::largest && how != How::smallest) return false;
    const auto* shape = reinterpret_cast<const int64_t*>(to.shape());
    const moving::Layout l{moving::product(shape, 0, dim), shape[dim], moving::product(shape, dim + 1, to.ndim())};
    const moving::Combine kind = how == How::sum ? moving::Combine::sum : how == How::largest ? moving::Combine::largest : moving::Combine::smallest;
    const InRows line(index);
    Release release(index.size() * l.outer * l.inner * 8, Writes::memory);
    const moving::Places places = moving::read_places(view_of(line.a), 1, &l.n);
    return places.good && moving::combine_rows(kind, view_of(to).type(), l, places, from, const_cast<char*>(to.data<char>()));
}

// Positions of which each is of a whole row of `a`, as one line; null of others.
nb::object as_line(PyArrayObject* index, PyArrayObject* a, int dim) {
    if (!moving::is_line(Array{a}, Array{index}, dim)) return nb::object();
    npy_intp length = PyArray_DIM(index, dim), step = PyArray_STRIDE(index, dim);
    return seen_as(index, 1, &length, &step);
}

// (x, dim, index, source, how, whether the index is one line of positions, of which each is of a whole row, name)
nb::object into_scattered(PyObject* const* args) {
    constexpr int64_t FEW = 2, ALWAYS = 1 << 14;  // elements of the tensor to one that is added, at least, of more than so many: else going
                                                  // over all takes no longer
    const Held a = memory_of(args[0]);
    Held index = array_of(args[2]);
    if (!a || !index || !PyArray_ISBEHAVED(a.a) || !PyArray_ISBEHAVED_RO(index.a) || PyArray_TYPE(index.a) != NPY_INT64) return nb::object();
    const int ndim = PyArray_NDIM(a.a), dim = dim_of(args[1], a), bytes = moving::item_bytes(Array{a.a});
    const How how = PyUnicode_Check(args[4]) ? how_of(args[4]) : How::other;
    bool lines = args[5] == Py_True;
    if (how == How::sum && !lines && dim >= 0)
        if (const nb::object line = as_line(index, a, dim); line.is_valid()) index = Held(reinterpret_cast<PyArrayObject*>(line.ptr())), lines = true;
    if (dim < 0 || !bytes || !PyArray_SIZE(index.a) || PyArray_NDIM(index.a) != (lines ? 1 : ndim)) return nb::object();
    int64_t shape[NPY_MAXDIMS], steps[NPY_MAXDIMS] = {}, count = 1;
    for (int d = 0; d < ndim; ++d) {
        const int own = lines ? 0 : d;
        shape[d] = lines && d != dim ? PyArray_DIM(a.a, d) : PyArray_DIM(index.a, own);
        steps[d] = lines && d != dim ? 0 : PyArray_STRIDE(index.a, own);
        if (d != dim && shape[d] > PyArray_DIM(a.a, d)) return nb::object();
        count *= shape[d];
    }
    const Source source(args[3], a.a, ndim, shape);
    const bool few = shape[dim] == 1 || count <= ALWAYS || count * FEW <= PyArray_SIZE(a.a);  // of one, no place is named twice
    const bool by_rows = lines && !(how == How::sum && ndim == 1 && few) && PyArray_IS_C_CONTIGUOUS(a.a) && source.held &&
                         PyArray_IS_C_CONTIGUOUS(source.held.a);
    if (!source.data || !count || (how == How::sum && !by_rows && !few)) return nb::object();
    const Array to{a.a};
    if (moving::share_memory(Array{index.a}, to) || !moving::elements_apart(ndim, PyArray_DIMS(a.a), PyArray_STRIDES(a.a), bytes)) return nb::object();
    const InRows positions(Array{index.a});
    int64_t least, most;
    moving::range_of(positions.data<int64_t>(), PyArray_SIZE(index.a), least, most);
    if (least < 0 || most >= PyArray_DIM(a.a, dim) || !nobody_looks()) return nb::object();
    if (by_rows && combine_rows(how, to, dim, Array{index.a}, source.data)) {
        bump(args[0], args[6]);
        return nb::borrow(args[0]);
    }
    if (lines && how != How::sum) return nb::object();
    const View view{PyArray_DATA(index.a), Type::int64, ndim, shape, steps};
    const moving::Elements p(view, ndim, reinterpret_cast<const int64_t*>(PyArray_DIMS(a.a)), reinterpret_cast<const int64_t*>(PyArray_STRIDES(a.a)),
                             source.strides, dim, bytes, true);
    if (!p.good) return nb::object();
    bool good = false;
    {
        Release release(count * bytes, Writes::memory);
        good = scatter(how, view_of(to).type(), p, bytes, source.data, static_cast<char*>(PyArray_DATA(a.a)));
    }
    if (!good) return nb::object();
    bump(args[0], args[6]);
    return nb::borrow(args[0]);
}

PyObject* called(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (n != 7) return PyErr_Format(PyExc_TypeError, "wanted 7 arguments, got %zd", n);
    return guarded([&]() -> PyObject* {
        nb::object made = into_scattered(args);
        if (made.is_valid()) return made.release().ptr();
        Py_RETURN_NOTIMPLEMENTED;
    });
}

PyMethodDef scattering[] = {{"into_scattered", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&called)), METH_FASTCALL, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

FW_BIND(m) {
    if (PyModule_AddFunctions(m.ptr(), scattering) < 0) throw nb::python_error();
}

}  // namespace fw::tensors
