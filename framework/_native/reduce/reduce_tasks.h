// What reductions make of their folds: sums and means, extremes, variances.
#pragma once

#include <cmath>

#include "reduce/reduce_folds.h"
#include "reduce/reduce_run.h"

namespace fw {
namespace reduce {

// One fold F; `End` makes the result of it, of a number or of those in a vector: float32 the same bits, since the division and the
// root of two such numbers in double precision, rounded, are those of float32.
struct Itself {
    template <class W> static W of(W v) { return v; }
};
template <class F, class End = Itself> struct Plain : OneFold {
    using T = typename F::T;
    using First = F;
    int64_t count = 0;
    template <class W> T finish(W v, T) const { return T(End::of(v)); }
    static constexpr bool by_vectors = true;
    Vec<T> finish_all(Vec<T> v) const { return End::of(v); }
};

// The sum, or the mean.
template <class Number> struct Total : OneFold {
    using T = Number;
    using First = Sum<T>;
    bool divided;
    int64_t count = 0;

    explicit Total(bool divided) : divided(divided) {}
    template <class W> T finish(W v, T) const { return T(divided ? v / W(count) : v); }
    static constexpr bool by_vectors = true;
    Vec<T> finish_all(Vec<T> v) const { return divided ? v / splat(T(count)) : v; }
};

// The variance, or its root.
template <class Number> struct Variance : TwoFolds {
    using T = Number;
    using First = Sum<T>;
    using Second = SumOfDeviations<T>;
    double correction;
    bool rooted;
    int64_t count = 0;

    Variance(double correction, bool rooted) : correction(correction), rooted(rooted) {}
    template <class V> T center(V sum) const { return T(sum / V(count)); }
    template <class V> T finish(V v, T) const {
        double left = double(count) - correction;
        v /= V(left > 0 ? left : 0);
        return T(rooted ? std::sqrt(v) : v);
    }
};

}  // namespace reduce
}  // namespace fw
