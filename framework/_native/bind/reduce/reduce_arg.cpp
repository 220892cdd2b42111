// max and min along a dimension of NumPy arrays, with places.
#include "bind/reduce/arrays.h"
#include "reduce/reduce_arg.h"

namespace fw {
namespace {

using namespace reduce;

template <class T> nb::object best_typed(const Array& x, int dim, bool keepdim, bool largest) {
    Plan plan;
    if (dim < 0 || dim >= x.ndim() || !make_plan(plan, x, 1u << dim)) return not_implemented();
    if (!countable_places<T>(plan)) return not_implemented();
    NewArray values = results_array(x, 1u << dim, keepdim, x.type());
    NewArray places = results_array(x, 1u << dim, keepdim, NPY_INT64);
    {
        Release release(x.size() * int64_t(sizeof(T)));
        best_along(plan, x.data<char>(), largest, values.data<T>(), places.data<int64_t>());
    }
    return nb::make_tuple(give(values), give(places));
}

template <bool largest> nb::object best(Array x, int dim, bool keepdim) {
    if (x.is<float>()) return best_typed<float>(x, dim, keepdim, largest);
    if (x.is<double>()) return best_typed<double>(x, dim, keepdim, largest);
    if (x.is<int64_t>()) return best_typed<int64_t>(x, dim, keepdim, largest);
    if (x.is<int32_t>()) return best_typed<int32_t>(x, dim, keepdim, largest);
    return not_implemented();
}

}  // namespace

FW_BIND(m) {
    nb::arg x("x"), dim("dim"), keepdim("keepdim");
    m.def("max", &best<true>, x, dim, keepdim);
    m.def("min", &best<false>, x, dim, keepdim);
}

}  // namespace fw
