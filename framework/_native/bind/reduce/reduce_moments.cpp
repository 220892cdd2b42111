// var, std and logsumexp of NumPy arrays.
#include "bind/program/program_fold.h"
#include "bind/reduce/arrays.h"
#include "reduce/reduce_moments.h"

namespace fw {
namespace {

using namespace reduce;

template <class T> nb::object variance_of(const Array& x, nb::handle dims, double correction, bool keepdim, bool rooted) {
    return run<T>(x, dims, keepdim, [=](const Plan& p, const char* from, T* to) { variance(p, from, to, correction, rooted); });
}

template <bool rooted> nb::object spread(Array x, nb::handle dims, double correction, bool keepdim) {
    if (x.is<float>()) return variance_of<float>(x, dims, correction, keepdim, rooted);
    if (x.is<double>()) return variance_of<double>(x, dims, correction, keepdim, rooted);
    return rooted ? not_implemented() : fold_halves(x, dims, {Reduction::var, 0, keepdim, correction});
}

nb::object logsumexp_of(Array x, nb::handle dims, bool keepdim) {
    if (x.is<float>()) return run<float>(x, dims, keepdim, logsumexp<float>);
    if (x.is<double>()) return run<double>(x, dims, keepdim, logsumexp<double>);
    return not_implemented();
}

}  // namespace

FW_BIND(m) {
    nb::arg x("x"), dims("dims"), keepdim("keepdim"), correction("correction");
    m.def("var", &spread<false>, x, dims, correction, keepdim);
    m.def("std", &spread<true>, x, dims, correction, keepdim);
    m.def("logsumexp", &logsumexp_of, x, dims, keepdim);
}

}  // namespace fw
