// The convolution, and what may follow it, of images and kernels row by row.
#pragma once

#include <cmath>

#include "conv/conv_shape.h"

namespace fw::windows {

// Runs on the pool; called without Python's lock.
template <class T> void conv_forward(const ConvShape& s, const T* x, const T* w, const Epilogue<T>& end, T* y);

// What a normalisation in evaluation and an activation make of the sums: (y + b - mean) * scale + shift.
template <class T> struct Ending {
    const T *mean = nullptr, *var = nullptr, *gamma = nullptr, *beta = nullptr;  // of a norm; the last two may be missing
    double eps = 0;
    bool relu = false;

    // In `room`: the bias less the mean, the scale and the shift of each row.
    Epilogue<T> epilogue(const T* bias, int64_t rows, std::vector<T>& room) const {
        Epilogue<T> end;
        end.bias = bias;
        if (relu) end.least = 0;
        if (!mean) return end;
        room.resize(size_t(3 * rows));
        T *start = room.data(), *scale = start + rows, *shift = scale + rows;
        for (int64_t i = 0; i < rows; ++i) {
            start[i] = end.start(i) - mean[i];
            scale[i] = T(1 / std::sqrt(double(var[i]) + eps)) * (gamma ? gamma[i] : T(1));
            shift[i] = beta ? beta[i] : T(0);
        }
        end.bias = start, end.scale = scale, end.shift = shift;
        return end;
    }
};

}  // namespace fw::windows
