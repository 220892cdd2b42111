// Convolutions and pooling.
#include "conv/conv_forward.h"
#include "conv/conv_transposed.h"
#include "pooling/pool2d.h"
#include "runtime/operations.h"

namespace fw::runtime {
namespace {

using windows::Sizes;

Sizes sizes(const Tensor& t) { return Sizes(t.shape, t.shape + t.ndim); }

bool is_float(const Tensor& t) { return t.type == Type::float32 || t.type == Type::float64; }

// body(a number of the tensor's type), which is float or double
template <class F> auto by_float(const Tensor& t, F&& body) { return t.type == Type::float32 ? body(float{}) : body(double{}); }

struct ConvLayer {
    windows::ConvShape shape;
    const Tensor *x, *w, *bias, *norm[4], *y;
    double eps;
    bool relu;
    std::shared_ptr<ByImages> images;
};

// The kernels as they are read; as they lie, where they are no constants.
template <class T> const T* packed_kernels(Packed& packed, const ConvLayer& c, const windows::Convolution<T>& conv) {
    const T* w = c.w->at<T>();
    const int64_t n = conv.packed_numbers();
    if (!n || !c.w->constant()) return nullptr;
    return static_cast<const T*>(packed.of(w, conv.packed_form(), n * int64_t(sizeof(T)),
                                           [&](void* to) { conv.pack(w, static_cast<T*>(to)); }));
}

template <class T> Run convolve(const ConvLayer& c, std::shared_ptr<windows::Convolution<T>> conv, const T* kernels) {
    struct ReadyConv {
        std::vector<T> room, packed;
        windows::Epilogue<T> end;
    };
    auto ready = std::make_shared<ReadyConv>();
    auto numbers = [](const Tensor* t) { return t ? t->at<T>() : nullptr; };
    const windows::Ending<T> ending{numbers(c.norm[0]), numbers(c.norm[1]), numbers(c.norm[2]), numbers(c.norm[3]),
                                    c.eps, c.relu};
    const bool fixed = !c.norm[0] || (c.norm[0]->constant() && c.norm[1]->constant());
    auto set = [=] { ready->end = ending.epilogue(numbers(c.bias), c.shape.rows, ready->room); };
    if (fixed) set();
    const bool packs = !kernels && conv->packed_numbers();
    if (packs) ready->packed.resize(size_t(conv->packed_numbers()));
    const T* w = packs ? ready->packed.data() : kernels ? kernels : c.w->at<T>();
    return [=] {
        if (!fixed) set();
        if (packs) conv->pack(c.w->at<T>(), ready->packed.data());
        if (conv->pools()) return conv->run(c.x->at<T>(), w, ready->end, c.images->squares->at<T>());
        if (!c.images->wanted) return conv->run(c.x->at<T>(), w, ready->end, c.y->at<T>());
        conv->run_then(c.x->at<T>(), w, ready->end, c.y->at<T>(),
                       [&](const T* numbers, int64_t first, int64_t count) { c.images->next(numbers, first, count); });
    };
}

template <class T> Bind convolution(Packed& packed, const ConvLayer& c) {
    return [&packed, c]() -> Run {  // when there is memory for all that the sizes ask for
        const windows::Calls calls{c.w->constant(), c.images->wanted, c.images->squares != nullptr};
        auto conv = std::make_shared<windows::Convolution<T>>(c.shape, calls);
        return convolve<T>(c, conv, packed_kernels(packed, c, *conv));
    };
}

// stride, padding and dilation of n dimensions, from number `at` on
struct Moves {
    Sizes stride, padding, dilation;
    Moves(const Call& c, size_t at, size_t n)
        : stride(c.numbers(at, at + n)), padding(c.numbers(at + n, at + 2 * n)), dilation(c.numbers(at + 2 * n, at + 3 * n)) {}
};

}  // namespace

// operands: images, kernels, bias; mean, variance, weight and bias of a norm. numbers: how many dimensions images have;
// stride, padding and dilation of each; groups; whether relu follows. reals: the norm's eps
void conv(Call& c) {
    const int64_t d = c.number(0);
    c.must(d >= 1 && d <= windows::conv_dims, "another number of dimensions");
    c.expect(7, size_t(3 * d + 3), 1, 1);
    ConvLayer v{};
    v.x = &c.rows(0), v.w = &c.rows(1), v.bias = c.rows_or_none(2);
    const size_t n = size_t(d);
    c.must(is_float(*v.x) && v.w->type == v.x->type, "another type");
    const Moves m(c, 1, n);
    c.must(windows::conv_shape(v.shape, sizes(*v.x), sizes(*v.w), m.stride, m.padding, m.dilation, c.number(1 + 3 * n)),
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
    v.images = c.by_images(*v.y);
    c.then(v.x->type == Type::float32 ? convolution<float>(c.packed(), v) : convolution<double>(c.packed(), v));
}

constexpr double MOST_STRIDES = 65536;  // all together: each place between windows is looked at on its own

// operands: results of a convolution, its kernels. numbers: the number of dimensions, stride, padding and dilation of each,
// groups, and the sizes of the images that are wanted, which a convolution by these kernels makes of that shape
void transposed(Call& c) {
    const int64_t d = c.number(0);
    c.must(d >= 1 && d <= windows::conv_dims, "another number of dimensions");
    const size_t n = size_t(d);
    c.expect(2, 4 * n + 2, 0, 1);
    const Tensor &y = c.rows(0), &w = c.rows(1);
    c.must(is_float(y) && w.type == y.type && w.ndim == d + 2 && y.ndim == d + 2, "another type or number of dimensions");
    const Moves m(c, 1, n);
    const int64_t groups = c.number(1 + 3 * n);
    int64_t channels = 0;
    c.must(groups > 0 && !__builtin_mul_overflow(groups, w.shape[1], &channels), "groups that do not fit");
    Sizes images = {y.shape[0], channels};
    const std::vector<int64_t> size = c.numbers(2 + 3 * n, 2 + 4 * n);
    images.append(size.begin(), size.end());
    double places = 1;
    for (size_t i = 0; i < n; ++i) places *= double(m.stride[i]);
    c.must(places <= MOST_STRIDES, "strides that large");
    windows::ConvShape shape;
    c.must(windows::conv_shape(shape, images, sizes(w), m.stride, m.padding, m.dilation, groups) && shape.rows == y.shape[1],
           "shapes that do not fit");
    for (size_t i = 0; i < n; ++i)
        c.must(shape.axis[windows::conv_dims - n + i].out == y.shape[i + 2], "results of another size");
    const Tensor& x = c.make(0, y.type, int(images.size()), images.data());
    c.then([shape, &y, &w, &x]() -> Run {
        return [shape, &y, &w, &x] {
            by_float(y, [&](auto t) {
                using T = decltype(t);
                windows::conv_transposed<T>(shape, y.at<T>(), w.at<T>(), x.at<T>());
            });
        };
    });
}

namespace {

// How many windows: as many as there are wholly inside, or (ceil_mode) one more if it begins inside.
constexpr int64_t INSIDE = -1, BEGINNING = -2;

int64_t count_of(int64_t given, int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
    if (given != INSIDE && given != BEGINNING) return given;
    int64_t reach, room = in + 2 * std::min(padding, MOST_NUMBERS);
    if (kernel < 1 || stride < 1 || stride > MOST_NUMBERS || padding < 0 || dilation < 1 ||
        __builtin_mul_overflow(kernel - 1, dilation, &reach) || reach >= room)
        return 0;
    room -= reach + 1;
    if (given == INSIDE) return room / stride + 1;
    const int64_t count = room / stride + (room % stride != 0) + 1;
    return (count - 1) >= (in + padding + stride - 1) / stride ? count - 1 : count;
}

// numbers: how many dimensions windows have; their size, stride, padding, dilation, and how many there are (or one of the
// above), in each
windows::PoolShape windows_of(Call& c, const Tensor& x, Sizes& out) {
    const int64_t d = c.number(0);
    c.must(d >= 1 && d <= windows::conv_dims && x.ndim >= d, "another number of dimensions");
    const size_t n = size_t(d);
    c.must(c.step.numbers.size() >= 1 + 5 * n, "windows without sizes");
    windows::PoolShape shape;
    const Sizes kernel = c.numbers(1, 1 + n);
    const Moves m(c, 1 + n, n);
    out = c.numbers(1 + 4 * n, 1 + 5 * n);
    for (size_t i = 0; i < n; ++i)
        out[i] = count_of(out[i], x.shape[x.ndim - int(n - i)], kernel[i], m.stride[i], m.padding[i], m.dilation[i]);
    c.must(is_float(x) && windows::pool_shape(shape, sizes(x), kernel, m.stride, m.padding, m.dilation, out),
           "windows that do not fit");
    out = windows::pooled(sizes(x), out);
    return shape;
}

// Windows of 2 x 2 side by side, of images in two dimensions.
bool in_squares(const windows::PoolShape& s) {
    auto pair = [](const windows::PoolAxis& a) {
        return a.kernel == 2 && a.stride == 2 && a.dilation == 1 && a.padding == 0 && a.out == a.in / 2;
    };
    return s.axis[0].in == 1 && s.axis[0].out == 1 && pair(s.axis[1]) && pair(s.axis[2]);
}

}  // namespace

void max_pool(Call& c) {
    const Tensor& x = c.rows(0);
    Sizes out;
    const windows::PoolShape shape = windows_of(c, x, out);
    c.expect(1, size_t(1 + 5 * c.number(0)), 0, 1);
    const bool channels = x.ndim == int(c.number(0)) + 2;
    const std::shared_ptr<ByImages> before = channels ? c.images_of(0) : nullptr;
    const Tensor& y = c.make(0, x.type, int(out.size()), out.data());
    if (before && in_squares(shape)) before->squares = &y;
    auto largest = [shape, &x, &y](const void* numbers, int64_t first, int64_t planes) {
        windows::PoolShape part = shape;
        part.planes = planes;
        by_float(x, [&](auto t) {
            using T = decltype(t);
            windows::max_windows(part, static_cast<const T*>(numbers), y.at<T>() + first * shape.out_size(), {});
        });
    };
    c.then([=, &x]() -> Run {
        if (!before) return [=, &x] { largest(x.data, 0, shape.planes); };
        const int64_t each = x.shape[1];
        before->next = [=](const void* numbers, int64_t first, int64_t images) { largest(numbers, first * each, images * each); };
        return [] {};
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
                windows::mean_windows<T>(shape, 1, include, divisor, x.at<T>(), y.at<T>());
            });
        };
    });
}

}  // namespace fw::runtime
