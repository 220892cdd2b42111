// Starting Python's and NumPy's Mersenne Twisters anew for sample after sample. No Python.
#pragma once

#include <cstdint>

namespace fw::seeding {

struct Twister {
    static constexpr int N = 624;
    uint32_t words[N];
};

uint64_t mix(uint64_t x);  // splitmix64, as data/randomness.py has it

// The words with which a generator starts for a key, Python's (0) or NumPy's (1): as `twister_words` there.
void start(uint64_t key, uint32_t which, uint32_t* words);

}  // namespace fw::seeding
