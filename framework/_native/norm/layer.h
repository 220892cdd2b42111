// layer_norm and rms_norm: y = (x - mean) * rstd * weight + bias over the last dimensions.
#pragma once

#include <cstdint>

namespace fw {

struct LayerForm {
    int64_t rows, n;
    double eps;
    int first;  // of the dimensions that are normalised over

    int64_t statistics() const { return rows; }
    int64_t weights() const { return n; }
};

// Rows of x; weight and bias may be missing. Without `Centred` no mean is subtracted, and `mean` is not written.
template <bool Centred, class T> struct LayerForward {
    const T *x, *weight, *bias;
    T *y, *mean, *var;
    LayerForm form;

    void run() const;
};

// The gradients of x, weight and bias: gx, or gw and gb, may be missing. Without `Centred` neither mean nor gb is used.
template <bool Centred, class T>
void layer_grad(const LayerForm& f, const T* g, const T* x, const T* weight, const T* mean, const T* var, T* gx, T* gw, T* gb);

}  // namespace fw
