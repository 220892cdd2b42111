// Transforms of real lines of 2, 4 and 8 numbers, each by itself: to bring so few together in vectors takes longer.
#pragma once

#include <algorithm>

#include "base/pool.h"
#include "base/simd.h"
#include "signal/fourier.h"

namespace fw::fourier {

// Parts of the numbers k <= N / 2 of the transform of N real ones, times f.
template <int N, class S> FW_INLINE void short_line(const S* __restrict__ p, S* __restrict__ to, S f) {
    const auto put = [&](int k, S re, S im) { to[2 * k] = re * f, to[2 * k + 1] = im * f; };
    if constexpr (N == 2) {
        put(0, p[0] + p[1], S(0)), put(1, p[0] - p[1], S(0));
    } else if constexpr (N == 4) {
        const S even = p[0] + p[2], odd = p[1] + p[3];
        put(0, even + odd, S(0)), put(1, p[0] - p[2], p[3] - p[1]), put(2, even - odd, S(0));
    } else {  // of the even numbers and of the odd ones, which turn by half a right angle
        constexpr S turn = S(0.70710678118654752440);
        const S a = p[0] + p[4], b = p[2] + p[6], c = p[1] + p[5], d = p[3] + p[7];
        const S er = p[0] - p[4], ei = p[6] - p[2], re = p[1] - p[5], im = p[7] - p[3];
        const S tr = (re + im) * turn, ti = (im - re) * turn;
        put(0, (a + b) + (c + d), S(0)), put(1, er + tr, ei + ti), put(2, a - b, d - c);
        put(3, er - tr, ti - ei), put(4, (a + b) - (c + d), S(0));
    }
}

template <int N, class S> void short_lines_of(const TransformJob& job) {
    const int dims = int(job.shape.size());
    const int64_t inner = dims ? job.shape[dims - 1] : 1, one = dims ? job.from.strides[dims - 1] : 0;
    const int64_t other = dims ? job.to.strides[dims - 1] : 0;
    int64_t outer = 1;
    for (int d = 0; d + 1 < dims; ++d) outer *= job.shape[d];
    const S f = S(job.factor);
    parallel(outer * inner, 1 + 4096 / N, [&](int64_t begin, int64_t end) {
        while (begin < end) {
            int64_t row = begin / inner, i = begin % inner, here = i * one, there = i * other;
            const int64_t some = std::min(end - begin, inner - i);
            for (int d = dims - 1; d-- > 0; row /= job.shape[d]) {
                here += row % job.shape[d] * job.from.strides[d], there += row % job.shape[d] * job.to.strides[d];
            }
            const char* from = job.from.start + here;
            char* to = job.to.start + there;
            for (int64_t k = 0; k < some; ++k, from += one, to += other)
                short_line<N>(reinterpret_cast<const S*>(from), reinterpret_cast<S*>(to), f);
            begin += some;
        }
    });
}

// Whether the lines were short, and are transformed.
template <class S> bool short_lines(const TransformJob& job) {
    if (job.kind != TransformKind::forward_real || job.from.step != int64_t(sizeof(S)) || job.to.step != 2 * int64_t(sizeof(S)))
        return false;
    switch (job.n) {
        case 2: return short_lines_of<2, S>(job), true;
        case 4: return short_lines_of<4, S>(job), true;
        case 8: return short_lines_of<8, S>(job), true;
        default: return false;
    }
}

}  // namespace fw::fourier
