// Sorting, and what is found by it, of plain memory. No Python.
#pragma once

#include <limits>

#include "base/view.h"

namespace fw::sort {

constexpr int64_t MOST = std::numeric_limits<int32_t>::max();  // elements in a row: places fit into half a word

inline bool sortable(Type t) {
    return t == Type::float32 || t == Type::float64 || t == Type::int64 || t == Type::int32;
}

// Numbers of such a type, with elements, along a dimension that there is.
inline bool sortable(const View& x, int dim) {
    return sortable(x.type()) && dim >= 0 && dim < x.ndim() && x.size() > 0 && x.shape(dim) <= MOST;
}

// Numbers of at most 16 bits are sorted as ones of 32: how far each is from the least there is, so that no digit is counted of which all
// are one. Of truth values any but 0 is true.
enum class Narrow { truth, int8, uint8, int16, uint16 };
void widen(Narrow type, const void* from, int64_t n, int32_t* to);
void narrow(Narrow type, const int32_t* from, int64_t n, void* to);

// Of sortable x, row by row without gaps; results are, too, with the sizes of x but for `dim`. `values` has the type of x,
// `places` are positions in the dimension. nan is the largest; equal numbers stay in their order.
void sort_along(const View& x, int dim, bool descending, void* values, int64_t* places);
void topk(const View& x, int64_t k, int dim, bool largest, void* values, int64_t* places);  // 1 <= k <= size
// Number k (from 0) of each row in order; `nan_wins`: the first nan of those that have one.
void kth(const View& x, int64_t k, int dim, bool nan_wins, void* values, int64_t* places);
// The middle one of each row without its nan, of two the lower; the one that comes most often, the smallest of several, at the
// last of its places (each nan counts for itself).
void nanmedian(const View& x, int dim, void* values, int64_t* places);
void mode(const View& x, int dim, void* values, int64_t* places);
void median(const View& x, void* value);  // of all elements: the lower one of two; at most MOST

// For each key how many numbers of its row of `a` are before it; with `right` those that equal it, too. Both row by row, of
// one type that is sorted; a has one dimension or those of the keys, with rows of other lengths.
bool searchable(const View& a, const View& keys);
void search(const View& a, const View& keys, bool right, int64_t* counts);

}  // namespace fw::sort
