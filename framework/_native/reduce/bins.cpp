#include "reduce/bins.h"

#include <algorithm>
#include <cmath>

namespace fw {

template <class T> Edges<T>::Edges(const T* at, int64_t bins) : at(at), bins(bins), scale(0) {
    const T width = (at[bins] - at[0]) / T(bins);
    if (!(width > 0) || !std::isfinite(T(1) / width)) return;
    for (int64_t i = 0; i <= bins; ++i)
        if (!(std::fabs(at[i] - (at[0] + T(i) * width)) <= width / 4)) return;
    scale = T(1) / width;
}

template <class T> int64_t Edges<T>::place(T x) const {
    if (!(x >= at[0] && x <= at[bins])) return -1;
    if (scale == 0) return std::max<int64_t>(0, std::min(bins, int64_t(std::upper_bound(at, at + bins + 1, x) - at)) - 1);
    int64_t i = std::min(bins - 1, int64_t((x - at[0]) * scale));
    while (i > 0 && x < at[i]) --i;
    while (i < bins - 1 && x >= at[i + 1]) ++i;
    return i;
}

template <class T>
void fill_bins(const T* x, int64_t n, int64_t dims, const Edges<T>* edges, const T* weight, double* sums) {
    for (int64_t row = 0; row < n; ++row, x += dims) {
        int64_t cell = 0;
        for (int64_t d = 0; d < dims && cell >= 0; ++d) {
            const int64_t place = edges[d].place(x[d]);
            cell = place < 0 ? -1 : cell * edges[d].bins + place;
        }
        if (cell >= 0) sums[cell] += weight ? double(weight[row]) : 1.0;
    }
}

template <class T> void fill_parts(const T* x, int64_t n, int64_t bins, double low, double high, int64_t* counts) {
    const T first = T(low), last = T(high), scale = T(double(bins) / (high - low));
    constexpr int64_t PIECE = 256;
    int64_t places[PIECE];
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t count = std::min(PIECE, n - start);
        for (int64_t i = 0; i < count; ++i) {
            const T v = x[start + i];
            const bool inside = v >= first && v <= last;
            const int64_t place = int64_t(((inside ? v : first) - first) * scale);
            places[i] = inside ? std::min(place, bins - 1) : -1;
        }
        for (int64_t i = 0; i < count; ++i)
            if (places[i] >= 0) ++counts[places[i]];
    }
}

bool count_numbers(const int64_t* x, int64_t n, int64_t size, int64_t* counts) {
    for (int64_t i = 0; i < n; ++i) {
        const int64_t at = __atomic_load_n(x + i, __ATOMIC_RELAXED);  // others may change it: what was checked is what is used
        if (at < 0 || at >= size) return false;
        ++counts[at];
    }
    return true;
}

#define FW_BINS(T)                                                                              \
    template struct Edges<T>;                                                                   \
    template void fill_bins(const T*, int64_t, int64_t, const Edges<T>*, const T*, double*);    \
    template void fill_parts(const T*, int64_t, int64_t, double, double, int64_t*);
FW_BINS(float)
FW_BINS(double)

}  // namespace fw
