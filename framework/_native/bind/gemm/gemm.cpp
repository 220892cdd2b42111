// matmul and linear of NumPy arrays.
#include <algorithm>
#include <utility>

#include "base/half.h"
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

// Few numbers, whose products are formed sooner than a larger one is prepared: vectors, matrices, and batches of as many.
struct Few {
    int64_t batch = 1, m = 1, n = 1, k = 0;
    bool fit = false;
    npy_intp shape[NPY_MAXDIMS];
    int ndim = 0;
    int64_t x_row = 0, x_col = 0, y_row = 0, y_col = 0;  // bytes, which nobody changes from here on

    Few(const Array& x, const Array& y) {
        if (!y.usable() || !x.ndim() || !y.ndim()) return;
        const int batches = std::max(x.ndim(), y.ndim()) - 2;
        for (int d = 0; d < batches; ++d) {
            if (x.ndim() != y.ndim() || x.shape(d) != y.shape(d) || !x.contiguous() || !y.contiguous()) return;
            batch *= shape[ndim++] = x.shape(d);
        }
        if (x.ndim() > 1) shape[ndim++] = m = x.shape(x.ndim() - 2);
        if (y.ndim() > 1) shape[ndim++] = n = y.shape(y.ndim() - 1);
        k = x.shape(x.ndim() - 1);
        x_col = x.stride(x.ndim() - 1), y_row = y.stride(std::max(y.ndim() - 2, 0));
        if (x.ndim() > 1) x_row = x.stride(x.ndim() - 2);
        if (y.ndim() > 1) y_col = y.stride(y.ndim() - 1);
        fit = k == y.shape(std::max(y.ndim() - 2, 0)) && batch && m && n && k;
    }
    double each() const { return double(m) * double(n) * double(k); }  // multiplications of a matrix

    // Sums of the type that `wide` gives, as `round` makes them the elements' again.
    template <class T, class Wide, class Round> void run(const Array& x, const Array& y, T* to, Wide wide, Round round) const {
        constexpr int64_t item = sizeof(T);
        const char *a = x.data<char>(), *b = y.data<char>();
        for (int64_t at = 0; at < batch; ++at, a += m * k * item, b += k * n * item)
            for (int64_t i = 0; i < m; ++i)
                for (int64_t j = 0; j < n; ++j) {
                    decltype(wide(T{})) sum = 0;
                    for (int64_t l = 0; l < k; ++l)
                        sum += wide(*reinterpret_cast<const T*>(a + i * x_row + l * x_col)) *
                               wide(*reinterpret_cast<const T*>(b + l * y_row + j * y_col));
                    *to++ = round(sum);
                }
    }
};

// Whether there are many small matrices of bfloat16, which are multiplied side by side as float32 (`small_systems.h`).
bool many_small(const Array& x, const Array& y) {
    constexpr double SMALL = 512;  // multiplications of one
    constexpr int64_t MANY = 16;
    const Few few(x, y);
    return is_bf16(x) && few.fit && few.batch >= MANY && few.each() <= SMALL;
}

// Of whole numbers, by words without a sign, which may run over, and of 16 bits; none for what is worth preparing.
nb::object few_products(const Array& x, const Array& y) {
    constexpr double WHOLE = 4096, NARROW = 256;  // multiplications
    const bool whole = x.is<int64_t>();
    const Few few(x, y);
    if (!few.fit || y.type() != x.type() || few.each() * (whole ? 1 : double(few.batch)) > (whole ? WHOLE : NARROW)) return {};
    NewArray out = new_array(few.ndim, few.shape, x.type());
    if (whole) {
        Release release(out.size() * few.k * 8);
        few.run(x, y, out.data<uint64_t>(), [](uint64_t v) { return v; }, [](uint64_t v) { return v; });
    } else if (x.type() == NPY_HALF) {
        few.run(x, y, out.data<Half>(), [](Half v) { return widen(v); }, [](float v) { return narrow_half(v); });
    } else {
        few.run(x, y, out.data<Bf16>(), [](Bf16 v) { return widen(v); }, [](float v) { return narrow(v); });
    }
    return give(out);
}

nb::object matmul(Array x, Array y) {
    Product product;
    const bool narrow = x.usable() && (x.type() == NPY_HALF || is_bf16(x));
    if (narrow || x.is<int64_t>())
        if (nb::object few = few_products(x, y)) return few;
    if (narrow && many_small(x, y)) return not_implemented();
    const InRows right(y, y.usable() && y.ndim() == 2 && y.size() > 1 && (!y.stride(0) || !y.stride(1)));  // the gradient of a sum, say
    y = right.a;
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
