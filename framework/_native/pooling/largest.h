// The largest of the elements looked at so far, in every lane, and its number: the first of the largest, or the first nan.
#pragma once

#include <cstring>
#include <limits>

#include "base/vecmath_core.h"
#include "pooling/pool2d.h"

namespace fw::windows {

template <class T> constexpr T lowest = -std::numeric_limits<T>::infinity();

template <class T, class P> FW_INLINE void store_places(P* to, Mask<T> place, int64_t n) {
    typedef P Places __attribute__((vector_size(sizeof(P) * lanes<T>)));
    Places p = __builtin_convertvector(place, Places);
    if (n == lanes<T>) std::memcpy(to, &p, sizeof p);
    else std::memcpy(to, &p, size_t(n) * sizeof(P));
}

template <class T> FW_INLINE void store_places(WindowPlaces to, Mask<T> place, int64_t n) {
    if (to.bytes == 1) store_places<T>(static_cast<uint8_t*>(to.to), place, n);
    else store_places<T>(static_cast<int32_t*>(to.to), place, n);
}

template <class T, bool Places> struct Best {
    Vec<T> value;
    Mask<T> place;

    FW_INLINE void look(Vec<T> v, Int<T> k) {
        const Mask<T> better = ~(v <= value) & (value == value);
        value = better ? v : value;
        if (Places) place = better ? Mask<T>{} + k : place;
    }
    // What was found further on, from position k of the window.
    FW_INLINE void join(const Best& o, Int<T> k) {
        const Mask<T> better = ~(o.value <= value) & (value == value);
        value = better ? o.value : value;
        if (Places) place = better ? o.place + k : place;
    }
    // The first n; `largest` may be missing.
    FW_INLINE void give(T* largest, WindowPlaces where, int64_t n) const {
        if (largest) n == lanes<T> ? store(largest, value) : store_first(largest, value, n);
        if constexpr (Places) store_places<T>(where, place, n);
    }
};

// The same of four numbers in this order, without their places.
template <class T> FW_INLINE Vec<T> largest_of(Vec<T> a, Vec<T> b, Vec<T> c, Vec<T> d) {
    const Vec<T> sum = (a + b) + (c + d);  // nan where one of them is, or inf meets -inf
    if (math::any(sum != sum)) {
        Best<T, false> best{a, {}};
        best.look(b, 1), best.look(c, 2), best.look(d, 3);
        return best.value;
    }
    const Vec<T> up = math::greater(b, a), low = math::greater(d, c);  // the first where they are equal
    return math::greater(low, up);
}

}  // namespace fw::windows
