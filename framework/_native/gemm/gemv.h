// Products that read a matrix once and so run at the speed of memory: with a vector, or a few rows.
#pragma once

#include "gemm/gemm.h"

namespace fw {

// Computes `g`, but for its finish, if it is of that kind and lies well; otherwise answers false.
bool try_gemv(const Gemm<float>& g);
bool try_gemv(const Gemm<double>& g);

// Whether `try_gemv` would sum up row by row, if operands lie so.
bool sums_rows(const Gemm<float>& g);
bool sums_rows(const Gemm<double>& g);

}  // namespace fw
