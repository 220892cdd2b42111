#include "conv/conv_forward.h"

#include "conv/conv_chunks.h"
#include "conv/conv_depthwise.h"
#include "conv/conv_pixels.h"
#include "conv/conv_winograd.h"

namespace fw::windows {
namespace {

Planes input_planes(const ConvShape& s) {
    Planes planes;
    for (int d = 0; d < conv_dims; ++d) {
        const ConvAxis& a = s.axis[d];
        PlaneAxis& p = planes.axis[d];
        p.in = a.in;
        p.before = a.padding;
        p.step = a.stride;
        p.phases.clear();
        for (int64_t t = 0; t < a.kernel; ++t) p.phases.push_back(t * a.dilation % a.stride);
        p.extent = a.out + (a.kernel - 1) * a.dilation / a.stride;
        if (a.out == 1 && a.padding == 0) {  // the stride moves no window
            p.step = 1;
            p.phases = {0};
            p.extent = (a.kernel - 1) * a.dilation + 1;
        }
    }
    return planes;
}

template <class T>
void forward(const ConvShape& s, const T* from, const T* weights, const Epilogue<T>& end, T* to) {
    Planes planes = input_planes(s);
    const bool own = own_chunks<T>(planes, s.n, s.channels);
    PixelProduct<T> product;
    product.planes = &planes;
    product.k = s.k();
    product.groups = s.groups;
    product.rows = s.group_rows();
    product.group_from = s.group_channels() * planes.channel;
    product.epilogue = end;
    product.to_row = s.pixels();
    PixelGrid& grid = product.grid;
    int64_t step = 1;
    for (int d = conv_dims - 1; d >= 0; --d) {
        grid.count[d] = s.axis[d].out;
        grid.from[d] = planes.place[d];
        grid.to[d] = step;
        step *= s.axis[d].out;
    }
    grid.from_image = planes.image;
    grid.to_image = s.rows * s.pixels();
    grid.to_start = 0;
    grid.merge();
    for (int64_t c = 0; c < s.group_channels(); ++c) {
        for (int64_t t = 0; t < s.taps(); ++t) {
            int64_t at[conv_dims];
            s.tap(t, at);
            product.offset.push_back(c * planes.channel + planes.offset(at));
        }
    }
    product.choose();
    // with few pixels, packing weights costs more than reading them row by row
    product.packed_a = s.n * s.pixels() > 32 * lanes<T> || s.k() * int64_t(sizeof(T)) % 4096 == 0;
    Buffer<T> a(product.packed_a ? s.rows * s.k() : 0), copy(own ? 0 : planes.size);
    product.a = product.packed_a ? a.data : weights;
    const int64_t k = s.k(), rows = s.group_rows();
    if (product.packed_a)
        pack_weights(a.data, s.groups, rows, k, product.tile_rows, k,
                     [=](int64_t g, int64_t p) { return weights + g * rows * k + p; });
    each_chunk(planes, from, s.n, own ? nullptr : copy.data, [&](const T* chunk, int64_t first, int64_t count) {
        product.run(chunk, to + first * product.grid.to_image, count);
    });
}

}  // namespace

template <class T> void conv_forward(const ConvShape& s, const T* x, const T* w, const Epilogue<T>& end, T* y) {
    if constexpr (sizeof(T) == 4) {
        if (winograd_suits(s, 32)) return winograd(s, x, kernels_of(s, w), end, y);
        if (depthwise_suits(s)) return depthwise(s, x, w, end, y);
    }
    forward(s, x, w, end, y);
}

template void conv_forward(const ConvShape&, const float*, const float*, const Epilogue<float>&, float*);
template void conv_forward(const ConvShape&, const double*, const double*, const Epilogue<double>&, double*);

}  // namespace fw::windows
