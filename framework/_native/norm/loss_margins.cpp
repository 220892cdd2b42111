#include "norm/loss_margins.h"

#include <algorithm>

#include "base/pool.h"
#include "base/scratch.h"

namespace fw {
namespace {

// body(row, its number of targets, for each class whether it is one) for all rows
template <class T, class F> void each_row(const Margins<T>& m, F&& body) {
    parallel(m.rows, 1 + (1 << 14) / (m.classes * m.places), [&](int64_t begin, int64_t end) {
        char* wanted = scratch<char>(0, m.classes);
        std::fill(wanted, wanted + m.classes, char(0));
        for (int64_t row = begin; row < end; ++row) {
            const int64_t n = m.targets_of(row);
            const int64_t* target = m.target.data() + row * m.places;
            for (int64_t k = 0; k < n; ++k) wanted[target[k]] = 1;
            body(row, n, wanted);
            for (int64_t k = 0; k < n; ++k) wanted[target[k]] = 0;
        }
    });
}

}  // namespace

template <class T> int64_t Margins<T>::targets_of(int64_t row) const {
    const int64_t* of = target.data() + row * places;
    return std::find_if(of, of + places, [](int64_t t) { return t < 0; }) - of;
}

template <class T> bool Margins<T>::valid(bool negative) const {
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t n = targets_of(row);
        if (n < places && !negative) return false;
        for (int64_t k = 0; k < n; ++k)
            if (target[size_t(row * places + k)] >= classes) return false;
    }
    return true;
}

template <class T> void margin_losses(const Margins<T>& m, T* loss) {
    each_row(m, [&](int64_t row, int64_t n, const char* wanted) {
        const T *x = m.x + row * m.classes, margin = T(m.margin);
        double sum = 0;
        for (int64_t k = 0; k < n; ++k) {
            const T own = margin - x[m.target[size_t(row * m.places + k)]];
            for (int64_t i = 0; i < m.classes; ++i) {
                const T gap = own + x[i];
                if (!wanted[i] && !(gap <= 0)) sum += m.squares ? double(gap) * double(gap) : double(gap);
            }
        }
        loss[row] = T(sum / double(m.classes));
    });
}

template <class T> void margin_grads(const Margins<T>& m, const T* g, double scale, T* gx) {
    each_row(m, [&](int64_t row, int64_t n, const char* wanted) {
        const T *x = m.x + row * m.classes, margin = T(m.margin);
        T* to = gx + row * m.classes;
        const T each = T((g ? double(g[row]) : scale) / double(m.classes));
        std::fill(to, to + m.classes, T(0));
        for (int64_t k = 0; k < n; ++k) {
            const int64_t t = m.target[size_t(row * m.places + k)];
            const T own = margin - x[t];
            T sum = 0;
            for (int64_t i = 0; i < m.classes; ++i) {
                const T gap = own + x[i];
                if (wanted[i] || !(gap >= 0)) continue;
                const T slope = m.squares ? 2 * gap * each : each;
                to[i] += slope, sum += slope;
            }
            to[t] -= sum;
        }
    });
}

#define FW_OF(T)                                                                          \
    template int64_t Margins<T>::targets_of(int64_t) const;                               \
    template bool Margins<T>::valid(bool) const;                                          \
    template void margin_losses(const Margins<T>&, T*);                                   \
    template void margin_grads(const Margins<T>&, const T*, double, T*);
FW_OF(float)
FW_OF(double)
#undef FW_OF

}  // namespace fw
