// softmax, or its logarithm, along one dimension of numbers in row-major order, and the backward. No Python.
#pragma once

#include "base/columns.h"

namespace fw {

template <class T> void softmax(bool log, const T* x, T* y, const Around& a);
template <class T> void softmax_grad(bool log, const T* g, const T* y, T* out, const Around& a);

}  // namespace fw
