// How NumPy arrays lie beside the result of an elementwise kernel.
#pragma once

#include <cstdlib>

#include "base/layout.h"
#include "bind/array.h"

namespace fw {

struct NumPyArrays {
    using Kind = PyArrayObject;
    static const char* data(const Kind& a) { return PyArray_BYTES(&a); }
    static int ndim(const Kind& a) { return PyArray_NDIM(&a); }
    static int64_t size(const Kind& a, int d) { return PyArray_DIMS(mutable_of(a))[d]; }
    static int64_t stride(const Kind& a, int d) { return PyArray_STRIDES(mutable_of(a))[d]; }
    static int64_t count(const Kind& a) { return PyArray_SIZE(mutable_of(a)); }
    static int64_t itemsize(const Kind& a) { return PyArray_ITEMSIZE(&a); }
    static bool in_rows(const Kind& a) { return PyArray_IS_C_CONTIGUOUS(&a); }

  private:
    static Kind* mutable_of(const Kind& a) { return const_cast<Kind*>(&a); }
};

struct ArrayLayout : LayoutOf<NumPyArrays> {
    const npy_intp* sizes_of_result() const { return reinterpret_cast<const npy_intp*>(shape); }

    // A new array for the result; it lies as `prototype` does if that has the result's shape.
    NewArray result(Array prototype, int type) {
        const bool like = ndim > 1 && !prototype.contiguous() && whole(*prototype.p) && !repeats(prototype.p);
        NewArray out = like ? new_like(prototype, type) : new_array(ndim, sizes_of_result(), type);
        for (int d = 0; d < ndim; ++d) size *= shape[d];
        follow(*out.p);
        return out;
    }

    // Whether results can be written into `target`: of the right shape, each element in a place of its own, and
    // apart from the memory of every operand that does not lie exactly as it does.
    bool takes(PyArrayObject* target, const OperandList& operands) const {
        if (!whole(*target)) return false;
        if (repeats(target)) return false;
        const auto own = extent(target);
        for (const Operand& o : operands) {
            auto* array = static_cast<PyArrayObject*>(const_cast<void*>(o.array));
            if (!array || (o.data == PyArray_BYTES(target) && PyArray_SAMESHAPE(array, target) &&
                             std::equal(PyArray_STRIDES(target), PyArray_STRIDES(target) + ndim,
                                        PyArray_STRIDES(array))))
                continue;
            const auto other = extent(array);
            if (other.first < own.second && own.first < other.second) return false;
        }
        return true;
    }

    // Where no array is made for the result: column by column if `prototype` lies so, else row by row.
    void no_result(Array prototype) {
        if (whole(*prototype.p) && PyArray_IS_F_CONTIGUOUS(prototype.p)) {
            for (int d = 0; d < ndim; ++d) size *= shape[d];
            return follow(*prototype.p);
        }
        int axes[MOST_DIMS];
        for (int d = 0; d < ndim; ++d) axes[d] = d;
        number(axes, ndim);
    }

    // Where results go into `target`: elements are numbered as they lie there, as if it had no gaps.
    void goes_into(PyArrayObject* target) {
        int axes[MOST_DIMS], count = 0;
        for (int d = 0; d < ndim; ++d)
            if (shape[d] != 1) axes[count++] = d;
        auto distance = [&](int d) { return std::abs(NumPyArrays::stride(*target, d)); };
        sort_axes(axes, count, [&](int a, int b) { return distance(a) > distance(b); });
        number(axes, count);
    }

    // The memory from the first byte of an array to behind its last one.
    static std::pair<const char*, const char*> extent(PyArrayObject* a) {
        const char *first = PyArray_BYTES(a), *last = first;
        for (int d = 0; d < PyArray_NDIM(a); ++d) {
            if (PyArray_DIM(a, d) == 0) return {first, first};
            const int64_t reach = (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
            (reach < 0 ? first : last) += reach;
        }
        return {first, last + PyArray_ITEMSIZE(a)};
    }

  private:
    // Elements are numbered with the last one of these axes fastest; the others have one element.
    void number(const int* axes, int count) {
        rows = std::is_sorted(axes, axes + count);
        itemsize = 1;
        std::fill(order, order + ndim, 1);
        for (int i = count - 1; i >= 0; --i) {
            order[axes[i]] = size;
            size *= shape[axes[i]];
        }
    }
};

}  // namespace fw
