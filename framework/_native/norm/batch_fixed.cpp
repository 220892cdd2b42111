#include "norm/batch.h"

namespace fw {

template <class T>
void batch_fixed(const BatchForm& f, const T* x, const T* mean, const T* var, const T* weight, const T* bias, T* y) {
    std::unique_ptr<T[]> scale(new T[size_t(f.channels)]);
    for (int64_t c = 0; c < f.channels; ++c)
        scale[c] = rstd_of<T>(double(var[c]), f.eps) * (weight ? weight[c] : T(1));
    map_channels(f, x, y, mean, scale.get(), bias);
}

template void batch_fixed(const BatchForm&, const float*, const float*, const float*, const float*, const float*, float*);
template void batch_fixed(const BatchForm&, const double*, const double*, const double*, const double*, const double*,
                          double*);

}  // namespace fw
