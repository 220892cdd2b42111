// Sums, means and extremes of plain memory over any dimensions; the results lie row by row.
#pragma once

#include "reduce/reduce.h"

namespace fw {
namespace reduce {

template <class T> void total(const Plan& plan, const char* x, T* out, bool divided);
template <class T> void extreme(const Plan& plan, const char* x, T* out, bool largest);

}  // namespace reduce
}  // namespace fw
