// Convolution and its gradient with respect to the input (which is also the transposed convolution).
#include "bind/images.h"
#include "conv/conv_chunks.h"
#include "conv/conv_depthwise.h"
#include "conv/conv_forward.h"
#include "conv/conv_pixels.h"
#include "conv/conv_winograd.h"

namespace fw::windows {
namespace {

// A norm in evaluation and an activation, as Python gives them.
struct GivenEnding {
    Array mean, var, gamma, beta;  // of the norm; gamma and beta may be missing
    double eps = 0;
    bool normal = false, relu = false;

    // False if it is none of numbers of this type for so many rows.
    bool take(nb::handle norm, bool activation, int type, int64_t rows) {
        relu = activation;
        if (norm.is_none()) return true;
        normal = true, eps = nb::cast<double>(norm[4]);
        Array* const parts[] = {&mean, &var, &gamma, &beta};
        for (int i = 0; i < 4; ++i) {
            if (i > 1 && norm[i].is_none()) continue;
            const Array& a = *parts[i] = nb::cast<Array>(norm[i]);
            if (!a.usable() || a.type() != type || a.ndim() != 1 || a.shape(0) != rows || !a.contiguous())
                return false;
        }
        return true;
    }

    template <class T> Ending<T> of() const {
        auto numbers = [](const Array& a) { return a.p ? a.data<T>() : nullptr; };
        return {numbers(mean), numbers(var), numbers(gamma), numbers(beta), eps, relu};
    }
};

nb::object conv_then(Array x, Array w, nb::handle b, const Sizes& stride, const Sizes& padding,
                     const Sizes& dilation, int64_t groups, nb::handle norm, bool relu) {
    Array bias;
    if (!b.is_none()) bias = nb::cast<Array>(b);
    ConvShape s;
    if (!x.is_float() || !w.usable() || w.type() != x.type() || (!b.is_none() && !bias.usable()) ||
        !conv_shape(s, sizes(x), sizes(w), stride, padding, dilation, groups))
        return not_implemented();
    if (bias.usable() && (bias.type() != x.type() || bias.ndim() != 1 || bias.shape(0) != s.rows))
        return not_implemented();
    GivenEnding ending;
    if (!ending.take(norm, relu, x.type(), s.rows)) return not_implemented();
    InRows x_rows(x), w_rows(w), b_rows(bias.usable() ? bias : w_rows.a);
    Sizes shape = {s.n, s.rows};
    for (size_t i = 0; i < stride.size(); ++i) shape.push_back(s.axis[conv_dims - stride.size() + i].out);
    const bool last = channels_last(x) || channels_last(w);
    NewArray y = new_array(int(shape.size()), shape.data(), x.type());
    by_float(x, [&](auto number) {
        using T = decltype(number);
        std::vector<T> room;
        const Epilogue<T> end = ending.of<T>().epilogue(bias.usable() ? b_rows.data<T>() : nullptr, s.rows, room);
        Release release(s.flops());
        conv_forward<T>(s, x_rows.data<T>(), w_rows.data<T>(), end, y.data<T>());
    });
    return give_images(y, last);
}

nb::object conv(Array x, Array w, nb::handle b, const Sizes& stride, const Sizes& padding,
                const Sizes& dilation, int64_t groups) {
    return conv_then(std::move(x), std::move(w), b, stride, padding, dilation, groups, nb::none(), false);
}

// -- gradient with respect to the input -----------------------------------------------------------

// The inputs whose padded position is f modulo the stride, along one dimension: input place
// first + stride * j reads output place j + low - shift for every tap in `taps`.
struct InputClass {
    int64_t first = 0, count = 0, low = 0;
    std::vector<int64_t> taps, shifts;
};

InputClass input_class(const ConvAxis& a, int64_t f) {
    InputClass c;
    c.low = std::max<int64_t>(ceil_div(a.padding - f, a.stride), 0);
    c.first = a.stride * c.low + f - a.padding;
    c.count = c.first < a.in ? (a.in - 1 - c.first) / a.stride + 1 : 0;
    for (int64_t t = 0; t < a.kernel; ++t) {
        if (t * a.dilation % a.stride != f) continue;
        c.taps.push_back(t);
        c.shifts.push_back((t * a.dilation - f) / a.stride);
    }
    return c;
}

struct InputClasses {
    std::vector<InputClass> of[conv_dims];

