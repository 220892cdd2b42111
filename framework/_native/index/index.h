// What choosing and writing by positions have in common.
#pragma once

#include <atomic>
#include <type_traits>
#include <vector>

#include "move/copy.h"

namespace fw::moving {

// Dimensions of an array as (outer, n, inner): positions of n count, `inner` elements move at once.
struct Layout {
    int64_t outer = 1, n = 1, inner = 1;
};

// Positions that were checked: each lies in [0, n). They are copies, which nobody changes meanwhile.
struct Places {
    std::vector<int64_t> at;
    bool good = false;

    int64_t count() const { return int64_t(at.size()); }
    const int64_t* begin() const { return at.data(); }
};

// The positions that `index` holds for dimensions of these sizes, one array after the other, combined to
// positions in all of them together; negative ones count from the end.
Places read_places(const Array& index, int dims, const npy_intp* sizes);

// a + b; integers wrap around
template <class T> FW_INLINE T sum_of(T a, T b) {
    if constexpr (std::is_integral<T>::value)
        return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
    else
        return a + b;
}

// Calls f with a number of the type that is summed; false for other types.
template <class F> bool by_number(int type, F&& f) {
    switch (type) {
        case NPY_FLOAT: return f(float{}), true;
        case NPY_DOUBLE: return f(double{}), true;
        case NPY_INT64: return f(int64_t{}), true;
        case NPY_INT32: return f(int32_t{}), true;
        default: return false;
    }
}

}  // namespace fw::moving
