// Arrays of bfloat16, which NumPy knows as a type of the package ml_dtypes.
#pragma once

#include <cstring>

#include "bind/array.h"

namespace fw {

// Its number is given when ml_dtypes is imported, and does not change after that.
inline bool is_bf16(PyArray_Descr* d) {
    static int number = -1;
    if (d->type_num < NPY_USERDEF) return false;
    if (number < 0 && d->kind == 'V' && PyDataType_ELSIZE(d) == 2 &&
        std::strstr(d->typeobj->tp_name, "bfloat16"))
        number = d->type_num;
    return d->type_num == number;
}
inline bool is_bf16(const Array& x) { return x.p && is_bf16(PyArray_DESCR(x.p)); }

// As kernels see it; the array must live as long.
inline View view_of(const Array& x) {
    static_assert(sizeof(npy_intp) == sizeof(int64_t), "sizes are 64 bits wide");
    const Type type = x.is<float>() ? Type::float32 : x.is<double>() ? Type::float64
                      : x.is<bool>() ? Type::boolean : x.is<int64_t>() ? Type::int64
                      : x.is<int32_t>() ? Type::int32 : is_bf16(x) ? Type::bfloat16 : Type::other;
    return {x.data<void>(), type, x.ndim(), reinterpret_cast<const int64_t*>(x.shape()),
            reinterpret_cast<const int64_t*>(x.strides())};
}

}  // namespace fw
