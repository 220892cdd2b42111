// Slices of one array combined into those of another that an index names.
#include <algorithm>
#include <string>

#include "bind/array.h"
#include "index/combined.h"

namespace fw {
namespace {

nb::object index_reduce(Array x, Array source, Array index, int64_t dim, const std::string& way, bool own) {
    if ((!x.is_float() && (!x.is<int64_t>() || way == "mean")) || !source.usable() || source.type() != x.type() || !index.is<int64_t>() || index.ndim() != 1 ||
        dim < 0 || dim >= x.ndim() || source.ndim() != x.ndim() || !x.size() || !source.size())
        return not_implemented();
    for (int d = 0; d < x.ndim(); ++d)
        if (source.shape(d) != (d == dim ? index.size() : x.shape(d))) return not_implemented();
    const Way how = way == "prod" ? Way::product : way == "mean" ? Way::mean : way == "amax" ? Way::largest : Way::smallest;
    if (how == Way::smallest && way != "amin") return not_implemented();
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < dim; ++d) outer *= x.shape(d);
    for (int d = int(dim) + 1; d < x.ndim(); ++d) inner *= x.shape(d);
    const InRows places(index), first(x), second(source);
    const std::vector<int64_t> at(places.data<int64_t>(), places.data<int64_t>() + index.size());  // which nobody changes
    for (int64_t place : at)
        if (place < 0 || place >= x.shape(int(dim))) return not_implemented();
    NewArray out = like(x);
    nb::object result = give(out);
    Release release((x.size() + source.size()) * 8);
    if (x.is<float>())
        combine_slices(how, first.data<float>(), second.data<float>(), outer, x.shape(int(dim)), inner, at, own, out.data<float>());
    else if (x.is<int64_t>())
        combine_slices(how, first.data<int64_t>(), second.data<int64_t>(), outer, x.shape(int(dim)), inner, at, own,
                       out.data<int64_t>());
    else
        combine_slices(how, first.data<double>(), second.data<double>(), outer, x.shape(int(dim)), inner, at, own,
                       out.data<double>());
    return result;
}

}  // namespace

FW_BIND(m) {
    m.def("index_reduce", &index_reduce, nb::arg("x"), nb::arg("source"), nb::arg("index"), nb::kw_only(), nb::arg("dim"),
          nb::arg("way"), nb::arg("own"));
}

}  // namespace fw
