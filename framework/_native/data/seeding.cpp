#include "data/seeding.h"

#include "base/simd.h"

// The generators' own seedings are one long chain of multiplications, which takes several microseconds; here every word is a
// hash of the key and its place, so that they are made side by side. Word after word: Murmur3's last steps (A. Appleby, 2011),
// with half of the key before each multiplication.
namespace fw::seeding {

uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

void start(uint64_t key, uint32_t which, uint32_t* words) {
    using Words = Vec<uint32_t>;
    constexpr int L = lanes<uint32_t>;
    constexpr uint32_t STEP = 0x9E3779B9u;
    static_assert(Twister::N % L == 0, "whole vectors");
    const uint32_t low = uint32_t(key), high = uint32_t(key >> 32);
    Words place;
    for (int i = 0; i < L; ++i) place[i] = uint32_t(i);
    Words spread = (place + which * uint32_t(Twister::N)) * STEP + low;
    for (int i = 0; i < Twister::N; i += L, spread += uint32_t(L) * STEP) {
        Words x = spread;
        x = (x ^ (x >> 16)) * 0x85EBCA6Bu + high;
        x = (x ^ (x >> 13)) * 0xC2B2AE35u;
        store(words + i, x ^ (x >> 16));
    }
    words[0] |= 0x80000000u;  // never all of them 0
}

}  // namespace fw::seeding
