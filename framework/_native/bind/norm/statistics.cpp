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

}  // namespace

FW_BIND(m) {
    m.def("norm_statistics", &norm_statistics, nb::arg("mean"), nb::arg("var"), nb::arg("shape"), nb::arg("eps"), nb::arg("dtype"));
}

}  // namespace fw
