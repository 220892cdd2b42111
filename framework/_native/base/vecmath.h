// Elementary functions over vectors, namespace fw::math: `store(out, exp(load(in)))`.
//
// | header         | functions                                                                |
// |----------------|--------------------------------------------------------------------------|
// | vecmath_core.h | rint floor ceil trunc sign copysign isnan isinf isfinite, shared pieces  |
// | vecmath_exp.h  | exp exp2 expm1 tanh sigmoid sinh cosh                                    |
// | vecmath_log.h  | log log2 log10 log1p softplus_rest asinh acosh atanh pow                 |
// | vecmath_erf.h  | erf erfc                                                                 |
// | vecmath_trig.h | sin cos tan asin acos atan atan2 hypot rsqrt fmod remainder              |
//
// At most 4 ulp over the whole range of both types, on every instruction set, denormals included; most are
// within 2.  Infinities, nan and signed zeros as in C's <cmath>; `remainder` is Python's %.
#pragma once

#include "base/vecmath_erf.h"
#include "base/vecmath_exp.h"
#include "base/vecmath_log.h"
#include "base/vecmath_trig.h"
