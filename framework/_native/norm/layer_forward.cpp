#include "norm/layer.h"

#include "norm/norm_rows.h"
#include "norm/short_norm.h"

namespace fw {
namespace {

template <bool Past, bool Centred, class T> void row(const LayerForward<Centred, T>& f, int64_t r) {
    const LayerForm& form = f.form;
    const T *weight = f.weight, *bias = f.bias;
    const T* from = f.x + r * form.n;
    T* to = f.y + r * form.n;
    Moments m = moments<Centred>(from, form.n);
    if (Centred) f.mean[r] = T(m.mean);
    f.var[r] = T(m.var);
    Vec<T> c = splat(T(m.mean)), k = splat(rstd_of<T>(m.var, form.eps));
    vectors<T>(0, form.n, [&](int64_t i, auto part, int) {
        Vec<T> v = (Centred ? take(from + i, part) - c : take(from + i, part)) * k;
        if (weight && bias) v = fma<T>(v, take(weight + i, part), take(bias + i, part));
        else if (weight) v *= take(weight + i, part);
        else if (bias) v += take(bias + i, part);
        put_as<Past>(to + i, v, part);
    });
}

}  // namespace

template <bool Centred, class T> void LayerForward<Centred, T>::run() const {
    if (is_short<T>(form.n)) return short_norm<Centred>({form.rows, form.n, 1, form.eps}, x, weight, bias, y, mean, var);
    choosing_caches(y, form.rows * form.n, form.n, [&](auto past) {
        parallel(form.rows, grain_of(form.n), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) row<past.value>(*this, r);
            if (past.value) settle();
        });
    });
}

template struct LayerForward<true, float>;
template struct LayerForward<true, double>;
template struct LayerForward<false, float>;
template struct LayerForward<false, double>;

}  // namespace fw
