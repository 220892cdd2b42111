// What the normalisations share: the arguments that may be missing, mean and variance.
#pragma once

#include <memory>

#include "base/rows.h"

namespace fw {

constexpr int64_t MOST_CHUNKS = 32;  // of rows, whose sums for weight and bias are added up in order
constexpr int64_t LEAST_CHUNK = 8;   // of a chunk

// What rows add up to for weight and bias, `wide` numbers each: some(begin, end, of_w, of_b) adds the sums of its rows to those there.
// Chunks of at least `least` rows depend on the shape alone, and so do the sums.
template <bool Centred, class T, class F> void sum_in_chunks(int64_t rows, int64_t wide, int64_t least, T* gw, T* gb, F&& some) {
    const int64_t chunk = std::max(least, (rows + MOST_CHUNKS - 1) / MOST_CHUNKS), many = (rows + chunk - 1) / chunk;
    std::unique_ptr<T[]> partial(new T[size_t(2 * wide * many)]());  // gw and gb of each chunk
    parallel(many, 1 + PIECE / (wide * chunk), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            T* own = partial.get() + 2 * wide * i;
            some(i * chunk, std::min(rows, (i + 1) * chunk), own, own + wide);
        }
    });
    parallel(wide, grain_of(2 * many), [&](int64_t begin, int64_t end) {
        const auto add_up = [&](const T* first, T* out) {
            std::copy(first + begin, first + end, out + begin);
            for (int64_t i = 1; i < many; ++i)
                for (int64_t j = begin; j < end; ++j) out[j] += first[2 * wide * i + j];
        };
        add_up(partial.get(), gw);
        if (Centred) add_up(partial.get() + wide, gb);
    });
}

struct Moments {
    double mean, var;  // of a mean square, mean is 0
};

template <class T> FW_INLINE T rstd_of(double var, double eps) { return T(1 / std::sqrt(var + eps)); }

// Sums of x - centre and of its square
template <class T> FW_INLINE Sums<2> deviations(const T* x, int64_t n, T centre) {
    Vec<T> c = splat(centre);
    return sums<T, 2>(n, [&](int64_t i, auto part, Vec<T>* s) {
        Vec<T> v = take(x + i, part, centre) - c;
        s[0] += v;
        s[1] = fma<T>(v, v, s[1]);
    });
}

// Mean and sum of squared distances of some numbers, to which those of others are added (Chan et al. 1979).
struct Spread {
    double n = 0, mean = 0, squares = 0;

    FW_INLINE void add(const Spread& o) {
        double all = n + o.n, d = o.mean - mean, share = o.n / all;
        mean += d * share;
        squares += o.squares + d * d * n * share;
        n = all;
    }
    Moments moments() const { return {mean, squares / n}; }
};

constexpr int64_t SHORT_ROW = 16;  // numbers for which vectors and their sums would take longer

template <class T> FW_INLINE Spread short_spread(const T* x, int64_t n, double centre = 0) {
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += (double(x[i]) - centre) * (double(x[i]) - centre);
    return {double(n), centre, squares};
}

// Both passes over a piece are done while it is in the first cache; the second sets right what the first one's mean
// was rounded by.
template <class T> FW_INLINE Spread spread_of(const T* x, int64_t n) {
    if (n <= SHORT_ROW) {
        double total = 0;
        for (int64_t i = 0; i < n; ++i) total += double(x[i]);
        return short_spread(x, n, total / double(n));
    }
    Spread all;
    for (int64_t at = 0; at < n; at += SUM_BLOCK) {
        const int64_t count = std::min(SUM_BLOCK, n - at);
        const T centre = T(total_of(x + at, count) / double(count));
        auto [sum, squares] = deviations(x + at, count, centre).of;
        const double off = sum / double(count);
        Spread piece{double(count), double(centre) + off, squares - sum * off};
        if (at == 0) all = piece;
        else all.add(piece);
    }
    return all;
}

// Of a mean square, where there is no centre.
template <bool Centred, class T> FW_INLINE Moments moments(const T* x, int64_t n) {
    if (Centred) return spread_of(x, n).moments();
    return {0, (n <= SHORT_ROW ? short_spread(x, n).squares : deviations(x, n, T(0)).of[1]) / double(n)};
}

}  // namespace fw
