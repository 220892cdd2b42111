// Starting Python's and NumPy's Mersenne Twisters anew for sample after sample, many seeds at once. No Python.
#pragma once

#include <cstdint>

#include "base/simd.h"

namespace fw::seeding {

struct Twister {
    static constexpr int N = 624;
    uint32_t words[N];
};

constexpr int LANES = 32;  // places of a row whose seeds are found together

// The seeds of LANES places of a row, and the states that they start.
struct Seeds {
    uint64_t keys[LANES];
    Twister python[LANES], numpy[LANES];

    void find(uint64_t row, uint64_t first);  // of the places from `first` on
};

}  // namespace fw::seeding
