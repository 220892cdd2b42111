// Backward of scaled dot-product attention.
#pragma once

#include "attention/attention.h"

namespace fw {
namespace attention {

// From g, the gradient of `out`, and the row log-sum-exps of the forward (heads, queries): the gradients of q, k, v and the
// mask, as views of the operands' shapes without gaps; those of no memory are not wanted.
template <class T>
void attend_grad(const Problem<T>& a, const Operand<const T>& g, const Operand<const T>& out, const T* lse,
                 const View (&to)[4]);

}  // namespace attention
}  // namespace fw
