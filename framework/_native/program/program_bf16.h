// Elementwise programs on bfloat16: widened piece by piece, computed as float32, rounded once.
#pragma once

#include "bind/array.h"
#include "program/program.h"

namespace fw {

// The result for arrays of bfloat16 (and truth values) and numbers, in `target` if that is given; nullptr without an error
// for what it does not take.
PyObject* call_bf16(const Program& program, PyObject* const* args, PyArrayObject* target);
PyObject* call_half(const Program& program, PyObject* const* args, PyArrayObject* target);  // float16

}  // namespace fw
