// Variances, standard deviations, log-sum-exp of plain memory: sums of what the first fold shifts, over any dimensions; the
// results lie row by row. Of float and double.
#pragma once

#include "reduce/reduce.h"

namespace fw {
namespace reduce {

template <class T> void variance(const Plan& plan, const char* x, T* out, double correction, bool rooted);
template <class T> void logsumexp(const Plan& plan, const char* x, T* out);

}  // namespace reduce
}  // namespace fw
