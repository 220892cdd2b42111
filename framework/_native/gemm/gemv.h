// Products that read a matrix once and so run at the speed of memory: with a vector, or a few rows.
#pragma once

#include "gemm/gemm.h"

namespace fw {

// Computes `g`, but for its finish, if it is of that kind and lies well; otherwise answers false.
bool try_gemv(const Gemm<float>& g);
bool try_gemv(const Gemm<double>& g);

// Computes products of one row and one column each, of few numbers that lie side by side; else answers false.
bool try_inner_products(const Gemm<float>& g, const Batch& batch);
bool try_inner_products(const Gemm<double>& g, const Batch& batch);

// Whether `try_gemv` would sum up row by row, if operands lie so.
bool sums_rows(const Gemm<float>& g);
bool sums_rows(const Gemm<double>& g);

}  // namespace fw
