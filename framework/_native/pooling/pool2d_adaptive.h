// Pooling to a given size, and picking and putting numbers at places: where each window's largest element is.
#pragma once

#include "pooling/pool2d.h"

namespace fw::windows {

// Window i of `out` windows runs from floor(i * in / out) to ceil((i + 1) * in / out).
struct Cuts {
    int64_t in = 1, out = 1;
    int64_t begin(int64_t i) const { return i * in / out; }
    int64_t end(int64_t i) const { return ((i + 1) * in + out - 1) / out; }
};

// The first of the largest elements of each window, or its first nan, and its place in its plane.
template <class T>
void adaptive_max(const Cuts (&cut)[conv_dims], const T* x, int64_t planes, T* largest, int64_t* places);

// The same of images whose channels lie side by side.
template <class T>
void adaptive_max_channels(const Cuts (&cut)[conv_dims], int64_t images, int64_t channels, const T* x, T* largest,
                           int64_t* places);

// Rows of `numbers` numbers and of `places` places among them.
struct PlaceRows {
    int64_t rows = 1, numbers = 1, places = 1;

    // Of numbers of sizes x, whose last d dimensions are a row, and places of the same leading sizes; false if they do not fit.
    bool fit(const Sizes& x, const Sizes& index, int64_t d);
    int64_t grain() const { return 1 + (1 << 14) / (numbers + places); }
};

// y: the numbers of x at the places; and the way back, which adds up, or of two numbers at a place keeps the last. False where a place is none: places are checked where
// they are used, since another thread may change them.
// Of rows that are channels side by side: `channels` of them in each image.
template <class T> bool pick_channels(const PlaceRows& r, int64_t channels, const T* x, const int64_t* index, T* y);
template <class T>
bool put_channels(const PlaceRows& r, int64_t channels, const T* y, const int64_t* index, bool adds, T* x);
template <class T> bool pick_places(const PlaceRows& r, const T* x, const int64_t* index, T* y);
template <class T> bool put_places(const PlaceRows& r, const T* y, const int64_t* index, bool adds, T* x);

}  // namespace fw::windows
