// Discrete Fourier transforms of views of complex or real numbers. No Python.
#pragma once

#include <vector>

#include "base/view.h"

namespace fw::fourier {

constexpr int MOST_DIMS = 64;  // of a view

bool is_quick(int64_t n);  // whether a transform of this size takes no room to speak of besides its numbers

enum class TransformKind { complex, forward_real, backward_real };

// Lines of one dimension of an array: where they begin, and how far apart their numbers are, in bytes.
struct Side {
    char* start;
    int64_t step;
    std::vector<int64_t> strides;  // of the other dimensions
};

// The transforms of all lines of one dimension.
struct TransformJob {
    TransformKind kind;
    bool inverse, real_input;
    int64_t n;                     // the size of the transform
    std::vector<int64_t> shape;    // of the other dimensions
    Side from, to;
    double factor;
};

// A transform over several dimensions, of which real ones halve the last: n / 2 + 1 complex numbers stand for n real ones.
struct Transform {
    TransformKind kind;
    bool inverse, real_input;
    std::vector<int64_t> dims;
    int64_t size;  // of the last of dims, in real numbers where it is halved
    double factor;

    // What is to be done one after the other; the views are not asked afterwards, but their memory is. between: complex
    // numbers, where the transforms of all dimensions but the last go; it may be the result.
    std::vector<TransformJob> jobs(const View& x, const View& between, const View& result) const;
};

// S: float or double, in complex numbers two. Runs on the pool; called without Python's lock.
template <class S> void run(const TransformJob& job);

}  // namespace fw::fourier
