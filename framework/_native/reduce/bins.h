// How many numbers, or how much weight, fall where. No Python.
#pragma once

#include <cstdint>

namespace fw {

// The edges of bins, rising, of which there are bins + 1; the last bin is closed.
template <class T> struct Edges {
    const T* at;
    int64_t bins;
    T scale;  // bins for each unit where they are equally wide; else 0

    Edges(const T* at, int64_t bins);
    int64_t place(T x) const;  // the bin of x; -1 outside, and of nan
};

// The least and the largest of n > 0 numbers, and whether none of them is nan.
template <class T> bool ends_of(const T* x, int64_t n, T& least, T& most);
// sums[cell] += weight (1 without any) for each of n rows of `dims` numbers that is in a cell of the grid.
template <class T>
void fill_bins(const T* x, int64_t n, int64_t dims, const Edges<T>* edges, const T* weight, double* sums);
// The same for equal parts of [low, high], in which places are computed in T.
template <class T> void fill_parts(const T* x, int64_t n, int64_t bins, double low, double high, int64_t* counts);
// Adds up in counts[x]: false where a number is not in [0, size). Of whole numbers of at most 64 bits.
template <class T> bool count_numbers(const T* x, int64_t n, int64_t size, int64_t* counts);

}  // namespace fw
