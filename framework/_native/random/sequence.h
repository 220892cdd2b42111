// The words of one element under a key, in blocks of four.
#pragma once

#include "random/philox.h"

namespace fw {

constexpr uint64_t VARIATES = 0x76617269617465;  // the second word of the key

struct Sequence {
    const PhiloxKey& key;
    uint64_t element, block;
    uint64_t words[BLOCK];
    Sequence(const PhiloxKey& key, int64_t element, uint64_t block = 0) : key(key), element(uint64_t(element)), block(block) {}

    FW_INLINE void next() { philox(PhiloxCounter{{element, block++, 0, 0}}, key, words); }
    FW_INLINE uint64_t word(int k) const { return words[k]; }
};

}  // namespace fw
