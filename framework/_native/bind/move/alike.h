// Arrays whose elements may be taken in any order, if only in the same one.
#pragma once

#include "bind/array.h"

namespace fw {

inline bool has_no_gaps(const Array& a) {  // and repeats nothing, in whatever order
    int axes[NPY_MAXDIMS];
    if (a.contiguous()) return true;
    axes_in_memory(a, axes);
    return dense_in_order(a, axes);
}

namespace moving {

// Two arrays of one type in the shape that both broadcast to, with their elements in the same order in memory, without
// gaps: as they are where they lie so, else copied out in rows. The originals have to outlive it.
struct Alike {
    NewArray made[2];
    Array x, y;
    bool fits = true;  // they do broadcast

    Alike(const Array& a, const Array& b);
    NewArray result(int type) const;  // a new array of that shape with its elements in that order
};

}  // namespace moving
}  // namespace fw
