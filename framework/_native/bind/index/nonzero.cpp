// Positions of what is not 0 in NumPy arrays.
#include "bind/array.h"
#include "index/nonzero.h"

namespace fw::moving {
namespace {

template <class T> nb::object positions_of(const Array& x) {
    static_assert(sizeof(npy_intp) == sizeof(int64_t), "sizes are 64 bits wide");
    const InRows rows(x);
    const int ndim = x.ndim();
    int64_t shape[NPY_MAXDIMS];
    std::copy(x.shape(), x.shape() + ndim, shape);
    const auto counted = [&] {
        Release release(x.size() * int64_t(sizeof(T)));
        return Nonzero<T>(rows.data<T>(), x.size());
    }();
    const npy_intp sizes[] = {counted.count(), ndim};
    NewArray out = new_array(2, sizes, NPY_INT64);
    {
        Release release(out.size() * 8);
        counted.positions(ndim, shape, out.data<int64_t>());
    }
    return give(out);
}

nb::object nonzero(Array x) {
    if (!x.usable() || !x.ndim() || !x.size()) return not_implemented();
    if (x.is<bool>() || x.is<uint8_t>()) return positions_of<uint8_t>(x);
    if (x.is<int32_t>()) return positions_of<int32_t>(x);
    if (x.is<int64_t>()) return positions_of<int64_t>(x);
    if (x.is<float>()) return positions_of<float>(x);
    return x.is<double>() ? positions_of<double>(x) : not_implemented();
}

}  // namespace

FW_BIND(m) { m.def("nonzero", &nonzero, nb::arg("x")); }

}  // namespace fw::moving
