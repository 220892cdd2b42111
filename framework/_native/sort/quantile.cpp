#include "sort/quantile.h"

#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "base/scratch.h"

namespace fw {
namespace {

// The value at a rank of sorted numbers.
template <class T> T at_rank(const T* sorted, T rank, Between how) {
    const T low = how == Between::higher ? std::ceil(rank) : how == Between::nearest ? std::nearbyint(rank) : std::floor(rank);
    const T below = sorted[int64_t(low)];
    if (how != Between::linear && how != Between::midpoint) return below;
    const T above = sorted[int64_t(std::ceil(rank))], weight = how == Between::midpoint ? T(0.5) : rank - low;
    return weight < T(0.5) ? below + weight * (above - below) : above - (1 - weight) * (above - below);
}

}  // namespace

template <class T>
void quantiles(const T* x, int64_t rows, int64_t n, const T* q, int64_t k, Between how, bool ignore, T* to) {
    parallel(rows, std::max<int64_t>(1, 4096 / n), [=](int64_t begin, int64_t end) {
        T* row = scratch<T>(0, n);
        for (int64_t i = begin; i < end; ++i) {
            std::copy(x + i * n, x + (i + 1) * n, row);
            T* some = std::partition(row, row + n, [](T value) { return value == value; });
            std::sort(row, some);
            const int64_t known = some - row;
            for (int64_t j = 0; j < k; ++j) {
                const bool good = known && (ignore || known == n);
                to[i * k + j] = good ? at_rank(row, q[j] * T(known - 1), how) : T(NAN);
            }
        }
    });
}

template void quantiles(const float*, int64_t, int64_t, const float*, int64_t, Between, bool, float*);
template void quantiles(const double*, int64_t, int64_t, const double*, int64_t, Between, bool, double*);

}  // namespace fw
