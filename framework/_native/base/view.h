// Arrays of others: where the numbers are, of which type, and how they lie. Nobody here owns them.
#pragma once

#include <cstdint>

#include "base/bf16.h"

namespace fw {

// Whether sizes that somebody gave can be those of an array: none negative, with a product that leaves room for
// calculations with it.
template <class S> bool countable(const S* sizes, int n) {
    int64_t product = 1;
    for (int d = 0; d < n; ++d) {
        if (sizes[d] < 0) return false;
        if (sizes[d] && __builtin_mul_overflow(product, int64_t(sizes[d]), &product)) return false;
    }
    return product < int64_t(1) << 56;
}

enum class Type : int { float32, float64, bfloat16, int64, int32, boolean, uint8, int8, other };
inline int64_t bytes_of(Type t) {
    constexpr int64_t bytes[] = {4, 8, 2, 8, 4, 1, 1, 1, 1};
    return bytes[int(t)];
}

struct View {
    void* start = nullptr;
    Type of = Type::other;
    int dims = 0;
    const int64_t *sizes = nullptr, *steps = nullptr;  // steps in bytes

    Type type() const { return of; }
    int ndim() const { return dims; }
    int64_t shape(int d) const { return sizes[d]; }
    int64_t stride(int d) const { return steps[d]; }
    template <class T> T* data() const { return static_cast<T*>(start); }
    int64_t size() const {
        int64_t n = 1;
        for (int d = 0; d < dims; ++d) n *= sizes[d];
        return n;
    }
    // row by row without gaps
    bool contiguous() const {
        int64_t step = bytes_of(of);
        if (!size()) return true;
        for (int d = dims - 1; d >= 0; --d) {
            if (sizes[d] != 1 && steps[d] != step) return false;
            step *= sizes[d];
        }
        return true;
    }
    // in steps of whole numbers
    bool whole_strides() const {
        for (int d = 0; d < dims; ++d)
            if (steps[d] % bytes_of(of)) return false;
        return true;
    }
};

}  // namespace fw
