// Elementwise programs on NumPy arrays of float16 and bfloat16.
#pragma once

#include "bind/array.h"
#include "program/program.h"

namespace fw {

// The result for arrays of bfloat16 (and truth values) and numbers, in `target` if that is given; nullptr without an error
// for what it does not take.
PyObject* call_bf16(const Program& program, PyObject* const* args, PyArrayObject* target);
PyObject* call_half(const Program& program, PyObject* const* args, PyArrayObject* target);  // float16

}  // namespace fw
