// Lines of images in vectors, whose ends count as 0 (Inside of base/parts.h). Numbers are float, with AVX-512 also
// bfloat16, which is widened on the way in and rounded on the way out.
#pragma once

#include "base/parts.h"
#include "base/shuffles.h"
#include "gemm/gemm_kernel.h"

namespace fw::windows {

using V = Vec<float>;
constexpr int n_lanes = lanes<float>;

}  // namespace fw::windows
