// Convolutions and pooling.
#include "conv/conv_forward.h"
#include "pooling/pool2d.h"
#include "runtime/operations.h"

namespace fw::runtime {
namespace {

using windows::Sizes;

Sizes sizes(const Tensor& t) { return Sizes(t.shape, t.shape + t.ndim); }

bool is_float(const Tensor& t) { return t.type == Type::float32 || t.type == Type::float64; }

// body(a number of the tensor's type), which is float or double
template <class F> auto by_float(const Tensor& t, F&& body) { return t.type == Type::float32 ? body(float{}) : body(double{}); }

struct Convolution {
    windows::ConvShape shape;
    const Tensor *x, *w, *bias, *norm[4], *y;
    double eps;
    bool relu;
};

template <class T> Run convolve(const Convolution& c) {
    struct Ready {
        std::vector<T> room;
        windows::Epilogue<T> end;
    };
    auto ready = std::make_shared<Ready>();
    auto numbers = [](const Tensor* t) { return t ? t->at<T>() : nullptr; };
    const windows::Ending<T> ending{numbers(c.norm[0]), numbers(c.norm[1]), numbers(c.norm[2]), numbers(c.norm[3]),
                                    c.eps, c.relu};
    const bool fixed = !c.norm[0] || (c.norm[0]->buffer < 0 && c.norm[1]->buffer < 0);
    auto set = [=] { ready->end = ending.epilogue(numbers(c.bias), c.shape.rows, ready->room); };
    if (fixed) set();
    return [c, ready, fixed, set] {
        if (!fixed) set();
        windows::conv_forward<T>(c.shape, c.x->at<T>(), c.w->at<T>(), ready->end, c.y->at<T>());
    };
}

}  // namespace

// operands: images, kernels, bias; mean, variance, weight and bias of a norm. numbers: how many dimensions images have;
// stride, padding and dilation of each; groups; whether relu follows. reals: the norm's eps
void conv(Call& c) {
    const int64_t d = c.number(0);
    c.must(d >= 1 && d <= windows::conv_dims, "another number of dimensions");
    c.expect(7, size_t(3 * d + 3), 1, 1);
    Convolution v{};
    v.x = &c.rows(0), v.w = &c.rows(1), v.bias = c.rows_or_none(2);
    const size_t n = size_t(d);
    c.must(is_float(*v.x) && v.w->type == v.x->type, "another type");
    c.must(windows::conv_shape(v.shape, sizes(*v.x), sizes(*v.w), c.numbers(1, 1 + n), c.numbers(1 + n, 1 + 2 * n),
                               c.numbers(1 + 2 * n, 1 + 3 * n), c.number(1 + 3 * n)),
           "shapes that do not fit");
    auto takes = [&](const Tensor* t) {
        c.must(!t || (t->type == v.x->type && t->ndim == 1 && t->shape[0] == v.shape.rows), "a bias or norm that does not fit");
    };
    takes(v.bias);
    for (size_t i = 0; i < 4; ++i) takes(v.norm[i] = c.rows_or_none(3 + i));
    c.must(!v.norm[0] == !v.norm[1] && (v.norm[0] || (!v.norm[2] && !v.norm[3])), "half a norm");
    v.relu = c.number(2 + 3 * n) != 0, v.eps = c.step.reals[0];
    Sizes out = {v.shape.n, v.shape.rows};
    for (int64_t i = windows::conv_dims - d; i < windows::conv_dims; ++i) out.push_back(v.shape.axis[i].out);
    v.y = &c.make(0, v.x->type, int(out.size()), out.data());
    c.then([v]() -> Run { return v.x->type == Type::float32 ? convolve<float>(v) : convolve<double>(v); });
}

namespace {

// numbers: how many dimensions windows have; their size, stride, padding, dilation, and how many there are, in each
windows::PoolShape windows_of(Call& c, const Tensor& x, Sizes& out) {
    const int64_t d = c.number(0);
    c.must(d >= 1 && d <= windows::conv_dims && x.ndim >= d, "another number of dimensions");
    const size_t n = size_t(d);
    c.must(c.step.numbers.size() >= 1 + 5 * n, "windows without sizes");
    windows::PoolShape shape;
    out = c.numbers(1 + 4 * n, 1 + 5 * n);
    c.must(is_float(x) && windows::pool_shape(shape, sizes(x), c.numbers(1, 1 + n), c.numbers(1 + n, 1 + 2 * n),
                                              c.numbers(1 + 2 * n, 1 + 3 * n), c.numbers(1 + 3 * n, 1 + 4 * n), out),
           "windows that do not fit");
    out = windows::pooled(sizes(x), out);
    return shape;
}

}  // namespace

void max_pool(Call& c) {
    const Tensor& x = c.rows(0);
    Sizes out;
    const windows::PoolShape shape = windows_of(c, x, out);
    c.expect(1, size_t(1 + 5 * c.number(0)), 0, 1);
    const Tensor& y = c.make(0, x.type, int(out.size()), out.data());
    c.then([shape, &x, &y]() -> Run {
        return [shape, &x, &y] {
            by_float(x, [&](auto t) {
                using T = decltype(t);
                windows::max_windows<T, uint8_t>(shape, x.at<T>(), y.at<T>(), nullptr);
            });
        };
    });
}

// Further numbers: whether padding counts, and what sums are divided by (0: the number of elements).
void mean_pool(Call& c) {
    const Tensor& x = c.rows(0);
    Sizes out;
    const windows::PoolShape shape = windows_of(c, x, out);
    const size_t at = size_t(1 + 5 * c.number(0));
    c.expect(1, at + 2, 0, 1);
    const bool include = c.number(at) != 0;
    const int64_t divisor = c.number(at + 1);
    const Tensor& y = c.make(0, x.type, int(out.size()), out.data());
    c.then([=, &x, &y]() -> Run {
        return [=, &x, &y] {
            by_float(x, [&](auto t) {
                using T = decltype(t);
                windows::mean_windows<T>(shape, include, divisor, x.at<T>(), y.at<T>());
            });
        };
    });
}

}  // namespace fw::runtime
