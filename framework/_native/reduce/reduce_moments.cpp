#include "reduce/reduce_moments.h"

#include <cmath>

#include "reduce/reduce_tasks.h"

namespace fw {
namespace reduce {

namespace {

template <class Number> struct LogSumExp : TwoFolds {
    using T = Number;
    using First = Largest<T>;
    using Second = SumOfExps<T>;
    int64_t count = 0;

    template <class V> T center(V top) const { return std::isfinite(top) ? T(top) : T(0); }
    template <class V> T finish(V v, T top) const { return T(std::log(v) + V(top)); }
};

}  // namespace

template <class T> void variance(const Plan& plan, const char* x, T* out, double correction, bool rooted) {
    Variance<T> task(correction, rooted);
    run_plan(plan, InMemory{x}, out, task);
}

template <class T> void logsumexp(const Plan& plan, const char* x, T* out) {
    LogSumExp<T> task;
    run_plan(plan, InMemory{x}, out, task);
}

#define FW_OF(T)                                                            \
    template void variance(const Plan&, const char*, T*, double, bool);     \
    template void logsumexp(const Plan&, const char*, T*);
FW_OF(float)
FW_OF(double)
#undef FW_OF

}  // namespace reduce
}  // namespace fw
