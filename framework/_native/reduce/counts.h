// How many elements are not 0, over any dimensions. No Python.
#pragma once

#include "reduce/reduce.h"

namespace fw::reduce {

// Into out[plan's places]. T: uint8_t (of bool, too), int32_t, int64_t, float, double.
template <class T> void count_nonzero(const Plan& plan, const char* x, int64_t* out);

template <class T> int64_t nonzero_in_line(const T* p, int64_t n);  // of n elements side by side

// Whether some elements are not 0, or all, by counting them: 1 or 0.
template <class T> void truth_by_counts(const Plan& plan, const char* x, uint8_t* out, bool all);
constexpr int64_t COUNTED_FOR_TRUTH = 64;  // bytes for a result: up to here counting takes less than stopping early

}  // namespace fw::reduce
