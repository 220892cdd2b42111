#include "conv/conv_transposed.h"

#include "conv/conv_chunks.h"
#include "conv/conv_depthwise.h"
#include "conv/conv_last.h"
#include "conv/conv_pixels.h"
#include "conv/conv_unfolded.h"
#include "conv/conv_winograd.h"

namespace fw::windows {
namespace {

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

}  // namespace

template <class T> void conv_transposed(const ConvShape& s, const T* y, const T* w, T* x) {
    const bool filtered = sizeof(T) == 4 && winograd_suits(s, 8);
    if (unfolded_input_suits(s, filtered)) return unfolded_input(s, y, w, x);
    if constexpr (sizeof(T) == 4) {
        if (filtered)
            return winograd(gradient_shape(s), y, gradient_kernels(s, w), {}, x);
        if (depthwise_suits(s)) return depthwise_input(s, y, kernels_in_rows(s, w), x, false);
        if (turned_input_suits(s)) return turned_input(s, y, w, x);
    }
    const InputClasses classes(s);
    Planes planes = gradient_planes(s, classes);
    const bool own = own_chunks<T>(planes, s.n, s.rows);
    const int64_t weights = s.rows * s.k();
    Buffer<T> a(weights), copy(own ? 0 : planes.size);
    const T* from = y;
    T* to = x;
    if (!classes.all_read()) std::fill(to, to + s.n * s.channels * s.in_pixels(), T(0));
    const InputGradient<T> gradient{s, planes, w};
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

template void conv_transposed(const ConvShape&, const float*, const float*, float*);
template void conv_transposed(const ConvShape&, const double*, const double*, double*);

}  // namespace fw::windows
