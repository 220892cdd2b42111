// Convolutions of NumPy arrays of bfloat16 and their gradients.
#include "bind/bf16_array.h"
#include "bind/images.h"
#include "conv/conv_bf16.h"
#include "conv/conv_tiles.h"
#include "gemm/amx.h"

namespace fw::windows {
namespace {

// Images as they lie, if in rows or channels last, else a copy in rows.
struct AsGiven {
    InRows rows;
    GivenImages images;
    explicit AsGiven(const Array& a)
        : rows(a, !channels_last(a)), images{rows.data<Bf16>(), !rows.a.contiguous()} {}
};

struct Settings {
    const Sizes &stride, &padding, &dilation;
    int64_t groups;
};

bool forward_shape(ConvShape& s, const Array& x, const Array& w, const Array& bias, const Settings& given) {
    return is_bf16(x) && is_bf16(w) && (!bias.p || is_bf16(bias)) &&
           conv_shape(s, sizes(x), sizes(w), given.stride, given.padding, given.dilation, given.groups) &&
           (!bias.p || (bias.ndim() == 1 && bias.shape(0) == s.rows));
}

bool image_shape(ConvShape& s, const Array& y, const Array& w, const Sizes& x_shape, const Settings& given) {
    return is_bf16(y) && is_bf16(w) &&
           conv_shape(s, x_shape, sizes(w), given.stride, given.padding, given.dilation, given.groups) &&
           is_output(s, y, given.stride.size());
}

bool weight_shape(ConvShape& s, const Array& x, const Array& y, const Sizes& w_shape, const Settings& given) {
    return is_bf16(x) && is_bf16(y) &&
           conv_shape(s, sizes(x), w_shape, given.stride, given.padding, given.dilation, given.groups) &&
           is_output(s, y, given.stride.size());
}

Sizes result_shape(const ConvShape& s, size_t dims) {
    Sizes shape = {s.n, s.rows};
    for (size_t i = 0; i < dims; ++i) shape.push_back(s.axis[conv_dims - dims + i].out);
    return shape;
}

NewArray images(const Sizes& shape, int type, bool last) { return new_images(int(shape.size()), shape.data(), type, last); }

nb::object forward_by_tiles(const ConvShape& s, const Array& x, const Array& w, const Array& bias, size_t dims, bool plain) {
    const AsGiven x_given(x), w_given(w);
    const InRows b_rows(bias.p ? bias : x, bool(bias.p));
    const bool last = x_given.images.last || w_given.images.last;
    NewArray y = images(result_shape(s, dims), x.type(), last);
    {
        const Bf16* b = bias.p ? b_rows.data<Bf16>() : nullptr;
        Release release(s.flops());
        conv_forward_by_tiles(s, x_given.images, w_given.images, b, y.data<Bf16>(), last, plain);
    }
    return give(y);
}

nb::object images_by_tiles(const ConvShape& s, const Array& y, const Array& w, const Sizes& x_shape, bool plain) {
    const AsGiven y_given(y), w_given(w);
    const bool last = y_given.images.last || w_given.images.last;
    NewArray x = images(x_shape, y.type(), last);
    {
        Release release(s.flops());
        conv_transposed_by_tiles(s, y_given.images, w_given.images, x.data<Bf16>(), last, plain);
    }
    return give(x);
}

nb::object weights_by_tiles(const ConvShape& s, const Array& x, const Array& y, const Sizes& w_shape, bool plain) {
    const AsGiven x_given(x), y_given(y);
    const bool last = x_given.images.last || y_given.images.last;
    NewArray w = images(w_shape, x.type(), last);
    {
        Release release(s.flops());
        conv_weights_by_tiles(s, x_given.images, y_given.images, w.data<Bf16>(), last, plain);
    }
    return give(w);
}

Array given_or_none(nb::handle b) { return b.is_none() ? Array() : nb::cast<Array>(b); }

// By the tiles of the matrix unit whatever the sizes, or by its twin if `plain`, for tests.
bool by_tiles(const ConvShape& s, bool plain) { return (plain || amx::available()) && tiles_can(s); }

nb::object conv_by_tiles(Array x, Array w, nb::handle b, const Sizes& stride, const Sizes& padding, const Sizes& dilation,
                         int64_t groups, bool plain) {
    ConvShape s;
    const Array bias = given_or_none(b);
    if (!forward_shape(s, x, w, bias, {stride, padding, dilation, groups}) || !by_tiles(s, plain)) return not_implemented();
    return forward_by_tiles(s, x, w, bias, stride.size(), plain);
}

nb::object conv_input_grad_by_tiles(Array y, Array w, const Sizes& x_shape, const Sizes& stride, const Sizes& padding,
                                    const Sizes& dilation, int64_t groups, bool plain) {
    ConvShape s;
    if (!image_shape(s, y, w, x_shape, {stride, padding, dilation, groups}) || !by_tiles(s, plain)) return not_implemented();
    return images_by_tiles(s, y, w, x_shape, plain);
}

nb::object conv_weight_grad_by_tiles(Array x, Array y, const Sizes& w_shape, const Sizes& stride, const Sizes& padding,
                                     const Sizes& dilation, int64_t groups, bool plain) {
    ConvShape s;
    if (!weight_shape(s, x, y, w_shape, {stride, padding, dilation, groups}) || !by_tiles(s, plain)) return not_implemented();
    return weights_by_tiles(s, x, y, w_shape, plain);
}

#if FW_DOT_BF16

// Whether the kernels of float32 are left to do it: they have some of their own for groups of one channel.
bool by_float32(const ConvShape& s) { return !has_dot_bf16() || (s.groups > 1 && s.group_channels() == 1); }

nb::object conv_bf16(Array x, Array w, nb::handle b, const Sizes& stride, const Sizes& padding, const Sizes& dilation,
                     int64_t groups) {
    ConvShape s;
    const Array bias = given_or_none(b);
    if (!forward_shape(s, x, w, bias, {stride, padding, dilation, groups}) || by_float32(s)) return not_implemented();
    if (tiles_suit(s)) return forward_by_tiles(s, x, w, bias, stride.size(), false);
    InRows x_rows(x), w_rows(w), b_rows(bias.p ? bias : w_rows.a);
    const bool last = channels_last(x) || channels_last(w);
    NewArray y = images(result_shape(s, stride.size()), x.type(), false);
    {
        Release release(s.flops());
        conv_forward(s, x_rows.data<Bf16>(), w_rows.data<Bf16>(), bias.p ? b_rows.data<Bf16>() : nullptr, y.data<Bf16>());
    }
    return give_images(y, last);
}

nb::object conv_input_grad_bf16(Array y, Array w, const Sizes& x_shape, const Sizes& stride, const Sizes& padding,
                                const Sizes& dilation, int64_t groups) {
    ConvShape s;
    if (!image_shape(s, y, w, x_shape, {stride, padding, dilation, groups}) || by_float32(s)) return not_implemented();
    if (tiles_suit(s)) return images_by_tiles(s, y, w, x_shape, false);
    if (!steps_of_one(s)) return not_implemented();
    InRows y_rows(y), w_rows(w);
    const bool last = channels_last(y) || channels_last(w);
    NewArray x = images(x_shape, y.type(), false);
    {
        Release release(s.flops());
        conv_transposed(s, y_rows.data<Bf16>(), w_rows.data<Bf16>(), x.data<Bf16>());
    }
    return give_images(x, last);
}

nb::object conv_weight_grad_bf16(Array x, Array y, const Sizes& w_shape, const Sizes& stride, const Sizes& padding,
                                 const Sizes& dilation, int64_t groups) {
    ConvShape s;
    if (!weight_shape(s, x, y, w_shape, {stride, padding, dilation, groups}) || by_float32(s)) return not_implemented();
    if (tiles_suit(s)) return weights_by_tiles(s, x, y, w_shape, false);
    InRows x_rows(x), y_rows(y);
    NewArray w = images(w_shape, x.type(), false);
    {
        Release release(s.flops());
        conv_weights(s, x_rows.data<Bf16>(), y_rows.data<Bf16>(), w.data<Bf16>());
    }
    return give_images(w, channels_last(x) || channels_last(y));
}

#endif

FW_BIND(m) {
    m.def("conv_by_tiles", &conv_by_tiles, nb::arg("x"), nb::arg("w"), nb::arg("b").none(), nb::arg("stride"),
          nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"), nb::arg("plain"));
    m.def("conv_input_grad_by_tiles", &conv_input_grad_by_tiles, nb::arg("y"), nb::arg("w"), nb::arg("x_shape"),
          nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"), nb::arg("plain"));
    m.def("conv_weight_grad_by_tiles", &conv_weight_grad_by_tiles, nb::arg("x"), nb::arg("y"), nb::arg("w_shape"),
          nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"), nb::arg("plain"));
#if FW_DOT_BF16
    m.def("conv_bf16", &conv_bf16, nb::arg("x"), nb::arg("w"), nb::arg("b").none(), nb::arg("stride"),
          nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
    m.def("conv_input_grad_bf16", &conv_input_grad_bf16, nb::arg("y"), nb::arg("w"), nb::arg("x_shape"),
          nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
    m.def("conv_weight_grad_bf16", &conv_weight_grad_bf16, nb::arg("x"), nb::arg("y"), nb::arg("w_shape"),
          nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
#endif
}

}  // namespace
}  // namespace fw::windows
