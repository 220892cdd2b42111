// Floating numbers taken apart: mantissas and exponents.
#include <cstring>

#include "bind/array.h"

namespace fw {
namespace {

// 0, inf and nan are their own mantissa, with an exponent of 0.
template <class T, class Bits, int PLACES, int MOST> void take_apart(const T* x, T* mantissa, int32_t* exponent, int64_t n) {
    constexpr int FURTHER = PLACES + 2;  // digits by which denormal numbers are moved up
    constexpr Bits OWN = ((Bits(1) << PLACES) - 1) | Bits(1) << (8 * sizeof(T) - 1), HALF = Bits(MOST / 2 - 1) << PLACES;
    const T up = T(Bits(1) << FURTHER);
    for (int64_t i = 0; i < n; ++i) {
        Bits bits, moved;
        const T higher = x[i] * up;
        std::memcpy(&bits, x + i, sizeof bits), std::memcpy(&moved, &higher, sizeof moved);
        const bool low = (bits >> PLACES & MOST) == 0;
        const Bits used = low ? moved : bits;
        const int32_t e = int32_t(used >> PLACES & MOST);
        const bool taken = e != MOST && x[i] != 0;
        const Bits made = taken ? (used & OWN) | HALF : bits;
        std::memcpy(mantissa + i, &made, sizeof made);
        exponent[i] = taken ? e - (MOST / 2 - 1) - (low ? FURTHER : 0) : 0;
    }
}

nb::object frexp(const Array& x) {
    if (!x.is_float() || !x.contiguous() || !x.size()) return not_implemented();
    NewArray mantissa = like(x), exponent = new_array(x.ndim(), x.shape(), NPY_INT32);
    {
        Release release(x.size() * 8);
        if (x.is<float>()) take_apart<float, uint32_t, 23, 0xff>(x.data<float>(), mantissa.data<float>(), exponent.data<int32_t>(), x.size());
        else take_apart<double, uint64_t, 52, 0x7ff>(x.data<double>(), mantissa.data<double>(), exponent.data<int32_t>(), x.size());
    }
    return nb::make_tuple(give(mantissa), give(exponent));
}

}  // namespace

FW_BIND(m) { m.def("frexp", &frexp, nb::arg("x")); }

}  // namespace fw
