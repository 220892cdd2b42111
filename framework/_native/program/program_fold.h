// Reductions of what elementwise programs compute, and of halves as float32: the elements are made a few thousand at a
// time, folded while they are in the cache, and never stored. No Python.
#pragma once

#include "program/program.h"
#include "reduce/reduce.h"

namespace fw {

enum class Reduction { sum, mean, amax, amin, var, norm, nansum };  // the last two: of halves

// What is to be folded of an array, and how: over the dimensions whose bits are set.
struct Folding {
    Reduction kind = Reduction::sum;
    uint32_t dims = 0;
    bool keepdim = false;
    double correction = 0;  // the variance's
};

// How the elements of a program's result are folded; false for what is not taken, as no elements are.
template <class T> bool plan_fold(const Layout& layout, uint32_t dims, reduce::Plan& plan);
// The fold of a program's result, by that plan, into `out`: row by row.
template <class T> void fold_program(const Run<T>& run, const reduce::Plan& plan, const Folding& folding, T* out);

// The same of an array of float16 or bfloat16 (Half, Bf16) with these sizes and strides in bytes: computed as float32, rounded
// once into the `results` numbers of `out`.
template <class H> bool plan_halves(int ndim, const int64_t* sizes, const int64_t* strides, uint32_t dims, reduce::Plan& plan);
template <class H> void fold_halves(const H* x, const reduce::Plan& plan, const Folding& folding, H* out, int64_t results);

}  // namespace fw
