// How operands lie in memory beside the result: broadcast, transposed, strided.
//
// The elements of a result are numbered in the order in which they lie. An operand that lies the same way is
// `flat`; one of a single element is `constant`; others are gathered, run by run.
#pragma once

#include <algorithm>

#include "bind/array.h"
#include "base/simd.h"

namespace fw {

constexpr int MOST_DIMS = 32;

struct Operand {
    const char* data = nullptr;
    PyArrayObject* array = nullptr;  // nullptr for a number
    bool flat = false, constant = false;
    int64_t strides[MOST_DIMS];      // over the layout's merged dimensions, set where neither

    static Operand of(PyArrayObject* a) {
        Operand o;
        o.data = PyArray_BYTES(a);
        o.array = a;
        return o;
    }
    static Operand single(const char* number) {
        Operand o;
        o.data = number;
        o.constant = true;
        return o;
    }
};

struct Layout {
    int ndim = 0, merged = 0;
    npy_intp shape[MOST_DIMS];
    int64_t size = 1, sizes[MOST_DIMS];  // of the merged dimensions, the last one moves fastest

    // Whether several elements share a place: an expanded array, which says nothing about the order of a result.
    static bool repeats(PyArrayObject* a) {
        for (int d = 0; d < PyArray_NDIM(a); ++d)
            if (PyArray_STRIDE(a, d) == 0 && PyArray_DIM(a, d) > 1) return true;
        return false;
    }

    // Takes the shape of one more operand in; false if it does not broadcast, or has too many dimensions.
    bool broadcast(PyArrayObject* a) {
        const int n = PyArray_NDIM(a);
        const npy_intp* dims = PyArray_DIMS(a);
        if (n > MOST_DIMS) return false;
        if (n > ndim) {
            std::move_backward(shape, shape + ndim, shape + n);
            std::fill(shape, shape + (n - ndim), 1);
            ndim = n;
        }
        for (int i = 0; i < n; ++i) {
            npy_intp& s = shape[ndim - n + i];
            if (s == 1) s = dims[i];
            else if (dims[i] != 1 && dims[i] != s) return false;
        }
        return true;
    }

    // A new array for the result; it lies as `prototype` does if that has the result's shape.
    NewArray result(Array prototype, int type) {
        const bool like = ndim > 1 && !prototype.contiguous() && whole(prototype) && !repeats(prototype.p);
        NewArray out = like ? new_like(prototype, type) : new_array(ndim, shape, type);
        for (int d = 0; d < ndim; ++d) size *= shape[d];
        follow(out);
        return out;
    }

    // Whether results can be written into `target`: of the right shape, each element in a place of its own, and
    // apart from the memory of every operand that does not lie exactly as it does.
    bool takes(PyArrayObject* target, const std::vector<Operand>& operands) const {
        if (PyArray_NDIM(target) != ndim || !std::equal(shape, shape + ndim, PyArray_DIMS(target))) return false;
        if (repeats(target)) return false;
        const auto own = extent(target);
        for (const Operand& o : operands) {
            if (!o.array || (o.data == PyArray_BYTES(target) && PyArray_SAMESHAPE(o.array, target) &&
                             std::equal(PyArray_STRIDES(target), PyArray_STRIDES(target) + ndim,
                                        PyArray_STRIDES(o.array))))
                continue;
            const auto other = extent(o.array);
            if (other.first < own.second && own.first < other.second) return false;
        }
        return true;
    }

    // Whether the product of the sizes is a number, as it must be where no array is made of them.
    bool countable() const {
        int64_t n = 1;
        for (int d = 0; d < ndim; ++d)
            if (shape[d] && __builtin_mul_overflow(n, int64_t(shape[d]), &n)) return false;
        return n <= INT64_MAX / 64;
    }

    // Where no array is made for the result: column by column if `prototype` lies so, else row by row.
    void no_result(Array prototype) {
        for (int d = 0; d < ndim; ++d) size *= shape[d];
        if (whole(prototype) && PyArray_IS_F_CONTIGUOUS(prototype.p)) return follow(prototype);
        rows = true;
        int64_t step = itemsize = 1;
        for (int d = ndim - 1; d >= 0; --d) {
            order[d] = step;
            step *= shape[d];
        }
    }

    // Elements in a row of the innermost dimension, of those merged.
    int64_t line() const { return merged ? sizes[merged - 1] : size; }

    // How far elements that are neighbours in dimension d are apart in the order of their numbers.
    int64_t apart(int d) const { return order[d] / itemsize; }

