#include "gemm/cross.h"

#include "base/pool.h"

namespace fw {
namespace {

constexpr int64_t WORTH = 4096;  // products that are worth a thread

template <class T> void cross_rows(const T* x, const T* y, int64_t n, T* out) {
    for (int64_t j = 0; j < n; ++j) {
        const T a = x[j], b = x[n + j], c = x[2 * n + j], d = y[j], e = y[n + j], f = y[2 * n + j];
        out[j] = b * f - c * e, out[n + j] = c * d - a * f, out[2 * n + j] = a * e - b * d;
    }
}

}  // namespace

template <class T> void cross(const T* x, const T* y, int64_t outer, int64_t inner, T* out) {
    parallel(outer, WORTH / inner + 1, [&](int64_t begin, int64_t end) {
        if (inner == 1) {  // a loop that the compiler makes vectors of
            for (int64_t i = begin; i < end; ++i) {
                const T *p = x + 3 * i, *q = y + 3 * i;
                T* to = out + 3 * i;
                const T a = p[0], b = p[1], c = p[2], d = q[0], e = q[1], f = q[2];
                to[0] = b * f - c * e, to[1] = c * d - a * f, to[2] = a * e - b * d;
            }
            return;
        }
        for (int64_t i = begin; i < end; ++i) cross_rows(x + 3 * i * inner, y + 3 * i * inner, inner, out + 3 * i * inner);
    });
}
template void cross(const float*, const float*, int64_t, int64_t, float*);
template void cross(const uint64_t*, const uint64_t*, int64_t, int64_t, uint64_t*);  // whole numbers, which may run over
template void cross(const double*, const double*, int64_t, int64_t, double*);

}  // namespace fw
