// Which elements dropout keeps: a pure function of a key and an element's position.
// The same function as `coins` in framework/philox.py.
#pragma once

#include "random/philox.h"

namespace fw {

constexpr uint64_t COINS = 0x636f696e73;  // the second word of the key
constexpr int64_t PER = 4 * BLOCK;        // elements of a block: 16 bits each

// Element i is dropped where its 16 bits are below p * 2**16. Where they are its integral part, a number of
// its own is below the rest with the remaining probability, so the probability is p exactly.
struct Coins {
    PhiloxKey key;
    uint32_t whole;
    double rest;
    Coins(uint64_t key, double p) : key(key, COINS), whole(uint32_t(p * 65536)), rest(p * 65536 - whole) {}

    // The bits of the elements of blocks first, ..., first + N - 1.
    template <int64_t N> void blocks(int64_t first, uint16_t* bits) const {
        PhiloxCounter at{{uint64_t(first), 0, 0, 0}};
        uint64_t words[N * BLOCK];
        philox_blocks(at, key, N, words);
        std::memcpy(bits, words, sizeof words);
    }
    bool ties(const uint16_t* bits, int64_t n) const {
        bool any = false;
        for (int64_t k = 0; k < n; ++k) any |= bits[k] == whole;
        return any && rest > 0;
    }
    bool kept_at_tie(int64_t i) const {
        PhiloxCounter at{{uint64_t(i), 1, 0, 0}};
        uint64_t words[BLOCK];
        philox_blocks(at, key, 1, words);
        return uniform_double(words[0]) >= rest;
    }
};

}  // namespace fw
