// The folds: sums, products, extremes.
#pragma once

#include <limits>

#include "base/shuffles.h"
#include "reduce/reduce_fold.h"
#include "base/vecmath.h"

namespace fw {
namespace reduce {

template <class Number> struct Fold {
    using T = Number;
    using W = typename WideOf<T>::type;
    static constexpr bool exact = std::numeric_limits<T>::is_integer, plain = true;
    static constexpr bool shifts = false, stops = false;
    static bool decides(W) { return false; }  // with `stops`: whether nothing can change this any more
    static FW_INLINE Vec<T> map(Vec<T> x, Vec<T>) { return x; }
};

template <class T> struct Sum : Fold<T> {
    static T neutral() { return T(-0.0); }  // -0 + x = x, also for x = -0
    static typename WideOf<T>::type none() { return -0.0; }
    template <class V> static FW_INLINE V join(V a, V b) { return a + b; }
};

template <class T> struct SumOfNumbers : Sum<T> {  // of what is not nan
    static constexpr bool plain = false;
    static FW_INLINE Vec<T> map(Vec<T> x, Vec<T>) { return x == x ? x : Vec<T>{}; }
};

template <class T> struct SumOfSquares : Sum<T> {
    static constexpr bool plain = false;
    static FW_INLINE Vec<T> map(Vec<T> x, Vec<T>) { return x * x; }
};

template <class T> struct SumOfDeviations : Sum<T> {
    static constexpr bool plain = false, shifts = true;
    static FW_INLINE Vec<T> map(Vec<T> x, Vec<T> mean) {
        Vec<T> d = x - mean;
        return d * d;
    }
};

template <class T> struct SumOfExps : Sum<T> {
    static constexpr bool plain = false, shifts = true;
    static FW_INLINE Vec<T> map(Vec<T> x, Vec<T> top) { return math::exp<Vec<T>>(x - top); }
};

template <class T> struct Product : Fold<T> {
    static constexpr bool exact = true;  // every factor adds the same to the relative error, in any order
    static T neutral() { return T(1); }
    static typename WideOf<T>::type none() { return 1; }
    template <class V> static FW_INLINE V join(V a, V b) { return a * b; }
};

// nan if there is one
template <class T> struct Largest : Fold<T> {
    static constexpr bool exact = true, upwards = true;
    using W = typename WideOf<T>::type;
    using N = std::numeric_limits<T>;
    static T neutral() {
        return N::has_infinity ? -N::infinity() : N::lowest();
    }
    static W none() { return neutral(); }
    static FW_INLINE Vec<T> join(Vec<T> a, Vec<T> b) {
        if constexpr (N::is_integer) return a > b ? a : b;
        else return a != a ? a : math::greater(a, b);
    }
    static W join(W a, W b) { return a > b || a != a ? a : b; }
};

template <class T> struct Smallest : Fold<T> {
    static constexpr bool exact = true, upwards = false;
    using W = typename WideOf<T>::type;
    using N = std::numeric_limits<T>;
    static T neutral() {
        return N::has_infinity ? N::infinity() : N::max();
    }
    static W none() { return neutral(); }
    static FW_INLINE Vec<T> join(Vec<T> a, Vec<T> b) {
        if constexpr (N::is_integer) return a < b ? a : b;
        else return a != a ? a : math::lesser(a, b);
    }
    static W join(W a, W b) { return a < b || a != a ? a : b; }
};

}  // namespace reduce
}  // namespace fw
