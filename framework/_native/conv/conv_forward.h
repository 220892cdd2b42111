// The convolution, and what may follow it, of images and kernels row by row.
#pragma once

#include <cmath>
#include <functional>
#include <memory>

#include "conv/conv_shape.h"

namespace fw::windows {

// done(the results of some images, which may lie anywhere, the first of these, how many), by any thread
template <class T> using Done = std::function<void(const T*, int64_t, int64_t)>;

// Runs on the pool; called without Python's lock. done: what the results are for, in place of y, with the bits that y would
// have; false where they do not come image after image.
template <class T>
bool conv_forward(const ConvShape& s, const T* x, const T* w, const Epilogue<T>& end, T* y, const Done<T>* done = nullptr);

// What is known of many calls.
struct Calls {
    bool constant = false;  // the kernels, which are packed once
    bool in_parts = false;  // results are for `run_then`, some images at a time, while they are in the cache
    bool squares = false;   // only the largest of 2 x 2 neighbours is wanted of them, for which see `pools`
};

// The same for many calls: where windows are read is found out once, and the kernels may be packed before.
template <class T> class Convolution {
  public:
    explicit Convolution(const ConvShape& s, Calls calls = {});
    ~Convolution();
    bool pools() const;                       // `run` gives the largest of squares
    bool goes_in_parts() const;               // `run_then` needs no y, and computes what a single call of `run` does
    int64_t packed_numbers() const;           // 0: kernels are read as they lie
    std::vector<int64_t> packed_form() const; // what the packed kernels depend on, besides them
    void pack(const T* w, T* to) const;
    void run(const T* x, const T* w, const Epilogue<T>& end, T* y);  // w: packed, where they are
    void run_then(const T* x, const T* w, const Epilogue<T>& end, T* y, const Done<T>& done);  // y: room for all

  private:
    const ConvShape s;
    enum class Way { winograd, depthwise, turned, unfolded, product } way;
    bool squares = false;
    struct Product;
    std::unique_ptr<Product> product;
};

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
