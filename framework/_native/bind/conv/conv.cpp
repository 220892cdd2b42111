// Convolutions of NumPy arrays and their gradients; that of the images is also the transposed convolution.
#include <optional>

#include "bind/images.h"
#include "conv/conv_forward.h"
#include "conv/conv_last.h"
#include "conv/conv_transposed.h"
#include "conv/conv_weight.h"
#include "conv/conv_winograd.h"
#include "pooling/pool2d.h"

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

// Whether kernels of channels side by side do for these images, one of which or the kernels lie so.
bool by_channels(const ConvShape& s, const Array& a, const Array& b) {
    return a.is<float>() && a.ndim() == 4 && (channels_last(a) || channels_last(b)) && last_suits(s);
}

// Kernels as they lie, or in rows.
struct KernelTaps {
    InRows rows;
    TapKernels at;
    KernelTaps(const ConvShape& s, const Array& w)
        : rows(w, !channels_last(w)),
          at(channels_last(w) ? kernels_of_channels(s, w.data<float>()) : kernels_in_rows(s, rows.data<float>())) {}
};

// Whether x, w and b, which may be None, are those of a layer.
bool layer(ConvShape& s, Array& bias, const Array& x, const Array& w, nb::handle b, const Sizes& stride, const Sizes& padding,
           const Sizes& dilation, int64_t groups) {
    if (!b.is_none()) bias = nb::cast<Array>(b);
    if (!x.is_float() || !w.usable() || w.type() != x.type() || (!b.is_none() && !bias.usable()) ||
        !conv_shape(s, sizes(x), sizes(w), stride, padding, dilation, groups))
        return false;
    return !bias.usable() || (bias.type() == x.type() && bias.ndim() == 1 && bias.shape(0) == s.rows);
}

Sizes results(const ConvShape& s, size_t d) {
    Sizes shape = {s.n, s.rows};
    for (size_t i = 0; i < d; ++i) shape.push_back(s.axis[conv_dims - d + i].out);
    return shape;
}

