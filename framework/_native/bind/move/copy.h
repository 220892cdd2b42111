// Moving elements of NumPy arrays.
#pragma once

#include "bind/array.h"
#include "move/block.h"

namespace fw::moving {

// How many bytes an element has; 0 if it cannot be moved as plain bytes.
inline int item_bytes(const Array& a) {
    if (!a.usable() || PyDataType_REFCHK(PyArray_DESCR(a.p)) || PyTypeNum_ISFLEXIBLE(a.type())) return 0;
    int n = int(PyArray_ITEMSIZE(a.p));
    return n == 1 || n == 2 || n == 4 || n == 8 || n == 16 ? n : 0;
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

void copy_array(const Array& from, char* to);  // in row-major order
Array owner_of(Array x);  // the array that has the memory which x is a view of
// Whether no two elements share a byte, as far as strides tell at once: each dimension steps over all that are finer.
bool elements_apart(int ndim, const npy_intp* shape, const npy_intp* strides, int64_t itemsize);
bool are_channels_last(int ndim, const int* axes);  // whether dimensions in this order in memory are those of such images
bool share_memory(const Array& a, const Array& b);  // or lie between each other's elements
// The dimensions of `to`, and how `from` broadcasts to them; false if it does not.
bool add_broadcast(Block& b, const Array& from, const Array& to);
// to[...] = from[...], which broadcasts; false, and nothing done, unless they are of one dtype and no two elements share memory.
bool copy_over(const Array& from, const Array& to);
bool fill_over(const Pair& bits, const Array& to);  // the same with one element everywhere
// An array like x with its dimensions in the same order in memory; with `images` only where that has the channels last.
NewArray as_laid(const Array& x, bool images = false);
// x in another shape of as many elements: its memory where strides can say that, else a copy that is its own. Raises
// ValueError where the number of elements is another.
nb::object in_shape(const Array& x, int ndim, const npy_intp* shape);

// The element that `array[...] = value` would write, for a number; false if it is not one, or does not fit.
bool element(nb::handle value, const Array& array, Pair& bits);

// Elements of x, of which there are some, as numbers of another type; not_implemented() for types that are no numbers.
nb::object converted(Array x, PyArray_Descr* wanted);
// to[...] = from[...] likewise, which broadcasts; false, and nothing done, of other types, where the two share memory, and where
// elements of `to` have gaps between them in every dimension.
bool convert_into(const Array& from, const Array& to);

}  // namespace fw::moving
