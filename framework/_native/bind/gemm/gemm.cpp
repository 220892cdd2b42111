// matmul and linear of NumPy arrays.
#include <algorithm>
#include <utility>

#include "bind/bf16_array.h"
#include "bind/compute.h"
#include "bind/reduce/sums.h"
#include "gemm/amx.h"
#include "gemm/products.h"

namespace fw {
namespace {

constexpr double PER_BYTE = 4;  // multiplications that take as long as work on a byte

int64_t bytes_of(const Product& product) { return int64_t(std::min(product.multiplications() / PER_BYTE, 1e18)); }

NewArray array_for(const Product& product, const Array& x) {
    npy_intp shape[Product::MOST_DIMS + 2];
    std::copy(product.shape, product.shape + product.ndim, shape);
    return new_array(product.ndim, shape, x.type());
}

nb::object matmul(Array x, Array y) {
    Product product;
    if (!x.usable() || !y.usable() || !product.matmul(view_of(x), view_of(y))) return not_implemented();
    NewArray out = array_for(product, x);
    compute(out.size() ? bytes_of(product) : 0, [product, to = out.data<void>()] { product.run(to); });
    return give(out);
}

// matmul, 0 where a third array, which is like the result, is not above 0 (nor nan): the slope of relu before the product.
nb::object matmul_by_gate(Array x, Array y, Array gate) {
    Product product;
    if (!x.is_float() || !y.usable() || !gate.usable() || !product.matmul(view_of(x), view_of(y))) return not_implemented();
    if (gate.type() != x.type() || !gate.contiguous() || gate.ndim() != product.ndim ||
        !std::equal(product.shape, product.shape + product.ndim, gate.shape()))
        return not_implemented();
    NewArray out = array_for(product, x);
    product.gate = gate.data<void>();
    {
        Release release(out.size() ? bytes_of(product) : 0);
        product.run(out.data<void>());
    }
    return give(out);
}

nb::object linear_then(Array x, Array w, nb::object b, bool relu) {
    Array bias;
    if (!x.usable() || !w.usable()) return not_implemented();
    if (!b.is_none() && (!nb::try_cast(b, bias) || !bias.usable())) return not_implemented();
    const View shift = bias.usable() ? view_of(bias) : View();
    Product product;
    if (!product.linear(view_of(x), view_of(w), bias.usable() ? &shift : nullptr, relu)) return not_implemented();
    NewArray out = array_for(product, x);
    {
        Release release(out.size() ? bytes_of(product) : 0);
        product.run(out.data<void>());
    }
    return give(out);
}

nb::object linear(Array x, Array w, nb::object b) { return linear_then(x, w, std::move(b), false); }
nb::object linear_relu(Array x, Array w, nb::object b) { return linear_then(x, w, std::move(b), true); }

// What a linear layer's backward gives its parameters, of the gradient of its results and of its inputs, in rows: the
// gradients of the weights, which may go on beside what follows, and of the bias, of this size.
nb::object linear_parameters(Array g, Array x, nb::handle size) {
    const int n = g.ndim();
    if (!g.is_float() || !x.usable() || x.type() != g.type() || n < 2 || x.ndim() != n || !g.contiguous() ||
        !x.contiguous() || !std::equal(g.shape(), g.shape() + n - 1, x.shape()))
        return not_implemented();
    int64_t rows = 1;
    for (int d = 0; d < n - 1; ++d) rows *= g.shape(d);
    const int64_t item = g.is<float>() ? 4 : 8, outs = g.shape(n - 1), ins = x.shape(n - 1);
    const int64_t sizes[] = {outs, rows, rows, ins}, steps[] = {item, outs * item, ins * item, item};
    View turned = view_of(g), right = view_of(x);
    turned.dims = right.dims = 2;
    turned.sizes = sizes, turned.steps = steps, right.sizes = sizes + 2, right.steps = steps + 2;
    Product product;
    if (!product.matmul(turned, right)) return not_implemented();
    nb::object shift = sum_to_size(g, size);
    if (shift.is(not_implemented())) return shift;
    NewArray out = array_for(product, g);
    compute(out.size() ? bytes_of(product) : 0, [product, to = out.data<void>()] { product.run(to); });
    return nb::make_tuple(give(out), shift);
}

// The product of two matrices of bfloat16 by the tiles of the matrix unit, or by its twin if `plain`, for tests.
nb::object matmul_by_tiles(Array x, Array y, bool plain) {
    if (!plain && !amx::available()) return not_implemented();
    if (!is_bf16(x) || !is_bf16(y) || x.ndim() != 2 || y.ndim() != 2 || x.shape(1) != y.shape(0)) return not_implemented();
    const npy_intp shape[] = {x.shape(0), y.shape(1)};
    NewArray out = new_array(2, shape, x.type());
    constexpr int64_t bytes = sizeof(Bf16);
    gemm_by_tiles({x.shape(0), y.shape(1), x.shape(1), x.data<Bf16>(), x.stride(0) / bytes, x.stride(1) / bytes,
                   y.data<Bf16>(), y.stride(0) / bytes, y.stride(1) / bytes, out.data<Bf16>(), y.shape(1)}, {}, plain);
    return give(out);
}

FW_BIND(m) {
    m.def("matmul_by_tiles", &matmul_by_tiles, nb::arg("x"), nb::arg("y"), nb::arg("plain"));
    m.def("set_rounded_products", [](bool on) { rounded_products = on; }, nb::arg("on"));
    m.def("has_matrix_unit", &amx::available);
    m.def("matmul", &matmul, nb::arg("x"), nb::arg("y"));
    m.def("matmul_by_gate", &matmul_by_gate, nb::arg("x"), nb::arg("y"), nb::arg("gate"));
    m.def("linear_parameters", &linear_parameters, nb::arg("g"), nb::arg("x"), nb::arg("size"));
    m.def("linear", &linear, nb::arg("x"), nb::arg("w"), nb::arg("b").none());
    m.def("linear_relu", &linear_relu, nb::arg("x"), nb::arg("w"), nb::arg("b").none());
}

}  // namespace
}  // namespace fw