nb::object conv_then(Array x, Array w, nb::handle b, const Sizes& stride, const Sizes& padding,
                     const Sizes& dilation, int64_t groups, nb::handle norm, bool relu) {
    Array bias;
    ConvShape s;
    GivenEnding ending;
    if (!layer(s, bias, x, w, b, stride, padding, dilation, groups) || !ending.take(norm, relu, x.type(), s.rows))
        return not_implemented();
    const Sizes shape = results(s, stride.size());
    if (by_channels(s, x, w)) {
        const InChannels images(x);
        const KernelTaps kernels(s, w);
        std::optional<InRows> b_rows;
        if (bias.usable()) b_rows.emplace(bias);
        NewArray y = new_channels_last(4, shape.data(), NPY_FLOAT);
        std::vector<float> room;
        const Epilogue<float> end = ending.of<float>().epilogue(b_rows ? b_rows->data<float>() : nullptr, s.rows, room);
        {
            Release release(s.flops());
            last_forward(s, images.data<float>(), kernels.at, end, y.data<float>());
        }
        return give(y);
    }
    InRows x_rows(x), w_rows(w), b_rows(bias.usable() ? bias : w_rows.a);
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

// The largest numbers of windows of a convolution's results, and where they lie: image after image, while these are in the
// caches. windows: kernel, stride, padding, dilation and sizes of the pooling.
nb::object conv_max(Array x, Array w, nb::handle b, const Sizes& stride, const Sizes& padding, const Sizes& dilation,
                    int64_t groups, bool relu, const std::vector<Sizes>& windows) {
    Array bias;
    ConvShape s;
    PoolShape p;
    if (windows.size() != 5 || !layer(s, bias, x, w, b, stride, padding, dilation, groups) || channels_last(x) || channels_last(w))
        return not_implemented();
    const Sizes shape = results(s, stride.size());
    if (windows[0].size() != stride.size() ||
        !pool_shape(p, shape, windows[0], windows[1], windows[2], windows[3], windows[4]))
        return not_implemented();
    InRows x_rows(x), w_rows(w), b_rows(bias.usable() ? bias : w_rows.a);
    const Sizes out = pooled(shape, windows[4]);
    const bool bytes = p.window() < 256;
    NewArray y = new_array(int(out.size()), out.data(), x.type());
    NewArray where = new_array(int(out.size()), out.data(), bytes ? NPY_UINT8 : NPY_INT32);
    const bool done = by_float(x, [&](auto number) {
        using T = decltype(number);
        Epilogue<T> end;
        if (bias.usable()) end.bias = b_rows.data<T>();
        if (relu) end.least = 0;
        const Done<T> pool = [&](const T* images, int64_t first, int64_t count) {
            const int64_t at = first * s.rows * p.out_size();
            PoolShape part = p;
            part.planes = count * s.rows;
            max_windows(part, images, y.data<T>() + at,
                        (bytes ? WindowPlaces(where.data<uint8_t>()) : WindowPlaces(where.data<int32_t>())) + at);
        };
        Release release(s.flops());
        return conv_forward<T>(s, x_rows.data<T>(), w_rows.data<T>(), end, nullptr, &pool);
    });
    return done ? nb::make_tuple(give(y), give(where)) : not_implemented();
}

nb::object conv(Array x, Array w, nb::handle b, const Sizes& stride, const Sizes& padding,
                const Sizes& dilation, int64_t groups) {
    return conv_then(std::move(x), std::move(w), b, stride, padding, dilation, groups, nb::none(), false);
}

nb::object conv_input_grad(Array y, Array w, const Sizes& x_shape, const Sizes& stride, const Sizes& padding,
                           const Sizes& dilation, int64_t groups) {
    ConvShape s;
    if (!y.is_float() || !w.usable() || w.type() != y.type() ||
        !conv_shape(s, x_shape, sizes(w), stride, padding, dilation, groups) ||
        !is_output(s, y, stride.size()))
        return not_implemented();
    if (by_channels(s, y, w)) {
        const InChannels images(y);
        const KernelTaps kernels(s, w);
        NewArray x = new_channels_last(4, x_shape.data(), NPY_FLOAT);
        {
            Release release(s.flops());
            last_input(s, images.data<float>(), kernels.at, x.data<float>());
        }
        return give(x);
    }
    InRows y_rows(y), w_rows(w);
    NewArray x = new_array(int(x_shape.size()), x_shape.data(), y.type());
    {
        Release release(s.flops());
        by_float(y, [&](auto number) {
            using T = decltype(number);
            conv_transposed<T>(s, y_rows.data<T>(), w_rows.data<T>(), x.data<T>());
        });
    }
    return give_images(x, channels_last(y) || channels_last(w));
}

nb::object conv_weight_grad(Array x, Array y, const Sizes& w_shape, const Sizes& stride, const Sizes& padding,
                            const Sizes& dilation, int64_t groups) {
    ConvShape s;
    if (!x.is_float() || !y.usable() || y.type() != x.type() ||
        !conv_shape(s, sizes(x), w_shape, stride, padding, dilation, groups) ||
        !is_output(s, y, stride.size()))
        return not_implemented();
    if (by_channels(s, x, y)) {
        const InChannels images(x), results(y);
        NewArray w = new_channels_last(4, w_shape.data(), NPY_FLOAT);
        {
            Release release(s.flops());
            last_weights(s, images.data<float>(), results.data<float>(), w.data<float>());
        }
        return give(w);
    }
    InRows x_rows(x), y_rows(y);
    NewArray w = new_array(int(w_shape.size()), w_shape.data(), x.type());
    {
        Release release(s.flops());
        by_float(x, [&](auto number) {
            using T = decltype(number);
            conv_weights<T>(s, x_rows.data<T>(), y_rows.data<T>(), w.data<T>());
        });
    }
    return give_images(w, channels_last(x) || channels_last(y));
}

FW_BIND(m) {
    m.def("use_winograd", &use_winograd, nb::arg("on"));
    m.def("conv", &conv, nb::arg("x"), nb::arg("w"), nb::arg("b").none(), nb::arg("stride"),
          nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
    m.def("conv_then", &conv_then, nb::arg("x"), nb::arg("w"), nb::arg("b").none(), nb::arg("stride"),
          nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"), nb::arg("norm").none(), nb::arg("relu"));
    m.def("conv_max", &conv_max, nb::arg("x"), nb::arg("w"), nb::arg("b").none(), nb::arg("stride"), nb::arg("padding"),
          nb::arg("dilation"), nb::arg("groups"), nb::arg("relu"), nb::arg("windows"));
    m.def("conv_input_grad", &conv_input_grad, nb::arg("y"), nb::arg("w"), nb::arg("x_shape"),
          nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
    m.def("conv_weight_grad", &conv_weight_grad, nb::arg("x"), nb::arg("y"), nb::arg("w_shape"),
          nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
}

}  // namespace
}  // namespace fw::windows
