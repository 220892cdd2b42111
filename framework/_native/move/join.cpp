#include "move/join.h"

#include <algorithm>

#include "move/block.h"

namespace fw::moving {

void JoinedBytes::copy(int64_t outer, char* to) const {
    int64_t row_bytes = row();
    parallel(outer * row_bytes, GRAIN_BYTES, [&](int64_t begin, int64_t end) {
        int64_t o = begin / row_bytes, at = begin - o * row_bytes;
        size_t part = size_t(std::upper_bound(ends.begin(), ends.end(), at) - ends.begin());
        while (begin < end) {
            int64_t first = part ? ends[part - 1] : 0, size = ends[part] - first;
            int64_t n = std::min(ends[part] - at, end - begin);
            memcpy(to + begin, from[part] + o * size + at - first, size_t(n));
            begin += n, at += n;
            if (at == ends[part] && ++part == ends.size()) part = 0, at = 0, ++o;
        }
    });
}

template <class T> void join_pairs(const T* a, const T* b, T* to, int64_t n) {
    parallel(n, GRAIN_BYTES / 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[2 * i] = a[i], to[2 * i + 1] = b[i];
    });
}
template void join_pairs(const float*, const float*, float*, int64_t);
template void join_pairs(const double*, const double*, double*, int64_t);

}  // namespace fw::moving
