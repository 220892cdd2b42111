// What pooling of images whose channels lie side by side shares: vectors of channels, and the work of one thread.
#pragma once

#include <algorithm>

#include "pooling/pool2d.h"

namespace fw::windows {

template <class T> FW_INLINE Vec<T> some(const T* p, int64_t n) { return n == lanes<T> ? load(p) : load_part(p, n); }
template <class T> FW_INLINE void keep(T* p, Vec<T> v, int64_t n) { n == lanes<T> ? store(p, v) : store_part<T>(p, v, n); }

// Channels of an image that one thread goes over at a time: whole lines of the cache.
constexpr int64_t SHARE = 64;

// f(image, first channel, channels) for all channels of all images.
template <class F> void each_share(const PoolShape& s, int64_t channels, F&& f) {
    const int64_t shares = (channels + SHARE - 1) / SHARE, images = s.planes / channels;
    const int64_t grain = 1 + (s.grain() - 1) / std::min(channels, SHARE);
    parallel(images * shares, grain, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
            const int64_t first = k % shares * SHARE;
            f(k / shares, first, std::min(SHARE, channels - first));
        }
    });
}

}  // namespace fw::windows
