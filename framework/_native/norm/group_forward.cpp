#include "norm/group.h"

#include "norm/norm_rows.h"
#include "norm/short_norm.h"

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
    if (form.length == 1) {  // channels side by side
        const Vec<T> centre = splat(f.mean[r]), scale = splat(rstd), none = Vec<T>{}, one = splat(T(1));
        const int64_t first = form.channel(r);
        vectors<T>(0, form.each, [&](int64_t k, auto part, int) {
            const Vec<T> w = f.weight ? take(f.weight + first + k, part) : one, b = f.bias ? take(f.bias + first + k, part) : none;
            put_as<Past>(f.y + r * form.n + k, fma<T>(take(from + k, part) - centre, scale * w, b), part);
        });
        return;
    }
    for (int64_t k = 0; k < form.each; ++k) {
        const int64_t c = form.channel(r) + k;
        segment<Past>(form, from + k * form.length, f.y + r * form.n + k * form.length, f.mean[r],
                      f.weight ? rstd * f.weight[c] : rstd, f.bias ? f.bias[c] : T(0));
    }
}

}  // namespace

template <class T> void GroupForward<T>::run() const {
    if (form.length < form.n && !weight && !bias) {  // a group is one channel, then
        GroupForward whole = *this;
        whole.form.each = 1, whole.form.length = form.n;
        return whole.run();
    }
    if (is_short<T>(form.n)) {
        const auto w = spread(form, weight), b = spread(form, bias);
        return short_norm<true>({form.rows, form.n, form.groups, form.eps}, x, w.get(), b.get(), y, mean, var);
    }
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
