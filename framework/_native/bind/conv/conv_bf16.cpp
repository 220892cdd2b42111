// Convolutions of NumPy arrays of bfloat16 and their gradients.
#include "bind/bf16_array.h"
#include "bind/images.h"
#include "conv/conv_bf16.h"

#if FW_DOT_BF16

namespace fw::windows {
namespace {

nb::object conv_bf16(Array x, Array w, nb::handle b, const Sizes& stride, const Sizes& padding, const Sizes& dilation,
                     int64_t groups) {
    Array bias;
    if (!b.is_none()) bias = nb::cast<Array>(b);
    ConvShape s;
    if (!has_dot_bf16() || !is_bf16(x) || !is_bf16(w) || (!b.is_none() && !is_bf16(bias)) ||
        !conv_shape(s, sizes(x), sizes(w), stride, padding, dilation, groups) ||
        (bias.p && (bias.ndim() != 1 || bias.shape(0) != s.rows)))
        return not_implemented();
    InRows x_rows(x), w_rows(w), b_rows(bias.p ? bias : w_rows.a);
    Sizes shape = {s.n, s.rows};
    for (size_t i = 0; i < stride.size(); ++i) shape.push_back(s.axis[conv_dims - stride.size() + i].out);
    const bool last = channels_last(x) || channels_last(w);
    NewArray y = new_array(int(shape.size()), shape.data(), x.type());
    {
        Release release(s.flops());
        conv_forward(s, x_rows.data<Bf16>(), w_rows.data<Bf16>(), bias.p ? b_rows.data<Bf16>() : nullptr, y.data<Bf16>());
    }
    return give_images(y, last);
}

nb::object conv_input_grad_bf16(Array y, Array w, const Sizes& x_shape, const Sizes& stride, const Sizes& padding,
                                const Sizes& dilation, int64_t groups) {
    ConvShape s;
    if (!has_dot_bf16() || !is_bf16(y) || !is_bf16(w) ||
        !conv_shape(s, x_shape, sizes(w), stride, padding, dilation, groups) || !is_output(s, y, stride.size()) ||
        !steps_of_one(s))
        return not_implemented();
    InRows y_rows(y), w_rows(w);
    const bool last = channels_last(y) || channels_last(w);
    NewArray x = new_array(int(x_shape.size()), x_shape.data(), y.type());
    {
        Release release(s.flops());
        conv_transposed(s, y_rows.data<Bf16>(), w_rows.data<Bf16>(), x.data<Bf16>());
    }
    return give_images(x, last);
}

nb::object conv_weight_grad_bf16(Array x, Array y, const Sizes& w_shape, const Sizes& stride, const Sizes& padding,
                                 const Sizes& dilation, int64_t groups) {
    ConvShape s;
    if (!has_dot_bf16() || !is_bf16(x) || !is_bf16(y) ||
        !conv_shape(s, sizes(x), w_shape, stride, padding, dilation, groups) || !is_output(s, y, stride.size()))
        return not_implemented();
    InRows x_rows(x), y_rows(y);
    NewArray w = new_array(int(w_shape.size()), w_shape.data(), x.type());
    {
        Release release(s.flops());
        conv_weights(s, x_rows.data<Bf16>(), y_rows.data<Bf16>(), w.data<Bf16>());
    }
    return give_images(w, channels_last(x) || channels_last(y));
}

FW_BIND(m) {
    m.def("conv_bf16", &conv_bf16, nb::arg("x"), nb::arg("w"), nb::arg("b").none(), nb::arg("stride"),
          nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
    m.def("conv_input_grad_bf16", &conv_input_grad_bf16, nb::arg("y"), nb::arg("w"), nb::arg("x_shape"),
          nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
    m.def("conv_weight_grad_bf16", &conv_weight_grad_bf16, nb::arg("x"), nb::arg("y"), nb::arg("w_shape"),
          nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"));
}

}  // namespace
}  // namespace fw::windows

#endif