    // Numbers the elements and tells each operand how it lies.
    void settle(std::vector<Operand>& operands) {
        bool simple = true;
        for (Operand& o : operands) {
            if (!o.array) continue;
            o.constant = PyArray_SIZE(o.array) == 1;
            o.flat = !o.constant && same_order(o.array);
            simple = simple && (o.flat || o.constant);
        }
        if (!simple) merge(operands);
    }

    // Calls f(first address, stride in bytes, count, offset) for the stretches of elements [at, at + n).
    template <class F> void each_run(const Operand& o, int64_t at, int64_t n, F&& f) const {
        int64_t index[MOST_DIMS], rest = at;
        const char* p = o.data;
        for (int d = merged - 1; d >= 0; --d) {
            index[d] = rest % sizes[d];
            rest /= sizes[d];
            p += index[d] * o.strides[d];
        }
        const int last = merged - 1;
        for (int64_t done = 0; done < n;) {
            int64_t count = std::min(sizes[last] - index[last], n - done);
            f(p, o.strides[last], count, done);
            done += count;
            p += count * o.strides[last];
            index[last] += count;
            for (int d = last; d > 0 && index[d] == sizes[d]; --d) {
                p += o.strides[d - 1] - sizes[d] * o.strides[d];
                index[d] = 0;
                ++index[d - 1];
            }
        }
    }

    // Elements [at, at + n): where they are, if they are neighbours, else copied into `buffer`.
    template <class T> const T* gather(const Operand& o, T* buffer, int64_t at, int64_t n) const {
        const T* found = buffer;
        each_run(o, at, n, [&](const char* p, int64_t stride, int64_t count, int64_t offset) {
            T* to = buffer + offset;
            if (stride == int64_t(sizeof(T))) {
                if (count == n) found = reinterpret_cast<const T*>(p);
                else std::memcpy(to, p, size_t(count) * sizeof(T));
            } else if (stride == 0) {
                T value;
                std::memcpy(&value, p, sizeof value);
                std::fill(to, to + count, value);
            } else {
                for (int64_t i = 0; i < count; ++i) std::memcpy(to + i, p + i * stride, sizeof(T));
            }
        });
        return found;
    }


    int64_t order[MOST_DIMS], itemsize = 1;  // the strides by which elements are numbered
    bool rows = false;                       // row by row

    bool whole(Array a) const { return a.ndim() == ndim && std::equal(shape, shape + ndim, a.shape()); }

    void follow(Array a) {
        std::copy(a.strides(), a.strides() + ndim, order);
        itemsize = PyArray_ITEMSIZE(a.p);
        rows = a.contiguous();
    }

    bool same_order(PyArrayObject* a) const {
        if (PyArray_SIZE(a) != size) return false;
        if (rows && PyArray_IS_C_CONTIGUOUS(a)) return true;
        if (PyArray_NDIM(a) != ndim) return false;
        for (int d = 0; d < ndim; ++d)
            if (shape[d] != 1 && PyArray_STRIDE(a, d) * itemsize != order[d] * PyArray_ITEMSIZE(a)) return false;
        return true;
    }

    // Dimensions in the order of the result's memory; neighbours that every operand steps through alike are one.
    void merge(std::vector<Operand>& operands) {
        int axes[MOST_DIMS], count = 0;
        for (int d = 0; d < ndim; ++d)
            if (shape[d] != 1) axes[count++] = d;
        std::stable_sort(axes, axes + count, [&](int a, int b) { return order[a] > order[b]; });
        merged = 0;
        for (int i = 0; i < count; ++i) {
            const int d = axes[i];
            bool joins = merged > 0;
            for (Operand& o : operands)
                if (strided(o)) joins = joins && o.strides[merged - 1] == step(o, d) * shape[d];
            if (!joins) ++merged;
            sizes[merged - 1] = joins ? sizes[merged - 1] * shape[d] : shape[d];
            for (Operand& o : operands)
                if (strided(o)) o.strides[merged - 1] = step(o, d);
        }
    }

    static std::pair<const char*, const char*> extent(PyArrayObject* a) {
        const char *first = PyArray_BYTES(a), *last = first;
        for (int d = 0; d < PyArray_NDIM(a); ++d) {
            if (PyArray_DIM(a, d) == 0) return {first, first};
            const int64_t reach = (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
            (reach < 0 ? first : last) += reach;
        }
        return {first, last + PyArray_ITEMSIZE(a)};
    }

    static bool strided(const Operand& o) { return o.array && !o.flat && !o.constant; }

    int64_t step(const Operand& o, int d) const {
        const int at = d - (ndim - PyArray_NDIM(o.array));
        return at < 0 || PyArray_DIM(o.array, at) == 1 ? 0 : PyArray_STRIDE(o.array, at);
    }
};

}  // namespace fw
