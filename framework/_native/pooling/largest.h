// The largest of the elements looked at so far, in every lane, and its number: the first of the largest, or the first nan.
#pragma once

#include <cstring>
#include <limits>

#include "pooling/pool2d.h"

namespace fw::windows {

template <class T> constexpr T lowest = -std::numeric_limits<T>::infinity();

template <class T, bool Places> struct Best {
    Vec<T> value;
    Mask<T> place;

    FW_INLINE void look(Vec<T> v, Int<T> k) {
        const Mask<T> better = ~(v <= value) & (value == value);
        value = better ? v : value;
        if (Places) place = better ? Mask<T>{} + k : place;
    }
};

template <class T, class P> FW_INLINE void store_places(P* to, Mask<T> place, int64_t n) {
    typedef P Places __attribute__((vector_size(sizeof(P) * lanes<T>)));
    Places p = __builtin_convertvector(place, Places);
    std::memcpy(to, &p, size_t(n) * sizeof(P));
}

}  // namespace fw::windows
