#include "index/bags.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/pool.h"
#include "index/index.h"

namespace fw {

template <class T>
bool bag_rows(const Bags& b, const T* table, const int64_t* index, const int64_t* offset, T* out) {
    std::vector<int64_t> begin(size_t(b.bags) + 1, b.indices);
    for (int64_t i = 0; i < b.bags + b.last; ++i) begin[size_t(i)] = moving::once(offset + i);
    if (begin.front() != 0 || begin.back() != b.indices || !std::is_sorted(begin.begin(), begin.end())) return false;
    std::atomic<bool> good{true};
    parallel(b.bags, 1 + (1 << 14) / (b.width * (1 + b.indices / b.bags)), [&](int64_t first, int64_t end) {
        for (int64_t bag = first; bag < end; ++bag) {
            T* to = out + bag * b.width;
            std::fill(to, to + b.width, T(0));
            const int64_t n = begin[size_t(bag) + 1] - begin[size_t(bag)];
            for (int64_t i = begin[size_t(bag)]; i < begin[size_t(bag) + 1]; ++i) {
                const int64_t row = moving::once(index + i);
                if (row < 0 || row >= b.rows) {
                    good = false;
                    return;
                }
                const T* from = table + row * b.width;
                for (int64_t k = 0; k < b.width; ++k) to[k] += from[k];
            }
            if (b.mean && n > 1)
                for (int64_t k = 0; k < b.width; ++k) to[k] /= T(n);
        }
    });
    return good;
}

template bool bag_rows(const Bags&, const float*, const int64_t*, const int64_t*, float*);
template bool bag_rows(const Bags&, const double*, const int64_t*, const int64_t*, double*);

}  // namespace fw
