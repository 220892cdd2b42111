// Columns: kernels along a dimension whose neighbours lie apart work on some columns side by side.
#pragma once

#include "base/rows.h"

namespace fw {

constexpr int64_t MOST_COLUMNS = 256;  // side by side
constexpr int64_t COLUMN_BLOCK = 16;   // numbers of a column that are added before they join the others
constexpr int64_t CACHED = 1 << 16;    // numbers that stay in the caches between passes

// `width` columns of n numbers that lie `inner` apart.
template <class T> struct Columns {
    int64_t n, inner, width;

    template <class F> FW_INLINE void each(int64_t k, F&& body) const {  // body(column, place, part)
        long_vectors<T>(0, width, [&](int64_t j, auto part, int) { body(j, k * inner + j, part); });
    }

    void largest(const T* x, T* top) const {
        std::fill(top, top + width, LEAST<T>);
        for (int64_t k = 0; k < n; ++k)
            each(k, [&](int64_t j, int64_t at, auto part) {
                Vec<T> v = take(x + at, part), t = take(top + j, part);
                put(top + j, t > v ? t : v, part);
            });
    }

    // total[j] = the sum over k of term(column, place, part), in blocks
    template <class F> FW_INLINE void sum(T* total, F&& term) const {
        T block[MOST_COLUMNS];
        std::fill(total, total + width, T(0));
        for (int64_t first = 0; first < n; first += COLUMN_BLOCK) {
            std::fill(block, block + width, T(0));
            for (int64_t k = first; k < std::min(n, first + COLUMN_BLOCK); ++k)
                each(k, [&](int64_t j, int64_t at, auto part) {
                    put(block + j, take(block + j, part) + term(j, at, part), part);
                });
            for (int64_t j = 0; j < width; ++j) total[j] += block[j];
        }
    }
};

// work(outer, first column, columns) for stretches of columns that fit the caches
template <class T, class F> void over_columns(const Around& a, F work) {
    int64_t width = std::clamp<int64_t>(CACHED / a.n / 16 * 16, 16, MOST_COLUMNS);
    int64_t stretches = (a.inner + width - 1) / width;
    parallel(a.outer * stretches, grain_of(a.n * std::min(width, a.inner)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int64_t first = i % stretches * width;
            work(i / stretches, first, Columns<T>{a.n, a.inner, std::min(width, a.inner - first)});
        }
    });
}

}  // namespace fw
