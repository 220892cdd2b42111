// Rows of few elements, as many as a vector holds at once: `lanes` of them are one vector of results.
#pragma once

#include <type_traits>

#include "base/shuffles.h"

namespace fw {

// Rows of k <= W elements, W of which are a group of lanes; those behind the k count as `fill`.
template <class T, int W> struct ShortRows {
    static constexpr int n = lanes<T>, together = n / W;  // rows in a vector
    int64_t k;

    // together > 1: they lie one after another
    FW_INLINE Vec<T> at(const T* rows, T fill) const {
        if constexpr (together == 1) {
            return load_part(rows, k, fill);
        } else {
#if defined(FW_AVX512)
            if (k < W) {
                const Mask<T> places = lane_numbers<T>() / W * Int<T>(k) + lane_numbers<T>() % W;
                return select<T>(inside(), picked<T>(load_part(rows, k * together), places), splat<T>(fill));
            }
#endif
            return load(rows);
        }
    }
    FW_INLINE Mask<T> inside() const { return lane_numbers<T>() % W < splat<Int<T>>(Int<T>(k)); }
    // Of results of rows those of the rows in vector i, in each lane of theirs.
    static FW_INLINE Vec<T> spread(Vec<T> results, int i) {
        return picked<T>(results, lane_numbers<T>() / W + splat<Int<T>>(Int<T>(i * together)));
    }
    // Fewer than n rows, each W apart and filled up.
    void copy(const T* rows, int64_t row, int64_t count, T fill, T* room) const {
        for (int64_t i = 0; i < n * W; ++i) room[i] = fill;
        for (int64_t i = 0; i < count; ++i)
            for (int64_t p = 0; p < k; ++p) room[i * W + p] = rows[i * row + p];
    }
};

// Calls body(an integral constant W) with the least W for rows of k <= lanes elements that are `row` apart.
template <class T, int W = 2, class Body> void with_short_rows(int64_t k, int64_t row, Body&& body) {
    if constexpr (W < lanes<T>) {
#if defined(FW_AVX512)
        const bool fits = k <= W && row == k;
#else
        const bool fits = k == W && row == k;
#endif
        if (!fits) return with_short_rows<T, 2 * W>(k, row, body);
    }
    body(std::integral_constant<int, W>());
}

}  // namespace fw
