// Positions drawn by weights.
#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "base/scratch.h"
#include "base/vecmath.h"
#include "random/draws.h"

namespace fw::random {
namespace {

constexpr int64_t WEIGHTS = 16384;                   // that are worth a thread
constexpr double LEAST_SUM = 1e-290, MOST_SUM = 1e290;  // of the largest of a row, whose sums neither vanish nor overflow

template <class T> bool row_is_good(const T* weights, int64_t n, int64_t k, bool again) {
    double least = 0, most = 0;
    int64_t above = 0;
    bool numbers = true;
    for (int64_t i = 0; i < n; ++i) {
        const double w = double(weights[i]);
        numbers &= w == w;
        least = std::min(least, w), most = std::max(most, w);
        above += w > 0;
    }
    return numbers && least >= 0 && most > LEAST_SUM && most < MOST_SUM && above >= (again ? 1 : k);
}

// The positions at which running sums of the weights pass the draws, which are uniform in [0, 1).
template <class T>
void pick_by_sums(const T* weights, int64_t n, const double* draws, int64_t* to, int64_t k) {
    double *heights = scratch<double>(0, n), whole = 0;
    for (int64_t i = 0; i < n; ++i) heights[i] = whole += double(weights[i]);
    const double below = std::nextafter(whole, 0.0);
    for (int64_t i = 0; i < k; ++i)
        to[i] = std::min(n - 1, int64_t(std::upper_bound(heights, heights + n, std::min(draws[i] * whole, below)) - heights));
}

// The positions of the k smallest of Exp(1) / weight, in order; of equal ones the first comes first.
template <class T>
void pick_by_keys(const T* weights, int64_t n, const double* draws, int64_t* to, int64_t k) {
    using V = Vec<double>;
    double *keys = scratch<double>(0, n), wide[lanes<double>];
    int64_t* order = scratch<int64_t>(1, n);
    for (int64_t i = 0; i < n; i += lanes<double>) {
        const int64_t part = std::min<int64_t>(lanes<double>, n - i);
        for (int64_t j = 0; j < lanes<double>; ++j) wide[j] = j < part ? double(weights[i + j]) : 1;
        const V w = load(wide), u = load_part(draws + i, part), key = (0.0 - math::log1p(0.0 - u)) / w;
        store_part<double>(keys + i, (w == 0.0) | (key != key) ? splat(HUGE_VAL) : key, part);
    }
    for (int64_t i = 0; i < n; ++i) order[i] = i;
    auto before = [keys](int64_t a, int64_t b) { return keys[a] < keys[b] || (keys[a] == keys[b] && a < b); };
    if (k < n) std::nth_element(order, order + k, order + n, before);
    std::sort(order, order + k, before);
    std::copy_n(order, k, to);
}

}  // namespace

template <class T> bool can_pick(const T* weights, int64_t rows, int64_t n, int64_t k, bool again) {
    for (int64_t r = 0; r < rows; ++r)
        if (!row_is_good(weights + r * n, n, k, again)) return false;
    return k <= n || again;
}

template <class T>
void pick(const T* weights, int64_t rows, int64_t n, const double* draws, int64_t* to, int64_t k, bool again) {
    parallel(rows, std::max<int64_t>(1, WEIGHTS / std::max<int64_t>(1, n)), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            if (again) pick_by_sums(weights + r * n, n, draws + r * k, to + r * k, k);
            else pick_by_keys(weights + r * n, n, draws + r * n, to + r * k, k);
        }
    });
}

#define FW_PICKS(T)                                                       \
    template bool can_pick(const T*, int64_t, int64_t, int64_t, bool);    \
    template void pick(const T*, int64_t, int64_t, const double*, int64_t*, int64_t, bool);
FW_PICKS(float)
FW_PICKS(double)

}  // namespace fw::random
