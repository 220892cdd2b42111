// What special functions share: several numbers in a vector of doubles.
#pragma once

#include <algorithm>

#include "base/vecmath.h"

namespace fw::special {

using V = Vec<double>;

constexpr double PI = 3.14159265358979323846, EULER = 0.57721566490153286061, INF = std::numeric_limits<double>::infinity(),
                 NOT = std::numeric_limits<double>::quiet_NaN();

// The last ones, where they fill no vector, by way of `part`: copies of a known size alone are instructions.
template <class T, class F> void each(const T* x, int64_t n, T* to, F&& f) {
    typedef T Some __attribute__((vector_size(sizeof(T) * lanes<double>)));
    T part[lanes<double>];
    for (int64_t i = 0; i < n; i += lanes<double>) {
        const int64_t left = n - i;
        const bool whole = left >= lanes<double>;
        if (!whole) {
            std::fill_n(part, lanes<double>, T(1));
            std::copy_n(x + i, left, part);
        }
        Some some;
        std::memcpy(&some, whole ? x + i : part, sizeof some);
        some = __builtin_convertvector(f(V(__builtin_convertvector(some, V))), Some);
        std::memcpy(whole ? to + i : part, &some, sizeof some);
        if (!whole) std::copy_n(part, left, to + i);
    }
}

// Of T's digits: coefficients for float32 where those are enough, else for doubles.
template <class T> constexpr bool short_digits = std::is_same_v<T, float>;

// The first `terms` of a Chebyshev series as the coefficients of powers.
template <int terms> struct Powers { double c[terms]; };
template <int terms, size_t N> constexpr Powers<terms> powers(const double (&series)[N]) {
    static_assert(terms >= 2 && terms <= int(N), "so many coefficients");
    Powers<terms> sum = {};
    double before[terms] = {1}, now[terms] = {0, 1};
    sum.c[0] = series[0];
    for (int k = 1; k < terms; ++k) {
        double next[terms] = {};
        for (int i = 0; i <= k; ++i) {
            sum.c[i] += series[k] * now[i];
            if (i + 1 < terms) next[i + 1] += 2 * now[i];
            next[i] -= before[i];
        }
        for (int i = 0; i < terms; ++i) before[i] = now[i], now[i] = next[i];
    }
    return sum;
}

}  // namespace fw::special
