// Products of 8-bit numbers for inference: weights as int8 with a scale for each output, activations as uint8 with one
// scale and zero point for all, sums in int32, results in float32.
//
// Sums of whole numbers are exact, so every instruction set gives the same bits, those of the NumPy formulas in
// framework/ops/linalg/int8.py. No Python, no exceptions but bad_alloc.
#pragma once

#include <cmath>
#include <cstdint>

namespace fw::int8 {

// What a number of activations means: x = scale * (q - zero), q from 0 to 255.
struct Scale {
    float scale = 1;
    int32_t zero = 0;
    bool finite() const { return std::isfinite(scale); }
};

constexpr int64_t MOST_TERMS = 65536;  // 255 * 127 * so many, and the zero point's share of them, fit into int32

Scale scale_of(float low, float high);      // of numbers from low to high; 0 is always among them, and exact
Scale scale_of(const float* x, int64_t n);  // of these numbers; not finite where one is not

// to[i] = the number next to x[i] / scale + zero, ties to even; nan is taken as 0.
void quantize(uint8_t* to, const float* x, int64_t n, Scale s);

// out[i, o] = scale * scales[o] * sum over p of (q(x[i, p]) - zero) * w[o, p], plus bias[o] unless that is nullptr.
struct Linear {
    int64_t m, n, k;
    const float* x;       // m x k, row by row, as are w and out
    const int8_t* w;      // n x k
    const float* scales;  // of the outputs, n
    const float* bias;    // n, or nullptr
    float* out;           // m x n
};
void linear(const Linear& g, Scale s);

// The same of every window of images. Conv1d is one of height 1.
struct Conv {
    int64_t images, channels, height, width, outputs, groups;
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    const float* x;       // images x channels x height x width
    const int8_t* w;      // outputs x kernel[0] x kernel[1] x channels / groups: channels last
    const float* scales;
    const float* bias;
    float* out;           // images x outputs x out_size(0) x out_size(1)

    int64_t size(int d) const { return d ? width : height; }
    int64_t out_size(int d) const {
        return (size(d) + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
    }
    int64_t terms() const { return kernel[0] * kernel[1] * (channels / groups); }
};
void conv(const Conv& g, Scale s);

// How the sums are formed: "plain" loops, "words" (products of 16-bit numbers, summed in pairs), "bytes" (four products
// of 8-bit numbers at once: vpdpbusd, sdot) or "tiles" (those of rows by columns: AMX). The best that the processor has
// unless another is asked for, as tests do; `use` of one without its instruction computes that step by step. False: no
// such way here.
const char* way();
bool use(const char* name);

}  // namespace fw::int8
