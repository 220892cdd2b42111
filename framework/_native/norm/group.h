// group_norm and instance_norm: each row is a group of channels of one sample. With R rows of n numbers, row r
// holds `each` channels of `length` numbers, the first of which is channel (r % groups) * each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

namespace fw {

struct GroupForm {
    int64_t rows, n, groups, each, length;
    double eps;
    int dims;  // of the statistics, which have one number for each row

    int64_t statistics() const { return rows; }
    int64_t weights() const { return channels(); }
    int64_t channels() const { return groups * each; }
    int64_t channel(int64_t r) const { return r % groups * each; }
};

// Numbers of the channels, each as often as its channel has numbers.
template <class T> std::unique_ptr<T[]> spread(const GroupForm& f, const T* of_channels) {
    if (!of_channels) return nullptr;
    std::unique_ptr<T[]> made(new T[size_t(f.channels() * f.length)]);
    for (int64_t c = 0; c < f.channels(); ++c) std::fill_n(made.get() + c * f.length, f.length, of_channels[c]);
    return made;
}

// weight and bias, of the channels, may be missing.
template <class T> struct GroupForward {
    const T *x, *weight, *bias;
    T *y, *mean, *var;
    GroupForm form;

    void run() const;
};

// The gradients of x, weight and bias: gx, or gw and gb, may be missing.
template <class T>
void group_grad(const GroupForm& f, const T* g, const T* x, const T* weight, const T* mean, const T* var, T* gx, T* gw, T* gb);

}  // namespace fw
