// NumPy arrays of attention.
#pragma once

#include "attention/attention.h"
#include "bind/bf16_array.h"

namespace fw {
namespace attention {

// As kernels see it; what is no array that they can read is of no type.
inline View usable_view(const Array& a) { return a.usable() ? view_of(a) : View(); }

// False where the arrays are not what the kernels take.
inline bool takes(const Array& q, const Array& k, const Array& v, const Given& mask, bool causal, Type other = Type::float32) {
    return takes(usable_view(q), usable_view(k), usable_view(v), usable_view(mask.a), !mask.none, other) &&
           !(causal && !mask.none);
}

// A new array whose second-last dimension lies behind the first one in memory, so that (batch, heads, length,
// features) becomes (batch, length, heads * features) without a copy; before it where that of `like` does.
inline NewArray new_by_length(int ndim, const npy_intp* shape, const Array& like) {
    if (ndim < 4) return new_array(ndim, shape, like.type());
    const int place = like.stride(like.ndim() - 2) > like.stride(0) ? 0 : 1;
    int axes[MOST_AXES + 2];
    for (int d = 0, from = 0; d < ndim; ++d) axes[d] = d == place ? ndim - 2 : d < ndim - 1 ? from++ : d;
    npy_intp sizes[MOST_AXES + 2], steps[MOST_AXES + 2];
    for (int d = 0; d < ndim; ++d) sizes[d] = shape[axes[d]];
    NewArray a = new_array(ndim, sizes, like.type());
    std::copy(a.strides(), a.strides() + ndim, steps);
    for (int d = 0; d < ndim; ++d) PyArray_DIMS(a.p)[axes[d]] = sizes[d], PyArray_STRIDES(a.p)[axes[d]] = steps[d];
    PyArray_UpdateFlags(a.p, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
    return a;
}

}  // namespace attention
}  // namespace fw
