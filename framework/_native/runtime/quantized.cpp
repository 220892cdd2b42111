// Layers of 8-bit numbers: weights as int8 with a scale for each output, activations of float32, which become uint8.
#include "quantized/int8.h"

#include "base/scratch.h"
#include "runtime/operations.h"

namespace fw::runtime {
namespace {

struct ByteLayer {
    const Tensor *x, *w, *scales, *bias;
    int8::Scale given;  // scale 0: by the numbers themselves

    int8::Scale scale() const { return given.scale != 0 ? given : int8::scale_of(x->at<float>(), x->size()); }
    const float* shift() const { return bias ? bias->at<float>() : nullptr; }
};

// operands: x, weight, its scales, bias; the last number and real: the zero point and scale of x
ByteLayer layer(Call& c) {
    ByteLayer l{&c.rows(0), &c.rows(1), &c.rows(2), c.rows_or_none(3), {}};
    c.must(l.x->type == Type::float32 && l.w->type == Type::int8 && l.w->ndim > 0 && l.scales->type == Type::float32,
           "another type");
    for (const Tensor* t : {l.scales, l.bias})
        c.must(!t || (t->type == Type::float32 && t->ndim == 1 && t->shape[0] == l.w->shape[0]), "scales or a bias that do not fit");
    const int64_t zero = c.number(c.step.numbers.size() - 1);
    const float scale = float(c.step.reals[0]);
    c.must(zero >= 0 && zero <= 255 && scale >= 0, "no scale");  // nan is none
    l.given = {scale, int32_t(zero)};
    return l;
}

}  // namespace

// numbers: the zero point of x. reals: its scale, 0 for one by its numbers
void int8_linear(Call& c) {
    c.expect(4, 1, 1, 1);
    const ByteLayer l = layer(c);
    const Tensor &x = *l.x, &w = *l.w;
    c.must(w.ndim == 2 && x.ndim > 0 && x.shape[x.ndim - 1] == w.shape[1] && w.shape[1] <= int8::MOST_TERMS, "shapes that do not fit");
    int64_t shape[MOST_AXES];
    std::copy(x.shape, x.shape + x.ndim, shape);
    shape[x.ndim - 1] = w.shape[0];
    const Tensor& y = c.make(0, Type::float32, x.ndim, shape);
    c.then([l, &x, &w, &y]() -> Run {
        const int8::Linear g{x.size() / w.shape[1], w.shape[0], w.shape[1], x.at<float>(), w.at<int8_t>(), l.scales->at<float>(),
                             l.shift(), y.at<float>()};
        return [l, g] { int8::linear(g, l.scale()); };
    });
}

// operands: the kernels channels last, (outputs, sizes ..., channels of a group). numbers: how many dimensions images have (1
// or 2); stride, padding and dilation of each; groups; the zero point of x. reals: its scale, 0 for one by its numbers
void int8_conv(Call& c) {
    const int64_t d = c.number(0);
    c.must(d == 1 || d == 2, "another number of dimensions");
    const size_t n = size_t(d);
    c.expect(4, 3 * n + 3, 1, 1);
    const ByteLayer l = layer(c);
    const Tensor &x = *l.x, &w = *l.w;
    constexpr int64_t MOST = 1 << 20;  // of a size: products of three can be counted
    const int64_t groups = c.number(3 * n + 1);
    c.must(x.ndim == d + 2 && w.ndim == d + 2 && groups > 0 && x.shape[1] % groups == 0 && w.shape[0] % groups == 0 &&
               w.shape[d + 1] == x.shape[1] / groups, "shapes that do not fit");
    int8::Conv g{};
    g.images = x.shape[0], g.channels = x.shape[1], g.outputs = w.shape[0], g.groups = groups;
    int64_t sizes[2] = {1, 1};
    g.kernel[0] = g.stride[0] = g.dilation[0] = 1;
    for (size_t i = 0; i < n; ++i) {
        const size_t at = i + 2 - n;
        sizes[at] = x.shape[i + 2], g.kernel[at] = w.shape[i + 1];
        g.stride[at] = c.number(1 + i), g.padding[at] = c.number(1 + n + i), g.dilation[at] = c.number(1 + 2 * n + i);
        c.must(g.stride[at] >= 1 && g.stride[at] <= MOST && g.padding[at] >= 0 && g.padding[at] <= MOST && g.dilation[at] >= 1 &&
                   g.dilation[at] <= MOST && g.kernel[at] <= MOST && sizes[at] <= MOST, "windows that do not fit");
    }
    g.height = sizes[0], g.width = sizes[1];
    for (int i = 0; i < 2; ++i)
        c.must(g.size(i) + 2 * g.padding[i] >= g.dilation[i] * (g.kernel[i] - 1) + 1, "windows that do not fit");
    const int64_t bytes[] = {g.images, g.height + 2 * g.padding[0], g.width + 2 * g.padding[1], g.channels};
    c.must(countable(bytes, 4) && double(g.images) * double(bytes[1]) * double(bytes[2]) * double(g.channels) < double(MOST_NUMBERS) &&
               double(g.kernel[0]) * double(g.kernel[1]) * double(g.channels / groups) <= double(int8::MOST_TERMS),
           "windows of too many elements");
    int64_t shape[4] = {g.images, g.outputs, g.out_size(0), g.out_size(1)};
    if (n == 1) shape[2] = shape[3];
    const Tensor& y = c.make(0, Type::float32, int(n) + 2, shape);
    c.then([l, g, &x, &w, &y]() -> Run {
        int8::Conv ready = g;
        ready.x = x.at<float>(), ready.w = w.at<int8_t>(), ready.scales = l.scales->at<float>(), ready.bias = l.shift();
        ready.out = y.at<float>();
        return [l, ready] { int8::conv(ready, l.scale()); };
    });
}

}  // namespace fw::runtime
