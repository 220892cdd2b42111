// matmul and linear of NumPy arrays.
#include <algorithm>
#include <utility>

#include "bind/bf16_array.h"
#include "gemm/products.h"

namespace fw {
namespace {

nb::object result_of(const Product& product, const Array& x) {
    npy_intp shape[Product::MOST_DIMS + 2];
    std::copy(product.shape, product.shape + product.ndim, shape);
    NewArray out = new_array(product.ndim, shape, x.type());
    {
        constexpr double per_byte = 4;  // multiplications that take as long as work on a byte
        Release release(out.size() ? int64_t(std::min(product.multiplications() / per_byte, 1e18)) : 0);
        product.run(out.data<void>());
    }
    return give(out);
}

nb::object matmul(Array x, Array y) {
    Product product;
    if (!x.usable() || !y.usable() || !product.matmul(view_of(x), view_of(y))) return not_implemented();
    return result_of(product, x);
}

nb::object linear_then(Array x, Array w, nb::object b, bool relu) {
    Array bias;
    if (!x.usable() || !w.usable()) return not_implemented();
    if (!b.is_none() && (!nb::try_cast(b, bias) || !bias.usable())) return not_implemented();
    const View shift = bias.usable() ? view_of(bias) : View();
    Product product;
    if (!product.linear(view_of(x), view_of(w), bias.usable() ? &shift : nullptr, relu)) return not_implemented();
    return result_of(product, x);
}

nb::object linear(Array x, Array w, nb::object b) { return linear_then(x, w, std::move(b), false); }
nb::object linear_relu(Array x, Array w, nb::object b) { return linear_then(x, w, std::move(b), true); }

FW_BIND(m) {
    m.def("matmul", &matmul, nb::arg("x"), nb::arg("y"));
    m.def("linear", &linear, nb::arg("x"), nb::arg("w"), nb::arg("b").none());
    m.def("linear_relu", &linear_relu, nb::arg("x"), nb::arg("w"), nb::arg("b").none());
}

}  // namespace
}  // namespace fw
