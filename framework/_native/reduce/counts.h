// How many elements are not 0, over any dimensions. No Python.
#pragma once

#include "reduce/reduce.h"

namespace fw::reduce {

// Into out[plan's places]. T: uint8_t (of bool, too), int32_t, int64_t, float, double.
template <class T> void count_nonzero(const Plan& plan, const char* x, int64_t* out);

}  // namespace fw::reduce
