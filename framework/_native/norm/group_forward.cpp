#include "norm/group.h"

#include "norm/norm_rows.h"

namespace fw {
namespace {

template <bool Past, class T> FW_INLINE void segment(const GroupForm& form, const T* from, T* to, T centre, T scale, T shift) {
    Vec<T> c = splat(centre), k = splat(scale), s = splat(shift);
    vectors<T>(0, form.length, [&](int64_t i, auto part, int) {
        put_as<Past>(to + i, fma<T>(take(from + i, part) - c, k, s), part);
    });
}

template <bool Past, class T> void row(const GroupForward<T>& f, int64_t r) {
    const GroupForm& form = f.form;
    const T* from = f.x + r * form.n;
    Moments m = moments<true>(from, form.n);
    f.mean[r] = T(m.mean);
    f.var[r] = T(m.var);
    T rstd = rstd_of<T>(m.var, form.eps);
    for (int64_t k = 0; k < form.each; ++k) {
        const int64_t c = form.channel(r) + k;
        segment<Past>(form, from + k * form.length, f.y + r * form.n + k * form.length, f.mean[r],
                      f.weight ? rstd * f.weight[c] : rstd, f.bias ? f.bias[c] : T(0));
    }
}

}  // namespace

template <class T> void GroupForward<T>::run() const {
    choosing_caches(y, form.rows * form.n, form.length, [&](auto past) {
        parallel(form.rows, grain_of(form.n), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) row<past.value>(*this, r);
            if (past.value) settle();
        });
    });
}

template struct GroupForward<float>;
template struct GroupForward<double>;

}  // namespace fw
