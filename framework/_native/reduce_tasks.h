// What reductions make of their folds: sums and means, extremes, variances.
#pragma once

#include <cmath>

#include "reduce_folds.h"
#include "reduce_run.h"

namespace fw {
namespace reduce {

// One fold F; `End` makes the result of it and of the number of elements.
template <class F, class End> struct Plain : OneFold {
    using T = typename F::T;
    using First = F;
    int64_t count = 0;
    template <class W> T finish(W v, T) const { return T(End::of(v, count)); }
};

struct Itself {
    template <class W> static W of(W v, int64_t) { return v; }
};
struct Divided {
    template <class W> static W of(W v, int64_t count) { return v / W(count); }
};
template <class Number, bool Rooted> struct Variance : TwoFolds {
    using T = Number;
    using First = Sum<T>;
    using Second = SumOfDeviations<T>;
    int64_t count = 0;
    double correction = 0;

    template <class V> T center(V sum) const { return T(sum / V(count)); }
    template <class V> T finish(V v, T) const {
        double left = double(count) - correction;
        v /= V(left > 0 ? left : 0);
        return T(Rooted ? std::sqrt(v) : v);
    }
};

}  // namespace reduce
}  // namespace fw
