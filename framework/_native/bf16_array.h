// Arrays of bfloat16, which NumPy knows as a type of the package ml_dtypes.
#pragma once

#include <cstring>

#include "array.h"
#include "bf16.h"

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

}  // namespace fw
