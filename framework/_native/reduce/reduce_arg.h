// The largest or smallest element along a dimension of plain memory and where it is: the first of equal ones, the first nan. Of
// float, double, int32_t and int64_t.
#pragma once

#include "reduce/reduce.h"

namespace fw {
namespace reduce {

// Whether places along the dimension of the plan can be counted beside numbers of this type.
template <class T> bool countable_places(const Plan& plan);
// By the plan of one dimension; values and places lie row by row.
template <class T> void best_along(const Plan& plan, const char* x, bool largest, T* values, int64_t* places);

}  // namespace reduce
}  // namespace fw
