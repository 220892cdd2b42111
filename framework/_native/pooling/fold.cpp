#include "pooling/fold.h"

#include <algorithm>
#include <cstring>

#include "base/pool.h"

namespace fw::windows {
namespace {

// Calls body(image line, column line, numbers) for every line of every tap of a plane.
template <class T, class F> void lines(const FoldAxis (&a)[2], T* image, T* columns, F&& body) {
    for (int64_t i = 0; i < a[0].kernel; ++i) {
        const FoldAxis::InsideWindows y = a[0].inside(i);
        for (int64_t j = 0; j < a[1].kernel; ++j, columns += a[0].out * a[1].out) {
            const FoldAxis::InsideWindows x = a[1].inside(j);
            for (int64_t r = y.begin; r < y.end; ++r)
                body(image + (y.at + (r - y.begin) * a[0].stride) * a[1].in + x.at,
                     columns + r * a[1].out + x.begin, x.end - x.begin);
        }
    }
}

}  // namespace

FoldAxis::InsideWindows FoldAxis::inside(int64_t k) const {
    const int64_t shift = k * dilation - padding;
    int64_t begin = shift < 0 ? (-shift + stride - 1) / stride : 0;
    begin = std::min(begin, out);
    const int64_t end = shift >= in ? begin : std::max(begin, std::min(out, (in - 1 - shift) / stride + 1));
    return {begin, end, begin * stride + shift};
}

bool fold_axes(FoldAxis (&a)[2], int64_t h, int64_t w, const Sizes& kernel, const Sizes& stride,
               const Sizes& padding, const Sizes& dilation) {
    constexpr int64_t MOST = int64_t(1) << 28;
    if (kernel.size() != 2 || stride.size() != 2 || padding.size() != 2 || dilation.size() != 2) return false;
    for (size_t d = 0; d < 2; ++d) {
        const int64_t in = d ? w : h;
        a[d] = {in, 0, kernel[d], stride[d], padding[d], dilation[d]};
        if (in < 1 || in > MOST || kernel[d] < 1 || stride[d] < 1 || padding[d] < 0 || dilation[d] < 1 ||
            std::max({kernel[d], stride[d], padding[d], dilation[d]}) > MOST)
            return false;
        const int64_t room = in + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
        if (room < 0) return false;
        a[d].out = room / stride[d] + 1;
    }
    return true;
}

template <class T> void unfold_planes(const FoldAxis (&a)[2], int64_t planes, const T* x, T* y) {
    const int64_t size = a[0].in * a[1].in, each = a[0].kernel * a[1].kernel * a[0].out * a[1].out;
    const bool padded = a[0].padding || a[1].padding;
    parallel(planes, 1 + (1 << 14) / each, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            T* to = y + p * each;
            if (padded) std::fill(to, to + each, T(0));
            lines<T>(a, const_cast<T*>(x) + p * size, to, [&](T* from, T* line, int64_t n) {
                if (a[1].stride == 1) std::memcpy(line, from, size_t(n) * sizeof(T));
                else
                    for (int64_t l = 0; l < n; ++l) line[l] = from[l * a[1].stride];
            });
        }
    });
}

template <class T> void fold_planes(const FoldAxis (&a)[2], int64_t planes, const T* y, T* x) {
    const int64_t size = a[0].in * a[1].in, each = a[0].kernel * a[1].kernel * a[0].out * a[1].out;
    parallel(planes, 1 + (1 << 14) / each, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            T* to = x + p * size;
            std::fill(to, to + size, T(0));
            lines<T>(a, to, const_cast<T*>(y) + p * each, [&](T* into, T* line, int64_t n) {
                if (a[1].stride == 1)
                    for (int64_t l = 0; l < n; ++l) into[l] += line[l];
                else
                    for (int64_t l = 0; l < n; ++l) into[l * a[1].stride] += line[l];
            });
        }
    });
}

template <class T> void fold_windows(const Windows& w, const T* x, T* y) {
    constexpr int64_t BLOCK = 2048;  // elements of a block of the result, which is summed up window by window
    const int64_t places = std::max<int64_t>(1, BLOCK / w.inner), blocks = (w.length + places - 1) / places;
    parallel(w.outer * blocks, 8, [&](int64_t first, int64_t last) {
        for (int64_t b = first; b < last; ++b) {
            const int64_t o = b / blocks, begin = b % blocks * places, end = std::min(w.length, begin + places);
            const T* from = x + o * w.count * w.inner * w.size;
            T* to = y + o * w.length * w.inner;
            std::fill(to + begin * w.inner, to + end * w.inner, T(0));
            const int64_t past = begin - w.size;  // windows that begin there, or before, have ended
            for (int64_t t = past < 0 ? 0 : past / w.step + 1; t < w.count && t * w.step < end; ++t) {
                const int64_t start = t * w.step, low = std::max(begin, start), high = std::min(end, start + w.size);
                const T* window = from + t * w.inner * w.size - start;
                if (w.inner == 1)
                    for (int64_t p = low; p < high; ++p) to[p] += window[p];
                else
                    for (int64_t p = low; p < high; ++p)
                        for (int64_t i = 0; i < w.inner; ++i) to[p * w.inner + i] += window[i * w.size + p];
            }
        }
    });
}

template void fold_windows(const Windows&, const float*, float*);
template void fold_windows(const Windows&, const double*, double*);
template void unfold_planes(const FoldAxis (&)[2], int64_t, const float*, float*);
template void unfold_planes(const FoldAxis (&)[2], int64_t, const double*, double*);
template void fold_planes(const FoldAxis (&)[2], int64_t, const float*, float*);
template void fold_planes(const FoldAxis (&)[2], int64_t, const double*, double*);

}  // namespace fw::windows
