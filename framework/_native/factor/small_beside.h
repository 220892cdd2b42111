// As many small matrices at once as a vector has lanes: element e of all of them is one vector.
#pragma once

#include <algorithm>

#include "base/vecmath.h"
#include "factor/small_systems.h"

namespace fw::small {

using V = Vec<double>;

// Element e of as many matrices, of `size` elements, as a vector has lanes, from number `first` on; behind the last one that again.
template <class T> void read_beside(const T* start, int64_t size, int64_t count, int64_t first, V* to) {
    constexpr int64_t L = lanes<double>;
    double some[MOST * NARROW][L];
    for (int64_t l = 0; l < L; ++l) {
        const T* from = start + std::min(first + l, count - 1) * size;
        for (int64_t e = 0; e < size; ++e) some[e][l] = double(from[e]);
    }
    for (int64_t e = 0; e < size; ++e) to[e] = load(some[e]);
}
template <class T> void write_beside(const V* from, int64_t size, int64_t count, int64_t first, T* start) {
    constexpr int64_t L = lanes<double>;
    double some[MOST * NARROW][L];
    for (int64_t e = 0; e < size; ++e) store(some[e], from[e]);
    for (int64_t l = 0; l < std::min(L, count - first); ++l)
        for (int64_t e = 0; e < size; ++e) start[(first + l) * size + e] = T(some[e][l]);
}

// Lanes of two vectors change places where they are to.
FW_INLINE void exchange(V& a, V& b, Mask<double> where) {
    const V kept = a;
    a = where ? b : a, b = where ? kept : b;
}

}  // namespace fw::small
