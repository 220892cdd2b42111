#include "move/join.h"

#include <algorithm>

#include "move/block.h"

namespace fw::moving {

void JoinedBytes::copy(int64_t outer, char* to) const {
    constexpr int64_t short_part = 64;  // bytes; few such parts go one after the other, by loops that know their length
    constexpr size_t few = 8;
    int64_t row_bytes = row(), longest = 0;
    for (size_t i = 0; i < ends.size(); ++i) longest = std::max(longest, ends[i] - (i ? ends[i - 1] : 0));
    if (longest <= short_part && ends.size() <= few && outer > 16) {
        for (size_t i = 0; i < ends.size(); ++i) {
            const int64_t first = i ? ends[i - 1] : 0, size = ends[i] - first;
            Block part;
            part.add(outer, size, row_bytes), part.add(size, 1, 1);
            copy_block(part, 1, from[i], to + first);
        }
        return;
    }
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
