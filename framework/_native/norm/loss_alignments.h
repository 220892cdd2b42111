// Connectionist temporal classification: the probability of all ways that emit given labels, forward, and the share of
// each label at each step, backward.
#pragma once

#include <cstdint>
#include <vector>

namespace fw::alignments {

// Sizes, and the labels of all samples, with blanks between them: its own, so that nobody else can write into them between
// `valid` and their use as positions.
struct Ways {
    int64_t steps, samples, classes, width, blank;
    std::vector<int64_t> labels, times, sizes;  // (samples, width); of each sample, its steps and labels without blanks

    bool valid() const;  // whether all are of classes, steps and places that there are: asked for before all that follows
};

// x: scores (steps, samples, classes), logarithms; losses: of each sample; alpha: (samples, steps, width), for backward.
template <class T> void ctc(const Ways& w, const T* x, T* losses, T* alpha);
// gx, as x, from g, as losses.
template <class T> void ctc_grad(const Ways& w, const T* g, const T* x, const T* alpha, const T* losses, T* gx);

}  // namespace fw::alignments
