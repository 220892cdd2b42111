// Variance, standard deviation, log-sum-exp: sums of what the first fold shifts, over any dimensions.
#include <cmath>

#include "program/program_fold.h"
#include "bind/reduce/arrays.h"
#include "reduce/reduce_tasks.h"

namespace fw {
namespace {

using namespace reduce;

template <class Number> struct LogSumExp : TwoFolds {
    using T = Number;
    using First = Largest<T>;
    using Second = SumOfExps<T>;
    int64_t count = 0;

    template <class V> T center(V top) const { return std::isfinite(top) ? T(top) : T(0); }
    template <class V> T finish(V v, T top) const { return T(std::log(v) + V(top)); }
};

template <bool Rooted> nb::object spread(Array x, nb::handle dims, double correction, bool keepdim) {
    if (x.is<float>()) return run(x, dims, keepdim, Variance<float>(correction, Rooted));
    if (x.is<double>()) return run(x, dims, keepdim, Variance<double>(correction, Rooted));
    return Rooted ? not_implemented() : fold_halves(x, dims, {"var", 0, keepdim, correction});
}

nb::object logsumexp(Array x, nb::handle dims, bool keepdim) {
    if (x.is<float>()) return run(x, dims, keepdim, LogSumExp<float>());
    if (x.is<double>()) return run(x, dims, keepdim, LogSumExp<double>());
    return not_implemented();
}

}  // namespace

FW_BIND(m) {
    nb::arg x("x"), dims("dims"), keepdim("keepdim"), correction("correction");
    m.def("var", &spread<false>, x, dims, correction, keepdim);
    m.def("std", &spread<true>, x, dims, correction, keepdim);
    m.def("logsumexp", &logsumexp, x, dims, keepdim);
}

}  // namespace fw
