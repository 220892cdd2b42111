// cast: NumPy arrays as numbers of another type.
#include "bind/bf16_array.h"
#include "bind/move/copy.h"
#include "move/copy_cast.h"

namespace fw::moving {
namespace {

bool kind_of(PyArray_Descr* descr, NumberKind& kind) {
    switch (descr->type_num) {
        case NPY_BOOL: return kind = NumberKind::boolean, true;
        case NPY_UINT8: return kind = NumberKind::uint8, true;
        case NPY_INT8: return kind = NumberKind::int8, true;
        case NPY_INT16: return kind = NumberKind::int16, true;
        case NPY_INT32: return kind = NumberKind::int32, true;
        case NPY_INT64: return kind = NumberKind::int64, true;
        case NPY_HALF: return kind = NumberKind::float16, true;
        case NPY_FLOAT: return kind = NumberKind::float32, true;
        case NPY_DOUBLE: return kind = NumberKind::float64, true;
        default: return kind = NumberKind::bfloat16, is_bf16(descr);
    }
}

constexpr int64_t SHORT = 1024;  // numbers in a row that are converted without looking how they lie, nor for other threads

// Real numbers in a row as complex ones, a piece after the other: as T first, then with zeros between them.
template <class T> nb::object made_complex(const Array& x, Converter convert, int type) {
    constexpr int64_t PIECE = 1024;
    const int64_t n = x.size(), each = PyArray_ITEMSIZE(x.p);
    NewArray out = new_array(x.ndim(), x.shape(), type);
    T* to = out.data<T>();
    const char* from = x.data<char>();
    Release release(n * 2 * int64_t(sizeof(T)));
    parallel((n + PIECE - 1) / PIECE, grain_of(PIECE * 2 * int64_t(sizeof(T))), [=](int64_t begin, int64_t end) {
        T some[PIECE];
        for (int64_t at = begin * PIECE, last = std::min(end * PIECE, n), m; at < last; at += m) {
            m = std::min(PIECE, last - at);
            Block row;
            row.add(m, each, int64_t(sizeof(T)));
            convert(row, from + at * each, reinterpret_cast<char*>(some), 0, 1);
            for (int64_t i = 0; i < m; ++i) to[2 * (at + i)] = some[i], to[2 * (at + i) + 1] = 0;
        }
    });
    return give(out);
}

nb::object cast(Array x, nb::handle dtype) {
    if (!x.usable() || !x.size()) return not_implemented();
    nb::object descr = PyArray_DescrCheck(dtype.ptr()) ? nb::borrow(dtype) : nb::getattr(dtype, "numpy", nb::none());
    if (!PyArray_DescrCheck(descr.ptr())) return not_implemented();
    return converted(x, reinterpret_cast<PyArray_Descr*>(descr.ptr()));
}

}  // namespace

nb::object converted(Array x, PyArray_Descr* wanted) {
    const int type = wanted->type_num;
    NumberKind given_kind, wanted_kind;
    if (!kind_of(PyArray_DESCR(x.p), given_kind)) return not_implemented();
    if (type == NPY_CFLOAT || type == NPY_CDOUBLE) {
        const bool single = type == NPY_CFLOAT;
        const Converter parts = converter(given_kind, single ? NumberKind::float32 : NumberKind::float64);
        if (!x.contiguous()) return not_implemented();
        return (single ? made_complex<float> : made_complex<double>)(x, parts, type);
    }
    if (!kind_of(wanted, wanted_kind)) return not_implemented();
    const Converter convert = converter(given_kind, wanted_kind);
    const int64_t size = x.size();
    if (x.contiguous() && size <= SHORT) {
        NewArray few = new_array(x.ndim(), x.shape(), type);
        Block row;
        row.add(size, PyArray_ITEMSIZE(x.p), PyArray_ITEMSIZE(few.p));
        convert(row, x.data<char>(), few.data<char>(), 0, 1);
        return give(few);
    }
    NewArray out = x.contiguous() ? new_array(x.ndim(), x.shape(), type) : new_like(x, type);
    nb::object result = give(out);
    const int64_t bytes = PyArray_ITEMSIZE(x.p) + PyArray_ITEMSIZE(out.p);  // of an element, both
    Release release(size * bytes);
    Block block;
    for (int d = 0; d < x.ndim(); ++d) block.add(x.shape(d), x.stride(d), out.stride(d));
    convert_block(convert, block, bytes, x.data<char>(), out.data<char>());
    return result;
}

FW_BIND(m) { m.def("cast", &cast, nb::arg("x"), nb::arg("dtype")); }

}  // namespace fw::moving