    explicit InputClasses(const ConvShape& s) {
        for (int d = 0; d < conv_dims; ++d)
            for (int64_t f = 0; f < s.axis[d].stride; ++f) of[d].push_back(input_class(s.axis[d], f));
    }
    bool all_read() const {  // every input is read by some window's tap
        for (auto& axis : of)
            for (auto& c : axis)
                if (c.count > 0 && c.taps.empty()) return false;
        return true;
    }
};

// Planes of the output's gradient that hold what all classes read.
Planes gradient_planes(const ConvShape& s, const InputClasses& classes) {
    Planes planes;
    for (int d = 0; d < conv_dims; ++d) {
        int64_t before = 0, reach = 1;
        bool any = false;
        for (const InputClass& c : classes.of[d]) {
            if (c.count < 1 || c.taps.empty()) continue;
            int64_t most = c.shifts.back(), least = c.shifts.front();
            before = any ? std::max(before, most - c.low) : most - c.low;
            reach = any ? std::max(reach, c.low - least + c.count) : c.low - least + c.count;
            any = true;
        }
        PlaneAxis& p = planes.axis[d];
        p.in = s.axis[d].out;
        p.before = std::max<int64_t>(before, 0);
        p.extent = std::max<int64_t>(p.before + reach, 1);
    }
    return planes;
}

template <class T> struct InputGradient {
    const ConvShape& s;
    const Planes& planes;
    const T* weights;

    // The product for the inputs of one class along each dimension, and its packed weights.
    void set(PixelProduct<T>& product, const InputClass* (&c)[conv_dims], T* a) const {
        std::vector<int64_t> taps, within;
        for (size_t i = 0; i < c[0]->taps.size(); ++i)
            for (size_t j = 0; j < c[1]->taps.size(); ++j)
                for (size_t l = 0; l < c[2]->taps.size(); ++l) {
                    const size_t index[conv_dims] = {i, j, l};
                    int64_t tap = 0, at = 0;
                    for (int d = 0; d < conv_dims; ++d) {
                        tap = tap * s.axis[d].kernel + c[d]->taps[index[d]];
                        at += (planes.axis[d].before + c[d]->low - c[d]->shifts[index[d]]) * planes.place[d];
                    }
                    taps.push_back(tap);
                    within.push_back(at);
                }
        const int64_t count = int64_t(taps.size()), rows = s.group_channels(), each = s.group_rows();
        product.k = each * count;
        product.offset.resize(size_t(product.k));
        for (int64_t o = 0; o < each; ++o)
            for (int64_t t = 0; t < count; ++t)
                product.offset[size_t(o * count + t)] = o * planes.channel + within[size_t(t)];
        product.choose();
        product.a = a;
        const int64_t all = s.taps();
        pack_weights(a, s.groups, rows, product.k, product.tile_rows, all, [&](int64_t g, int64_t p) {
            return weights + (g * each + p / count) * rows * all + taps[size_t(p % count)];
        });
    }

    void grid(PixelGrid& g, const InputClass* (&c)[conv_dims]) const {
        int64_t step = 1;
        g.to_start = 0;
        for (int d = conv_dims - 1; d >= 0; --d) {
            g.count[d] = c[d]->count;
            g.from[d] = planes.place[d];
            g.to[d] = step * s.axis[d].stride;
            g.to_start += c[d]->first * step;
            step *= s.axis[d].in;
        }
        g.from_image = planes.image;
        g.to_image = s.channels * s.in_pixels();
        g.merge();
    }
};

template <class T> void input_gradient(const ConvShape& s, const Array& y, const Array& w, Array x) {
    if constexpr (sizeof(T) == 4) {
        if (winograd_suits(s, 8))
            return winograd(gradient_shape(s), y.data<T>(), gradient_kernels(s, w.data<T>()), {},
                            x.data<T>());
        if (depthwise_suits(s)) return depthwise_input(s, y.data<T>(), w.data<T>(), x.data<T>());
    }
    const InputClasses classes(s);
    Planes planes = gradient_planes(s, classes);
    const bool own = own_chunks<T>(planes, s.n, s.rows);
    const int64_t weights = s.rows * s.k();
    Buffer<T> a(weights), copy(own ? 0 : planes.size);
    const T* from = y.data<T>();
    T* to = x.data<T>();
    if (!classes.all_read()) std::fill(to, to + s.n * s.channels * s.in_pixels(), T(0));
    const InputGradient<T> gradient{s, planes, w.data<T>()};
    std::vector<PixelProduct<T>> products;
    T* packed = a.data;
    for (const InputClass& c0 : classes.of[0])
        for (const InputClass& c1 : classes.of[1])
            for (const InputClass& c2 : classes.of[2]) {
                const InputClass* c[conv_dims] = {&c0, &c1, &c2};
                if (c0.count * c1.count * c2.count < 1 || c0.taps.empty() || c1.taps.empty() ||
                    c2.taps.empty())
                    continue;
                PixelProduct<T>& product = products.emplace_back();
                product.planes = &planes;
                product.groups = s.groups;
                product.rows = s.group_channels();
                product.group_from = s.group_rows() * planes.channel;
                product.to_row = s.in_pixels();
                gradient.grid(product.grid, c);
                gradient.set(product, c, packed);
                packed += s.channels * product.k;
            }
    each_chunk(planes, from, s.n, own ? nullptr : copy.data,
               [&](const T* chunk, int64_t first, int64_t count) {
                   for (const auto& product : products)
                       product.run(chunk, to + first * s.channels * s.in_pixels(), count);
               });
}

nb::object conv_input_grad(Array y, Array w, const Sizes& x_shape, const Sizes& stride, const Sizes& padding,
                           const Sizes& dilation, int64_t groups) {
    ConvShape s;
    if (!y.is_float() || !w.usable() || w.type() != y.type() ||
        !conv_shape(s, x_shape, sizes(w), stride, padding, dilation, groups) ||
        !is_output(s, y, stride.size()))
        return not_implemented();
    InRows y_rows(y), w_rows(w);
    NewArray x = new_array(int(x_shape.size()), x_shape.data(), y.type());
    {
        Release release(s.flops());
        (y.is<float>() ? input_gradient<float> : input_gradient<double>)(s, y_rows.a, w_rows.a, x);
    }
    return give_images(x, channels_last(y) || channels_last(w));
}

FW_BIND(m) {
    m.def("use_winograd", &use_winograd, nb::arg("on"));
    m.def("conv", &conv, nb::arg("x"), nb::arg("w"), nb::arg("b").none(), nb::arg("stride"),
          nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
    m.def("conv_then", &conv_then, nb::arg("x"), nb::arg("w"), nb::arg("b").none(), nb::arg("stride"),
          nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"), nb::arg("norm").none(), nb::arg("relu"));
    m.def("conv_input_grad", &conv_input_grad, nb::arg("y"), nb::arg("w"), nb::arg("x_shape"),
          nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
}

}  // namespace
}  // namespace fw::windows
