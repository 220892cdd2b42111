// Quantiles of NumPy arrays along short rows.
#include "sort/quantile.h"

#include <algorithm>
#include <string>

#include "bind/array.h"

namespace fw {
namespace {

constexpr int64_t SHORT_ROW = 512;  // longer ones are sorted by digits

template <class T> nb::object quantiles_of(const Array& x, const Array& q, Between how, bool ignore) {
    const int64_t n = x.shape(x.ndim() - 1);
    const InRows rows(x), given(q);
    const std::vector<T> at(given.data<T>(), given.data<T>() + q.size());  // which nobody changes
    for (T each : at)
        if (!(each >= 0 && each <= 1)) return not_implemented();
    npy_intp shape[NPY_MAXDIMS];
    std::copy(x.shape(), x.shape() + x.ndim(), shape);
    shape[x.ndim() - 1] = q.size();
    if (!countable(shape, x.ndim())) return not_implemented();
    NewArray out = new_array(x.ndim(), shape, x.type());
    nb::object result = give(out);
    Release release(x.size() * 32);
    quantiles(rows.data<T>(), x.size() / n, n, at.data(), q.size(), how, ignore, out.data<T>());
    return result;
}

// Along the last dimension: (*, n), (k) -> (*, k).
nb::object quantile(Array x, Array q, const std::string& how, bool ignore) {
    const char* const names[] = {"linear", "lower", "higher", "nearest", "midpoint"};
    const auto* name = std::find(std::begin(names), std::end(names), how);
    if (!x.is_float() || !x.ndim() || !x.size() || x.shape(x.ndim() - 1) > SHORT_ROW || !q.usable() || q.type() != x.type() ||
        q.ndim() != 1 || !q.size() || name == std::end(names))
        return not_implemented();
    const Between between = Between(name - std::begin(names));
    return x.is<float>() ? quantiles_of<float>(x, q, between, ignore) : quantiles_of<double>(x, q, between, ignore);
}

}  // namespace

FW_BIND(m) {
    m.def("quantile", &quantile, nb::arg("x"), nb::arg("q"), nb::kw_only(), nb::arg("how"), nb::arg("ignore"));
}

}  // namespace fw
