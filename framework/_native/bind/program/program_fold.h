// Reductions of what elementwise programs compute, and of NumPy arrays of halves.
#pragma once

#include "bind/array.h"
#include "program/program_fold.h"

namespace fw {

// The fold of the elements of the result, which is not stored; nullptr without an error for what it does not take.
template <class T> PyObject* execute_fold(const Run<T>& run, const Folding& folding);

// The same of float16 and bfloat16, as float32 and rounded once, over the dimensions that a tuple names; not_implemented()
// for other arrays.
nb::object fold_halves(const Array& x, nb::handle dims, Folding folding);

}  // namespace fw
