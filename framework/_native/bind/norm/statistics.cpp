// What normalisations tell of their statistics.
#include <cmath>

#include "bind/images.h"

namespace fw {
namespace {

// (mean, 1 / sqrt(var + eps)) in another shape
nb::object norm_statistics(Array mean, Array var, const windows::Sizes& shape, double eps) {
    if (!mean.is_float() || !var.usable() || var.type() != mean.type() || shape.size() > 32 ||
        !countable(shape.data(), int(shape.size())) || mean.size() != var.size() ||
        std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()) != var.size())
        return not_implemented();
    const InRows of_mean(mean), of_var(var);
    NewArray m = new_array(int(shape.size()), shape.data(), mean.type()), r = new_array(int(shape.size()), shape.data(), mean.type());
    windows::by_float(mean, [&](auto t) {
        using T = decltype(t);
        std::copy_n(of_mean.data<T>(), mean.size(), m.data<T>());
        for (int64_t i = 0; i < var.size(); ++i) r.data<T>()[i] = 1 / std::sqrt(of_var.data<T>()[i] + T(eps));
    });
    return nb::make_tuple(give(m), give(r));
}

}  // namespace

FW_BIND(m) {
    m.def("norm_statistics", &norm_statistics, nb::arg("mean"), nb::arg("var"), nb::arg("shape"), nb::arg("eps"));
}

}  // namespace fw
