// What normalisations tell of their statistics.
#include <cmath>

#include "bind/images.h"
#include "bind/tensors/tensors.h"

namespace fw {
namespace {

// (mean, 1 / sqrt(var + eps)) in another shape, of float32 rounded to another type
nb::object norm_statistics(Array mean, Array var, const windows::Sizes& shape, double eps, nb::handle dtype) {
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
    nb::object wanted = nb::getattr(dtype, "numpy", nb::none());
    if (!PyArray_DescrCheck(wanted.ptr())) return not_implemented();
    auto* type = reinterpret_cast<PyArray_Descr*>(wanted.ptr());
    if (type->type_num == mean.type()) return nb::make_tuple(give(m), give(r));
    return nb::make_tuple(tensors::in_dtype(give(m).ptr(), type), tensors::in_dtype(give(r).ptr(), type));
}

// Running statistics in place: x (1 - momentum) + value momentum factor, of as many numbers that lie in rows.
nb::object average_into(Array x, Array value, double momentum, double factor) {
    if (!x.is_float() || !value.usable() || value.type() != x.type() || value.size() != x.size() || !x.contiguous() ||
        !value.contiguous() || !x.writeable())
        return not_implemented();
    windows::by_float(x, [&](auto t) {
        using T = decltype(t);
        T* to = x.data<T>();
        const T *from = value.data<T>(), kept = T(1 - momentum), share = T(momentum * factor);
        for (int64_t i = 0; i < x.size(); ++i) to[i] = to[i] * kept + from[i] * share;
    });
    return nb::bool_(true);
}

}  // namespace

FW_BIND(m) {
    m.def("average_into", &average_into, nb::arg("running"), nb::arg("value"), nb::arg("momentum"), nb::arg("factor"));
    m.def("norm_statistics", &norm_statistics, nb::arg("mean"), nb::arg("var"), nb::arg("shape"), nb::arg("eps"), nb::arg("dtype"));
}

}  // namespace fw
