// Products of matrices, and the softmax.
#include "gemm/products.h"

#include "norm/softmax.h"
#include "runtime/operations.h"

namespace fw::runtime {
namespace {

// The numbers of a result are fewer than those of both operands multiplied, which can be counted then.
void check_size(const Call& c, const Tensor& a, const Tensor& b) {
    c.must(double(a.size()) * double(b.size()) < double(int64_t(1) << 62), "a result of too many elements");
}

// y: the right operand, whose constants are packed once for all products with as many steps and columns.
void multiply(Call& c, Product& product, const Tensor& y, std::function<void(Product&)> again) {
    const Tensor& out = c.make(0, product.type, product.ndim, product.shape);
    const int64_t bytes = y.constant() ? product.packed_bytes() : 0;
    const void* packed = nullptr;
    if (bytes) packed = c.packed().of(y.data, product.packed_form(), bytes, [&](void* to) { product.pack(to); });
    c.then([&out, packed, again = std::move(again)]() -> Run {
        auto ready = std::make_shared<Product>();
        again(*ready);
        ready->packed = packed;
        return [ready, again, &out] { ready->run(out.data); };  // `again` has what the product points to
    });
}

}  // namespace

void matmul(Call& c) {
    c.expect(2, 0, 0, 1);
    const Tensor &a = c.in(0), &b = c.in(1);
    check_size(c, a, b);
    Product product;
    c.must(product.matmul(a.view(), b.view()), "shapes that do not fit");
    multiply(c, product, b, [&a, &b](Product& p) { p.matmul(a.view(), b.view()); });
}

// numbers: whether relu follows
void linear(Call& c) {
    c.expect(3, 1, 0, 1);
    const Tensor &x = c.in(0), &w = c.in(1), *bias = c.has(2) ? &c.in(2) : nullptr;
    check_size(c, x, w);
    const bool relu = c.number(0) != 0;
    c.must(!relu || x.type != Type::bfloat16, "relu of bfloat16");
    struct Shift { View view; };
    const auto shift = std::make_shared<Shift>();  // which the product points to
    auto set = [&x, &w, bias, relu, shift](Product& p) {
        if (bias) shift->view = bias->view();
        return p.linear(x.view(), w.view(), bias ? &shift->view : nullptr, relu);
    };
    Product product;
    c.must(set(product), "shapes that do not fit");
    multiply(c, product, w, set);
}

// numbers: the dimension, whether its logarithm is wanted
void softmax(Call& c) {
    c.expect(1, 2, 0, 1);
    const Tensor& x = c.rows(0);
    const int64_t dim = c.number(0);
    const bool log = c.number(1) != 0;
    c.must(dim >= 0 && dim < x.ndim, "no such dimension");
    c.must(x.type == Type::float32 || x.type == Type::float64, "another type");
    const Tensor& y = c.make(0, x.type, x.ndim, x.shape);
    c.then([&x, &y, dim, log]() -> Run {
        const Around around(x.view(), int(dim), int(dim));
        if (x.type == Type::float32) return [=, &x, &y] { fw::softmax(log, x.at<float>(), y.at<float>(), around); };
        return [=, &x, &y] { fw::softmax(log, x.at<double>(), y.at<double>(), around); };
    });
}

}  // namespace fw::runtime
