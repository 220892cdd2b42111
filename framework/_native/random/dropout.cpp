// Dropout without a stored mask: which elements are kept is a pure function of a key, made anew in backward.
#include <algorithm>

#include "base/pool.h"
#include "random/coins.h"
#include "random/draws.h"

namespace fw {
namespace {

constexpr int64_t BATCH = 16;  // blocks that are made together
constexpr int64_t MOST = BATCH * PER;
constexpr int64_t GRAIN = 64;  // batches

}  // namespace

template <class T> void random::drop(const T* x, T* out, int64_t n, double p, uint64_t key) {
    const Coins coins(key, p);
    const T scale = T(p < 1 ? 1 / (1 - p) : 1);
    parallel((n + MOST - 1) / MOST, GRAIN, [&](int64_t begin, int64_t end) {
        alignas(64) uint16_t drawn[MOST];
        for (int64_t number = begin; number < end; ++number) {
            coins.blocks<BATCH>(number * BATCH, drawn);
            int64_t first = number * MOST, count = std::min(MOST, n - first);
            const T* from = x + first;
            T* to = out + first;
            const Int<T> whole = coins.whole;
            const Int<T> kept = bits<Int<T>>(scale);
            for (int64_t k = 0; k < count; ++k) to[k] = from[k] * bits<T>(-Int<T>(drawn[k] >= whole) & kept);
            if (!coins.ties(drawn, MOST)) continue;
            for (int64_t k = 0; k < count; ++k)
                if (drawn[k] == whole && !coins.kept_at_tie(first + k)) to[k] = from[k] * T(0);
        }
    });
}

template void random::drop(const float*, float*, int64_t, double, uint64_t);
template void random::drop(const double*, double*, int64_t, double, uint64_t);

}  // namespace fw
