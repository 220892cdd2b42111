// Layers of 8-bit numbers, of NumPy arrays.
#include <algorithm>
#include <string>

#include "bind/array.h"
#include "quantized/int8.h"

namespace fw {
namespace {

bool is_int8(const Array& a) { return a.usable() && PyArray_TYPE(a.p) == NPY_INT8; }

bool is_row(const Array& a, int64_t n) { return a.is<float>() && a.ndim() == 1 && a.size() == n && a.contiguous(); }

struct ByteLayer {
    Array scales;
    Array bias;
    bool fits = false;
    ByteLayer(const Array& scale, nb::handle b, int64_t n) : scales(scale) {
        if (!is_row(scale, n)) return;
        fits = b.is_none() || (nb::try_cast(b, bias) && is_row(bias, n));
    }
    const float* bias_data() const { return bias.usable() ? bias.data<float>() : nullptr; }
};

// What the caller gave, or, where that is 0, by the numbers themselves.
int8::Scale scale_for(const Array& x, float scale, int zero) {
    if (scale != 0) return {scale, zero};
    return int8::scale_of(x.data<float>(), x.size());
}

nb::object linear(Array x, Array w, Array scale, nb::object b, nb::object input_scale, int input_zero) {
    if (!x.is<float>() || !x.ndim() || !is_int8(w) || !w.contiguous() || w.ndim() != 2)
        return not_implemented();
    const int64_t n = w.shape(0), k = w.shape(1);
    const ByteLayer layer(scale, b, n);
    const float given = input_scale.is_none() ? 0 : nb::cast<float>(input_scale);
    if (!layer.fits || x.shape(x.ndim() - 1) != k || k < 1 || k > int8::MOST_TERMS || input_zero < 0 || input_zero > 255)
        return not_implemented();
    npy_intp shape[NPY_MAXDIMS];
    std::copy(x.shape(), x.shape() + x.ndim(), shape);
    shape[x.ndim() - 1] = n;
    const InRows rows(x);
    NewArray out = new_array(x.ndim(), shape, NPY_FLOAT);
    {
        const int8::Linear g{x.size() / k, n, k, rows.data<float>(), w.data<int8_t>(), layer.scales.data<float>(),
                             layer.bias_data(), out.data<float>()};
        Release release(int64_t(std::min(double(g.m) * double(n) * double(k) / 16, 1e18)));
        int8::linear(g, scale_for(rows.a, given, input_zero));
    }
    return give(out);
}

nb::object conv(Array x, Array w, Array scale, nb::object b, std::vector<int64_t> stride, std::vector<int64_t> padding,
                std::vector<int64_t> dilation, int64_t groups, nb::object input_scale, int input_zero) {
    const size_t n = stride.size();
    if (n < 1 || n > 2 || padding.size() != n || dilation.size() != n) return not_implemented();
    if (!x.is<float>() || x.ndim() != int(n) + 2 || !is_int8(w) || w.ndim() != int(n) + 2)
        return not_implemented();
    constexpr int64_t MOST = 1 << 20;  // of a size: products of three stay far below 2^63
    int8::Conv g{};
    g.images = x.shape(0), g.channels = x.shape(1), g.outputs = w.shape(0), g.groups = groups;
    if (groups < 1 || g.channels % groups || g.outputs % groups || w.shape(1) != g.channels / groups || !g.channels)
        return not_implemented();
    int64_t kernel[2] = {1, 1}, sizes[2] = {1, 1};
    g.stride[0] = g.dilation[0] = 1;
    for (size_t d = 0; d < n; ++d) {
        const size_t at = d + 2 - n;
        sizes[at] = x.shape(int(d) + 2), kernel[at] = w.shape(int(d) + 2);
        g.stride[at] = stride[d], g.padding[at] = padding[d], g.dilation[at] = dilation[d];
        if (stride[d] < 1 || stride[d] > MOST || padding[d] < 0 || padding[d] > MOST || dilation[d] < 1 ||
            dilation[d] > MOST || kernel[at] < 1 || kernel[at] > MOST || sizes[at] > MOST)
            return not_implemented();
    }
    g.height = sizes[0], g.width = sizes[1], g.kernel[0] = kernel[0], g.kernel[1] = kernel[1];
    for (int d = 0; d < 2; ++d)
        if (g.size(d) + 2 * g.padding[d] < g.dilation[d] * (g.kernel[d] - 1) + 1) return not_implemented();
    const ByteLayer layer(scale, b, g.outputs);
    const float given = input_scale.is_none() ? 0 : nb::cast<float>(input_scale);
    const int64_t bytes[] = {g.images, g.height + 2 * g.padding[0], g.width + 2 * g.padding[1], g.channels};
    if (!layer.fits || !countable(bytes, 4) || input_zero < 0 || input_zero > 255 ||
        double(g.kernel[0]) * double(g.kernel[1]) * double(g.channels / groups) > double(int8::MOST_TERMS))
        return not_implemented();
    // channels last, as a layer keeps them, or a copy of it that is
    nb::object order = nb::cast(n == 2 ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{0, 2, 1});
    PyArray_Dims axes{nullptr, 0};
    if (!PyArray_IntpConverter(order.ptr(), &axes)) throw nb::python_error();
    nb::object turned = nb::steal(PyArray_Transpose(w.p, &axes));
    PyDimMem_FREE(axes.ptr);
    if (!turned.is_valid()) throw nb::python_error();
    nb::object last = nb::steal(PyArray_FROM_OTF(turned.ptr(), NPY_INT8, NPY_ARRAY_IN_ARRAY));
    if (!last.is_valid()) throw nb::python_error();
    npy_intp shape[4] = {x.shape(0), g.outputs, g.out_size(0), g.out_size(1)};
    if (n == 1) shape[2] = shape[3];
    NewArray out = new_array(int(n) + 2, shape, NPY_FLOAT);
    const InRows rows(x);
    g.x = rows.data<float>(), g.w = nb::cast<Array>(last).data<int8_t>(), g.scales = layer.scales.data<float>();
    g.bias = layer.bias_data(), g.out = out.data<float>();
    {
        Release release(int64_t(std::min(double(out.size()) * double(g.terms()) / 16, 1e18)));
        int8::conv(g, scale_for(rows.a, given, input_zero));
    }
    return give(out);
}

FW_BIND(m) {
    m.def("int8_linear", &linear, nb::arg("x"), nb::arg("w"), nb::arg("scale"), nb::arg("b").none(),
          nb::arg("input_scale").none(), nb::arg("input_zero"));
    m.def("int8_conv", &conv, nb::arg("x"), nb::arg("w"), nb::arg("scale"), nb::arg("b").none(), nb::arg("stride"),
          nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"), nb::arg("input_scale").none(),
          nb::arg("input_zero"));
    m.def("int8_way", &int8::way);
    m.def("use_int8_way", [](const std::string& name) { return int8::use(name.c_str()); });
}

}  // namespace
}  // namespace fw
