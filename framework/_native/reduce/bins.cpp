#include "reduce/bins.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/simd.h"

namespace fw {

constexpr int64_t TABLES = 4;

template <class T> bool ends_of(const T* x, int64_t n, T& least, T& most) {
    Vec<T> low = splat(x[0]), high = low, sum{};
    int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) {
        const Vec<T> v = load(x + i);
        low = select<T>(v < low, v, low), high = select<T>(v > high, v, high);
        sum += select<T>(v == v, Vec<T>{}, v);
    }
    least = low[0], most = high[0];
    bool good = true;
    for (int k = 0; k < lanes<T>; ++k) {
        least = std::min(least, T(low[k])), most = std::max(most, T(high[k]));
        good &= sum[k] == 0;
    }
    for (; i < n; ++i) good &= x[i] == x[i], least = std::min(least, x[i]), most = std::max(most, x[i]);
    return good && x[0] == x[0];
}

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
    int64_t i = std::min(bins - 1, int64_t((x - at[0]) * scale));  // one too many or too few at most
    i -= int64_t(i > 0) & int64_t(x < at[i]);
    return i + (int64_t(i < bins - 1) & int64_t(x >= at[i + 1]));
}

namespace {

// Of one dimension without weights: numbers of one bin do not wait for each other.
template <class T> void fill_one(const T* x, int64_t n, const Edges<T>& edges, double* sums) {
    constexpr int64_t PIECE = 512;
    const int64_t width = edges.bins + 1;
    std::vector<int64_t> counts(size_t(TABLES * width), 0);
    int64_t places[PIECE];
    const T *at = edges.at, first = at[0], end = at[edges.bins], scale = edges.scale;
    const int64_t last = edges.bins - 1;
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t count = std::min(PIECE, n - start);
        for (int64_t i = 0; i < count && scale == 0; ++i) places[i] = edges.place(x[start + i]);
        for (int64_t i = 0; i < count && scale != 0; ++i) {
            const T v = x[start + i];
            const bool inside = v >= first && v <= end;
            int64_t p = std::min(last, int64_t(((inside ? v : first) - first) * scale));
            p -= int64_t(v < at[p]) & int64_t(p > 0);
            p += int64_t(v >= at[p + 1]) & int64_t(p < last);
            places[i] = inside ? p : -1;
        }
        for (int64_t i = 0; i < count; ++i) ++counts[size_t(i % TABLES * width + places[i] + 1)];
    }
    for (int64_t k = 0; k < TABLES; ++k)
        for (int64_t bin = 0; bin < edges.bins; ++bin) sums[bin] += double(counts[size_t(k * width + bin + 1)]);
}

}  // namespace

template <class T>
void fill_bins(const T* x, int64_t n, int64_t dims, const Edges<T>* edges, const T* weight, double* sums) {
    if (dims == 1 && !weight) {
        return fill_one(x, n, edges[0], sums);
    }
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

namespace {

// Of bytes: some tables, so that equal numbers that follow one another do not wait for each other.
bool count_bytes(const uint8_t* x, int64_t n, int64_t size, int64_t* counts) {
    constexpr int64_t VALUES = 256, MOST = int64_t(1) << 32;  // what a table counts
    for (int64_t start = 0; start < n; start += MOST - 1) {
        uint32_t tables[TABLES][VALUES] = {};
        const int64_t end = std::min(n, start + MOST - 1);
        int64_t i = start;
        for (; i + TABLES <= end; i += TABLES)
            for (int64_t k = 0; k < TABLES; ++k) ++tables[k][x[i + k]];
        for (; i < end; ++i) ++tables[0][x[i]];
        for (int64_t v = 0; v < VALUES; ++v) {
            int64_t count = 0;
            for (int64_t k = 0; k < TABLES; ++k) count += tables[k][v];
            if (count && v >= size) return false;
            if (count) counts[v] += count;
        }
    }
    return true;
}

}  // namespace

template <class T> bool count_numbers(const T* x, int64_t n, int64_t size, int64_t* counts) {
    if constexpr (sizeof(T) == 1)  // negative ones are beyond 127
        return count_bytes(reinterpret_cast<const uint8_t*>(x), n, std::min<int64_t>(size, int64_t(std::numeric_limits<T>::max()) + 1), counts);
    for (int64_t i = 0; i < n; ++i) {
        const auto at = int64_t(__atomic_load_n(x + i, __ATOMIC_RELAXED));  // others may change it: what was checked is what is used
        if (at < 0 || at >= size) return false;
        ++counts[at];
    }
    return true;
}

template bool count_numbers(const int64_t*, int64_t, int64_t, int64_t*);
template bool count_numbers(const int32_t*, int64_t, int64_t, int64_t*);
template bool count_numbers(const int16_t*, int64_t, int64_t, int64_t*);
template bool count_numbers(const int8_t*, int64_t, int64_t, int64_t*);
template bool count_numbers(const uint8_t*, int64_t, int64_t, int64_t*);

#define FW_BINS(T)                                                                              \
    template struct Edges<T>;                                                                   \
    template bool ends_of(const T*, int64_t, T&, T&);                                           \
    template void fill_bins(const T*, int64_t, int64_t, const Edges<T>*, const T*, double*);    \
    template void fill_parts(const T*, int64_t, int64_t, double, double, int64_t*);
FW_BINS(float)
FW_BINS(double)

}  // namespace fw
