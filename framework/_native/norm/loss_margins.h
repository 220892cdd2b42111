// Losses over classes by margins: max(0, margin - x_t + x_i) ** p for the targets t of a row and all classes i that are none.
#pragma once

#include <cstdint>
#include <vector>

namespace fw {

// The targets are its own: nobody else can write into them between `valid` and their use as positions.
template <class T> struct Margins {
    int64_t rows, classes, places;  // places: targets of a row, which end before the first negative one
    const T* x;
    std::vector<int64_t> target;
    bool squares;  // p is 2, else 1
    double margin;

    bool valid(bool negative) const;  // whether all targets are classes, or, if they may, negative or behind such a one
    int64_t targets_of(int64_t row) const;
};

// loss: each row's, divided by the number of classes.
template <class T> void margin_losses(const Margins<T>& m, T* loss);
// gx, as x, where g comes from each row's loss, or `scale` where g is missing.
template <class T> void margin_grads(const Margins<T>& m, const T* g, double scale, T* gx);

}  // namespace fw
