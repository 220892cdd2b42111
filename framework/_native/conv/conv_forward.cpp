#include "conv/conv_forward.h"

#include "conv/conv_chunks.h"
#include "conv/conv_depthwise.h"
#include "conv/conv_last.h"
#include "conv/conv_pixels.h"
#include "conv/conv_unfolded.h"
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

}  // namespace

template <class T> struct Convolution<T>::Product {
    const ConvShape& s;
    Planes planes;
    bool own;  // each thread has its own chunks of the images
    PixelProduct<T> of;

    Product(const ConvShape& shape, Calls calls) : s(shape), planes(input_planes(shape)) {
        own = own_chunks<T>(planes, s.n, s.channels);
        if (calls.in_parts && s.n >= 4 * threads() && (own || !planes.copied)) {
            constexpr int64_t bytes = 192 << 10;  // of results, which leave room for images in the second-level cache
            const int64_t most = bytes / (s.rows * s.pixels() * int64_t(sizeof(T)));
            const int64_t images = std::clamp<int64_t>(most, 1, planes.images);
            if (planes.copied) planes.settle<T>(images, s.channels, chunk_bytes);
            else planes.images = images;
        }
        of.planes = &planes;
        of.k = s.k();
        of.groups = s.groups;
        of.rows = s.group_rows();
        of.group_from = s.group_channels() * planes.channel;
        of.to_row = s.pixels();
        PixelGrid& grid = of.grid;
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
        // with few pixels, packing weights costs more than reading them row by row
        of.packed_a = calls.constant || s.n * s.pixels() > 32 * lanes<T> || s.k() * int64_t(sizeof(T)) % 4096 == 0;
        of.squares = calls.squares && of.pools();
        if (of.squares) {
            of.to_row = grid.count[1] / 2 * (grid.count[2] / 2);
            grid.to_image = s.rows * of.to_row;
        } else {
            grid.merge();
        }
        for (int64_t c = 0; c < s.group_channels(); ++c) {
            for (int64_t t = 0; t < s.taps(); ++t) {
                int64_t at[conv_dims];
                s.tap(t, at);
                of.offset.push_back(c * planes.channel + planes.offset(at));
            }
        }
        of.choose();
    }

    void run(const T* x, const T* w, const Epilogue<T>& end, T* y, const Done<T>* done = nullptr) {
        of.a = w, of.epilogue = end;
        Buffer<T> copy(own ? 0 : planes.size);
        each_chunk(planes, x, s.n, own ? nullptr : copy.data, [&](const T* chunk, int64_t first, int64_t count) {
            if (!done) return of.run(chunk, y + first * of.grid.to_image, count);
            T* part = scratch<T>(1, count * of.grid.to_image);
            of.run(chunk, part, count);
            (*done)(part, first, count);
        });
    }
};

template <class T> Convolution<T>::Convolution(const ConvShape& shape, Calls calls) : s(shape), way(Way::product) {
    const bool filtered = sizeof(T) == 4 && (winograd_of_few(s, 32) || winograd_suits(s, 32));
    if (unfolded_suits(s, filtered)) way = Way::unfolded;
    else if constexpr (sizeof(T) == 4) {
        if (filtered) way = Way::winograd;
        else if (depthwise_suits(s)) way = Way::depthwise;
        else if (!calls.in_parts && !calls.squares && turned_suits(s)) way = Way::turned;
    }
    if (way == Way::product) product.reset(new Product(s, calls));
    squares = product && product->of.squares;
    if constexpr (sizeof(T) == 4)
        if (way == Way::winograd && calls.squares) squares = winograd_pools(s);
}

template <class T> Convolution<T>::~Convolution() = default;

template <class T> bool Convolution<T>::pools() const { return squares; }

template <class T> bool Convolution<T>::goes_in_parts() const {
    return way == Way::product && !(sizeof(T) == 4 && turned_suits(s));
}

template <class T> int64_t Convolution<T>::packed_numbers() const {
    if (way == Way::winograd) return winograd_packed(s);
    if (way == Way::turned) return turned_packed(s);
    return way == Way::product && product->of.packed_a ? s.rows * s.k() : 0;
}

template <class T> std::vector<int64_t> Convolution<T>::packed_form() const {
    int64_t tile_rows = product ? product->of.tile_rows : 0;
    if constexpr (sizeof(T) == 4)
        tile_rows = way == Way::winograd ? winograd_rows(s, squares) : way == Way::turned ? s.channels : tile_rows;
    return {int64_t(way), int64_t(sizeof(T)), s.rows, s.groups, s.k(), tile_rows};
}

template <class T> void Convolution<T>::pack(const T* w, T* to) const {
    if constexpr (sizeof(T) == 4) {
        if (way == Way::winograd) return winograd_pack(s, kernels_of(s, w), to, squares);
        if (way == Way::turned) return turned_pack(s, w, to);
    }
    const int64_t k = s.k(), rows = s.group_rows();
    pack_weights(to, s.groups, rows, k, product->of.tile_rows, k,
                 [=](int64_t g, int64_t p) { return w + g * rows * k + p; });
}

template <class T> void Convolution<T>::run(const T* x, const T* w, const Epilogue<T>& end, T* y) {
    if (way == Way::unfolded) return unfolded_forward(s, x, w, end, y);
    if constexpr (sizeof(T) == 4) {
        if (way == Way::winograd) return winograd(s, x, w, end, y, squares);
        if (way == Way::depthwise) return depthwise(s, x, kernels_in_rows(s, w), end, y, false);
        if (way == Way::turned) return turned_forward(s, x, w, end, y);
    }
    product->run(x, w, end, y);
}

template <class T>
void Convolution<T>::run_then(const T* x, const T* w, const Epilogue<T>& end, T* y, const Done<T>& done) {
    if (way != Way::product) {
        run(x, w, end, y);
        return done(y, 0, s.n);
    }
    product->run(x, w, end, y, &done);
}

template <class T> bool conv_forward(const ConvShape& s, const T* x, const T* w, const Epilogue<T>& end, T* y, const Done<T>* done) {
    Convolution<T> c(s, {false, done != nullptr, false});
    if (done && !c.goes_in_parts()) return false;
    const int64_t packed = c.packed_numbers();
    Buffer<T> a(packed);
    if (packed) c.pack(w, a.data);
    if (packed) w = a.data;
    if (done) c.run_then(x, w, end, y, *done);
    else c.run(x, w, end, y);
    return true;
}

template class Convolution<float>;
template class Convolution<double>;
template bool conv_forward(const ConvShape&, const float*, const float*, const Epilogue<float>&, float*, const Done<float>*);
template bool conv_forward(const ConvShape&, const double*, const double*, const Epilogue<double>&, double*, const Done<double>*);

}  // namespace fw::windows
