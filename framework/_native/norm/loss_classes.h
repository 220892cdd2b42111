// cross_entropy of scores (N, C, ...) and class numbers: log_softmax, picking and the reduction at once.
//
// Of each target t, with the classes' weights w and the smoothing e, every class c has the share
// q_c = (1 - e) * w_t * [c == t] + e / C * w_c, and the loss is the sum of q_c * (log(sum(exp(x))) - x_c).
#pragma once

#include <vector>

#include "base/columns.h"

namespace fw {

enum class Reduction { none, sum, mean };

// The targets are its own: nobody else can write into them between `valid` and their use as positions.
template <class T> struct Scores {
    Around a;                 // classes, and what lies around them
    const T* x;
    std::vector<int64_t> target;
    const T* weight;          // nullptr: all 1
    int64_t ignore;
    double smoothing;
    double all_weights = smoothing == 0 ? 0 : weight ? sum_of_weights() : double(a.n);

    int64_t targets() const { return a.outer * a.inner; }
    bool ignored(int64_t i) const { return target[size_t(i)] == ignore; }
    double weight_of(int64_t i) const { return weight ? double(weight[target[size_t(i)]]) : 1; }
    double even() const { return smoothing / double(a.n); }

    bool valid() const;          // whether every target is a class, or ignored: asked for before all that follows
    double share() const;        // what the mean divides by

  private:
    double sum_of_weights() const;
};

// loss: one number, or one for each target; top and total: for each target, what backward asks for.
template <class T> void class_losses(const Scores<T>& s, Reduction by, T* loss, T* top, T* total);

// gx, as x. What comes from the loss is g, one number for each target, or `scale` where g is missing.
template <class T>
void class_grads(const Scores<T>& s, Reduction by, const T* g, double scale, const T* top, const T* total, T* gx);

// The sum of -w_t * x_t over the targets, its mean, or each; and what they count together. No smoothing.
template <class T> double picked_losses(const Scores<T>& s, Reduction by, T* loss);
// The way back from g, one number for each target, or one for all.
template <class T> void picked_grads(const Scores<T>& s, bool each, const T* g, double scale, T* gx);

}  // namespace fw
