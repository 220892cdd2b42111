// The pointwise part of recurrent layers, forward and backward, for the columns [j, end) of one step.
#pragma once

#include "rnn/rnn.h"
#include "base/vecmath.h"

namespace fw {
namespace rnn {

// d/da of sigmoid and tanh by their values
template <class T> FW_INLINE Vec<T> slope(Vec<T> s) { return s * (splat(T(1)) - s); }
template <class T> FW_INLINE Vec<T> tanh_slope(Vec<T> t) { return splat(T(1)) - t * t; }

// -- forward: `a` holds what the gates get from the inputs, `row` numbers wide per unit ------------

template <class T, bool Rectified> struct Plain {
    static constexpr int gates = 1, row = 1;
    static constexpr int place(int g) { return g; }
    static constexpr bool adds(int) { return true; }
    const Steps& steps;
    T* a;  // becomes the outputs
    int64_t width;

    void step(int64_t s, int64_t j, int64_t end) const {
        long_vectors<T>(j, end, [&](int64_t j, auto part, int) {
            T* p = a + steps.start[s] * width + j;
            for (int64_t k = 0; k < steps.size[s]; ++k, p += width) {
                Vec<T> v = take(p, part);
                put(p, Rectified ? Relu{}(v) : math::tanh(v), part);
            }
        });
    }
};

// Keeps: what backward asks for, the gates in place of `a` and all cells.
template <class T, bool Keeps> struct Lstm {
    static constexpr int gates = 4, row = 4;
    static constexpr int place(int g) { return g; }
    static constexpr bool adds(int) { return true; }
    const Steps& steps;
    T* a;  // becomes the gates
    T *cells, *y, *c;
    int64_t width;

    void step(int64_t s, int64_t j, int64_t end) const {
        long_vectors<T>(j, end, [&](int64_t j, auto part, int) {
            for (int64_t k = 0; k < steps.size[s]; ++k) {
                int64_t at = (steps.start[s] + k) * width;
                T *p = a + 4 * at + j, *state = c + k * width + j;
                Vec<T> i = math::sigmoid(take(p, part)), f = math::sigmoid(take(p + width, part));
                Vec<T> g = math::tanh(take(p + 2 * width, part)), o = math::sigmoid(take(p + 3 * width, part));
                Vec<T> cell = fma<T>(f, take(state, part), i * g);
                if constexpr (Keeps) {
                    put(p, i, part), put(p + width, f, part);
                    put(p + 2 * width, g, part), put(p + 3 * width, o, part);
                    put(cells + at + j, cell, part);
                }
                put(state, cell, part);
                put(y + at + j, o * math::tanh(cell), part);
            }
        });
    }
};

// a: r, z, n, and b_n + w_n h, which r multiplies
template <class T> struct Gru {
    static constexpr int gates = 3, row = 4;
    static constexpr int place(int g) { return g < 2 ? g : 3; }
    static constexpr bool adds(int g) { return g < 2; }
    const Steps& steps;
    T* a;
    const T *h0, *b_n;
    T* y;
    int64_t width;

    void step(int64_t s, int64_t j, int64_t end) const {
        long_vectors<T>(j, end, [&](int64_t j, auto part, int) {
            Vec<T> shift = b_n ? take(b_n + j, part) : Vec<T>{};
            for (int64_t k = 0; k < steps.size[s]; ++k) {
                int64_t at = (steps.start[s] + k) * width;
                T* p = a + 4 * at + j;
                Vec<T> h = take(steps.before(s, k, h0, y, width) + j, part);
                Vec<T> r = math::sigmoid(take(p, part)), z = math::sigmoid(take(p + width, part));
                Vec<T> inner = take(p + 3 * width, part) + shift;
                Vec<T> n = math::tanh(fma<T>(r, inner, take(p + 2 * width, part)));
                put(p, r, part), put(p + width, z, part);
                put(p + 2 * width, n, part), put(p + 3 * width, inner, part);
                put(y + at + j, fma<T>(z, h - n, n), part);
            }
        });
    }
};

// -- backward: gradients of the gates, their sums for the biases, what remains of dh ---------------

// The gradient of an output: what comes from later steps and, unless gy is null, from outside.
template <class T, class Part> FW_INLINE Vec<T> arrived(const T* dh, const T* gy, Part part) {
    Vec<T> h = take(dh, part);
    return gy ? h + take(gy, part) : h;
}

template <class T, class Part> FW_INLINE void add_to(T* p, Vec<T> v, Part part) { put(p, take(p, part) + v, part); }

template <class T, bool Rectified> struct PlainBack {
    static constexpr bool keeps = false;
    const Steps& steps;
    const T *gy, *y;
    T *dh, *d, *gb;
    int64_t width;

    void step(int64_t s, int64_t j, int64_t end) const {
        long_vectors<T>(j, end, [&](int64_t j, auto part, int) {
            Vec<T> sum = {};
            for (int64_t k = 0; k < steps.size[s]; ++k) {
                int64_t at = (steps.start[s] + k) * width + j;
                Vec<T> h = arrived(dh + k * width + j, gy ? gy + at : nullptr, part), v = take(y + at, part);
                Vec<T> g = Rectified ? select<T>(v > Vec<T>{}, h, Vec<T>{}) : h * tanh_slope<T>(v);
                put(d + at, g, part);
                sum += g;
            }
            add_to(gb + j, sum, part);
        });
    }
};

template <class T> struct LstmBack {
    static constexpr bool keeps = false;
    const Steps& steps;
    const T *gy, *gates, *cells, *c0;
    T *dh, *dc, *d, *gb;
    int64_t width;

    void step(int64_t s, int64_t j, int64_t end) const {
        long_vectors<T>(j, end, [&](int64_t j, auto part, int) {
            Vec<T> sum[4] = {};
            for (int64_t k = 0; k < steps.size[s]; ++k) {
                int64_t at = (steps.start[s] + k) * width;
                const T* p = gates + 4 * at + j;
                T *to = d + 4 * at + j, *state = dc + k * width + j;
                Vec<T> i = take(p, part), f = take(p + width, part), g = take(p + 2 * width, part);
                Vec<T> o = take(p + 3 * width, part), through = math::tanh(take(cells + at + j, part));
                Vec<T> h = arrived(dh + k * width + j, gy ? gy + at + j : nullptr, part);
                Vec<T> c = fma<T>(h * o, tanh_slope<T>(through), take(state, part));
                Vec<T> before = take(steps.before(s, k, c0, cells, width) + j, part);
                Vec<T> found[4] = {c * g * slope<T>(i), c * before * slope<T>(f), c * i * tanh_slope<T>(g),
                                   h * through * slope<T>(o)};
                put(state, c * f, part);
                for (int n = 0; n < 4; ++n) put(to + n * width, found[n], part), sum[n] += found[n];
            }
            for (int n = 0; n < 4; ++n) add_to(gb + n * width + j, sum[n], part);
        });
    }
};

// d: of r, z and n where the inputs enter; to_state: where the state does, through r for n
template <class T> struct GruBack {
    static constexpr bool keeps = true;
    const Steps& steps;
    const T *gy, *gates, *y, *h0;
    T *dh, *d, *to_state, *gb, *gb_state;
    int64_t width;

    void step(int64_t s, int64_t j, int64_t end) const {
        long_vectors<T>(j, end, [&](int64_t j, auto part, int) {
            Vec<T> sum[4] = {};
            for (int64_t k = 0; k < steps.size[s]; ++k) {
                int64_t at = (steps.start[s] + k) * width;
                const T* p = gates + 4 * at + j;
                T *left = dh + k * width + j, *to = d + 3 * at + j, *back = to_state + 3 * at + j;
                Vec<T> r = take(p, part), z = take(p + width, part), n = take(p + 2 * width, part);
                Vec<T> inner = take(p + 3 * width, part), h = arrived(left, gy ? gy + at + j : nullptr, part);
                Vec<T> before = take(steps.before(s, k, h0, y, width) + j, part);
                Vec<T> gn = h * (splat(T(1)) - z) * tanh_slope<T>(n), gz = h * (before - n) * slope<T>(z);
                Vec<T> gr = gn * inner * slope<T>(r), through = gn * r;
                put(to, gr, part), put(to + width, gz, part), put(to + 2 * width, gn, part);
                put(back, gr, part), put(back + width, gz, part), put(back + 2 * width, through, part);
                put(left, h * z, part);
                sum[0] += gr, sum[1] += gz, sum[2] += gn, sum[3] += through;
            }
            for (int n = 0; n < 3; ++n) add_to(gb + n * width + j, sum[n], part);
            for (int n = 0; n < 3; ++n) add_to(gb_state + n * width + j, sum[n < 2 ? n : 3], part);
        });
    }
};

}  // namespace rnn
}  // namespace fw
