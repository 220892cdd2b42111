// group_norm and instance_norm: each row is a group of channels of one sample. With R rows of n numbers, row r
// holds `each` channels of `length` numbers, the first of which is channel (r % groups) * each.
#pragma once

#include <cstdint>

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
