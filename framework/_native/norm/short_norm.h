// Norms of rows of so few numbers that each stays in registers, layer_norm's and group_norm's: the sums of a row are one vector's.
#pragma once

#include <cstdint>

#include "base/simd.h"

namespace fw {

constexpr int MOST_HELD = 4;  // vectors of a row

template <class T> bool is_short(int64_t n) { return n <= MOST_HELD * lanes<T>; }

// Row r is scaled by numbers of its own group, r % groups: the weights are `groups` rows.
struct ShortForm {
    int64_t rows, n, groups;
    double eps;
};

// weight and bias may be missing. Without `Centred` no mean is subtracted, and `mean` is not written.
template <bool Centred, class T>
void short_norm(const ShortForm& f, const T* x, const T* weight, const T* bias, T* y, T* mean, T* var);

// gx, or gw and gb (of `groups` rows), may be missing. Without `Centred` neither mean nor gb is used.
template <bool Centred, class T>
void short_norm_grad(const ShortForm& f, const T* g, const T* x, const T* weight, const T* mean, const T* var, T* gx, T* gw, T* gb);

}  // namespace fw
