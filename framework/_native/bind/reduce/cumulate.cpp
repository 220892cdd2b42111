// cumsum, cumprod, cummax, cummin, logcumsumexp of NumPy arrays.
#include "bind/bf16_array.h"
#include "reduce/cumulate.h"

namespace fw {
namespace {

template <Cumulate Kind> nb::object along(const Array& x, int dim, bool reverse = false) {
    constexpr bool places = Kind == Cumulate::largest || Kind == Cumulate::smallest;
    if (!x.usable() || !cumulates(Kind, view_of(x), dim)) return not_implemented();
    InRows rows(x);
    NewArray out = like(x), indices;
    if (places) indices = new_array(x.ndim(), x.shape(), NPY_INT64);
    {
        const View from = view_of(rows.a);
        Release release(x.size() * bytes_of(from.type()));
        cumulate(Kind, reverse, from, dim, out.data<void>(), places ? indices.data<int64_t>() : nullptr);
    }
    if (!places) return give(out);
    return nb::make_tuple(give(out), give(indices));
}

template <Cumulate Kind> nb::object forwards(Array x, int dim) { return along<Kind>(x, dim); }
nb::object cumsum(Array x, int dim, bool reverse) { return along<Cumulate::sum>(x, dim, reverse); }

}  // namespace

FW_BIND(m) {
    nb::arg x("x"), dim("dim");
    m.def("cumsum", &cumsum, x, dim, nb::arg("reverse"));
    m.def("cumprod", &forwards<Cumulate::product>, x, dim);
    m.def("cummax", &forwards<Cumulate::largest>, x, dim);
    m.def("cummin", &forwards<Cumulate::smallest>, x, dim);
    m.def("logcumsumexp", &forwards<Cumulate::log_sum>, x, dim);
}

}  // namespace fw
