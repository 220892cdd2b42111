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

bool is_complex(PyArray_Descr* descr) { return descr->type_num == NPY_CFLOAT || descr->type_num == NPY_CDOUBLE; }

// What converts numbers of one type to those of another: of complex ones the real parts, where they lie. nullptr where neither is
// known, or whether a complex number is 0 is asked.
Converter converter_of(PyArray_Descr* from, PyArray_Descr* to) {
    NumberKind given, wanted;
    if (!kind_of(to, wanted)) return nullptr;
    if (is_complex(from) && wanted != NumberKind::boolean)
        given = from->type_num == NPY_CFLOAT ? NumberKind::float32 : NumberKind::float64;
    else if (!kind_of(from, given))
        return nullptr;
    return converter(given, wanted);
}

constexpr int64_t SHORT = 1024;  // numbers in a row that are converted without looking how they lie, nor for other threads

// Real numbers in a row as complex ones, a piece after the other: as T first, then with zeros between them.
template <class T> void make_complex(const Array& x, Converter convert, T* to) {
    constexpr int64_t PIECE = 1024;
    const int64_t n = x.size(), each = PyArray_ITEMSIZE(x.p);
    const char* from = x.data<char>();
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
}

// Numbers in a row as complex ones, in a row at `to`; false for types that are no numbers.
bool make_complex(const Array& x, PyArray_Descr* wanted, char* to) {
    PyArray_Descr* given = PyArray_DESCR(x.p);
    const bool single = wanted->type_num == NPY_CFLOAT;
    const NumberKind part = single ? NumberKind::float32 : NumberKind::float64;
    NumberKind kind = given->type_num == NPY_CFLOAT ? NumberKind::float32 : NumberKind::float64;
    if (!is_complex(given) && !kind_of(given, kind)) return false;
    Release release(x.size() * 2 * PyArray_ITEMSIZE(x.p), Writes::memory);
    if (is_complex(given)) {  // both parts of each
        Block row;
        row.add(2 * x.size(), given->elsize / 2, wanted->elsize / 2);
        convert_block(converter(kind, part), row, (given->elsize + wanted->elsize) / 2, x.data<char>(), to);
    } else if (single) {
        make_complex(x, converter(kind, part), reinterpret_cast<float*>(to));
    } else {
        make_complex(x, converter(kind, part), reinterpret_cast<double*>(to));
    }
    return true;
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
    if (is_complex(wanted)) {
        int axes[NPY_MAXDIMS];
        axes_in_memory(x, axes);
        if (!dense_in_order(x, axes)) return not_implemented();
        NewArray out = new_in_order(x.ndim(), x.shape(), type, axes);
        return make_complex(x, wanted, out.data<char>()) ? give(out) : not_implemented();
    }
    const Converter convert = converter_of(PyArray_DESCR(x.p), wanted);
    if (!convert) return not_implemented();
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

bool convert_into(const Array& from, const Array& to) {
    if (!from.usable() || !to.usable() || !to.writeable()) return false;
    if (is_complex(PyArray_DESCR(to.p)))
        return from.contiguous() && to.contiguous() && from.same_shape(to) && !share_memory(from, to) &&
               make_complex(from, PyArray_DESCR(to.p), to.data<char>());
    const Converter convert = converter_of(PyArray_DESCR(from.p), PyArray_DESCR(to.p));
    Block block;
    if (!convert || !add_broadcast(block, from, to)) return false;
    const int64_t each = PyArray_ITEMSIZE(to.p), bytes = PyArray_ITEMSIZE(from.p) + each;
    if (!block.simplify()) return true;  // there is none
    if (block.ndim && block.to[block.ndim - 1] != each) return false;
    if (share_memory(from, to) || !(to.contiguous() || elements_apart(to.ndim(), to.shape(), to.strides(), each))) return false;
    Release release(to.size() * bytes, Writes::memory);
    convert_block(convert, block, bytes, from.data<char>(), to.data<char>());
    return true;
}

FW_BIND(m) { m.def("cast", &cast, nb::arg("x"), nb::arg("dtype")); }

}  // namespace fw::moving
