// Positions of what is not 0, in plain memory. No Python.
#pragma once

#include <cstdint>
#include <vector>

namespace fw::moving {

// Of n elements side by side: how many are not 0, counted in pieces. T: uint8_t (of bool, too), int32_t, int64_t, float, double.
template <class T> struct Nonzero {
    const T* x;
    int64_t n;
    std::vector<int64_t> before;  // each piece: elements before it that are not 0; last: all of them

    Nonzero(const T* x, int64_t n);
    int64_t count() const { return before.back(); }
    // Into out (count, ndim), ndim > 0: their positions in an array of that shape, in order. Should somebody change x
    // meanwhile, no more are written than were counted, and those that are missing are 0.
    void positions(int ndim, const int64_t* shape, int64_t* out) const;
};

}  // namespace fw::moving
