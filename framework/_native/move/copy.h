// Moving elements: whatever their type, they are so many bytes.
#pragma once

#include <cstring>

#include "bind/array.h"
#include "base/pool.h"
#include "base/simd.h"

namespace fw::moving {

struct Pair {
    uint64_t a, b;
};

constexpr int64_t GRAIN_BYTES = 64 << 10;  // what one piece of a parallel copy moves at least

inline int64_t grain_of(int64_t bytes) { return bytes >= GRAIN_BYTES ? 1 : GRAIN_BYTES / (bytes > 0 ? bytes : 1); }

// How many bytes an element has; 0 if it cannot be moved as plain bytes.
inline int item_bytes(const Array& a) {
    if (!a.usable() || PyDataType_REFCHK(PyArray_DESCR(a.p)) || PyTypeNum_ISFLEXIBLE(a.type())) return 0;
    int n = int(PyArray_ITEMSIZE(a.p));
    return n == 1 || n == 2 || n == 4 || n == 8 || n == 16 ? n : 0;
}

// Calls f with a number of that many bytes.
template <class F> void by_bytes(int bytes, F&& f) {
    switch (bytes) {
        case 1: return f(uint8_t{});
        case 2: return f(uint16_t{});
        case 4: return f(uint32_t{});
        case 8: return f(uint64_t{});
        default: return f(Pair{});
    }
}

// The integers of a Python tuple (also of a subclass, as shapes are) or list, or a single one.
struct Ints {
    int64_t at[NPY_MAXDIMS];
    int n = 0;
    bool good = true;

    explicit Ints(nb::handle given) {
        if (PyTuple_Check(given.ptr()) || PyList_CheckExact(given.ptr())) {
            n = int(Py_SIZE(given.ptr()));
            good = n <= NPY_MAXDIMS;
            for (int i = 0; good && i < n; ++i) add(i, PySequence_Fast_GET_ITEM(given.ptr(), i));
        } else {
            n = 1;
            add(0, given.ptr());
        }
    }
    int64_t operator[](int i) const { return at[i]; }
    bool is_shape() const { return good && countable(at, n); }

private:
    void add(int i, PyObject* number) {
        at[i] = PyLong_CheckExact(number) ? PyLong_AsLongLong(number) : (good = false, 0);
        if (at[i] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            good = false;
        }
    }
};

// A strided block of elements; strides are in bytes.
struct Block {
    int ndim = 0;
    int64_t shape[2 * NPY_MAXDIMS], from[2 * NPY_MAXDIMS], to[2 * NPY_MAXDIMS];

    void add(int64_t size, int64_t from_stride, int64_t to_stride) {
        shape[ndim] = size, from[ndim] = from_stride, to[ndim++] = to_stride;
    }
    // Without dimensions of size 1, and with those merged that are one in both places; false if it is empty.
    bool simplify();
    int64_t rows() const;  // the product of all sizes but the last
};

// Where the rows of a block lie, one after the other.
struct Walk {
    const Block& block;
    int dims;  // the leading ones
    int64_t at[2 * NPY_MAXDIMS];
    int64_t from = 0, to = 0;

    Walk(const Block& b, int leading, int64_t row);
    void next() {
        for (int d = dims - 1; d >= 0; --d) {
            from += block.from[d], to += block.to[d];
            if (++at[d] < block.shape[d]) return;
            from -= block.from[d] * block.shape[d], to -= block.to[d] * block.shape[d];
            at[d] = 0;
        }
    }
};

// to[...] = from[...], on all threads; the memory of the two must not overlap.
void copy_block(Block block, int bytes, const char* from, char* to);
void copy_bytes(const char* from, char* to, int64_t n);
void fill_bytes(char* to, int64_t n, int value);
void copy_array(const Array& from, char* to);  // in row-major order

// The element that `array[...] = value` would write, for a number; false if it is not one, or does not fit.
bool element(nb::handle value, const Array& array, Pair& bits);

// The product of some sizes.
template <class T> int64_t product(const T* sizes, int begin, int end) {
    int64_t n = 1;
    for (int d = begin; d < end; ++d) n *= sizes[d];
    return n;
}

}  // namespace fw::moving
