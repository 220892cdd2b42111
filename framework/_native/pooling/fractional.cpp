#include "pooling/fractional.h"

#include <atomic>

#include "base/scratch.h"

namespace fw::windows {
namespace {

// Where the windows of a dimension begin; false where that is not in the image.
template <class T> bool begin_windows(const DrawnAxis& a, T u, int64_t* to) {
    const int64_t most = a.in - a.kernel;
    if (!(u >= 0 && u <= 1)) return false;
    const T step = a.out > 1 ? T(most) / T(a.out - 1) : T(0);
    for (int64_t i = 0; i + 1 < a.out; ++i) {
        to[i] = int64_t((T(i) + u) * step) - int64_t(u * step);
        if (to[i] < 0 || to[i] > most) return false;
    }
    to[a.out - 1] = most;
    return true;
}

}  // namespace

template <class T>
bool fractional_max(const DrawnAxis (&axis)[conv_dims], int64_t planes, int dims, bool last_first, const T* x, const T* samples,
                    T* largest, int64_t* places) {
    const DrawnAxis &a = axis[0], &b = axis[1], &c = axis[2];
    const int64_t in = a.in * b.in * c.in, out = a.out * b.out * c.out;
    std::atomic<bool> good{true};
    parallel(planes, 1 + (1 << 13) / (in + out), [&](int64_t begin, int64_t end) {
        int64_t* starts = scratch<int64_t>(0, a.out + b.out + c.out);
        int64_t* of[conv_dims] = {starts, starts + a.out, starts + a.out + b.out};
        for (int64_t plane = begin; plane < end; ++plane) {
            for (int d = 0; d < conv_dims; ++d) {
                const int k = d - (conv_dims - dims);
                const T u = k < 0 ? T(0) : samples[plane * dims + (last_first ? dims - 1 - k : k)];
                if (!begin_windows(axis[d], u, of[d])) {
                    good = false;
                    return;
                }
            }
            const T* image = x + plane * in;
            int64_t to = plane * out;
            for (int64_t i = 0; i < a.out; ++i)
                for (int64_t j = 0; j < b.out; ++j)
                    for (int64_t l = 0; l < c.out; ++l, ++to) {
                        int64_t best = (of[0][i] * b.in + of[1][j]) * c.in + of[2][l];
                        T value = image[best];
                        for (int64_t p = of[0][i]; p < of[0][i] + a.kernel; ++p)
                            for (int64_t q = of[1][j]; q < of[1][j] + b.kernel; ++q)
                                for (int64_t r = of[2][l]; r < of[2][l] + c.kernel; ++r) {
                                    const int64_t at = (p * b.in + q) * c.in + r;
                                    if (!(image[at] <= value) && value == value) value = image[at], best = at;
                                }
                        largest[to] = value, places[to] = best;
                    }
        }
    });
    return good;
}

#define FW_OF(T) \
    template bool fractional_max(const DrawnAxis (&)[conv_dims], int64_t, int, bool, const T*, const T*, T*, int64_t*);
FW_OF(float)
FW_OF(double)
#undef FW_OF

}  // namespace fw::windows
