// Sums, means, norms, products, extremes and truth of plain memory over any dimensions; the results lie row by row.
#pragma once

#include "reduce/reduce.h"

namespace fw {
namespace reduce {

template <class T> void total(const Plan& plan, const char* x, T* out, bool divided);    // float, double
template <class T> void extreme(const Plan& plan, const char* x, T* out, bool largest);  // and int32_t, int64_t
template <class T> void total_of_numbers(const Plan& plan, const char* x, T* out);       // of what is not nan: float, double
template <class T> void norm(const Plan& plan, const char* x, T* out);                   // Euclid's, of float and double
template <class T> void product(const Plan& plan, const char* x, T* out);                // float, double, uint64_t
void wrapped_sum(const Plan& plan, const char* x, uint64_t* out);  // modulo 2^64, with a sign, too
// Whether all elements, or any, are not 0.
void truth(const Plan& plan, const char* x, uint8_t* out, bool all);

}  // namespace reduce
}  // namespace fw
